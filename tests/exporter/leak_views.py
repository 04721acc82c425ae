"""Views of leaks made by hand: suspects of every kind, and names that nobody should have."""

from dataclasses import replace

from seedance_obs.exporter.view import (
    AttributionView,
    BoardEvidence,
    IdleWindowView,
    LeakView,
    LocatedGpu,
    NodeView,
    ShownWorkload,
)
from seedance_obs.leaks.suspect import KINDS, Finding, Suspect
from seedance_obs.merge import merge
from seedance_obs.process_tree import ProcessName, Sandbox
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot
from seedance_obs.topology.model import Device, Kind
from seedance_obs.workload import Workload

NOW = 50_000.0
MIB, GIB = 2.0**20, 2.0**30
HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\nroot@node# \u202e\x9b31m\udcff" + "x" * 10_000 + "[red]\x7f"
POD = Workload(
    kind="pod",
    uid="8d2f1c1e-71b4-4a0e-9c55-1234567890ab",
    started_at=1_732_961_000,
    namespace="serving",
    pod="llm-7f9c5d-xk2lp",
    container="server",
)
JOB = Workload(kind="slurm", uid="90210", started_at=1_732_950_000, slurm_job="90210", user="ann")
LOADER, PYTHON, BASH = (
    ProcessName(4711, 990_000, "pt_data_worker"),
    ProcessName(4700, 980_000, "python3.11"),
    ProcessName(4690, 970_000, "bash"),
)
SANDBOX = Sandbox((LOADER, PYTHON, BASH), 4_026_532_001, 4_026_532_002)
# By kind: the rule and the numbers of a typical suspect.
TYPICAL: dict[str, tuple[str, dict[str, float]]] = {
    "fd_growth": (
        "fast",
        {
            "open_fds": 4_982,
            "fd_limit": 65_536,
            "growth_fds_per_second": 9.0,
            "low_water_fds_per_second": 8.9,
            "exhaustion_seconds": 6_728,
        },
    ),
    "fd_near_limit": ("", {"open_fds": 983, "fd_limit": 1_024}),
    "anonymous_growth": (
        "fast",
        {
            "anonymous_bytes": 3.2 * GIB,
            "growth_bytes_per_second": 50 * MIB / 3600,
            "low_water_bytes_per_second": 48 * MIB / 3600,
            "file_bytes": 212 * MIB,
            "swap_bytes": 1.5 * GIB,
        },
    ),
    "sparse_residency": (
        "",
        {"residency_ratio": 0.12, "anonymous_bytes": 2.9 * GIB, "resident_bytes": 3.4 * GIB},
    ),
    "pseudo_idle_context": (
        "",
        {"gpu_memory_bytes": 3.2 * GIB, "sm_ratio": 0.0, "dram_ratio": 0.001, "samples": 7_800},
    ),
    "dead_pid_memory": ("", {"gpu_memory_bytes": 38 * GIB}),
    "memory_without_process": ("", {"gpu_memory_bytes": 6.4 * GIB}),
    "busy_without_process": ("", {"utilization_ratio": 0.97}),
    "allocated_without_process": ("", {}),
    "spinning": (
        "",
        {
            "utilization_ratio": 1.0,
            "sm_ratio": 0.02,
            "power_watts": 116.0,
            "idle_watts": 65.0,
        },
    ),
}
ON_A_GPU = {
    *("pseudo_idle_context", "dead_pid_memory", "memory_without_process"),
    *("busy_without_process", "allocated_without_process", "spinning"),
}
OF_A_PROCESS = set(KINDS) - {name for name in KINDS if name.endswith("_without_process")}


def suspect(kind: str, number: int = 0, **changes: object) -> Suspect:
    """A suspect of a kind as one would be on a node, the `number`th of it."""
    rule, evidence = TYPICAL[kind]
    worst = replace(LOADER, pid=LOADER.pid + number)
    finding = Finding(
        kind,
        since=NOW - 7_800.0,
        rule=rule,
        process=worst if kind in OF_A_PROCESS else None,
        gpu_uuid=f"GPU-{number % 8}" if kind in ON_A_GPU else "",
        evidence=evidence,
    )
    whole = Suspect(
        name=f"{kind}-{worst.pid}-{worst.start_ticks}",
        finding=finding,
        processes=(worst,) if kind in OF_A_PROCESS else (),
        findings=(finding,),
        sandbox=replace(SANDBOX, chain=(worst, PYTHON, BASH)) if kind in OF_A_PROCESS else None,
        workload=(POD if number % 2 == 0 else JOB).key,
        tenant="team-vision" if number % 2 == 0 else "genomics",
        started_unix=1_732_990_000.0,
        power_watts=68.0 if kind in ON_A_GPU else None,
        gpu_share=1.0 if kind in ON_A_GPU else None,
    )
    return replace(whole, **changes)


