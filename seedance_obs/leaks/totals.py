"""What the processes of one suspect hold or lose together."""

import math

from seedance_obs.leaks.suspect import Finding, Suspect

# Evidence of single processes that adds up over them.
ADDS_UP = ("growth_fds_per_second", "growth_bytes_per_second", "gpu_memory_bytes")


def totals_of(suspect: Suspect) -> dict[str, float]:
    """Sums over a suspect's processes, by names of evidence.

    A process that several rules found counts once, by its worst finding. A sum that lacks a
    process is none: it is absent, and so are all where the findings do not tell of all processes.
    """
    worst: dict[tuple[int, int | None], Finding] = {}
    for finding in suspect.findings or (suspect.finding,):
        if finding.process is not None:
            worst.setdefault((finding.process.pid, finding.process.start_ticks), finding)
    if not worst or len(worst) < len(suspect.processes):
        return {}
    sums = {}
    for name in ADDS_UP:
        values = [finding.evidence.get(name, math.nan) for finding in worst.values()]
        if math.isfinite(total := sum(values)):
            sums[name] = total
    return sums
