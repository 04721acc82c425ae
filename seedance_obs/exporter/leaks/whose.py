"""From findings to suspects: whose a finding is, and which findings are one and the same."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from seedance_obs.exporter.books.account_names import tenant_of, workload_of
from seedance_obs.exporter.leaks.costs import Place, place_of
from seedance_obs.leaks.suspect import KINDS, Finding, ProcessName, Sandbox, Suspect
from seedance_obs.sources.sandbox import Sandboxes, tree_of

# By what the worst suspect of a kind is told; the longest lasting where a kind is not here.
WEIGHTS = {
    "fd_growth": "growth_fds_per_second",
    "fd_near_limit": "open_fds",
    "anonymous_growth": "growth_bytes_per_second",
    "sparse_residency": "resident_bytes",
    "pseudo_idle_context": "gpu_memory_bytes",
    "dead_pid_memory": "gpu_memory_bytes",
    "memory_without_process": "gpu_memory_bytes",
}


class Whose:
    """Names suspects, and remembers since when each has been one."""

    def __init__(self, sandboxes: Sandboxes, *, wall: Callable[[], float]) -> None:
        self._sandboxes = sandboxes
        self._wall = wall
        self._started: dict[str, float] = {}  # Unix seconds by suspect

    def suspects(
        self,
        findings: Iterable[Finding],
        *,
        draw_of: Callable[[Place], tuple[float | None, float | None]],
        now: float,
    ) -> tuple[Suspect, ...]:
        """The suspects, kind by kind, the worst of each first.

        `draw_of` tells the watts of an account on a board and its part of the board.
        """
        self._sandboxes.refresh()
        groups: defaultdict[Hashable, list[tuple[Finding, Sandbox | None]]] = defaultdict(list)
        for finding in findings:
            sandbox = self._sandbox(finding.process)
            groups[_group(finding, sandbox)].append((finding, sandbox))
        found = [
            self._suspect(sorted(group, key=_weight, reverse=True), now)
            for group in groups.values()
        ]
        self._started = {suspect.name: suspect.started_unix for suspect in found}
        return tuple(sorted(_with_draw(found, draw_of), key=_rank))

    def _sandbox(self, process: ProcessName | None) -> Sandbox | None:
        """Where a process runs; None where nobody can look, or another has its pid by now."""
        sandbox = None if process is None else self._sandboxes.of(process.pid)
        if sandbox is None or process is None:
            return None
        return sandbox if sandbox.chain[0].start_ticks == process.start_ticks else None

    def _suspect(
        self,
        group: list[tuple[Finding, Sandbox | None]],
        now: float,
    ) -> Suspect:
        finding, sandbox = group[0]
        account = finding.owner or finding.account
        name = _name(finding, sandbox)
        since = min(each.since for each, _ in group)
        processes = (each.process for each, _ in group)
        return Suspect(
            name=name,
            finding=finding,
            processes=tuple(dict.fromkeys(filter(None, processes))),
            sandbox=sandbox,
            workload=workload_of(account),
            tenant=tenant_of(account),
            started_unix=self._started.get(name, self._wall() - (now - since)),
        )


def _with_draw(
    suspects: Sequence[Suspect], draw_of: Callable[[Place], tuple[float | None, float | None]]
) -> Iterator[Suspect]:
    """The suspects with what they draw of their boards; those of one account share it."""
    places = Counter(place_of(suspect.finding) for suspect in suspects)
    for suspect in suspects:
        place = place_of(suspect.finding)
        watts, share = draw_of(place) if place[0] else (None, None)
        yield replace(
            suspect,
            power_watts=None if watts is None else watts / places[place],
            gpu_share=None if share is None else share / places[place],
        )


def _group(finding: Finding, sandbox: Sandbox | None) -> Hashable:
    tree = tree_of(sandbox) if sandbox else finding.process
    return finding.kind, finding.gpu_uuid, finding.gpu_instance, finding.account, tree


def _weight(found: tuple[Finding, Sandbox | None]) -> tuple[float, float]:
    finding = found[0]
    return finding.evidence.get(WEIGHTS.get(finding.kind, ""), 0.0), -finding.since


def _rank(suspect: Suspect) -> tuple[int, float, float, str]:
    weight, age = _weight((suspect.finding, None))
    return list(KINDS).index(suspect.finding.kind), -weight, -age, suspect.name


def _name(finding: Finding, sandbox: Sandbox | None) -> str:
    tree = tree_of(sandbox) if sandbox else finding.process
    place = finding.gpu_uuid
    if finding.gpu_instance is not None:
        place += f":{finding.gpu_instance}"
    owner = f"{tree.pid}-{tree.start_ticks}" if tree else finding.account
    return re.sub(r"[^\w.:-]", "_", "-".join(filter(None, (finding.kind, place, owner))))
