"""Whose the bytes of each GPU are: its tenants by activity."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.seats import Seat

Shares = Mapping[str, Mapping[str, float]]  # by GPU's UUID and tenant, adding up to 1 on each


def shares_of(seats: Iterable[Seat]) -> Shares:
    """Each tenant's share of each GPU that anybody is on.

    By the activity of those who sit there; equal by seat where it is not known of all, or where
    all of them are idle.
    """
    by_gpu: defaultdict[str, list[Seat]] = defaultdict(list)
    for seat in seats:
        by_gpu[seat.gpu.uuid].append(seat)
    return {uuid: _shares(on) for uuid, on in by_gpu.items()}


def _shares(seats: list[Seat]) -> Mapping[str, float]:
    # An account that has several seats on a board is told the activity of all of them in each.
    activity = {seat.account: seat.activity for seat in seats}
    known = [value for value in activity.values() if value is not None]
    weights: defaultdict[str, float] = defaultdict(float)
    if len(known) == len(activity) and sum(known) > 0:
        for account, value in activity.items():
            weights[tenant_of(account)] += value or 0.0
    else:
        for seat in seats:
            weights[tenant_of(seat.account)] += 1.0
    whole = sum(weights.values())
    return {tenant: weight / whole for tenant, weight in weights.items()}
