"""A reading of a topology in one line."""

from itertools import combinations

from seedance_obs.topology.model import Absent, Kind, Reading, Topology


def in_short(reading: Reading) -> str:
    """`topo-m: 8 GPUs, 2 NICs, 28 NVLink pairs, 1 NVLink domain, 2 NUMA nodes`.

    What the text does not tell is named as not known, never counted as none.
    """
    if not reading.format:
        return "no topology"
    found = reading.topology
    numa = [gpu.numa for gpu in found.gpus if not isinstance(gpu.numa, Absent)]
    links, links_known = _links(found)
    parts = [
        counted(len(found.gpus), "GPU"),
        *_some(sum(device.kind is Kind.NIC for device in found.devices), "NIC"),
        *links,
        *_some(len(set(found.domains.values())), "NVLink domain"),
        *_some(len(frozenset().union(*numa)), "NUMA node"),
    ]
    lost = [] if links_known else ["NVLink pairs"]
    lost += ["NUMA nodes"] if found.gpus and not numa else []
    line = f"{reading.format}: {', '.join(parts)}"
    if lost:
        line += f"; not known: {', '.join(lost)}"
    if reading.warnings:
        line += f"; {counted(len(reading.warnings), 'warning')}"
    return line


def counted(number: int, noun: str) -> str:
    """`1 GPU`, `2 GPUs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(number: int, noun: str) -> list[str]:
    return [counted(number, noun)] if number else []


def _links(topology: Topology) -> tuple[list[str], bool]:
    """What to say of NVLinks, and whether it is known which GPUs they join."""
    found = [
        topology.path(one.name, other.name).nvlinks for one, other in combinations(topology.gpus, 2)
    ]
    joined = sum(isinstance(links, int) and links > 0 for links in found)
    if joined:
        return [counted(joined, "NVLink pair")], True
    ports = [len(gpu.nvlinks) for gpu in topology.gpus if not isinstance(gpu.nvlinks, Absent)]
    if not found or any(links is Absent.UNKNOWN for links in found):
        return _some(sum(ports), "NVLink port"), not found
    return ["no NVLinks"], True
