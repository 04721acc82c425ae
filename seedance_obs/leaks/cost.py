"""What a suspect costs an hour: the power that it draws, and the part of a GPU that it takes."""

from seedance_obs.leaks.suspect import GPU_KINDS, Suspect


def cost_per_hour(
    suspect: Suspect, *, kwh_price: float | None, gpu_hour_price: float | None
) -> float | None:
    """What a suspect costs an hour, in the currency of the prices; costs of a node add up.

    Only kinds that hold or burn a GPU cost anything: power times the price of a kilowatt-hour, and
    the part of the GPU times the price of its hour. A price that is None and what is not known add
    nothing; None where nothing at all can be priced.
    """
    if suspect.finding.kind not in GPU_KINDS:
        return None
    parts = []
    if kwh_price is not None and suspect.power_watts is not None:
        parts.append(suspect.power_watts / 1000 * kwh_price)
    if gpu_hour_price is not None and suspect.gpu_share is not None:
        parts.append(suspect.gpu_share * gpu_hour_price)
    return sum(parts) if parts else None
