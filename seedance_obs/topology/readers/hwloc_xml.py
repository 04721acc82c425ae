"""hwloc's XML (`lstopo file.xml`), of every version since 1.x.

hwloc names each bridge, so PCIe levels follow from the tree; NUMA nodes are those of the nearest
object with a node set, less the ones without CPUs (a Grace GPU's memory). The versions differ in
how they call things, not in the tree: 1.x puts NUMA nodes above cores and 2.x beside them, 3.x
writes the types of OS devices as bits.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seedance_obs.identity import canonical_bus_id
from seedance_obs.pcie import PciId
from seedance_obs.topology.model import UNKNOWN, Absent, Device, Edge, Kind, Reading, Topology
from seedance_obs.topology.pci import (
    kind_of_class,
    root_complex,
    without_inner_levels,
)
from seedance_obs.topology.pcie_tree import assembled, nearest_switch
from seedance_obs.topology.readers.hwloc_nvlinks import Wiring, read_wiring
from seedance_obs.topology.readers.identifiers import gpu_uuid
from seedance_obs.topology.readers.xml_text import Element, bits, read_xml

FORMAT = "hwloc-xml"
_PCI_TYPE = re.compile(
    r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\](?: \[([0-9a-f]{4}):([0-9a-f]{4})\])?"
)
_BUSES = re.compile(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-[0-9a-f]{2}\]")
_WHOLE_HOST = ("Machine", "System")
_OPENFABRICS = ("3", "32", "48")  # up to 2.x a number, from 3.x a bit beside "network"


def recognises(text: str) -> bool:
    """Whether a text holds an XML of hwloc."""
    pattern = r"<!DOCTYPE topology\b|<topology\b[^<>]*>\s*(<object\b|$)"
    return re.search(pattern, text) is not None


def read(text: str) -> Reading:
    """The devices, paths and NVLinks of hwloc's XML; a cut text gives what stands before the cut.

    A pcie edge carries the link's current speed, in bytes per second. NVLinks come from the
    NVLinkBandwidth matrix at the end; without it they are unknown.
    """
    root, warnings = read_xml(text, "topology")
    if root is None:
        return Reading(Topology(), warnings, FORMAT)
    reader = _Reader(_without_cpus(root))
    for element in root.all("object"):
        reader.visit(element, _Place())
    wiring = read_wiring(root, reader.devices, reader.names)
    devices = {**reader.devices, **_processors(reader, wiring)}
    topology = assembled(
        _with_memory(devices, root).values(),
        wiring.edges,
        complete=wiring.complete,
        host=_info(root).get("HostName", ""),
    )
    edges = tuple(_at_speed(edge, reader.speeds) for edge in topology.edges)
    return Reading(replace(topology, edges=edges), (*warnings, *wiring.warnings), FORMAT)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree an object stands."""

    numa: frozenset[int] | Absent = UNKNOWN
    cpus: frozenset[int] | Absent = UNKNOWN
    root: str | Absent = UNKNOWN
    ports: tuple[str, ...] | Absent = UNKNOWN


