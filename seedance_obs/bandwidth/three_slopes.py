"""A least-squares fit to three things at once."""

from collections.abc import Sequence
from operator import mul
from statistics import fmean

DEPENDENT = 1e-9  # of what the determinant is for columns that have nothing in common

Row = tuple[float, float, float, float]


def three_slopes(rows: Sequence[Row]) -> tuple[float, float, float] | None:
    """What y changes by for a unit of each x, the others being equal, by Cramer's rule.

    Args:
        rows: Of y and the three x; a level common to all rows is no part of it.

    Returns:
        None where one x goes with the others so closely that they cannot be told apart.
    """
    columns = [_centred(column) for column in zip(*rows, strict=True)]
    y, xs = columns[0], columns[1:]
    gram = [[sum(map(mul, a, b)) for b in xs] for a in xs]
    moments = [sum(map(mul, a, y)) for a in xs]
    whole = _determinant(*gram)
    if whole <= DEPENDENT * gram[0][0] * gram[1][1] * gram[2][2]:
        return None
    a, b, c = gram  # symmetric: its rows are its columns
    return (
        _determinant(moments, b, c) / whole,
        _determinant(a, moments, c) / whole,
        _determinant(a, b, moments) / whole,
    )


def _centred(column: Sequence[float]) -> list[float]:
    mean = fmean(column)
    return [value - mean for value in column]


def _determinant(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )
