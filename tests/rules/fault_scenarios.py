"""What may happen to a cluster, and who is to hear of what.

Every fault is one of the simulated machine, told in seconds since its epoch; exporters and rules
find it by themselves. Only the pod that waits is told by hand: no machine knows of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.loading import parse_machine
from seedance_obs.sources.sim.machine import Machine

PASS_S = 60.0  # a scrape each
H100, A100 = "h100-sxm5-80gb", "a100-pcie-80gb"
ROOTS = (0x15, 0x37, 0x89, 0xB3)  # host bridges, with two GPUs below a PCIe switch of each
FAULT_S = 600.0


@dataclass(frozen=True)
class Node:
    """A machine and how its exporter is run: how often it looks, and until when."""

    machine: Machine
    pass_s: float = PASS_S
    fast_s: float | None = None  # None: the fast loops are off
    killed_s: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A cluster, watched for some time. `heard` are `receiver alertname instance`."""

    name: str
    nodes: tuple[Node, ...]
    lasts_s: float
    fault_s: float = FAULT_S
    heard: frozenset[str] = frozenset()
    echoes: frozenset[str] = frozenset()  # alerts that fire and that nobody hears of
    recovers: bool = False
    pending_gpus: int = 0  # of a pod that waits from the fault on


def machine(name: str, gpus: int, *, model: str = H100, **changes: Any) -> Machine:
    """A Kubernetes node of one socket, two GPUs below each PCIe switch."""
    boards = [
        {
            "model": model,
            "pci": f"0000:{ROOTS[gpu // 2] + 3 + gpu % 2:02x}:00.0",
            "numa": 0,
            "path": [
                f"pci0000:{ROOTS[gpu // 2]:02x}",
                f"0000:{ROOTS[gpu // 2]:02x}:01.0",
                f"0000:{ROOTS[gpu // 2] + 1:02x}:00.0",
                f"0000:{ROOTS[gpu // 2] + 2:02x}:0{gpu % 2}.0",
            ],
        }
        for gpu in range(gpus)
    ]
    described = {
        "name": name,
        "driver_version": "580.105.08",
        "cuda_version": 13000,
        "memory_gib": 512,
        "numa_cpus": ["0-63"],
        "kubernetes": True,
        "tenants": {"vision": 2001, "speech": 2002, "research": 2004},
        "gpus": boards,
        "workloads": [],
        **changes,
    }
    return parse_machine(described, file=name)


def job(name: str, tenant: str, gpus: Sequence[int], **changes: Any) -> dict[str, Any]:
    """A pod that makes good use of its GPUs."""
    return {
        "name": name,
        "tenant": tenant,
        "kind": "training",
        "gpus": list(gpus),
        "phases": [[9, 0.95], [1.5, 0.6]],
        "memory_mib": 52000,
        "intensity": 0.8,
        "pod": {"namespace": tenant, "name": f"{name}-0", "container": "main"},
        **changes,
    }


def switch(number: int, links: int, gpus: Sequence[int] = ()) -> dict[str, Any]:
    return {
        "pci": f"0000:{0xC4 + number:02x}:00.0",
        "numa": 0,
        "links": links,
        "gpus": list(gpus),
        "path": ["pci0000:c0", "0000:c0:01.1", "0000:c1:00.0", f"0000:c2:0{number}.0"],
    }


# As on an HGX board: all four switches have links to each GPU.
HGX = [switch(number, links) for number, links in enumerate((5, 5, 4, 4))]
PAIR = [{"gpus": [0, 1], "links": 18}]

