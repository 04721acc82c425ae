"""Pairs of a tenant and its neighbours, simulated in windows of 30 s with a known truth.

Knows nothing of the score: progress is 1 without pressure, `1 - S c` under a pressure of c, times
noise that is AR(1) with rho 0.8 and a standard deviation of 3 %. Pressure is bursty: on and off
for random times, between half and all of the capacity in a burst, below a tenth outside.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi, sin, sqrt

from seedance_obs.bandwidth.sensitivity_history import History, Observation

WINDOW = 30.0  # seconds
RHO = 0.8
NOISE = 0.03


@dataclass(frozen=True)
class Pair:
    """What the tenant and its neighbours do in each window."""

    progress: list[float]
    pressure: list[float]
    own: list[float | None]
    throttled: list[bool]
    running: list[bool]

    def observations(self) -> list[Observation]:
        columns = zip(
            self.progress, self.pressure, self.own, self.running, self.throttled, strict=True
        )
        return [Observation(WINDOW * n, *values) for n, values in enumerate(columns, start=1)]


def kept(pair: Pair) -> History:
    history = History()
    for observation in pair.observations():
        history.add(observation)
    return history


def ar1(rng: random.Random, count: int, *, rho: float = RHO, deviation: float = NOISE):
    """Noise around 1 whose standard deviation holds in the long run."""
    value, factors = rng.gauss(0, deviation), []
    for _ in range(count):
        factors.append(1 + value)
        value = rho * value + rng.gauss(0, deviation * sqrt(1 - rho * rho))
    return factors


def on_off(rng: random.Random, count: int, *, on: float = 5, off: float = 7) -> list[bool]:
    """A switch that stays on and off for random times: means in windows, geometric."""
    state, states = rng.random() < on / (on + off), []
    for _ in range(count):
        states.append(state)
        if rng.random() < 1 / (on if state else off):
            state = not state
    return states


def clockwork(rng: random.Random, count: int, *, period: int, on: int) -> list[bool]:
    """A switch that is on at the begin of each period, whose phase is random."""
    phase = rng.randrange(period)
    return [(n + phase) % period < on for n in range(count)]


def levels(rng: random.Random, states: Sequence[bool]) -> list[float]:
    """The pressure of neighbours that are on and off, at a new level in each window."""
    return [rng.uniform(0.5, 1) if on else rng.uniform(0, 0.1) for on in states]


def pair_of(progress: list[float], pressure: list[float], own=None) -> Pair:
    count = len(progress)
    return Pair(progress, pressure, own or [None] * count, [False] * count, [True] * count)


def times(values: Sequence[float], factors: Sequence[float]) -> list[float]:
    return [value * factor for value, factor in zip(values, factors, strict=True)]


def slowed(pressure: Sequence[float], truth: float) -> list[float]:
    return [1 - truth * c for c in pressure]


def sensitive(
    rng: random.Random, truth: float, count: int = 240, *, on: float = 5, off: float = 7
) -> Pair:
    """A tenant that its neighbours slow down, and that never slows itself."""
    pressure = levels(rng, on_off(rng, count, on=on, off=off))
    return pair_of(times(slowed(pressure, truth), ar1(rng, count)), pressure)


def sends_with_its_progress(rng: random.Random, truth: float, count: int = 240) -> Pair:
    """The same where each step sends as many bytes, so that pressure makes it send less."""
    pair = sensitive(rng, truth, count)
    sent = times([0.3 * p for p in pair.progress], ar1(rng, count, rho=0, deviation=0.01))
    return replace(pair, own=list(sent))


def sends_at_will(rng: random.Random, truth: float, count: int = 240) -> Pair:
    """The same where what it sends has nothing to do with its progress or its neighbours."""
    sent = [0.3 if on else 0.05 for on in on_off(rng, count, on=4, off=4)]
    return replace(sensitive(rng, truth, count), own=times(sent, ar1(rng, count)))


def stutters(rng: random.Random, truth: float, count: int = 240) -> Pair:
    """A tenant that also slows down by itself now and then, whatever its neighbours do."""
    pair = sensitive(rng, truth, count)
    own_load = [0.5 if low else 1.0 for low in on_off(rng, count, on=2, off=18)]
    return replace(pair, progress=times(pair.progress, own_load))


def jobs_come_and_go(rng: random.Random, truth: float, count: int = 480) -> Pair:
    """Neighbours that press for ten minutes, and rest as long."""
    return sensitive(rng, truth, count, on=20, off=20)


def misaligned(rng: random.Random, truth: float, count: int = 240, *, late: float) -> Pair:
    """The same where the windows of pressure begin that part of one later; earlier if negative."""
    pressure = levels(rng, on_off(rng, count + 2))
    other = 1 if late > 0 else -1
    seen = [
        (1 - abs(late)) * pressure[n] + abs(late) * pressure[n + other] for n in range(1, count + 1)
    ]
    return pair_of(times(slowed(pressure[1:-1], truth), ar1(rng, count)), seen)


def common_phases(rng: random.Random, count: int, *, period: int, on: int) -> Pair:
    """Both write checkpoints by the clock: the tenant stalls and its neighbours press."""
    states = clockwork(rng, count, period=period, on=on)
    own_load = [0.4 if state else 1.0 for state in states]
    return pair_of(times(own_load, ar1(rng, count)), levels(rng, states))


def writes_meanwhile(rng: random.Random, count: int = 240) -> Pair:
    """Its own checkpoints, at odd times, set its neighbours off: it stalls, and sends more."""
    states = on_off(rng, count)
    own_load = [0.4 if state else 1.0 for state in states]
    sent = [0.3 if state else 0.1 for state in states]
    return pair_of(
        times(own_load, ar1(rng, count)), levels(rng, states), times(sent, ar1(rng, count))
    )


def common_phases_among_bursts(rng: random.Random, count: int = 480) -> Pair:
    """The same each half hour, while the neighbours also press at other times."""
    states = clockwork(rng, count, period=60, on=14)
    bursts = on_off(rng, count, on=4, off=24)
    own_load = [0.4 if state else 1.0 for state in states]
    pressure = levels(rng, [a or b for a, b in zip(states, bursts, strict=True)])
    return pair_of(times(own_load, ar1(rng, count)), pressure)


def own_load_drops_once(rng: random.Random, count: int = 240) -> Pair:
    """Its load falls by half for good, and its neighbours happen to press more from then on."""
    fall = rng.randrange(count // 3, 2 * count // 3)
    before, after = on_off(rng, fall, on=2, off=12), on_off(rng, count - fall, on=9, off=4)
    own_load = [1.0] * fall + [0.5] * (count - fall)
    progress = times(own_load, ar1(rng, count))
    return pair_of(progress, levels(rng, before + after), [0.3 * p for p in progress])


def own_load_drops(rng: random.Random, count: int = 240, *, filled: float) -> Pair:
    """Its load falls now and then; its neighbours use most of these times, and no others.

    They press from the first window of a fall, so that only what it sends tells what happened.
    """
    states, pressing, taken = on_off(rng, count, on=5, off=7), [], False
    for n, state in enumerate(states):
        if state and not (n and states[n - 1]):
            taken = rng.random() < filled
        pressing.append(state and taken)
    progress = times([0.6 if state else 1.0 for state in states], ar1(rng, count))
    return pair_of(progress, levels(rng, pressing), [0.3 * p for p in progress])


def time_of_day(rng: random.Random, count: int = 480) -> Pair:
    """Morning comes: its own load falls over the hours, and its neighbours wake up."""
    start = rng.uniform(-0.25, 0.25) * pi
    course = [sin(start + pi * (n / count - 0.5)) for n in range(count)]  # -1 to 1
    pressure = [rng.uniform(0.5, 1) if rng.random() < 0.5 + 0.4 * x else 0.05 for x in course]
    return pair_of(times([1 - 0.2 * x for x in course], ar1(rng, count)), pressure)


def heat(rng: random.Random, count: int = 480) -> Pair:
    """Its GPU is throttled while the neighbours' GPUs work hard, and only therefore slow."""
    states = on_off(rng, count)
    hot = [on and rng.random() < 0.7 for on in states]
    progress = times([0.6 if throttled else 1.0 for throttled in hot], ar1(rng, count))
    return replace(pair_of(progress, levels(rng, states)), throttled=hot)


def reacts(rng: random.Random, count: int = 240, *, late: float) -> Pair:
    """Its own load falls now and then, and its neighbours use the time, so many windows late."""
    whole, part = divmod(late, 1)
    shift = int(whole) + 1
    states = on_off(rng, count + shift, on=6, off=8)
    seen = [float(state) for state in states]
    work = [
        (1 - part) * seen[n - int(whole)] + part * seen[n - shift]
        for n in range(shift, count + shift)
    ]
    pressure = [rng.uniform(0.6, 0.9) * x + 0.05 for x in work]
    own_load = [0.6 if state else 1.0 for state in states[shift:]]
    return pair_of(times(own_load, ar1(rng, count)), pressure)


def reacts_to_noise(rng: random.Random, count: int = 240, *, late: int) -> Pair:
    """Its neighbours take what it happens to leave, in each window or one later."""
    noise = ar1(rng, count + late)
    pressure = [
        max(0.0, min(1.0, 0.35 - 8 * (noise[n - late] - 1) + rng.gauss(0, 0.15)))
        for n in range(late, count + late)
    ]
    return pair_of(noise[late:], pressure)
