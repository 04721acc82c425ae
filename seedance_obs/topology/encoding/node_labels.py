"""A host's topology as labels and annotations of its Kubernetes node, `topology.seedance.io/*`.

Labels are what schedulers match on (`In`, and `Gt` on integers), so they say what a host is, not
how it fares: one NVLink that goes down changes none of them. Facts of the host are one label;
facts of a GPU carry its index in the key, `topology.seedance.io/gpu3.numa-node`. Which of the two
a fact is does not depend on the values, except that a bandwidth class or a number of NVLinks that
is not the same on all GPUs is given for each of them instead.

Annotations hold what a label's value cannot: addresses with colons, and every pair's link class
as it is now. What is not known is in neither.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from seedance_obs.topology.distance import worst_class
from seedance_obs.topology.domains import domain_is_known, rack_domain
from seedance_obs.topology.encoding.gpu_place import (
    bandwidth_class,
    encode,
    label_value,
)
from seedance_obs.topology.kubernetes import GROUP
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Topology,
    known,
)
from seedance_obs.topology.naming import in_order
from seedance_obs.topology.products import product

PREFIX = f"{GROUP}/"
ANNOTATIONS_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class NodeLabels:
    """What to write on a node: legal labels and annotations by full key."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def node_labels(topology: Topology) -> NodeLabels:
    """The labels and annotations of a host; none for a topology that holds no device at all.

    A GPU without an index has no labels of its own, as its key could not name it.
    """
    if not topology.devices:
        return NodeLabels()
    gpus = in_order(topology.gpus)
    facts = dict(_host_facts(topology, gpus))
    raw: dict[str, str] = {}
    for gpu in gpus:
        if gpu.index is not None:
            facts |= _named(gpu, _gpu_facts(topology, gpu))
            raw |= _named(gpu, _identity(gpu))
    labels = {key: label_value(value) for key, value in sorted(facts.items())}
    raw |= {key: value for key, value in facts.items() if labels[key] != value}
    return NodeLabels(
        {PREFIX + key: value for key, value in labels.items() if value},
        _with_pairs({PREFIX + key: value for key, value in sorted(raw.items())}, topology, gpus),
    )


def _named(gpu: Device, facts: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    return {f"gpu{gpu.index}.{name}": value for name, value in facts if value}


def _host_facts(topology: Topology, gpus: Sequence[Device]) -> Iterator[tuple[str, str]]:
    yield "gpus", str(len(gpus))
    facts = {
        "nvlink-domains": _domain_count(topology, gpus),
        "nvlink-domain": _same([topology.domains.get(gpu.name) for gpu in gpus]),
        "rack-domain": _same([rack_domain(gpu.fabric) for gpu in gpus]),
        "numa-nodes": _numa_count(gpus),
        "worst-link-class": _worst_class(topology, gpus),
    }
    yield from ((name, value) for name, value in facts.items() if value is not None)
    yield from _same_or_each("bandwidth-class", gpus, [_bandwidth_class(gpu) for gpu in gpus])
    yield from _same_or_each("nvlinks-per-gpu", gpus, [_nvlinks(gpu) for gpu in gpus])


def _gpu_facts(topology: Topology, gpu: Device) -> Iterator[tuple[str, str | None]]:
    place = encode(topology, gpu)
    yield "root-complex-id", place.root_complex_id
    yield "pcie-switch", place.pcie_switch
    yield "numa-node", place.numa_node
    yield "topo-mask", place.topo_mask
    yield "nvlink-domain", place.nvlink_domain


def _identity(gpu: Device) -> Iterator[tuple[str, str | None]]:
    yield "pci-bus-id", known(gpu.bus_id)
    yield "uuid", known(gpu.uuid)
    yield "model", known(gpu.model)


def _same(values: Sequence[str | None]) -> str | None:
    """The value that all share; None where there are none, one is not known, or they differ."""
    return values[0] if len(set(values)) == 1 else None


def _same_or_each(
    name: str, gpus: Sequence[Device], values: Sequence[str | None]
) -> Iterator[tuple[str, str]]:
    same = _same(values)
    if same is not None:
        yield name, same
        return
    own_name = "nvlinks" if name == "nvlinks-per-gpu" else name
    for gpu, value in zip(gpus, values, strict=True):
        if value is not None and gpu.index is not None:
            yield f"gpu{gpu.index}.{own_name}", value


def _bandwidth_class(gpu: Device) -> str | None:
    return None if isinstance(gpu.model, Absent) else bandwidth_class(gpu.model)


def _domain_count(topology: Topology, gpus: Sequence[Device]) -> str | None:
    if not gpus or not all(domain_is_known(topology, gpu) for gpu in gpus):
        return None
    return str(len({topology.domains[gpu.name] for gpu in gpus if gpu.name in topology.domains}))


def _numa_count(gpus: Sequence[Device]) -> str | None:
    """How many NUMA nodes the GPUs are near."""
    nodes: set[int] = set()
    for gpu in gpus:
        if isinstance(gpu.numa, Absent) or not gpu.numa:
            return None
        nodes |= gpu.numa
    return str(len(nodes)) if nodes else None


def _nvlinks(gpu: Device) -> str | None:
    """How many NVLinks the GPU has, up or down: its ports, unless all of them lead nowhere."""
    board = None if isinstance(gpu.model, Absent) else product(gpu.model)
    by_design = None if board is None else board.nvlinks
    if not isinstance(gpu.nvlinks, Absent):
        states = {port.active for port in gpu.nvlinks}
        if True in states:
            return str(len(gpu.nvlinks))
        return "0" if UNKNOWN not in states else None
    if by_design is None and gpu.nvlinks is UNSUPPORTED:
        return "0"
    return None if by_design is None else str(by_design)


def _worst_class(topology: Topology, gpus: Sequence[Device]) -> str | None:
    """The farthest that two GPUs are apart; `NV` without a count, which falls with every link."""
    paths = (topology.path(one.name, other.name) for one, other in combinations(gpus, 2))
    worst = known(worst_class(path.link_class or UNKNOWN for path in paths))
    return "NV" if worst and worst.startswith("NV") else worst


def _with_pairs(
    annotations: dict[str, str], topology: Topology, gpus: Sequence[Device]
) -> dict[str, str]:
    """The annotations and `topology`, unless Kubernetes would refuse them for their size."""
    pairs: dict[str, list[list[int]]] = {}
    for one, other in combinations([gpu for gpu in gpus if gpu.index is not None], 2):
        link_class = topology.path(one.name, other.name).link_class
        if link_class is not None and one.index is not None and other.index is not None:
            pairs.setdefault(link_class, []).append([one.index, other.index])
    if not pairs:
        return annotations
    written = json.dumps(dict(sorted(pairs.items())), separators=(",", ":"))
    larger = annotations | {f"{PREFIX}topology": written}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in larger.items())
    return larger if size <= ANNOTATIONS_MAX_BYTES else annotations
