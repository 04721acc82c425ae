"""Least squares on small normal equations, where no answer may be negative.

A Gram matrix `A'A` and moments `A'b` stand for the observations `A x = b`, however many there were.
"""

from collections.abc import Sequence
from math import sqrt
from operator import mul

Matrix = Sequence[Sequence[float]]

ROUNDING = 1e-12
EXCHANGES = 8
DEPENDENT = 1e-10  # of a column's square: what is left of it beyond the others is rounding


def nonnegative(gram: Matrix, moments: Sequence[float]) -> list[float]:
    """The x >= 0 with the least `x'Gx/2 - m'x`.

    By exchanging all wrong signs at once (Portugal, Judice and Vicente), which mostly ends after a
    few steps; else by the active-set method of Lawson and Hanson. A column that depends on those
    chosen before it stays 0, so a singular matrix is no error.
    """
    usable = [index for index in range(len(moments)) if gram[index][index] > 0]
    tolerance = ROUNDING * max(map(abs, moments), default=0.0)
    answer = _by_exchange(gram, moments, usable, tolerance)
    return _by_active_set(gram, moments, usable, tolerance) if answer is None else answer


def _by_exchange(
    gram: Matrix, moments: Sequence[float], usable: list[int], tolerance: float
) -> list[float] | None:
    chosen = usable
    for _ in range(EXCHANGES):
        x = _solved(gram, moments, chosen)
        if x is None:
            return None
        gains = _gains(gram, moments, x)
        kept = {i for i in chosen if x[i] >= 0}
        missed = {i for i in usable if i not in chosen and gains[i] > tolerance}
        if len(kept) == len(chosen) and not missed:
            return x
        chosen = sorted(kept | missed)
    return None


def _by_active_set(
    gram: Matrix, moments: Sequence[float], usable: list[int], tolerance: float
) -> list[float]:
    size = len(moments)
    x = [0.0] * size
    chosen: list[int] = []
    barred: set[int] = set()
    for _ in range(3 * size):
        gains = _gains(gram, moments, x)
        waiting = [i for i in usable if i not in chosen and i not in barred]
        best = max(waiting, key=lambda i: gains[i] / sqrt(gram[i][i]), default=None)
        if best is None or gains[best] <= tolerance:
            return x
        goal = _solved(gram, moments, [*chosen, best])
        if goal is None or goal[best] <= 0:
            barred.add(best)
            continue
        chosen.append(best)
        barred.clear()
        x = _walked(gram, moments, x, goal, chosen)
    return x


def _walked(
    gram: Matrix, moments: Sequence[float], x: list[float], goal: list[float], chosen: list[int]
) -> list[float]:
    """Towards the goal as far as no chosen coordinate turns negative, dropping those that would."""
    while min(goal[i] for i in chosen) < 0:
        step = min(x[i] / (x[i] - goal[i]) for i in chosen if goal[i] < 0)
        x = [a + step * (b - a) for a, b in zip(x, goal, strict=True)]
        chosen[:] = [i for i in chosen if x[i] > 1e-14 * (1 + abs(goal[i])) or goal[i] > 0]
        x = [value if i in chosen else 0.0 for i, value in enumerate(x)]
        goal = _solved(gram, moments, chosen) or x
    return goal


def _gains(gram: Matrix, moments: Sequence[float], x: Sequence[float]) -> list[float]:
    return [moment - sum(map(mul, row, x)) for row, moment in zip(gram, moments, strict=True)]


def _solved(gram: Matrix, moments: Sequence[float], chosen: Sequence[int]) -> list[float] | None:
    """The unconstrained answer over the chosen coordinates, the others 0."""
    factor = _cholesky(gram, chosen)
    if factor is None:
        return None
    found = _substituted(factor, [moments[index] for index in chosen])
    x = [0.0] * len(moments)
    for index, value in zip(chosen, found, strict=True):
        x[index] = value
    return x


def inverse(gram: Matrix) -> list[list[float]] | None:
    """The inverse of a positive definite matrix; None where its columns depend on each other."""
    size = len(gram)
    factor = _cholesky(gram, range(size))
    if factor is None:
        return None
    return [_substituted(factor, [float(i == j) for j in range(size)]) for i in range(size)]


def variances(gram: Matrix, directions: Sequence[Sequence[float]]) -> list[float] | None:
    """How uncertain each linear function `d'x` of the answer is: `d' G^-1 d`.

    In units of the variance of one observation. None where the columns depend on each other.
    """
    factor = _cholesky(gram, range(len(gram)))
    if factor is None:
        return None
    halves = [_halfway(factor, direction) for direction in directions]
    return [sum(value * value for value in half) for half in halves]


def condition_number(gram: Matrix) -> float:
    """How far errors can grow in solving, with every column scaled to length 1; 1 is the best.

    In the 1-norm: `|G| |G^-1|`. Infinite where columns depend on each other or one is 0.
    """
    lengths = [sqrt(max(row[index], 0.0)) for index, row in enumerate(gram)]
    if not all(lengths):
        return float("inf")
    scaled = [
        [value / (a * b) for value, b in zip(row, lengths, strict=True)]
        for row, a in zip(gram, lengths, strict=True)
    ]
    inverted = inverse(scaled)
    return float("inf") if inverted is None else _norm(scaled) * _norm(inverted)


def _norm(matrix: Matrix) -> float:
    return max((sum(map(abs, row)) for row in matrix), default=1.0)


def _cholesky(gram: Matrix, chosen: Sequence[int]) -> list[list[float]] | None:
    """The lower triangle L of `L L'`, or None where a chosen column depends on those before it."""
    lower: list[list[float]] = []
    for index in chosen:
        source = gram[index]
        row: list[float] = []
        for other, column in zip(chosen, lower, strict=False):
            done = sum(map(mul, row, column))
            row.append((source[other] - done) / column[-1])
        left = source[index] - sum(value * value for value in row)
        if left <= DEPENDENT * source[index] or left <= 0:
            return None
        row.append(sqrt(left))
        lower.append(row)
    return lower


def _substituted(lower: Sequence[Sequence[float]], moments: Sequence[float]) -> list[float]:
    """The x of `L L' x = m`: first down the triangle, then up."""
    x = _halfway(lower, moments)
    for i in range(len(x) - 1, -1, -1):
        row = lower[i]
        value = x[i] / row[-1]
        x[i] = value
        for j in range(i):
            x[j] -= row[j] * value
    return x


def _halfway(lower: Sequence[Sequence[float]], moments: Sequence[float]) -> list[float]:
    """The x of `L x = m`."""
    x: list[float] = []
    for row, moment in zip(lower, moments, strict=True):
        x.append((moment - sum(map(mul, row, x))) / row[-1])
    return x
