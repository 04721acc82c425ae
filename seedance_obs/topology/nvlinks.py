"""Which NVLinks two GPUs can use between them.

The NVSwitches of a host are one fabric, whether the host sees them or not: a GPU's own links tell
which switches it reaches, never how those are wired to each other (the two boards of a DGX-2 are).
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Edge,
    Kind,
    NvLinkKind,
    NvLinkPort,
)

HIDDEN_SWITCH = "hidden"  # stands for all the switches that a host cannot see
UNSEEN = "unseen"
SWITCHES = (Kind.NVSWITCH, Kind.NVLINK_FABRIC)


@dataclass(frozen=True, slots=True)
class Links:
    """The active NVLinks of one GPU: to each peer by name, and into the fabric of switches."""

    peers: Mapping[str, int]
    fabric: int = 0
    hidden: bool = False  # at least one switch that the host cannot see
    unseen: int = 0  # to GPUs or processors that nobody names


def nvlinks(
    devices: Iterable[Device], edges: Iterable[Edge], complete: Container[str] | None = None
) -> Mapping[str, Links]:
    """The NVLinks of each GPU whose links are all known, by name.

    A GPU's ports come first, nvlink edges second. A port whose state nobody could read makes its
    GPU unknown; inactive ports do not count. A GPU without links has `nvlinks=()`, one that may
    not use them (MIG) UNSUPPORTED. `complete` names the GPUs all of whose links are among the
    edges; None stands for every GPU that has one.
    """
    devices = tuple(devices)
    kinds = _kinds(devices)
    wires: dict[str, dict[str, int]] = {}
    for edge in edges:
        if edge.kind == "nvlink":
            for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                known = wires.setdefault(here, {})
                known[there] = max(edge.links, known.get(there, 0))
    found: dict[str, Links] = {}
    counts: Mapping[str, int] | None
    for gpu in (device for device in devices if device.kind is Kind.GPU):
        if gpu.nvlinks is UNSUPPORTED:
            counts = {}
        elif isinstance(gpu.nvlinks, tuple) and gpu.nvlinks:
            counts = _by_ports(gpu.nvlinks, kinds)
        elif gpu.nvlinks == () or (gpu.name in (wires if complete is None else complete)):
            counts = wires.get(gpu.name, {})
        else:
            continue
        if counts is not None:
            found[gpu.name] = _links(counts, kinds)
    return found


def links_between(
    one: Device, other: Device, links: Mapping[str, Links]
) -> tuple[int | Absent, NvLinkKind | Absent]:
    """How many NVLinks two devices can use between them, and how those run.

    Through switches it is the smaller number of links into the fabric. None between them is
    (0, UNSUPPORTED); UNKNOWN where the links of a GPU that could have some are, or where both have
    links to GPUs that nobody names.
    """
    if one.kind is not Kind.GPU or other.kind is not Kind.GPU:
        return 0, UNSUPPORTED
    here, there = links.get(one.name), links.get(other.name)
    told = [
        its.peers.get(far, 0)
        for its, far in ((here, other.name), (there, one.name))
        if its and (far in its.peers or not its.unseen)
    ]
    if any(told):
        return (min(told), NvLinkKind.DIRECT) if min(told) else (0, UNSUPPORTED)
    if here and there and here.unseen and there.unseen:
        return UNKNOWN, UNKNOWN
    if any(its is not None and its.fabric == 0 for its in (here, there)):
        return 0, UNSUPPORTED
    if here is None or there is None:
        return UNKNOWN, UNKNOWN
    hidden = here.hidden or there.hidden
    return min(here.fabric, there.fabric), NvLinkKind.HIDDEN if hidden else NvLinkKind.SWITCH


def _kinds(devices: Iterable[Device]) -> Mapping[str, Kind]:
    """The kind of every device, and of every far end that a port tells and no device does."""
    kinds = {}
    for device in devices:
        for port in device.nvlinks if isinstance(device.nvlinks, tuple) else ():
            if isinstance(port.remote, str) and isinstance(port.remote_kind, Kind):
                kinds[port.remote] = port.remote_kind
    return kinds | {device.name: device.kind for device in devices}


def _by_ports(ports: Iterable[NvLinkPort], kinds: Mapping[str, Kind]) -> Mapping[str, int] | None:
    ports = tuple(ports)
    if any(isinstance(port.active, Absent) for port in ports):
        return None
    return Counter(_far_end(port, kinds) for port in ports if port.active and port.p2p is not False)


def _far_end(port: NvLinkPort, kinds: Mapping[str, Kind]) -> str:
    """The device at the far end; what the host cannot tell is taken for a hidden switch.

    Not so a GPU or a processor without an address, as where a virtual machine has but some of the
    GPUs of a mesh: whichever it is, nothing follows for two GPUs of this host.
    """
    if isinstance(port.remote, Absent):
        return UNSEEN if port.remote_kind in (Kind.GPU, Kind.NPU, Kind.CPU) else HIDDEN_SWITCH
    known = kinds.get(port.remote, Kind.UNKNOWN) is not Kind.UNKNOWN
    return port.remote if known else HIDDEN_SWITCH


def _links(counts: Mapping[str, int], kinds: Mapping[str, Kind]) -> Links:
    fabric = {
        far: count
        for far, count in counts.items()
        if far == HIDDEN_SWITCH or kinds.get(far) in SWITCHES
    }
    hidden = any(kinds.get(far) is not Kind.NVSWITCH for far in fabric)
    peers = {far: count for far, count in counts.items() if far not in fabric and far != UNSEEN}
    return Links(peers, sum(fabric.values()), hidden, counts.get(UNSEEN, 0))
