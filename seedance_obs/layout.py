"""A host's topology out of what its driver and its kernel say of it.

NVML is believed before sysfs, and what was once known of a device stays known while the source
that knew it is away: a GPU that falls off the bus keeps its place, a link that goes down its ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import Fabric, GpuPair, GpuPlace, NvLink
from seedance_obs.sources.sysfs import (
    Endpoint,
    PciFacts,
    cpu_nodes,
    endpoints,
    nvidia_gpus,
    read_pci,
)
from seedance_obs.topology.distance import combined_paths
from seedance_obs.topology.domains import FABRIC_COMPLETED, FABRIC_SUCCESS, domains
from seedance_obs.topology.fabric import faults, healthy
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    FabricMembership,
    Kind,
    NvLinkPort,
    PcieLevel,
    PcieLink,
    Topology,
)
from seedance_obs.topology.model import Path as DevicePath
from seedance_obs.topology.pci import switches, without_inner_levels
from seedance_obs.topology.pcie_tree import nearest_switch
from seedance_obs.topology.wiring import wire
from seedance_obs.wiring_memory import WiringMemory, filled

Value = TypeVar("Value")
_KINDS = {"gpu": Kind.GPU, "switch": Kind.NVSWITCH, "ibm_npu": Kind.NPU}


class HostLayout:
    """The topology of one host, laid out anew only when something about it has changed."""

    def __init__(self, sysfs_root: Path, host: str) -> None:
        self.gpus_on_bus = 0
        self._sysfs_root = sysfs_root
        self._host = host
        self._pci: dict[str, PciFacts] = {}
        self._endpoints: tuple[Endpoint, ...] = ()
        self._cpu_nodes: frozenset[int] | None = None
        self._memory = WiringMemory()
        self._laid_out: object = None
        self._topology = Topology(host=host)

    def refresh(self) -> None:
        """Read the PCI bus again; what was known stays when it has nothing to say any more."""
        self.gpus_on_bus = len(nvidia_gpus(self._sysfs_root) or ())
        found = endpoints(self._sysfs_root)
        self._endpoints = self._endpoints if found is None else tuple(found)
        self._cpu_nodes = cpu_nodes(self._sysfs_root) or self._cpu_nodes
        for bus_id, before in self._pci.items():
            now = read_pci(self._sysfs_root, bus_id)
            self._pci[bus_id] = before if now is None else filled(now, before)

    def lay_out(
        self, gpus: Sequence[MergedGpu], lost: Sequence[MergedGpu], pairs: Iterable[GpuPair]
    ) -> Topology:
        """The topology of the GPUs that answer and of those that did before."""
        self._memory.note_pairs(pairs)
        boards = [self._board(gpu, present=True) for gpu in gpus]
        indices = {board.index for board in boards}
        for board in (self._board(gpu, present=False) for gpu in lost):
            # NVML numbers what is left anew: an index means the board that has it now.
            boards.append(replace(board, index=None) if board.index in indices else board)
        laid_out = (boards, self._endpoints, dict(self._pci), dict(self._memory.pairs))
        if laid_out != self._laid_out:
            self._topology = self._lay_out(boards)
            self._laid_out = laid_out
        return self._topology

    def _lay_out(self, boards: Sequence[Device]) -> Topology:
        ends = [*boards, *(self._endpoint(each) for each in self._endpoints)]
        devices, edges = wire(ends, self._switch_links(ends))
        names = {board.uuid: board.name for board in boards}
        told = {
            frozenset(names[uuid] for uuid in uuids): pair
            for uuids, pair in self._memory.pairs.items()
            if uuids <= names.keys()
        }
        present = [device for device in devices if device.present]
        paths = (
            _as_told(path, told.get(frozenset((path.source, path.target))))
            for path in combined_paths(present, edges)
        )
        found = domains(devices, edges, node=self._host)
        named = self._memory.name_domains(self._host, found, boards)
        return Topology(devices, tuple(paths), edges, named, self._host)

    def _board(self, gpu: MergedGpu, *, present: bool) -> Device:
        pci = self._facts(gpu.pci_bus_id)
        ports, mig = self._ports_above(pci), self._memory.mig(gpu)
        place = gpu.place or GpuPlace()
        return Device(
            name=gpu.pci_bus_id or gpu.uuid,
            kind=Kind.GPU,
            index=gpu.index,
            uuid=gpu.uuid,
            bus_id=_or_unknown(gpu.pci_bus_id),
            model=_or_unknown(gpu.model),
            numa=self._numa(place.numa, pci),
            memory_node=_or_unknown(place.memory_node),
            cpus=_or_unknown(place.cpus),
            pcie_root=_or_unknown(pci.pcie_root),
            pcie_switch=nearest_switch(ports),
            ports=ports,
            pcie=_gpu_link(gpu, pci),
            # The links of a board in MIG mode are there, but no instance can use them.
            nvlinks=UNSUPPORTED if mig else self._ports(gpu, present=present),
            c2c_links=_or_unknown(place.c2c_links),
            c2c_mb_per_second=_or_unknown(place.c2c_mb_per_second),
            c2c_mb_per_second_max=_or_unknown(
                self._memory.best_c2c(gpu.uuid, place.c2c_mb_per_second)
            ),
            fabric=_membership(gpu.fabric),
            mig=_or_unknown(mig),
            present=present,
        )

    def _endpoint(self, endpoint: Endpoint) -> Device:
        pci = endpoint.pci
        ports = self._ports_above(pci)
        return Device(
            name=pci.bus_id,
            kind=Kind(endpoint.kind),
            label=endpoint.label,
            bus_id=pci.bus_id,
            numa=self._numa(None, pci),
            pcie_root=_or_unknown(pci.pcie_root),
            pcie_switch=nearest_switch(ports),
            ports=ports,
            pcie=_pcie_link(pci),
        )

    def _ports_above(self, pci: PciFacts) -> tuple[str, ...] | Absent:
        """The ports above a device, in which a Broadcom switch of two levels is one."""
        if pci.ports is None:
            return UNKNOWN
        ids = {port: self._facts(port).pci_id for port in pci.ports[1::2]}
        return without_inner_levels(pci.ports, {port: id_ for port, id_ in ids.items() if id_})

    def _facts(self, bus_id: str | None) -> PciFacts:
        if bus_id is None:
            return PciFacts("")
        if bus_id not in self._pci:
            self._pci[bus_id] = read_pci(self._sysfs_root, bus_id) or PciFacts(bus_id)
        return self._pci[bus_id]

    def _numa(self, told: frozenset[int] | None, pci: PciFacts) -> frozenset[int] | Absent:
        """The nearest NUMA nodes that have CPUs: the memory of a GPU may be a node, too."""
        if told and self._cpu_nodes:
            told &= self._cpu_nodes
        if told:
            return told
        near = pci.numa_node
        if near is None or (self._cpu_nodes and near not in self._cpu_nodes):
            return UNKNOWN
        return frozenset((near,))

    def _ports(self, gpu: MergedGpu, *, present: bool) -> tuple[NvLinkPort, ...] | Absent:
        if gpu.nvlinks is None:
            return UNKNOWN
        links = (self._memory.link(gpu, link) for link in gpu.nvlinks)
        return tuple(_port(link, present=present) for link in links)

    def _switch_links(self, ends: Iterable[Device]) -> dict[str, PcieLink]:
        names = {
            name
            for end in ends
            if not isinstance(end.ports, Absent)
            for name in switches(end.ports)
        }
        return {name: _pcie_link(self._facts(name)) for name in names}


def _or_unknown(value: Value | None) -> Value | Absent:
    return UNKNOWN if value is None else value


def _pcie_link(pci: PciFacts) -> PcieLink:
    return PcieLink(
        generation=_or_unknown(pci.pcie_generation),
        width=_or_unknown(pci.pcie_width),
        generation_max=_or_unknown(pci.pcie_generation_max),
        width_max=_or_unknown(pci.pcie_width_max),
    )


def _gpu_link(gpu: MergedGpu, pci: PciFacts) -> PcieLink:
    """The driver's view of the link: its maximum is what device and slot allow together."""
    told = {
        "generation": gpu.value("pcie_generation"),
        "width": gpu.value("pcie_width"),
        "generation_max": gpu.value("pcie_generation_max"),
        "width_max": gpu.value("pcie_width_max"),
    }
    known = {name: int(value) for name, value in told.items() if value is not None}
    return replace(_pcie_link(pci), **known)