def tree_suspect(count: int, **changes: object) -> Suspect:
    """Workers of one loader that leak, each by 0.5/s less than the one before it."""
    whole = suspect("fd_growth")
    workers = [replace(LOADER, pid=LOADER.pid + number) for number in range(count)]
    findings = tuple(
        replace(
            whole.finding,
            process=worker,
            evidence={**whole.finding.evidence, "growth_fds_per_second": 9.0 - number / 2},
        )
        for number, worker in enumerate(workers)
    )
    tree = replace(
        whole,
        processes=tuple(workers),
        findings=findings,
        sandboxes=tuple(replace(SANDBOX, chain=(one, PYTHON, BASH)) for one in workers),
    )
    return replace(tree, **changes)


def hostile_suspect() -> Suspect:
    """A suspect whose every name wants to take over a terminal."""
    process = ProcessName(666, 1, HOSTILE)
    return suspect(
        "fd_growth",
        finding=replace(suspect("fd_growth").finding, process=process),
        processes=(process,),
        findings=(),
        sandbox=Sandbox((process,) * 30, 1, None),
        workload=HOSTILE,
        tenant=HOSTILE,
        user=HOSTILE,
        cgroup=HOSTILE,
    )


def leak_view(*suspects: Suspect, **changes: object) -> LeakView:
    """What the probes see four seconds after the last probe."""
    whole = LeakView(
        suspects=suspects,
        most_shown=10,
        windows=(
            IdleWindowView(open=False, seconds=120.0, reason="memory_in_use"),
            IdleWindowView(open=True, seconds=9_000.0, workload=POD.key, tenant="team-vision"),
            IdleWindowView(open=False, seconds=0.0, workload=JOB.key, tenant="genomics"),
        ),
        skipped={"memory_in_use": 2_300, "warming_up": 20},
        probed_at=NOW - 4.0,
        probed_in_window_at=NOW - 18_000.0,
        watching_since=NOW - 40_000.0,
        judged_after_seconds={
            "fd_growth": 900.0,
            "anonymous_growth": 6_000.0,
            "pseudo_idle_context": 1_800.0,
            "dead_pid_memory": 300.0,
            "memory_without_process": 300.0,
            "busy_without_process": 300.0,
            "allocated_without_process": 1_800.0,
            "spinning": 600.0,
        },
        probe_seconds=0.012,
        processes={"read": 409, "no_permission": 2, "gone": 1},
        gpu_seconds={"pseudo_idle_context": 7_800.0},
        gpu_energy_mj={"pseudo_idle_context": 530_400_000},
        currency="EUR",
        kwh_price=0.6,
    )
    return replace(whole, **changes)


def idle_draw(gpu_uuid: str, floor_watts: float | None) -> BoardEvidence:
    """What the books know of a board that nobody shares."""
    return BoardEvidence(
        gpu_uuid=gpu_uuid,
        energy_source="counter",
        floor_watts=floor_watts,
        floor_source=None if floor_watts is None else "measured",
        base_watts=None,
        estimators={},
        counter_restarts=0,
        implausible=0,
        intensity=None,
    )


def node_view(leaks: LeakView | None, *, idle_draw_known: int = 8, **changes: object) -> NodeView:
    """A node of eight GPUs with two workloads, where the idle draw of some GPUs is known."""
    found = merge(
        [SourceSnapshot("nvml", 0.0, gpus=tuple(GpuReadings(f"GPU-{n}") for n in range(8)))], {}
    )
    whole = NodeView(
        node_name="gpu-17",
        gpus=tuple(
            LocatedGpu(gpu, Device(gpu.uuid, Kind.GPU), (gpu.uuid[4:], gpu.uuid, *[""] * 5))
            for gpu in found
        ),
        attribution=AttributionView(
            workloads=(ShownWorkload(POD, "team-vision"), ShownWorkload(JOB, "genomics")),
            evidence=tuple(
                idle_draw(f"GPU-{number}", 65.0 if number < idle_draw_known else None)
                for number in range(8)
            ),
        ),
        leaks=leaks,
    )
    return replace(whole, **changes)
