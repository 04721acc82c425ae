"""Splitting a whole into integer parts that add up to it exactly."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def split_exactly(total: int, weights: Mapping[Key, int]) -> dict[Key, int]:
    """Parts of `total` in proportion to `weights` by the method of largest remainders.

    The parts are integers and sum to `total`; of equal remainders the earlier key wins.

    Raises:
        ValueError: a weight is negative, or all are zero.
    """
    whole = sum(weights.values())
    if whole <= 0 or min(weights.values()) < 0:
        raise ValueError(f"weights must be non-negative with a positive sum, not {weights}")
    parts = {key: total * weight // whole for key, weight in weights.items()}
    by_remainder = sorted(
        enumerate(weights.items()), key=lambda item: (-(total * item[1][1] % whole), item[0])
    )
    for _, (key, _) in by_remainder[: total - sum(parts.values())]:
        parts[key] += 1
    return parts
