"""`GET /leaks`: everything the leak probes see, as JSON for people and programs.

Keys stay. What is not known is null, or absent from `evidence`; times on the exporter's own clock
are told as ages. `seedance_obs.leaks.report.page` reads the page back.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TypeAlias

from seedance_obs.attribution.tenants import UNKNOWN
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.view import GPU_LABELS, IdleWindowView, LeakView, NodeView
from seedance_obs.leaks.cost import cost_per_hour
from seedance_obs.leaks.held_memory import held_together
from seedance_obs.leaks.suspect import Finding, Suspect
from seedance_obs.leaks.totals import totals_of
from seedance_obs.process_tree import ProcessName, Sandbox
from seedance_obs.workload import Workload

Json: TypeAlias = "Mapping[str, Json] | list[Json] | str | float | bool | None"
IDENTITY = ("kind", "namespace", "pod", "container", "slurm_job", "user")


def why_no_page(view: NodeView) -> str | None:
    """The sentence for who asks for the page while there is none; None where there is one."""
    if view.leaks is None:
        return "nothing is probed for leaks here: set leaks.processes to gpu or all"
    if view.leaks.probed_at is None:
        return "no leak probe is complete yet: ask again in a moment"
    return None


def leaks_page(view: NodeView, now: float) -> str:
    """The page, `now` being the monotonic time; an empty object where nothing is probed."""
    page = {} if view.leaks is None else _page(view, view.leaks, now)
    return json.dumps(page, indent=2, allow_nan=False) + "\n"


def _page(view: NodeView, leaks: LeakView, now: float) -> dict[str, Json]:
    identities = {
        shown.workload.key: _identity(shown.workload) for shown in view.attribution.workloads
    }
    indices = {
        labels["gpu_uuid"]: labels["gpu"]
        for labels in (dict(zip(GPU_LABELS, gpu.labels, strict=True)) for gpu in view.gpus)
    }
    return {
        "node": _text(view.node_name),
        "gpus": len(view.gpus),
        "gpus_idle_draw_unknown": _idle_draw_unknown(view),
        "probe": _probe(leaks, now),
        "idle_windows": [_window(window) for window in leaks.windows],
        "most_shown": leaks.most_shown,
        "suspects": [
            {
                **_suspect(suspect, now),
                "workload_identity": identities.get(suspect.workload),
                "gpu": indices.get(suspect.finding.gpu_uuid) or None,
                "cost_per_hour": _cost(suspect, leaks),
            }
            for suspect in leaks.suspects
        ],
        "gpu_seconds": dict(sorted(leaks.gpu_seconds.items())),
        "gpu_energy_joules": {
            kind: used_mj / 1000 for kind, used_mj in sorted(leaks.gpu_energy_mj.items())
        },
        "gpu_memory_held": _held(leaks),
        "prices": {
            "currency": _text(leaks.currency),
            "kwh": _number(leaks.kwh_price),
            "gpu_hour": _number(leaks.gpu_hour_price),
        },
    }


def _held(leaks: LeakView) -> dict[str, Json]:
    """What all boards held together since this exporter started: see `Held`."""
    return dict(asdict(held_together(leaks.held.values())))


def _idle_draw_unknown(view: NodeView) -> int:
    """How many GPUs nobody can see spin, since what they draw when idle is not known."""
    known = {each.gpu_uuid for each in view.attribution.evidence if each.floor_watts is not None}
    return sum(gpu.merged.uuid not in known for gpu in view.gpus)


def _probe(leaks: LeakView, now: float) -> dict[str, Json]:
    # Until a window opens the first probe may stand here, so that the series has an age.
    never = leaks.probed_in_window_at == leaks.watching_since
    return {
        "age_seconds": _age(leaks.probed_at, now),
        "idle_age_seconds": None if never else _age(leaks.probed_in_window_at, now),
        "watched_seconds": _age(leaks.watching_since, now),
        "judged_after_seconds": dict(sorted(leaks.judged_after_seconds.items())),
        "cpu_seconds": _number(leaks.probe_seconds),
        "processes": dict(sorted(leaks.processes.items())),
        "skipped": dict(sorted(leaks.skipped.items())),
        "unjudged": [*sorted(leaks.unjudged)],
    }


def _window(window: IdleWindowView) -> dict[str, Json]:
    return {
        "workload": _text(window.workload),
        "tenant": _text(window.tenant),
        "open": window.open,
        "reason": _text(window.reason),
        "seconds": window.seconds,
    }


def _suspect(suspect: Suspect, now: float) -> dict[str, Json]:
    finding = suspect.finding
    return {
        "name": _text(suspect.name),
        "kind": finding.kind,
        "rule": _text(finding.rule),
        "age_seconds": _age(finding.since, now),
        "started_unix": _number(suspect.started_unix or None),
        "tenant": _text("" if suspect.tenant == UNKNOWN else suspect.tenant),
        "workload": _text("" if suspect.workload == UNKNOWN_WORKLOAD.key else suspect.workload),
        "user": _text(suspect.user),
        "cgroup": _text(suspect.cgroup),
        "gpu_uuid": _text(finding.gpu_uuid),
        "gpu_instance": finding.gpu_instance,
        "process": None if finding.process is None else _process(finding.process),
        "processes": [_process(process) for process in suspect.processes],
        "sandbox": None if suspect.sandbox is None else _sandbox(suspect.sandbox),
        "evidence": _evidence(finding),
        "findings": _findings(suspect, now),
        "totals": totals_of(suspect),
        "power_watts": _number(suspect.power_watts),
        "gpu_share": _number(suspect.gpu_share),
    }


def _findings(suspect: Suspect, now: float) -> list[Json]:
    """Each finding of a suspect, and the chain of its process as far as anybody looked."""
    chains = {sandbox.chain[0]: sandbox.chain for sandbox in suspect.sandboxes}
    if suspect.sandbox is not None:
        chains |= {suspect.sandbox.chain[0]: suspect.sandbox.chain}
    by_start = {(process.pid, process.start_ticks): chain for process, chain in chains.items()}
    told: list[Json] = []
    for finding in suspect.findings or (suspect.finding,):
        process = finding.process
        chain = by_start.get((process.pid, process.start_ticks), ()) if process else ()
        told.append(
            {
                "process": None if process is None else _process(process),
                "rule": _text(finding.rule),
                "age_seconds": _age(finding.since, now),
                "evidence": _evidence(finding),
                "chain": [_process(each) for each in chain],
            }
        )
    return told


def _evidence(finding: Finding) -> dict[str, Json]:
    return {name: value for name, value in finding.evidence.items() if math.isfinite(value)}


def _cost(suspect: Suspect, leaks: LeakView) -> float | None:
    prices = {"kwh_price": leaks.kwh_price, "gpu_hour_price": leaks.gpu_hour_price}
    return _number(cost_per_hour(suspect, **prices))


def _sandbox(sandbox: Sandbox) -> dict[str, Json]:
    return {
        "chain": [_process(process) for process in sandbox.chain],
        "mount_namespace": sandbox.mount_namespace,
        "net_namespace": sandbox.net_namespace,
    }


def _process(process: ProcessName) -> dict[str, Json]:
    return {
        "pid": process.pid,
        "start_ticks": process.start_ticks,
        "comm": _text(process.comm),
    }


def _identity(workload: Workload) -> dict[str, Json]:
    return {name: _text(getattr(workload, name)) for name in IDENTITY}


def _text(text: str) -> str | None:
    """The text, null where it is empty; halves of characters, which no reader takes, replaced."""
    return text.encode("utf-8", errors="replace").decode() or None


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else max(0.0, now - at)
