"""What suspects cost an hour: the power they draw, and the GPUs that nobody else can have."""

from collections import Counter
from collections.abc import Sequence

from seedance_obs.leaks.suspect import GPU_KINDS, Suspect


def costs_per_hour(
    suspects: Sequence[Suspect], *, kwh_price: float | None, gpu_hour_price: float | None
) -> list[float | None]:
    """What each suspect costs an hour, in the currency of the prices.

    Only kinds that hold or burn a GPU cost anything: power times the price of energy, and the
    price of a GPU-hour. Suspects on one board bear its hour in equal parts, so that costs add up;
    a MIG instance counts as its board. A price that is None and power that is not known add
    nothing; None where nothing at all can be priced.

    Args:
        suspects: all of the node.
        kwh_price: the price of a kilowatt-hour.
        gpu_hour_price: the price of an hour of one GPU.
    """
    on_board = Counter(_board(suspect) for suspect in suspects if _is_priced(suspect))

    def cost(suspect: Suspect) -> float | None:
        if not _is_priced(suspect):
            return None
        parts = []
        if kwh_price is not None and suspect.power_watts is not None:
            parts.append(suspect.power_watts / 1000 * kwh_price)
        if gpu_hour_price is not None:
            parts.append(gpu_hour_price / on_board[_board(suspect)])
        return sum(parts) if parts else None

    return [cost(suspect) for suspect in suspects]


def _is_priced(suspect: Suspect) -> bool:
    return suspect.finding.kind in GPU_KINDS


def _board(suspect: Suspect) -> tuple[str, str]:
    """The board; a suspect whose board is not known is taken to have one of its own."""
    uuid = suspect.finding.gpu_uuid
    return (uuid, "") if uuid else ("", f"{suspect.finding.kind} {suspect.name}")