CALM = Scenario(
    "calm",
    (
        Node(
            machine(
                "calm-nvswitch",
                4,
                nvswitches=HGX,
                workloads=[
                    job("pretrain", "research", (0, 1)),
                    job("finetune", "speech", (2,), start_s=300, duration_s=2400),
                    job("serve", "vision", (3,), kind="inference", phases=[[4, 0.9], [2, 0.5]]),
                ],
            ),
            fast_s=5.0,
        ),
        Node(
            machine(
                "calm-pcie",
                2,
                model=A100,
                workloads=[
                    job("nightly", "vision", (0,), duration_s=900, repeat_every_s=1200),
                    job("sweep", "speech", (1,), phases=[[50, 0.9], [10, 0.2]]),
                ],
            )
        ),
        Node(load_machine("no-gpu")),
    ),
    lasts_s=7200.0,
)
GPU_LOST = Scenario(
    "GPU lost",
    (
        Node(
            machine(
                "lost",
                2,
                nvlinks=PAIR,
                workloads=[job("train", "research", (0, 1))],
                faults=[{"at_s": FAULT_S, "gpu": 1, "lost": True}],
            )
        ),
    ),
    lasts_s=1800.0,
    heard=frozenset({"page SeedanceGpuLost lost"}),
)
XID_79 = Scenario(
    "XID 79",
    (
        Node(
            machine(
                "xid",
                2,
                nvlinks=PAIR,
                workloads=[job("train", "research", (0, 1))],
                faults=[
                    {"at_s": FAULT_S, "gpu": 1, "xid": 79, "recovery_action": "node_reboot"},
                    {"at_s": FAULT_S + 1, "gpu": 1, "xid": 45},
                    {"at_s": FAULT_S + 1, "gpu": 0, "xid": 74},
                    {"at_s": FAULT_S + 2, "gpu": 0, "xid": 45},
                    {"at_s": FAULT_S + 70, "gpu": 1, "lost": True},
                ],
            )
        ),
    ),
    lasts_s=1800.0,
    heard=frozenset({"page SeedanceGpuLost xid"}),
    echoes=frozenset({"SeedanceGpuXidNvlink"}),
)
NVSWITCH = Scenario(
    "NVSwitch fails",
    (
        Node(
            machine(
                "switch",
                4,
                nvswitches=HGX,
                workloads=[job("train", "research", (0, 1, 2, 3))],
                faults=[
                    {"at_s": FAULT_S, "nvswitch": 1, "until_s": 1800},
                    *({"at_s": FAULT_S + 1, "gpu": gpu, "xid": 74} for gpu in range(4)),
                ],
            )
        ),
    ),
    lasts_s=2700.0,
    heard=frozenset({"page SeedanceNvlinkFabricDegraded switch"}),
    echoes=frozenset({"SeedanceGpuXidNvlink"}),
    recovers=True,
)
FD_LEAK = Scenario(
    "open files leak",
    (
        Node(
            machine(
                "leak",
                2,
                nvlinks=PAIR,
                workloads=[
                    job("tidy", "vision", (0,), fds_per_s=10, fds_reset_s=300),
                    job("leaky", "research", (1,), start_s=FAULT_S, fds=340, fds_per_s=9),
                ],
            ),
            pass_s=15.0,
        ),
    ),
    lasts_s=3000.0,
    heard=frozenset({"ticket SeedanceOpenFilesGrowing leak"}),
)
# Simulated tenants do not slow each other down. What it looks like is told by hand: one that
# computes all the time waits for its data from the moment on at which the other begins.
NEIGHBOUR = Scenario(
    "noisy neighbour",
    (
        Node(
            machine(
                "uplink",
                2,
                model=A100,
                dcgm_interval_s=15,
                workloads=[
                    job("steady", "vision", (0,), phases=[[1, 1]], duration_s=FAULT_S),
                    job(
                        "starved", "vision", (0,), kind="loading", phases=[[1, 1]], start_s=FAULT_S
                    ),
                    job("noisy", "speech", (1,), kind="loading", phases=[[1, 1]], start_s=FAULT_S),
                ],
            ),
            fast_s=5.0,
        ),
    ),
    lasts_s=2100.0,
    heard=frozenset({"ticket SeedanceSegmentContentionHurts uplink"}),
    echoes=frozenset({"SeedanceSegmentContended"}),
)
FRAGMENTED = Scenario(
    "8-GPU job waits",
    tuple(
        Node(
            machine(
                f"half-{number}",
                8,
                workloads=[job("train", "research", range(held), kind="training")],
            )
        )
        for number, held in enumerate((4, 3))
    ),
    lasts_s=2100.0,
    heard=frozenset({"ticket SeedancePodPendingFragmented "}),
    pending_gpus=8,
)
KILLED = Scenario(
    "exporter killed",
    tuple(
        Node(
            machine(
                name, 2, nvlinks=PAIR, workloads=[job("train", "research", (0, 1))], faults=faults
            ),
            killed_s=killed_s,
        )
        for name, killed_s, faults in (
            # For information, and so told after ten minutes if nothing worse has come by then.
            ("killed", FAULT_S, [{"at_s": at, "gpu": 0, "xid": 63} for at in (400, 535)]),
            ("alive", None, []),
        )
    ),
    lasts_s=1800.0,
    heard=frozenset({"ticket SeedanceTargetDown killed"}),
    echoes=frozenset({"SeedanceGpuXidContained"}),
)
SCENARIOS = (CALM, GPU_LOST, XID_79, NVSWITCH, FD_LEAK, NEIGHBOUR, FRAGMENTED, KILLED)
