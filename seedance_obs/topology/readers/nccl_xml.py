"""NCCL's topology XML: what NCCL_TOPO_DUMP_FILE writes and clouds ship for their machines.

NCCL leaves out root complexes, root ports and downstream ports: a bridge in it is a switch, named
by its upstream port, and what stands under one `<cpu>` shares a NUMA node. So it tells PIX and PXB
within a tree of switches and SYS across nodes, but not PHB from NODE.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seedance_obs.identity import canonical_bus_id
from seedance_obs.pcie import PciId, generation, width
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Edge,
    Kind,
    PcieLink,
    Reading,
)
from seedance_obs.topology.nvlinks import HIDDEN_SWITCH
from seedance_obs.topology.pci import NVIDIA, PCI_BRIDGE, kind_of_class, same_switch
from seedance_obs.topology.pcie_tree import assembled
from seedance_obs.topology.readers.xml_text import Element, bits, read_xml

FORMAT = "nccl-xml"
SAME_NODE = "NCCL names no root complexes: PHB and NODE cannot be told apart here"
_CLASS_OF_PROCESSOR = "068001"  # the NVLink bridge of a POWER9


def recognises(text: str) -> bool:
    """Whether a text holds a topology XML of NCCL."""
    return re.search(r"<system\b[^<>]*>", text) is not None


def read(text: str) -> Reading:
    """The devices, paths and NVLinks of NCCL's XML; a cut text gives what stands before the cut.

    A GPU's NVLinks count only where its element is complete. `link_speed` and `link_width` are
    the most that device and slot can do together, so they are the link's maximum. A dump of
    several hosts gives the first one.
    """
    system, warnings = read_xml(text, "system")
    reader = _Reader(list(warnings))
    if system is not None:
        reader.system(system)
    topology = assembled(
        (reader.devices | _missing(reader.far, reader.devices)).values(),
        reader.edges.values(),
        chain=lambda device: reader.chains.get(device.name, []),
        complete=reader.complete,
    )
    if any(path.pcie is UNKNOWN for path in topology.paths):
        reader.warnings.append(SAME_NODE)
    return Reading(topology, tuple(reader.warnings), FORMAT)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree an element stands."""

    processor: str
    numa: frozenset[int] | Absent
    cpus: frozenset[int] | Absent
    switches: tuple[str, ...] = ()
    switch: PciId | None = None


