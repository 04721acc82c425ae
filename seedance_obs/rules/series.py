"""The series that a rule may use: those of the contract, those that rules record, a few others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.errors import UsageError
from seedance_obs.rules.expression import Aggregation, Node, Selector, selectors
from seedance_obs.rules.rule_file import Rule

# Neither ours nor recorded: what Prometheus writes about targets and alerts, and demand, which only
# the cluster's scheduler knows. A rule that uses the latter must be silent without it.
FOREIGN: Mapping[str, str] = {
    "ALERTS": "gauge",
    "ALERTS_FOR_STATE": "gauge",
    "up": "gauge",
    "scrape_duration_seconds": "gauge",
    "scrape_samples_scraped": "gauge",
    "kube_pod_status_phase": "gauge",
    "kube_pod_status_unschedulable": "gauge",
    "kube_pod_container_resource_requests": "gauge",
    "kueue_pending_workloads": "gauge",
    "kueue_cluster_queue_resource_pending": "gauge",
}

# Counters of which a series is born by its first event, at 1 and not at 0: what happened first is
# in no increase() of them. The others are there from the start, or count amounts and not events.
BORN_BY_AN_EVENT = frozenset(
    {
        "seedance_gpu_xid_errors_total",  # by xid
        "seedance_leak_probe_skipped_total",  # by reason
        "seedance_readings_dropped_total",  # by reason
    }
)
TARGET_LABELS = frozenset({"cluster", "instance", "job"})
_JOBS: Mapping[str, str] = {"node": "gpu", "decisions": "decisions"}  # by the contract's file


@dataclass(frozen=True, slots=True)
class Series:
    """What a name stands for: counter, gauge or another type, empty where it is not known."""

    type: str
    labels: frozenset[str] | None  # None: not known
    jobs: frozenset[str] = frozenset()  # of the contract's targets; of others we know none


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """By name: what may be used, and how each recorded name is computed.

    `foreign` holds names and patterns, as of a shell, of series that somebody else's targets show.
    """

    scraped: Mapping[str, Series]
    recorded: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        """Whether a rule may use it."""
        return (
            name in self.scraped
            or name in self.recorded
            or any(fnmatchcase(name, pattern) for pattern in self.foreign)
        )

    def source_of(self, name: str) -> str:
        """The scraped series that a name stands for: itself, or what a rule takes the max of.

        Empty where a rule computes it otherwise, or it is not known. A sum is no longer a counter:
        it falls when one of its parts begins anew, and by no more than that part had.
        """
        for _ in range(10):
            if name in self.scraped:
                return name
            sources = {_taken(rule.tree) for rule in self.recorded.get(name, ())}
            if len(sources) != 1:
                return ""
            (name,) = sources
        return ""

    def type_of(self, name: str) -> str:
        """Its type by the contract; empty where that is not known."""
        source = self.source_of(name)
        return self.scraped[source].type if source else ""

    def with_recorded(self, rules: Iterable[Rule]) -> "KnownSeries":
        """The same and what rules record."""
        recorded: dict[str, tuple[Rule, ...]] = {}
        for rule in rules:
            if not rule.alert:
                recorded[rule.name] = (*recorded.get(rule.name, ()), rule)
        return replace(self, recorded=recorded)

    def behind(self, tree: Node) -> frozenset[str]:
        """The names that a query selects, and those behind what is recorded of them."""
        names: set[str] = set()
        trees = [tree]
        while trees:
            new = {each.name for each in selectors(trees.pop())} - names
            names |= new
            trees += [rule.tree for name in new for rule in self.recorded.get(name, ())]
        return frozenset(names)


def _taken(tree: Node) -> str:
    while isinstance(tree, Aggregation) and tree.operator in ("max", "min"):
        tree = tree.inner
    return tree.name if isinstance(tree, Selector) else ""


def read_contract(folder: Path, foreign: tuple[str, ...] = ()) -> KnownSeries:
    """The series of every scrape in a folder of *.prom files, and those of others.

    Raises:
        UsageError: the folder has none.
    """
    files = sorted(folder.glob("*.prom"))
    if not files:
        raise UsageError(f"{folder}: no *.prom is in this folder, so no series is known")
    return read_scrapes(files, foreign)


def read_scrapes(files: Iterable[Path], foreign: tuple[str, ...] = ()) -> KnownSeries:
    """The series of scrapes, and those of others.

    Raises:
        UsageError: one cannot be read, or is no scrape.
    """
    scraped = {name: Series(type_, None) for name, type_ in FOREIGN.items()}
    for file in files:
        jobs = frozenset({_JOBS.get(file.stem, file.stem)})
        for family in _families(file):
            for sample in family.samples:
                labels = frozenset(sample.labels) | TARGET_LABELS
                _add(scraped, sample.name, Series(family.type, labels, jobs))
            if not family.samples:  # announced, but this machine has none of it
                name = f"{family.name}_total" if family.type == "counter" else family.name
                _add(scraped, name, Series(family.type, None, jobs))
    return KnownSeries(scraped, foreign=foreign)


def _families(file: Path) -> list[Metric]:
    try:
        return list(text_string_to_metric_families(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: this is no scrape: {error}") from error


def _add(scraped: dict[str, Series], name: str, new: Series) -> None:
    before = scraped.get(name, new)
    labels = (before.labels or frozenset()) | (new.labels or frozenset())
    scraped[name] = Series(new.type, labels or None, before.jobs | new.jobs)
