"""The exporter's /leaks page read back into values; what is not as it should be is refused."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.leaks.suspect import INFORMATIONAL, KINDS
from seedance_obs.process_tree import ProcessName

Value = TypeVar("Value", str, int, float)


@dataclass(frozen=True, slots=True)
class ToldWindow:
    """An idle window as the page tells it; `reason`: why it is closed, empty where nobody told."""

    open: bool
    workload: str = ""  # empty for the node's
    reason: str = ""
    seconds: float = 0.0  # that it has been open, over all times


@dataclass(frozen=True, slots=True)
class ToldFinding:
    """What one process of a suspect shows; `chain` is empty or has its first process first."""

    process: ProcessName
    evidence: Mapping[str, float] = field(default_factory=dict)
    chain: tuple[ProcessName, ...] = ()


@dataclass(frozen=True, slots=True)
class ToldSuspect:
    """A suspect as the page tells it; empty and None are unknown.

    Attributes:
        processes: The worst first.
        findings: Those of processes, the worst first.
        totals: What the processes show together, by names of evidence.
        chain: The first process of the sandbox first.
        user: Whose the worst process is by the host's users.
        cgroup: Where the worst process is.
        identity: What a person calls the workload by.
        gpu: The index of the board on its node.
        evidence: See `Finding`.
        cost_per_hour: In the page's currency.
    """

    name: str
    kind: str
    age_seconds: float
    rule: str = ""
    processes: tuple[ProcessName, ...] = ()
    findings: tuple[ToldFinding, ...] = ()
    totals: Mapping[str, float] = field(default_factory=dict)
    chain: tuple[ProcessName, ...] = ()
    mount_namespace: int | None = None
    net_namespace: int | None = None
    tenant: str = ""
    workload: str = ""
    identity: str = ""
    user: str = ""
    cgroup: str = ""
    gpu: str = ""
    gpu_uuid: str = ""
    gpu_instance: int | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)
    power_watts: float | None = None
    cost_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LeakPage:
    """The page as it is told; None is unknown.

    Attributes:
        idle_draw_unknown: GPUs that nobody can see spin.
        age_seconds: Of the last probe.
        idle_age_seconds: Of the last one in an idle window of the node.
        watched_seconds: Since the first probe.
        judged_after: By kind: how many seconds something must be watched before it is judged.
        unjudged: Kinds that the last probe failed to judge.
        processes: Those of the last probe by outcome.
    """

    node: str
    gpus: int
    age_seconds: float
    idle_age_seconds: float | None
    processes: Mapping[str, int]
    windows: tuple[ToldWindow, ...]
    suspects: tuple[ToldSuspect, ...]
    currency: str = ""
    idle_draw_unknown: int = 0
    watched_seconds: float | None = None
    judged_after: Mapping[str, float] = field(default_factory=dict)
    unjudged: tuple[str, ...] = ()

    def of_kinds(self, kinds: Sequence[str]) -> tuple[ToldSuspect, ...]:
        """The suspects of some kinds (none given: of all) in the order of `KINDS`."""
        order = {kind: place for place, kind in enumerate(KINDS)}
        chosen = [one for one in self.suspects if not kinds or one.kind in kinds]
        return tuple(sorted(chosen, key=lambda one: order.get(one.kind, len(order))))

    @property
    def dead_on_gpus(self) -> int:
        """Processes that have ended, hold GPU memory and are told as suspects."""
        pids = {
            process.pid
            for suspect in self.suspects
            if suspect.kind == "dead_pid_memory"
            for process in suspect.processes
        }
        return min(len(pids), self.processes.get("gone", 0))


def is_informational(suspect: ToldSuspect) -> bool:
    """Whether it is worth knowing and no reason to do anything."""
    return suspect.kind in INFORMATIONAL


def read_page(data: Any) -> LeakPage:
    """The page, given what its JSON holds.

    Raises:
        SourceUnavailableError: it is no page of leaks.
    """
    try:
        return _page(data)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise SourceUnavailableError(
            f"this is no page of leaks, or one of another version of seedance-obs ({error!r:.200})"
        ) from error


def _page(data: Mapping[str, Any]) -> LeakPage:
    probe = data["probe"]
    return LeakPage(
        node=_text(data, "node"),
        gpus=_needed(data, "gpus", int),
        age_seconds=_needed(probe, "age_seconds", float),
        idle_age_seconds=_maybe(probe, "idle_age_seconds", float),
        processes={name: _as(count, int) for name, count in probe["processes"].items()},
        windows=tuple(
            ToldWindow(
                one["open"] is True,
                _text(one, "workload"),
                _text(one, "reason"),
                _needed(one, "seconds", float),
            )
            for one in data["idle_windows"]
        ),
        suspects=tuple(map(_suspect, data["suspects"])),
        currency=_text(data["prices"], "currency"),
        idle_draw_unknown=_needed(data, "gpus_idle_draw_unknown", int),
        watched_seconds=_maybe(probe, "watched_seconds", float),
        judged_after=_numbers(probe["judged_after_seconds"]),
        unjudged=tuple(_as(kind, str) for kind in probe.get("unjudged", ())),
    )


def _suspect(data: Mapping[str, Any]) -> ToldSuspect:
    sandbox = data["sandbox"] or {"chain": []}
    processes = data["processes"] or ([data["process"]] if data["process"] else [])
    return ToldSuspect(
        name=_needed(data, "name", str),
        kind=_needed(data, "kind", str),
        age_seconds=_needed(data, "age_seconds", float),
        rule=_text(data, "rule"),
        processes=tuple(map(_process, processes)),
        findings=tuple(_finding(one) for one in data["findings"] if one["process"]),
        totals=_numbers(data["totals"]),
        chain=tuple(map(_process, reversed(sandbox["chain"]))),
        mount_namespace=_maybe(sandbox, "mount_namespace", int),
        net_namespace=_maybe(sandbox, "net_namespace", int),
        tenant=_text(data, "tenant"),
        workload=_text(data, "workload"),
        identity=_identity(data["workload_identity"] or {}),
        user=_text(data, "user"),
        cgroup=_text(data, "cgroup"),
        gpu=_text(data, "gpu"),
        gpu_uuid=_text(data, "gpu_uuid"),
        gpu_instance=_maybe(data, "gpu_instance", int),
        evidence=_numbers(data["evidence"]),
        power_watts=_maybe(data, "power_watts", float),
        cost_per_hour=_maybe(data, "cost_per_hour", float),
    )


def _finding(data: Mapping[str, Any]) -> ToldFinding:
    return ToldFinding(
        process=_process(data["process"]),
        evidence=_numbers(data["evidence"]),
        chain=tuple(map(_process, reversed(data["chain"]))),
    )


def _process(data: Mapping[str, Any]) -> ProcessName:
    return ProcessName(
        pid=_needed(data, "pid", int),
        start_ticks=_maybe(data, "start_ticks", int),
        comm=_text(data, "comm"),
    )


def _identity(data: Mapping[str, Any]) -> str:
    """`serving/llm-7f9c/server`, `Slurm job 4711 of ann`, `processes of ann`; empty if unknown."""
    user, job = _text(data, "user"), _text(data, "slurm_job")
    if job:
        return f"Slurm job {job}" + (f" of {user}" if user else "")
    names = [_text(data, name) for name in ("namespace", "pod", "container")]
    if any(names):
        return "/".join(filter(None, names))
    return f"processes of {user}" if user else ""


def _as(value: Any, kind: type[Value]) -> Value:
    """The value if it is of a kind (an int is a float, too), and finite."""
    wanted = (int, float) if kind is float else kind
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise ValueError(f"{value!r:.50} is no {kind.__name__}")
    if kind is float and not math.isfinite(value):
        raise ValueError(f"{value} is not finite")
    return kind(value)


def _numbers(data: Mapping[str, Any]) -> Mapping[str, float]:
    return {name: _as(value, float) for name, value in data.items()}


def _needed(data: Mapping[str, Any], name: str, kind: type[Value]) -> Value:
    return _as(data[name], kind)


def _maybe(data: Mapping[str, Any], name: str, kind: type[Value]) -> Value | None:
    value = data.get(name)
    return None if value is None else _as(value, kind)


def _text(data: Mapping[str, Any], name: str) -> str:
    return _maybe(data, name, str) or ""