@dataclass(slots=True)
class _Reader:
    warnings: list[str]
    devices: dict[str, Device] = field(default_factory=dict)
    far: dict[str, Device] = field(default_factory=dict)
    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    chains: dict[str, list[tuple[str, Kind]]] = field(default_factory=dict)

    def system(self, system: Element) -> None:
        processors = system.all("cpu")
        hosts = {cpu.get("host_hash") for cpu in processors}
        if len(hosts) > 1:
            self.warnings.append(f"{len(hosts)} hosts in one file: only the first was read")
            first = processors[0].get("host_hash")
            processors = [cpu for cpu in processors if cpu.get("host_hash") == first]
        for number, cpu in enumerate(processors):
            numa = _number(cpu.get("numaid"))
            place = _Place(
                f"cpu{numa}" if isinstance(numa, int) else f"cpu-{number}",
                frozenset({numa}) if isinstance(numa, int) else UNKNOWN,
                bits(cpu.get("affinity")) or UNKNOWN,
            )
            self.below(cpu, place)

    def below(self, element: Element, place: _Place) -> None:
        for pci in element.all("pci"):
            self.pci(pci, place)
        for nic in element.all("nic"):
            if element.tag == "cpu":
                self.virtual(nic)

    def pci(self, pci: Element, place: _Place) -> None:
        bus_id = canonical_bus_id(pci.get("busid"))
        if bus_id is None:
            self.warnings.append(f"line {pci.line}, <pci>: no PCI address {pci.get('busid')!r}")
            return
        if _class(pci) == PCI_BRIDGE or pci.all("pci"):
            self.below(pci, _inside(place, bus_id, pci))
            return
        kind = _kind(pci)
        if kind is None:
            if not _class(pci):
                self.warnings.append(f"line {pci.line}, <pci>: no class tells what {bus_id} is")
            return
        self.chains[bus_id] = [(switch, Kind.PCIE_SWITCH) for switch in place.switches]
        self.devices[bus_id] = Device(
            bus_id,
            kind,
            bus_id=bus_id,
            numa=place.numa,
            cpus=place.cpus,
            pcie_switch=place.switches[-1] if place.switches else UNSUPPORTED,
            pcie=PcieLink(
                generation_max=generation(pci.get("link_speed")) or UNKNOWN,
                width_max=width(pci.get("link_width")) or UNKNOWN,
            ),
        )
        for gpu in pci.all("gpu"):
            is_probed = bool(gpu.get("sm") and pci.get("vendor"))  # NCCL's own dumps have both
            self.gpu(bus_id, gpu, place, is_probed=is_probed)
        for nic in pci.all("nic"):
            self.label(bus_id, nic)

    def label(self, bus_id: str, nic: Element) -> None:
        if nic.closed:
            names = ",".join(net.get("name") for net in nic.all("net") if net.get("name"))
            self.devices[bus_id] = replace(self.devices[bus_id], label=names)

    def virtual(self, nic: Element) -> None:
        """Interfaces without a PCI address: NCCL hangs them on a CPU of its choice."""
        for net in nic.all("net"):
            name = net.get("name")
            if name:
                self.devices.setdefault(name, Device(name, Kind.NIC, label=name))
                self.chains[name] = []

    def gpu(self, bus_id: str, gpu: Element, place: _Place, *, is_probed: bool) -> None:
        self.devices[bus_id] = replace(self.devices[bus_id], index=_index(gpu.get("dev")))
        if not gpu.closed:
            return
        nvlinks = gpu.all("nvlink")
        links: dict[str, int] = {}
        for nvlink in nvlinks:
            count = _number(nvlink.get("count"))
            if isinstance(count, Absent) or count == 0:
                where = f"line {nvlink.line}, <nvlink>"
                self.warnings.append(f"{where}: no count; the NVLinks of {bus_id} are unknown")
                return
            far = self.far_end(nvlink, place)
            links[far] = links.get(far, 0) + count
        if nvlinks or is_probed:
            self.complete.add(bus_id)
        for far, count in links.items():
            self.link(bus_id, far, count)
        self.c2c(bus_id, gpu, place)

    def far_end(self, nvlink: Element, place: _Place) -> str:
        """The name of what an NVLink leads to; a device that is not listed yet is added."""
        target = canonical_bus_id(nvlink.get("target"))
        far_class = _hex_class(nvlink.get("tclass"))
        if far_class == _CLASS_OF_PROCESSOR:
            return self.processor(place)
        listed = self.devices.get(target or "")
        kind = listed.kind if listed else kind_of_class(far_class[:4], NVIDIA)
        if target is None or kind not in (Kind.GPU, Kind.NVSWITCH):
            self.far.setdefault(HIDDEN_SWITCH, Device(HIDDEN_SWITCH, Kind.NVLINK_FABRIC))
            return HIDDEN_SWITCH
        self.far.setdefault(target, Device(target, kind, bus_id=target))
        return target

    def link(self, bus_id: str, far: str, count: int) -> None:
        """One edge a pair, whichever end tells of it first; the smaller count if they differ."""
        known = self.edges.get((far, bus_id))
        if known is None:
            self.edges[bus_id, far] = Edge(bus_id, far, "nvlink", count)
        else:
            self.edges[far, bus_id] = replace(known, links=min(known.links, count))

    def c2c(self, bus_id: str, gpu: Element, place: _Place) -> None:
        for c2c in gpu.all("c2c"):
            count, mb = _number(c2c.get("count")), _number(c2c.get("bw"))
            if isinstance(count, int) and count > 0:
                processor = self.processor(place)
                each_way = mb * count * 1e6 if isinstance(mb, int) and mb > 0 else UNKNOWN
                self.edges[bus_id, processor] = Edge(bus_id, processor, "c2c", count, each_way)

    def processor(self, place: _Place) -> str:
        cpu = Device(place.processor, Kind.CPU, numa=place.numa, cpus=place.cpus)
        self.far.setdefault(place.processor, cpu)
        return place.processor


def _missing(far: Mapping[str, Device], listed: Mapping[str, Device]) -> dict[str, Device]:
    return {name: device for name, device in far.items() if name not in listed}


def _inside(place: _Place, bus_id: str, pci: Element) -> _Place:
    """The place below a bridge; the inner level of a two-level switch adds nothing."""
    own = _pci_id(pci)
    if same_switch(place.switch, own):
        return replace(place, switch=None)
    return replace(place, switches=(*place.switches, bus_id), switch=own)


def _kind(pci: Element) -> Kind | None:
    if pci.all("gpu"):
        return Kind.GPU
    kind = kind_of_class(_class(pci), _hex(pci.get("vendor")))
    return Kind.NIC if kind is None and pci.all("nic") else kind


def _class(pci: Element) -> str:
    return _hex_class(pci.get("class"))[:4]


def _hex_class(text: str) -> str:
    """The six digits of a class, as in `0x068000`; empty where there are none."""
    match = re.fullmatch(r"0x([0-9a-f]{6})", text.lower())
    return match[1] if match else ""


def _pci_id(pci: Element) -> PciId | None:
    found = [number for name in PciId._fields if (number := _hex(pci.get(name))) is not None]
    return PciId(*found) if len(found) == len(PciId._fields) else None


def _hex(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,6}", text) else None


def _number(text: str) -> int | Absent:
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else UNKNOWN


def _index(text: str) -> int | None:
    number = _number(text)
    return number if isinstance(number, int) else None
