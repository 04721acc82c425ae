"""Which network adapters belong to the GPUs of a host, and which only to its CPUs."""

from seedance_obs.topology.model import Device, Kind, PcieLevel, Topology


def near_gpus(topology: Topology) -> tuple[Device, ...]:
    """The adapters that share a PCIe switch, a root complex or a NUMA node with some GPU, in order.

    One whose distance from a GPU is not known counts as near. Without GPUs there is none.
    """
    return tuple(nic for nic in topology.of_kind(Kind.NIC) if _is_near(topology, nic))


def _is_near(topology: Topology, nic: Device) -> bool:
    levels = (topology.path(gpu.name, nic.name).pcie for gpu in topology.gpus)
    return any(level is not PcieLevel.SYS for level in levels)