@dataclass(slots=True)
class _Reader:
    """What has been found; `names` gives a device for each object that stands for one."""

    without_cpus: frozenset[int]
    devices: dict[str, Device] = field(default_factory=dict)
    processors: dict[str, Device] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    speeds: dict[str, float] = field(default_factory=dict)
    ids: dict[str, PciId] = field(default_factory=dict)

    def visit(self, element: Element, place: _Place) -> None:
        kind = element.get("type")
        if kind == "PCIDev":
            self.pci(element, place)
            return
        place = self.bridge(element, place) if kind == "Bridge" else self.near(element, place)
        if kind in ("Package", "Socket"):
            name = f"cpu{element.get('os_index')}"
            self.names[element.get("gp_index")] = name
            self.processors[name] = Device(name, Kind.CPU, numa=place.numa, cpus=place.cpus)
        for child in element.all("object"):
            self.visit(child, place)

    def near(self, element: Element, place: _Place) -> _Place:
        """The place with an object's own CPUs and NUMA nodes, where it has any.

        A device that hangs on a whole host of several nodes is one that hwloc could not locate.
        """
        nodes = bits(element.get("nodeset"))
        if isinstance(nodes, Absent) and element.get("type") == "NUMANode":
            nodes = frozenset(map(int, re.findall(r"^\d{1,5}$", element.get("os_index"))))
        if isinstance(nodes, Absent):
            return place
        numa = nodes - self.without_cpus or UNKNOWN
        if element.get("type") in _WHOLE_HOST and isinstance(numa, frozenset) and len(numa) > 1:
            return place
        return replace(place, numa=numa, cpus=bits(element.get("cpuset")) or UNKNOWN)

    def bridge(self, element: Element, place: _Place) -> _Place:
        if element.get("bridge_type").startswith("0-"):
            buses = _BUSES.match(element.get("bridge_pci"))
            root = root_complex(int(buses[1], 16), int(buses[2], 16)) if buses else UNKNOWN
            return replace(place, root=root, ports=())
        bus_id = canonical_bus_id(element.get("pci_busid"))
        if bus_id is None or isinstance(place.ports, Absent):
            return replace(place, ports=UNKNOWN)
        self.note(bus_id, element)
        return replace(place, ports=(*place.ports, bus_id))

    def note(self, bus_id: str, element: Element) -> None:
        """Keep a function's speed (in GB/s) and its model."""
        speed = element.get("pci_link_speed")
        if re.fullmatch(r"\d{1,4}\.\d{1,9}", speed) and float(speed):
            self.speeds[bus_id] = float(speed) * 1e9
        kind = _PCI_TYPE.match(element.get("pci_type"))
        if kind and kind[5]:
            self.ids[bus_id] = PciId(*(int(kind[group], 16) for group in (2, 3, 4, 5)))

    def pci(self, element: Element, place: _Place) -> None:
        bus_id = canonical_bus_id(element.get("pci_busid"))
        kind = _kind(element)
        if bus_id is None or kind is None:
            return
        self.note(bus_id, element)
        ports = place.ports
        if isinstance(ports, tuple):
            ports = without_inner_levels(ports, self.ids)
        systems = [child for child in element.all("object") if child.get("type") == "OSDev"]
        for part in (element, *systems):
            self.names[part.get("gp_index")] = bus_id
        about = {key: value for part in systems for key, value in _info(part).items()}
        self.devices[bus_id] = Device(
            bus_id,
            kind,
            index=_index(systems) if kind is Kind.GPU else None,
            label=_label(kind, systems),
            uuid=gpu_uuid(about.get("NVIDIAUUID", "")) or UNKNOWN,
            bus_id=bus_id,
            model=about.get("GPUModel", UNKNOWN),
            numa=place.numa,
            cpus=place.cpus,
            pcie_root=place.root,
            pcie_switch=nearest_switch(ports),
            ports=ports,
        )


def _kind(element: Element) -> Kind | None:
    """hwloc's own words come first: a function that has fallen off the bus has class 0000."""
    if element.get("subtype") == "NVSwitch":
        return Kind.NVSWITCH
    if any(re.match(r"(nvml|cuda)\d", child.get("name")) for child in element.all("object")):
        return Kind.GPU
    told = _PCI_TYPE.match(element.get("pci_type"))
    return kind_of_class(told[1], int(told[2], 16)) if told else None


def _info(element: Element) -> Mapping[str, str]:
    return {info.get("name"): info.get("value") for info in element.all("info")}


def _index(systems: list[Element]) -> int | None:
    found = (re.fullmatch(r"nvml(\d{1,4})", part.get("name")) for part in systems)
    return next((int(match[1]) for match in found if match), None)


def _label(kind: Kind, systems: list[Element]) -> str:
    """What Linux calls a NIC or drive; for a NIC the RDMA device, as nvidia-smi's legend does."""
    if kind not in (Kind.NIC, Kind.NVME):
        return ""
    rdma = [part for part in systems if part.get("osdev_type") in _OPENFABRICS]
    return next((part.get("name") for part in (*rdma, *systems)), "")


def _gpu_memory(root: Element) -> list[Element]:
    nodes = [part for part in root.everything() if part.get("type") == "NUMANode"]
    return [node for node in nodes if node.get("subtype") == "GPUMemory"]


def _without_cpus(root: Element) -> frozenset[int]:
    nodes = [part for part in root.everything() if part.get("type") == "NUMANode"]
    bare = [part for part in nodes if bits(part.get("cpuset")) == frozenset()]
    numbers = {part.get("os_index") for part in (*bare, *_gpu_memory(root))}
    return frozenset(int(number) for number in numbers if re.fullmatch(r"\d{1,5}", number))


def _with_memory(devices: dict[str, Device], root: Element) -> dict[str, Device]:
    """The devices, GPUs with the NUMA node that is their memory."""
    for node in _gpu_memory(root):
        bus_id = canonical_bus_id(_info(node).get("PCIBusID", ""))
        number = node.get("os_index")
        if bus_id in devices and re.fullmatch(r"\d{1,5}", number):
            devices[bus_id] = replace(devices[bus_id], memory_node=int(number))
    return devices


def _processors(reader: _Reader, wiring: Wiring) -> dict[str, Device]:
    """The CPUs that have NVLinks."""
    wired = {edge.target for edge in wiring.edges}
    return {name: cpu for name, cpu in reader.processors.items() if name in wired}


def _at_speed(edge: Edge, speeds: Mapping[str, float]) -> Edge:
    if edge.kind != "pcie" or edge.target not in speeds:
        return edge
    return replace(edge, current=speeds[edge.target])
