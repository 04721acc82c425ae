"""What each class of link carries between the GPUs of a host, and which class is one further."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from seedance_obs.topology.bandwidth import PathModel
from seedance_obs.topology.distance import nearest_first
from seedance_obs.topology.model import UNSUPPORTED, Absent, Path, PcieLevel, Topology


def class_bandwidths(topology: Topology) -> Mapping[str, float]:
    """Bytes per second one way by link class, the nearest class first; of each its slowest pair.

    A class is there if two GPUs that are present have it, by NVLink or by the PCIe between them.
    PHB always is, since that is how a GPU reaches its CPU.
    """
    model = PathModel(topology)
    found: defaultdict[str, list[float]] = defaultdict(list)
    for path in _ways(topology):
        carried = model.bandwidth(path)
        if path.link_class and not isinstance(carried, Absent):
            found[path.link_class].append(carried.bytes_per_second)
    return {name: min(found[name]) for name in nearest_first(found)}


def _ways(topology: Topology) -> Iterator[Path]:
    """From every GPU to its CPU, and between two by their best way and by PCIe alone."""
    gpus = [gpu.name for gpu in topology.gpus if gpu.present]
    for gpu in gpus:
        yield Path(gpu, gpu, PcieLevel.PHB, nvlinks=0)
    for one, other in combinations(gpus, 2):
        path = topology.path(one, other)
        yield path
        yield replace(path, nvlinks=0, nvlink_kind=UNSUPPORTED)
