"""What a group of GPUs runs on, as far as the time of a collective depends on it."""

import re
from dataclasses import dataclass
from math import inf

from seedance_obs.collectives.collective import Group
from seedance_obs.collectives.tuning import Architecture, CpuVendor, Hardware

ASSUMED_CHANNELS = 16
NVLINK_CLASS = re.compile(r"NV\d+|C2C", re.I)


@dataclass(frozen=True, slots=True)
class Fabric:
    """The paths between GPUs, and whose GPUs and CPUs they are.

    A bandwidth is what is really there for the group, in bytes per second one way; give what links
    carry in practice rather than on paper, since NCCL's model takes nothing off a ring.

    Attributes:
        in_node: What the slowest pair of GPUs within a node carries; None where unknown.
        between_nodes: What all adapters of a node that the group uses carry together; None where
            unknown, or where there is one node.
        hardware: NVLINK or PCIE: what connects the GPUs of a node.
        architecture: None where unknown: LL is then not capped in a node, and there is no NVLS.
        cpu: None where unknown or another vendor's.
        nvls: Whether the NVSwitches reduce (NVLink SHARP).
        network_latency: What the network adds to one step, in seconds.
        channels: How many NCCL opens. Only from which size on a ring over nodes is slower depends
            on it.
        link_class: The worst link class within a node, such as `NV18` or `SYS`; None where
            unknown. A calibration is used for the class on which it was measured.
    """

    in_node: float | None = None
    between_nodes: float | None = None
    hardware: Hardware = Hardware.NVLINK
    architecture: Architecture | None = None
    cpu: CpuVendor | None = None
    nvls: bool = False
    network_latency: float = 0.0
    channels: int = ASSUMED_CHANNELS
    link_class: str | None = None

    def __post_init__(self) -> None:
        for name in ("in_node", "between_nodes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{name}: a bandwidth above 0 B/s is wanted, not {value}")
        if self.channels < 1:
            raise ValueError(f"channels: 1 or more are wanted, not {self.channels}")
        if not 0 <= self.network_latency < inf:
            raise ValueError(f"network_latency: 0 s or more is wanted, not {self.network_latency}")
        if self.hardware is Hardware.NET:
            raise ValueError("hardware: NVLINK or PCIE is wanted, not NET")

    def bottleneck(self, group: Group) -> float | None:
        """The least of all that a ring or a tree of the group crosses, in bytes per second.

        None where one of them is unknown.
        """
        crossed = []
        if group.gpus > group.nodes:
            crossed.append(self.in_node)
        if group.nodes > 1:
            crossed.append(self.between_nodes)
        known = [each for each in crossed if each is not None]
        return min(known) if len(known) == len(crossed) else None


def fabric_at(
    bytes_per_second: float,
    *,
    link_class: str | None = None,
    architecture: Architecture | None = None,
    cpu: CpuVendor | None = None,
) -> Fabric:
    """A fabric of which the bottleneck is all that is known, inside nodes and between them.

    Args:
        bytes_per_second: One way, of the slowest pair of GPUs. Where several rings share the pairs
            (a mesh without a switch), NCCL gets more out of it.
        link_class: The worst class within a node; PCIe's latencies where it is not one of NVLink's.
        architecture: Whose GPUs.
        cpu: Whose CPUs.

    Raises:
        ValueError: the bandwidth is not positive.
    """
    nvlink = link_class is not None and NVLINK_CLASS.fullmatch(link_class)
    return Fabric(
        in_node=bytes_per_second,
        between_nodes=bytes_per_second,
        hardware=Hardware.NVLINK if nvlink else Hardware.PCIE,
        architecture=architecture,
        cpu=cpu,
        link_class=link_class,
    )