def _port(link: NvLink, *, present: bool) -> NvLinkPort:
    return NvLinkPort(
        port=link.link,
        active=_or_unknown(link.active) if present else False,
        mb_per_second=_or_unknown(link.mb_per_second),
        remote=_or_unknown(link.remote_bus_id),
        remote_kind=_KINDS.get(link.remote_kind, UNKNOWN),
        remote_port=_or_unknown(link.remote_link),
        p2p=_or_unknown(link.p2p),
    )


def _membership(fabric: Fabric | None) -> FabricMembership | Absent:
    if fabric is None:
        return UNKNOWN
    mask = fabric.health_mask
    fine = healthy(mask, fabric.health_summary)
    if fabric.state != FABRIC_COMPLETED:
        fine = None
    elif fabric.status != FABRIC_SUCCESS:
        fine = False
    return FabricMembership(
        state=fabric.state,
        status=fabric.status,
        cluster_uuid=fabric.cluster_uuid,
        clique_id=fabric.clique_id,
        healthy=_or_unknown(fine),
        faults=() if mask is None else faults(mask),
    )


def _as_told(path: DevicePath, pair: GpuPair | None) -> DevicePath:
    """A path with what the driver says of it, which counts more than what follows from the bus."""
    if pair is None:
        return path
    levels = {int(level): level for level in PcieLevel}
    level = path.pcie if pair.level is None else levels.get(pair.level, path.pcie)
    return replace(path, pcie=level, p2p=pair.p2p)
