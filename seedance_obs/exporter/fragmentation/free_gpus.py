"""What the free parts of a node's boards are worth together."""

from collections.abc import Mapping, Sequence
from math import fsum

from seedance_obs.exporter.fragmentation.islands import free_by_island
from seedance_obs.exporter.fragmentation.units import Unit
from seedance_obs.exporter.view import FreeGpus, LocatedGpu
from seedance_obs.fragmentation import measures
from seedance_obs.fragmentation.fgd import fragment_milli
from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import FreeNode
from seedance_obs.topology.model import Topology

GANGS = (1, 2, 4, 8)  # GPUs that one job may want of a node

Boards = Sequence[tuple[LocatedGpu, tuple[Unit, ...]]]


def free_gpus(boards: Boards, topology: Topology, mix: Mix) -> FreeGpus:
    """The measures of a node, of whose every board the units are known."""
    units = [unit for _, units in boards for unit in units]
    free = fsum(unit.free for unit in units)
    whole = [gpu.device for gpu, units in boards if _is_whole(gpu, units)]
    islands = free_by_island(topology, whole, [gpu.device for gpu, _ in boards])
    memory = _free_memory(units)
    return FreeGpus(
        gpus=free,
        whole=len(whole),
        gang={size: len(whole) // size * size for size in GANGS},
        island={level: max(found.values(), default=0) for level, found in islands.items()},
        unusable=_unusable(units, mix, free),
        fgd=_fgd(units, mix, free),
        memory_external=None if memory is None else measures.external(memory),
        memory_external_normalised=None if memory is None else measures.external_normalised(memory),
    )


def _is_whole(gpu: LocatedGpu, units: Sequence[Unit]) -> bool:
    """Whether the board is not cut and wholly free: one in MIG mode has no links to others."""
    return not gpu.merged.mig and [unit.free for unit in units] == [1.0]


def _free_memory(units: Sequence[Unit]) -> list[float] | None:
    found = [unit.free_memory_bytes for unit in units]
    known = [free for free in found if free is not None]
    return known if len(known) == len(found) else None


def _unusable(units: Sequence[Unit], mix: Mix, free: float) -> float | None:
    """GPUs that are free in parts too small for what one GPU is asked for; 0 where none is free."""
    demands = request_quantiles(mix)
    if not demands:
        return None
    return free * (measures.unusable([unit.free_milli for unit in units], demands) or 0.0)


def request_quantiles(mix: Mix) -> list[int]:
    return [request.gpu_milli for request, _ in mix]


def _fgd(units: Sequence[Unit], mix: Mix, free: float) -> float | None:
    """GPUs that are free and of no use by FGD; 0 where none is free.

    It reckons in thousandths of GPUs, of which seven sevenths are not quite a thousand: the share
    is taken, and not the number.
    """
    if not mix:
        return None
    node = FreeNode(tuple(unit.free_milli for unit in units))
    total = sum(node.gpu_milli)
    return free * fragment_milli(node, mix) / total if total else 0.0
