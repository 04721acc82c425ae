"""Series that leak, and series that only look like it, as functions of time."""

import random
from collections.abc import Callable
from math import sqrt

Course = Callable[[float], float]  # the value at a second


def sampled(course: Course, every: float, count: int, *, phase: float = 0.0) -> list[int]:
    """So many samples of a course."""
    return [int(course(phase + number * every)) for number in range(count)]


def sawtooth(per_second: float, period: float, phase: float = 0.0) -> Course:
    """What grows and falls back to where it began once a period."""
    return lambda at: 1000 + per_second * ((at + phase) % period)


def step(height: float, time: float) -> Course:
    """What rises once, at once."""
    return lambda at: 1000 + (height if at >= time else 0)


def leak(per_second: float, begin: float, end: float = float("inf")) -> Course:
    """What is steady, grows from one time to another, and is steady again."""
    return lambda at: 1000 + per_second * max(0.0, min(at, end) - begin)


def ar1(rng: random.Random, rho: float, spread: float, count: int, *, base: int) -> list[int]:
    """Noise that remembers a share rho of itself from one sample to the next.

    Its standard deviation is `spread`, and it begins as it goes on. Where rho is 1 it is a random
    walk, and `spread` is the standard deviation of its steps.
    """
    fresh = spread * (sqrt(1 - rho * rho) if rho < 1 else 1)
    value = rng.gauss(0, spread) if rho < 1 else 0.0
    found = []
    for _ in range(count):
        found.append(base + round(value))
        value = rho * value + rng.gauss(0, fresh)
    return found
