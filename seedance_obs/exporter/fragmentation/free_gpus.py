"""What the free parts of a node's boards are worth together."""

from collections.abc import Sequence
from math import fsum

from seedance_obs.exporter.fragmentation.islands import free_by_island
from seedance_obs.exporter.fragmentation.placements import Asked
from seedance_obs.exporter.fragmentation.units import Unit, milli
from seedance_obs.exporter.view import FreeGpus, LocatedGpu
from seedance_obs.fragmentation import measures
from seedance_obs.fragmentation.fgd import fragment_milli, fragments_by_cause, stranded_milli
from seedance_obs.fragmentation.request import FreeNode
from seedance_obs.topology.model import Topology

GANGS = (1, 2, 4, 8)  # GPUs that one job may want of a node

Boards = Sequence[tuple[LocatedGpu, tuple[Unit, ...]]]


def free_gpus(boards: Boards, topology: Topology, asked: Asked) -> FreeGpus:
    """The measures of a node, of whose every board the units are known."""
    units = [unit for _, units in boards for unit in units]
    free = fsum(unit.free for unit in units)
    whole = [gpu.device for gpu, units in boards if _is_whole(gpu, units)]
    islands = free_by_island(topology, whole, [gpu.device for gpu, _ in boards])
    memory = _free_memory(units)
    node = FreeNode(tuple(milli(unit.free) for unit in units))
    return FreeGpus(
        gpus=free,
        whole=len(whole),
        gang={size: len(whole) // size * size for size in GANGS},
        island={level: max(found.values(), default=0) for level, found in islands.items()},
        unusable=_times(free, _unusable(node.gpu_milli, asked)),
        stranded=_times(free, _stranded(node, asked)),
        fgd=_times(free, _fgd(node, asked)),
        memory_external=measures.external(memory),
        memory_external_normalised=measures.external_normalised(memory),
    )


def _is_whole(gpu: LocatedGpu, units: Sequence[Unit]) -> bool:
    """Whether the board is not cut and wholly free: one in MIG mode has no links to others."""
    return not gpu.merged.mig and [unit.free for unit in units] == [1.0]


def _free_memory(units: Sequence[Unit]) -> list[float]:
    """Bytes that are free of each unit; none where that of any is not known."""
    known = [unit.free_memory_bytes for unit in units if unit.free_memory_bytes is not None]
    return known if len(known) == len(units) else []


def _unusable(sizes: Sequence[int], asked: Asked) -> float | None:
    """The share of the free in parts too small for what is asked of one GPU; 0 where none is."""
    demands = asked.whole.demands_milli()
    return (measures.unusable(sizes, demands) or 0.0) if demands else None


def _fgd(node: FreeNode, asked: Asked) -> float | None:
    return _share(fragment_milli(node, asked.frequent), node) if asked.frequent else None


def _stranded(node: FreeNode, asked: Asked) -> float | None:
    if not asked.whole:
        return None
    (causes,) = fragments_by_cause([node], asked.whole)
    stranded = stranded_milli(causes, asked.whole)
    return None if stranded is None else _share(stranded, node)


def _share(part_milli: float, node: FreeNode) -> float:
    """A part of what is free; 0 of a full node."""
    total = sum(node.gpu_milli)
    return part_milli / total if total else 0.0


def _times(free: float, share: float | None) -> float | None:
    """GPUs from a share, as which they are computed: seven sevenths are not 1000 thousandths."""
    return None if share is None else free * share
