"""What the rules and constraints of a policy look up of a host, found once for all its sets."""

from collections.abc import Collection, Mapping

from seedance_obs.topology.domains import domain_is_known
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Kind,
    PcieLevel,
    Topology,
)

# How near a PCIe level is: one switch (or one board) is as near as it gets.
NEARNESS = {
    PcieLevel.INTERNAL: 1.0,
    PcieLevel.PIX: 1.0,
    PcieLevel.PXB: 0.75,
    PcieLevel.PHB: 0.5,
    PcieLevel.NODE: 0.25,
    PcieLevel.SYS: 0.0,
}


class HostView:
    """A host and the GPUs that are free on it (by default all) before a set takes some.

    `groups` are the GPUs that reach each other over NVLink: domains, and every GPU without one by
    itself. It is UNKNOWN where it is not known of each GPU which domain it is in, if any.
    """

    def __init__(self, topology: Topology, free: Collection[str] | None = None) -> None:
        self.topology = topology
        present = [gpu for gpu in topology.gpus if gpu.present]
        names = [gpu.name for gpu in present]
        self.free = frozenset(names if free is None else free)
        self.models = {gpu.name: gpu.model for gpu in present}
        self.roots = {gpu.name: gpu.pcie_root for gpu in present}
        self.nics = {name: self._nearest_nic(name) for name in names}
        self.most_nvlinks = max(
            (
                links
                for place, one in enumerate(names)
                for other in names[:place]
                if isinstance(links := topology.path(one, other).nvlinks, int)
            ),
            default=0,
        )
        self.groups = self._groups(present)

    def nvlinks(self, one: str, other: str) -> int | Absent:
        """The NVLinks of a pair; a device that has no such thing has 0."""
        links = self.topology.path(one, other).nvlinks
        return 0 if links is UNSUPPORTED else links

    def nearness(self, one: str, other: str) -> float | Absent:
        """How near two devices are on PCIe: 1 below one switch, 0 across sockets."""
        level = self.topology.path(one, other).pcie
        return level if isinstance(level, Absent) else NEARNESS[level]

    def _nearest_nic(self, gpu: str) -> float | Absent:
        """The nearness of the nearest NIC of those whose level is known."""
        nics = list(self.topology.of_kind(Kind.NIC))
        if not nics:
            return UNSUPPORTED
        found = [self.nearness(gpu, nic.name) for nic in nics]
        return max((near for near in found if not isinstance(near, Absent)), default=UNKNOWN)

    def _groups(self, gpus: Collection[Device]) -> Mapping[str, frozenset[str]] | Absent:
        if len(gpus) > 1 and not all(domain_is_known(self.topology, gpu) for gpu in gpus):
            return UNKNOWN
        members: dict[str, set[str]] = {}
        for gpu in gpus:
            domain = self.topology.domains.get(gpu.name, f"alone {gpu.name}")
            members.setdefault(domain, set()).add(gpu.name)
        return {name: frozenset(group) for group in members.values() for name in group}
