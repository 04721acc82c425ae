"""Boards whose sharers' power is known, played tick by tick to whatever splits their energy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

STEP_S = 0.02
STEPS = 50  # in a tick of one second

Pattern = Callable[[int], float]  # activity by the number of the step


def steady(level: float) -> Pattern:
    return lambda _: level


def burst(period_s: float, duty: float, level: float, offset_s: float = 0.0) -> Pattern:
    def at(step: int) -> float:
        return level if (step * STEP_S + offset_s) % period_s < duty * period_s else 0.0

    return at


def levels(random: Random, seconds: float, low: float, high: float) -> Pattern:
    """Another level every few seconds."""
    drawn = [random.uniform(low, high) for _ in range(997)]
    return lambda step: drawn[int(step * STEP_S / seconds) % len(drawn)]


@dataclass
class Sharer:
    pattern: Pattern
    watts: float  # at activity 1
    exponent: float = 1.0

    def power(self, activity: float) -> float:
        return self.watts * activity**self.exponent if activity else 0.0


@dataclass
class Board:
    """`noise` is relative and uniform; activities come as whole percents unless `exact`."""

    sharers: Sequence[Sharer]
    base_watts: float = 0.0
    noise: float = 0.01
    exact: bool = False
    seed: int = 0
    rest_s: int = 0  # how long everybody holds the board before they begin

    def ticks(self, seconds: int) -> Iterator[tuple[dict[int, float], list[float], float]]:
        """Measured activities, the true mean watts of each, and the measured watts of all."""
        random = Random(self.seed)
        for tick in range(seconds):
            activities, watts = {}, []
            for i, sharer in enumerate(self.sharers):
                steps = range(tick * STEPS, (tick + 1) * STEPS)
                seen = [0.0 if tick < self.rest_s else sharer.pattern(step) for step in steps]
                mean = sum(seen) / STEPS
                activities[i] = mean if self.exact else round(100 * mean) / 100
                power = sum(map(sharer.power, seen)) / STEPS
                watts.append(power + self.base_watts / len(self.sharers))
            yield activities, watts, sum(watts) * (1 + self.noise * random.uniform(-1, 1))
