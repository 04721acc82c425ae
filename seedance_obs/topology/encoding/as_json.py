"""A topology as JSON for programs: `seedance-obs topology parse FILE --json`.

A value that is not known is null; one that the device has no such thing for is the text
`unsupported`. The order is that of the devices (by index, then by name), whatever order the text
had, so two readings of one machine compare equal.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from seedance_obs.topology.model import (
    UNSUPPORTED,
    Absent,
    Device,
    FabricMembership,
    Kind,
    NvLinkPort,
    Path,
    PcieLevel,
    PcieLink,
    Reading,
    Topology,
)
from seedance_obs.topology.naming import in_order, natural_key, number_list


def topology_json(reading: Reading) -> dict[str, Any]:
    """What a reading says: GPUs, NICs, links between devices, NVLink domains, NUMA nodes, warnings.

    `links` holds the pairs that the text told of, each once. `domains` are GPU names by domain,
    `numa` GPU names by the number of a near NUMA node: a GPU near two is under both.
    """
    topology = reading.topology
    gpus = in_order(topology.gpus)
    return {
        "format": reading.format or None,
        "host": topology.host or None,
        "gpus": [_gpu(topology, gpu) for gpu in gpus],
        "nics": [_device(nic) for nic in in_order(topology.of_kind(Kind.NIC))],
        "links": [_link(*pair) for pair in _pairs(topology)],
        "domains": _groups((topology.domains.get(gpu.name), gpu.name) for gpu in gpus),
        "numa": _groups((str(node), gpu.name) for gpu in gpus for node in _nodes(gpu)),
        "warnings": list(reading.warnings),
    }


def _pairs(topology: Topology) -> list[tuple[str, str, Path]]:
    """The paths, each from the device that comes first, in the order of the devices."""
    place = {device.name: at for at, device in enumerate(_gpus_first(topology))}
    found = {}
    for path in topology.paths:
        one, other = sorted(
            (path.source, path.target), key=lambda name: (place.get(name, len(place)), name)
        )
        found[one, other] = topology.path(one, other)
    order = sorted(found, key=lambda pair: [(place.get(name, len(place)), name) for name in pair])
    return [(one, other, found[one, other]) for one, other in order]


def _gpus_first(topology: Topology) -> list[Device]:
    kinds = (Kind.GPU, Kind.NIC)
    rest = [device for device in topology.devices if device.kind not in kinds]
    return [*in_order(topology.gpus), *in_order(topology.of_kind(Kind.NIC)), *in_order(rest)]


def _link(source: str, target: str, path: Path) -> dict[str, Any]:
    return {
        "source": source,
        "target": target,
        "class": path.link_class,
        "nvlinks": plain(path.nvlinks),
        "nvlink_kind": plain(path.nvlink_kind),
        "pcie": path.pcie.name if isinstance(path.pcie, PcieLevel) else plain(path.pcie),
        "p2p": dict(sorted(path.p2p.items())) or None,
    }


def _device(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "index": device.index,
        "label": device.label or None,
        "bus_id": plain(device.bus_id),
        "numa": _numbers(device.numa),
        "cpus": number_list(device.cpus) if device.cpus is not UNSUPPORTED else plain(device.cpus),
        "pcie_root": plain(device.pcie_root),
        "pcie_switch": plain(device.pcie_switch),
        "pcie": _fields(device.pcie),
        "present": device.present,
    }


def _gpu(topology: Topology, gpu: Device) -> dict[str, Any]:
    fabric = gpu.fabric
    return _device(gpu) | {
        "uuid": plain(gpu.uuid),
        "model": plain(gpu.model),
        "memory_node": plain(gpu.memory_node),
        "mig": plain(gpu.mig),
        "nvlink_domain": topology.domains.get(gpu.name),
        "nvlinks": _ports(gpu.nvlinks),
        "fabric": plain(fabric) if isinstance(fabric, Absent) else _fields(fabric),
    }


def _ports(ports: tuple[NvLinkPort, ...] | Absent) -> Any:
    if isinstance(ports, Absent):
        return plain(ports)
    return [_fields(port) for port in sorted(ports, key=lambda port: port.port)]


def _fields(record: PcieLink | FabricMembership | NvLinkPort) -> dict[str, Any]:
    return {field.name: plain(getattr(record, field.name)) for field in fields(record)}


def _numbers(numbers: frozenset[int] | Absent) -> Any:
    return plain(numbers) if isinstance(numbers, Absent) else sorted(numbers)


def _nodes(gpu: Device) -> list[int]:
    return [] if isinstance(gpu.numa, Absent) else sorted(gpu.numa)


def _groups(members: Iterable[tuple[str | None, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for group, name in members:
        if group is not None:
            groups.setdefault(group, []).append(name)
    return dict(sorted(groups.items(), key=lambda item: natural_key(item[0])))


def plain(value: object) -> Any:
    """A value as JSON has it: null where it is not known, `unsupported` where there is none."""
    if isinstance(value, Absent):
        return "unsupported" if value is UNSUPPORTED else None
    return list(value) if isinstance(value, tuple) else value
