"""The network adapters of a machine: which GPU uses which, and what has passed each."""

from collections.abc import Mapping

from seedance_obs.sources.sim.description import Section
from seedance_obs.sources.sim.hardware import read_device
from seedance_obs.sources.sim.machine import Gpu, Machine, NetworkAdapter
from seedance_obs.sources.sim.physics import boards
from seedance_obs.sources.sim.reach import NUMA_NODE, level_between

INFINIBAND_RATES = {100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}  # Gb/s of four lanes


def read_adapter(_index: int, section: Section) -> NetworkAdapter:
    """One entry of `nics`: `network` is rdma or ethernet, else as the name suggests."""
    name = section.text("name")
    network = section.text("network", "rdma" if name.startswith("mlx5_") else "ethernet")
    if network not in ("rdma", "ethernet"):
        section.reject("network", f"rdma or ethernet is wanted, found {network!r}")
    gbits = section.integer("gbits", 400, low=1)
    if network == "rdma" and gbits not in INFINIBAND_RATES:
        known = ", ".join(str(rate) for rate in INFINIBAND_RATES)
        section.reject("gbits", f"one of {known} is wanted, found {gbits}")
    return NetworkAdapter(name, read_device(section), network == "rdma", gbits)


def nearest_adapter(machine: Machine, gpu: Gpu) -> NetworkAdapter | None:
    """The adapter that the processes on a GPU use, the first of those that are as near.

    None where all are on another NUMA node.
    """
    levels = [level_between(machine, gpu.device, nic.device) for nic in machine.nics]
    nearest = min(levels, default=NUMA_NODE + 1)
    return machine.nics[levels.index(nearest)] if nearest <= NUMA_NODE else None


def adapter_bytes(machine: Machine, t: float) -> Mapping[str, float]:
    """What each adapter has sent since the machine's epoch, and received: as much; by address."""
    moved = {nic.device.pci: 0.0 for nic in machine.nics}
    for board in boards(machine):
        nic = nearest_adapter(machine, board.gpu)
        if nic is not None:
            moved[nic.device.pci] += board.moved_bytes(t, "network")
    return moved
