"""How much of a shared board each of its holders may use, as shares of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from seedance_obs.exporter.books.account_names import workload_of
from seedance_obs.exporter.books.residency import Resident
from seedance_obs.exporter.view import QuotaRow
from seedance_obs.fragmentation.request import WHOLE_GPU

Holding = tuple[str, str]  # a board's UUID and a workload's key


class Limit(NamedTuple):
    """Shares (0 to 1) of a board that a holder may use."""

    memory: float
    sm: float


NO_LIMIT = Limit(1.0, 1.0)
LEAST = 1 / WHOLE_GPU  # who is there takes a thousandth, whatever it is limited to


def limits_of(
    quotas: Iterable[QuotaRow], memory_total: Mapping[str, float]
) -> Mapping[Holding, Limit]:
    """The limits of those who share whole boards; of several limits the tightest counts.

    Who is limited in memory alone is taken to use as large a share of the SMs, and the other way
    round: that is the part of the board which allocators of shares reckon with. Nobody takes less
    than a thousandth. What MIG cuts is left out, since its instances are devices of their own.

    Args:
        quotas: What is known of each workload on each board.
        memory_total: The memory of each board in bytes, by UUID; without it a limit in bytes says
            nothing.
    """
    memory: defaultdict[Holding, list[float]] = defaultdict(list)
    sm: defaultdict[Holding, list[float]] = defaultdict(list)
    for row in quotas:
        holding = (row.gpu_uuid, workload_of(row.account))
        total = memory_total.get(row.gpu_uuid)
        if row.source == "mig":
            continue
        if row.memory_bytes is not None and total:
            memory[holding].append(row.memory_bytes / total)
        if row.sm_ratio is not None:
            sm[holding].append(row.sm_ratio)
    return {
        holding: Limit(
            memory=_tightest(memory.get(holding) or sm[holding]),
            sm=_tightest(sm.get(holding) or memory[holding]),
        )
        for holding in memory.keys() | sm.keys()
    }


def _tightest(shares: Iterable[float]) -> float:
    return max(LEAST, min(1.0, *shares))


def taken(uuid: str, resident: Resident, limits: Mapping[Holding, Limit]) -> Limit:
    """What a resident takes of a board: its limits, but all of it where it was given it alone.

    A limit on who was given the whole board frees nothing that anybody else could be given.
    """
    if resident.sole:
        return NO_LIMIT
    return limits.get((uuid, resident.workload.key), NO_LIMIT)
