"""How far apart devices of a machine are on PCIe, and what GPUs may do to each other's memory.

Worked out from the description alone: this is the truth that what reads it is tested against.
"""

from seedance_obs.sources.sim.links import joined
from seedance_obs.sources.sim.machine import Machine, PciDevice

INTERNAL, ONE_BRIDGE, BRIDGES, HOST_BRIDGE, NUMA_NODE, SYSTEM = range(0, 60, 10)
P2P_WORDS = (  # nvmlGpuP2PStatus_t from 0
    "ok",
    "chipset_not_supported",
    "gpu_not_supported",
    "topology_not_supported",
    "disabled_by_regkey",
    "not_supported",
    "unknown",
)
READ, WRITE, NVLINK, ATOMICS, PCI = CAPABILITIES = range(5)  # nvmlGpuP2PCapsIndex_t


def level(machine: Machine, one: int, other: int) -> int:
    """The nvmlGpuTopologyLevel_t between two GPUs."""
    if one == other:
        return INTERNAL
    return level_between(machine, machine.gpus[one].device, machine.gpus[other].device)


def level_between(machine: Machine, first: PciDevice, second: PciDevice) -> int:
    """The same between any two different devices."""
    if first.path[0] != second.path[0]:
        near = len(machine.numa_cpus) == 1 or None not in (first.numa, second.numa)
        return NUMA_NODE if near and first.numa == second.numa else SYSTEM
    shared = _shared(first, second)
    if shared == 0:
        return HOST_BRIDGE
    below = max(len(first.path), len(second.path)) - 1 - shared
    return ONE_BRIDGE if below <= 1 else BRIDGES


def _shared(first: PciDevice, second: PciDevice) -> int:
    """How many bridges below the host bridge two devices have in common."""
    count = 0
    for mine, theirs in zip(first.path[1:], second.path[1:], strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def p2p_status(machine: Machine, one: int, other: int, capability: int, t: float) -> int:
    """The nvmlGpuP2PStatus_t between two GPUs at t; atomics go over NVLink only."""
    linked = joined(machine, one, other, t)
    if capability in (NVLINK, ATOMICS):
        word = "ok" if linked else "not_supported"
    elif machine.p2p is not None:
        word = machine.p2p
    elif linked and capability != PCI:
        word = "ok"
    else:
        able = all(machine.gpus[gpu].model.p2p_over_pcie for gpu in (one, other))
        word = "ok" if able else "gpu_not_supported"
    return P2P_WORDS.index(word)
