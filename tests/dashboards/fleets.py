"""Clusters of simulated nodes that the dashboards are to be right about, and what is true of them.

A cluster is told from the others by the target label `cluster`. Time in them begins at the start
of the history; nothing in them is random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.machine import Machine
from tests.dashboards.machines import Described, job, like, shipped_boards, with_siblings

SCRAPE_S = 15.0  # and as often a pass
LASTS_S = 780.0
SELDOM_S = 60.0  # a scrape, of what was there before
BEFORE_S = 10_800.0
LOST_AT_S = 390.0
DOWN_AT_S = 510.0
HGX, DGX, PCIE = map(shipped_boards, ("h100-nvswitch", "a100-nvswitch", "a100-pcie"))
IDLE_S = 45.0  # at first, so that what an idle board draws is measured
STEADY, OFTEN_LESS = [[60, 0.95]], [[45, 0.9], [15, 0.5]]
BY_TURNS = [[60, 0.6], [60, 0.02]]
ON_AND_OFF = [[60, 1.0], [60, 0.02]]
SUFFERS = [[45, 0.2], [15, 0.7], [60, 0.5]]  # does less while the other is at it

# What takes hours at the defaults, in minutes: a leak is one after five windows of its rule.
HASTY = {
    "leaks_idle_seconds": 45.0,
    "leaks_fd_growth": ("fast=8/s,45s",),
    "leaks_memory_growth": ("fast=32MiB/h,60s",),
    "leaks_context_seconds": 240.0,
    "leaks_context_samples": 10,
    "leaks_orphan_seconds": 60.0,
    "leaks_allocated_seconds": 240.0,
    "leaks_spin_seconds": 120.0,
    "prices_currency": "EUR",
    "prices_kwh": 0.25,
    "prices_gpu_hour": 2.5,
}


@dataclass(frozen=True)
class Node:
    """A machine, and how its exporter fares: from when on it does not answer, how it is set.

    `before_s` seconds of it are told before the history begins, where its time is 0.
    """

    machine: Machine
    down_at_s: float | None = None
    before_s: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What its series have in `instance`."""
        return self.machine.name

    @property
    def gpu_uuids(self) -> tuple[str, ...]:
        """Its boards, by index, whatever becomes of them."""
        return tuple(self.machine.gpu_uuid(gpu.index) for gpu in self.machine.gpus)

    @property
    def mig_uuids(self) -> tuple[str, ...]:
        """Its MIG instances."""
        return tuple(
            self.machine.mig_uuid(gpu.index, number)
            for gpu in self.machine.gpus
            for number in range(len(gpu.mig))
        )


@dataclass(frozen=True)
class Cluster:
    """Nodes that share the target label `cluster`."""

    name: str
    nodes: tuple[Node, ...]


def _serving(name: str, tenant: str, gpus: Sequence[int], **changes: Any) -> Described:
    return job(name, tenant, gpus, OFTEN_LESS, kind="inference", **changes)


def _calm() -> tuple[Node, ...]:
    """Two HGX boards that are partly free, and tenants that share PCIe switches in peace.

    What one neighbour puts on an uplink comes and goes in whole windows of the sensitivity score,
    and seldom fills it together with the other.
    """
    first = like(
        "h100-nvswitch",
        "hgx-1",
        [
            job("pretrain", "research", (0, 1, 2, 3), STEADY),
            job("finetune", "speech", (4, 5), STEADY, start_s=120, duration_s=420),
            _serving("serve", "vision", (6,), share=0.2),
            job("price", "risk", (6,), ON_AND_OFF, kind="simulation", share=0.8),
        ],
        dcgm_interval_s=15,
        rapl_packages=2,
    )
    second = like(
        "h100-nvswitch",
        "hgx-2",
        [
            job("pretrain", "research", range(6), STEADY),
            job("sweep", "speech", (7,), OFTEN_LESS),
        ],
    )
    third = like(
        "a100-pcie",
        "pcie-1",
        [
            job("decode", "vision", (0,), SUFFERS, kind="loading"),
            job("load", "speech", (1, 2), BY_TURNS, kind="loading"),
            job("tune", "research", (3,), STEADY),
            job("price", "risk", (4,), OFTEN_LESS, kind="simulation", start_s=IDLE_S),
        ],
        boards=with_siblings(PCIE[:4], (1,)),
    )
    return Node(first), Node(second), Node(third)


def _lost() -> tuple[Node, ...]:
    """A GPU falls off its bus half-way."""
    machine = like(
        "a100-pcie",
        "loses-one",
        [job("train", "research", range(4), STEADY, start_s=IDLE_S)],
        boards=PCIE[:4],
        faults=[
            {"at_s": LOST_AT_S, "gpu": 1, "xid": 79},
            {"at_s": LOST_AT_S + 1, "gpu": 1, "lost": True},
        ],
    )
    return (Node(machine),)


def _one() -> tuple[Node, ...]:
    """The smallest node that there is work for: of two tenants, who have long shared its GPU."""
    shared = {"share": 0.5, "memory_mib": 12000, "start_s": 4 * IDLE_S}
    work = [
        job("train", "research", (0,), [[50, 0.9], [20, 0.3]], **shared),
        _serving("serve", "vision", (0,), **shared | {"intensity": 0.5}),
    ]
    machine = like("a100-pcie", "one-gpu", work, boards=PCIE[:1])
    patient = {
        "sampler_stale_after_seconds": 3 * SELDOM_S,
        "bandwidth_interval_seconds": SELDOM_S,
        "bandwidth_window_seconds": 3 * SELDOM_S,
    }
    return (Node(machine, before_s=BEFORE_S, settings=patient),)


