"""The worst leak suspects of each kind, one by one: whose they are, and their numbers."""

import math
from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import LeakView, NodeView
from seedance_obs.leaks.suspect import Suspect
from seedance_obs.topology.safe_text import printable

SUSPECT = ("suspect", "kind")
MOST_COMM_CHARACTERS = 64  # the longest that Linux shows, of a kernel worker
# By evidence: the series that shows it, and what it means.
EVIDENCE = {
    "open_fds": ("seedance_leak_open_fds", "Files that a suspect's worst process has open."),
    "fd_limit": (
        "seedance_leak_fd_limit",
        "Files that a suspect's worst process may have open: the soft limit of its own.",
    ),
    "growth_fds_per_second": (
        "seedance_leak_fd_growth_per_second",
        "Growth of the open files of a suspect's worst process, by least squares over the latest "
        "window of its rule.",
    ),
    "exhaustion_seconds": (
        "seedance_leak_exhaustion_seconds",
        "Time until a suspect's worst process reaches its own limit of open files, if they go on "
        "growing so.",
    ),
    "anonymous_bytes": (
        "seedance_leak_anonymous_memory_bytes",
        "Anonymous memory of a suspect's worst process that is resident: no files, nothing shared.",
    ),
    "growth_bytes_per_second": (
        "seedance_leak_anonymous_memory_growth_bytes_per_second",
        "Growth of the anonymous memory of a suspect's worst process while its workload or the "
        "node was idle, by least squares over the latest window of its rule.",
    ),
    "gpu_memory_bytes": (
        "seedance_leak_gpu_memory_bytes",
        "GPU memory that a suspect's worst process holds, or that is in use and nobody's.",
    ),
}


@register("suspects", "the worst leak suspects of each kind, one by one")
class SuspectsCollector:
    """As many of each kind as `leaks.shown` lets through; the others are counted."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape; nothing where nothing is probed."""
        if view.leaks is None:
            return
        shown = _shown(view.leaks)
        yield _hidden(view.leaks, shown)
        yield from _identities(shown)
        yield from _numbers(shown)


def _shown(leaks: LeakView) -> list[Suspect]:
    """The first suspects of each kind, as many as are to be shown."""
    seen: Counter[str] = Counter()
    shown = []
    for suspect in leaks.suspects:
        seen[suspect.finding.kind] += 1
        if seen[suspect.finding.kind] <= leaks.most_shown:
            shown.append(suspect)
    return shown


def _hidden(leaks: LeakView, shown: list[Suspect]) -> Metric:
    family = GaugeMetricFamily(
        "seedance_leak_suspects_hidden",
        "Suspects of a kind that leaks.shown keeps from being shown one by one; only of kinds "
        "that there are suspects of.",
        labels=["kind"],
    )
    counts = Counter(suspect.finding.kind for suspect in leaks.suspects)
    counts.subtract(suspect.finding.kind for suspect in shown)
    for kind, count in sorted(counts.items()):
        family.add_metric([kind], count)
    return family


def _identities(shown: list[Suspect]) -> Iterator[Metric]:
    info = InfoMetricFamily(
        "seedance_leak_suspect",
        "A suspect, the worst of its processes (pid as this exporter sees it) and whose it is. "
        "Rule: the preset that found it, of kinds that have several. Empty: not known, or none.",
    )
    started = GaugeMetricFamily(
        "seedance_leak_suspect_start_time_seconds",
        "Unix time at which a suspect was first seen to be one.",
        labels=SUSPECT,
    )
    for suspect in shown:
        info.add_metric([], _identity(suspect))
        if suspect.started_unix > 0:
            started.add_metric(_labels(suspect), suspect.started_unix)
    yield from (info, started)


def _identity(suspect: Suspect) -> dict[str, str]:
    finding, process = suspect.finding, suspect.finding.process
    return {
        "suspect": suspect.name,
        "kind": finding.kind,
        "rule": finding.rule,
        "gpu_uuid": finding.gpu_uuid,
        "gpu_instance": "" if finding.gpu_instance is None else str(finding.gpu_instance),
        "pid": "" if process is None else str(process.pid),
        "comm": "" if process is None else printable(process.comm[:MOST_COMM_CHARACTERS]),
        "workload": suspect.workload,
        "tenant": suspect.tenant,
    }


def _numbers(shown: list[Suspect]) -> Iterator[Metric]:
    for evidence, (name, about) in EVIDENCE.items():
        family = GaugeMetricFamily(name, about, labels=SUSPECT)
        for suspect in shown:
            value = suspect.finding.evidence.get(evidence)
            if value is not None and math.isfinite(value):
                family.add_metric(_labels(suspect), value)
        yield family
    power = GaugeMetricFamily(
        "seedance_leak_gpu_power_watts",
        "GPU power that a suspect draws, on average over the last two minutes.",
        labels=SUSPECT,
    )
    for suspect in shown:
        if suspect.power_watts is not None:
            power.add_metric(_labels(suspect), suspect.power_watts)
    yield power


def _labels(suspect: Suspect) -> list[str]:
    return [suspect.name, suspect.finding.kind]
