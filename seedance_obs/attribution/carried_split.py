"""Splitting one whole after another into integer parts, with the rounding of each carried on."""

import heapq
from collections.abc import Mapping


class CarriedSplit:
    """Parts in proportion to weights that add up to each whole, by largest remainders.

    What rounding gave or took is remembered by key and made good later, so that over any number
    of splits no key drifts from its exact share by more than a few units.
    """

    def __init__(self, owed: Mapping[str, float] | None = None) -> None:
        self._owed = dict(owed or {})  # exact share less what was given; adds up to 0

    def split(self, whole: int, weights: Mapping[str, int]) -> dict[str, int]:
        """The parts of `whole`; a key of weight 0 is left out and gets nothing.

        Raises:
            ValueError: a weight is negative, or all are zero.
        """
        total = sum(weights.values())
        if total <= 0 or min(weights.values()) < 0:
            raise ValueError(f"weights must be non-negative with a positive sum, not {weights}")
        owed = self._owed
        parts = {}
        for key, weight in weights.items():
            if weight:
                parts[key], remainder = divmod(whole * weight, total)
                owed[key] = owed.get(key, 0.0) + remainder / total
        missing = whole - sum(parts.values())
        for key in heapq.nlargest(missing, parts, key=owed.__getitem__):
            parts[key] += 1
            owed[key] -= 1
        return parts

    def forget(self, key: str, heir: str) -> None:
        """Let a key go; what rounding owes it is owed to `heir`."""
        owed = self._owed.pop(key, 0.0)
        if owed:
            self._owed[heir] = self._owed.get(heir, 0.0) + owed

    def as_state(self) -> dict[str, float]:
        """What is owed by key, for the constructor."""
        return dict(self._owed)