def _none() -> tuple[Node, ...]:
    """An exporter on a host without GPUs."""
    return (Node(load_machine("no-gpu")),)


def _mig() -> tuple[Node, ...]:
    """A board that is cut into instances, one of them free, beside boards that are whole."""
    profiles = (("3g.40gb", 2), ("2g.20gb", 3), ("1g.10gb", 9), ("1g.10gb", 10))
    machine = like(
        "h100-nvswitch",
        "cut",
        [
            _serving("rank", "research", (), mig_instances=["0/0"]),
            _serving("wake", "speech", (), mig_instances=["0/1", "0/2"], memory_mib=7000),
            job("detect", "vision", (1,), STEADY),
        ],
        boards=HGX[:3],
        mig=[
            {"gpu": 0, "profile": profile, "gpu_instance": instance}
            for profile, instance in profiles
        ],
    )
    return (Node(machine),)


def _down() -> tuple[Node, ...]:
    """Of two exporters, one stops answering and does not come back."""
    work = [job("train", "research", (0, 1), STEADY, start_s=IDLE_S)]
    return (
        Node(like("a100-pcie", "goes-down", work, boards=PCIE[:2]), down_at_s=DOWN_AT_S),
        Node(like("a100-pcie", "stays-up", work, boards=PCIE[:2])),
    )


def _sixteen() -> tuple[Node, ...]:
    """The largest node."""
    work = [
        job("pretrain", "research", range(12), STEADY),
        _serving("serve", "vision", (12, 13)),
    ]
    return (Node(like("a100-nvswitch", "sixteen-gpus", work, boards=with_siblings(DGX, range(8)))),)


def _rack() -> tuple[Node, ...]:
    """Three trays of one NVLink domain, and a job that spans them."""
    trays = [like("gb200", f"tray-{number}", _tray(number)) for number in range(3)]
    return tuple(Node(tray) for tray in trays)


def _tray(number: int) -> list[Described]:
    held = range(4 if number < 2 else 2)
    pretrain = job("moe-pretrain", "research", held, STEADY, start_s=IDLE_S)
    return [pretrain] if number < 2 else [pretrain, _serving("serve", "speech", (2,))]


def _leaky() -> tuple[Node, ...]:
    """A suspect of each kind, on a GPU each but for those of the host's memory and files."""
    third = {"share": 0.3, "memory_mib": 12000}
    ghost = {"guise": "ghost", "pod": None}
    work = [
        job("notebook", "research", (0,), [[60, 0]]),
        _serving("embedder", "speech", (1,), anonymous_mb=900, anonymous_mb_per_h=400, **third)
        | {"phases": [[60, 0.1]]},
        job("fd-leak", "research", (1,), OFTEN_LESS, fds=900, fds_per_s=9, fd_limit=9000, **third),
        job("arena", "risk", (1,), OFTEN_LESS, anonymous_mb=2600, data_mb=40000, **third),
        job("crashed", "risk", (2,), STEADY, duration_s=180, guise="zombie"),
        job("hung", "research", (3,), [[60, 1]], kind="spinning", intensity=0.005),
        job("ghost-memory", "vision", (4,), [[60, 0]], start_s=60, **ghost),
        job("ghost-work", "vision", (5,), [[60, 0.6]], start_s=60, **ghost, memory_mib=200),
        job("holder", "speech", (6,), None, guise="holder", memory_mib=None),
    ]
    machine = like(
        "h100-nvswitch", "leaks", work, boards=HGX[:7], nvswitches=[], nics=[], rapl_packages=1
    )
    return (Node(machine, settings=HASTY),)


def _ill() -> tuple[Node, ...]:
    """Boards with faults that do not take them off the bus, and a job that sits badly."""
    wears_out = [
        {"at_s": 60.0 * minute, "gpu": 1, "ecc_corrected": 3, "pcie_replays": 40}
        for minute in range(2, 13)
    ]
    dies = {"gpu": 0, "xid": 48, "ecc_uncorrected": 1, "recovery_action": "gpu_reset"}
    faulty = like(
        "h100-nvswitch",
        "faulty",
        [job("train", "research", range(4), STEADY, start_s=IDLE_S)],
        boards=[*HGX[:3], {**HGX[3], "inactive_links": [2, 3]}],
        nics=[],
        faults=[*wears_out, {"at_s": 300, **dies}, {"at_s": 400, "gpu": 2, "xid": 13}],
    )
    apart = like("l40s", "apart", [job("render", "vision", (0, 2), STEADY, start_s=IDLE_S)])
    return Node(faulty), Node(apart)


_MADE = {
    "calm": _calm,
    "lost": _lost,
    "one": _one,
    "none": _none,
    "mig": _mig,
    "down": _down,
    "sixteen": _sixteen,
    "rack": _rack,
    "leaky": _leaky,
    "ill": _ill,
}
CLUSTERS = {name: Cluster(name, made()) for name, made in _MADE.items()}
