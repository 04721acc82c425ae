"""How often estimators of growth cry wolf, and how late they see a leak, ours beside five others.

Run by hand from the root of the repository: `python -m tests.bench.leak_estimators`.

All are asked for growth of 8 descriptors a second over windows of 3 minutes, sampled each 15 s; the
seeds are fixed. Noise is autocorrelated (AR(1)) or a random walk, with standard deviations from
small to huge against the 1440 descriptors by which a leak grows in a window. A cell of noise is the
share of windows at whose end an estimator says *leak*; that of ours in parentheses is the share of
windows in which it says so at any moment. A cell of a sawtooth or step is how many of those that
differ in phase it ever takes for a leak. The first five windows, in which ours does not judge, are
left out for all of these. Delays are the median and the worst over phases.
"""

import random
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from math import sqrt
from statistics import median

from rich.console import Console
from rich.table import Table

from seedance_obs.leaks.growth import GrowthWatch
from seedance_obs.leaks.growth_rules import GrowthRule, Unit, read_growth_rules
from tests.leaks.growth_series import ar1, leak, sampled, sawtooth, step

EVERY = 15  # seconds
WINDOW = 12  # samples
SKIPPED = 5 * WINDOW
RATE = 8.0  # descriptors a second
BASE = 1_000_000
HOURS_2 = 480  # samples
RHOS = (0.0, 0.5, 0.9, 0.95)
DEVIATIONS = (50, 300, 1000, 3000, 30_000)  # of the noise
STEPS = (10, 40, 150, 500, 5000)  # of the random walk, each 15 s
SERIES = 16  # of each deviation

LEGEND = """
noise, random walk: the share of windows at whose end it says "leak"; in parentheses, for ours, the
  share of windows in which it says so at any moment
sawtooths, step: how many of the series, which differ in phase, it ever takes for a leak
leaks: minutes from the begin of a leak until it is told: the median, and the worst
All shares leave out the first five windows. Ours judges a series once it was watched for five
windows, since what climbs from birth cannot be told from a sawtooth before its first reset: a leak
from birth, or one that runs while the exporter restarts, is told after 15 min by fast=8/s,3m and
after 10 h by slow=0.05/s,2h.
A random walk has no level to come back to: it does climb to new heights for minutes on end, and
while it does, nothing in its past tells it from a leak.
"""

Samples = Sequence[int]
Says = list[bool]  # for each sample whether it is a leak
Judge = Callable[[Sequence[Samples]], list[Says]]


def fast_rule() -> GrowthRule:
    """The rule that all are held to."""
    return read_growth_rules(["fast=8/s,3m"], "fds")[0]


def ours(batch: Sequence[Samples], rule: GrowthRule | None = None) -> list[Says]:
    """What the exporter's own watch says of series that are noted together."""
    watch = GrowthWatch([rule or fast_rule()], gap_seconds=4 * EVERY)
    says: list[Says] = [[] for _ in batch]
    for number, values in enumerate(zip(*batch, strict=True)):
        watch.note(number * EVERY, dict(enumerate(values)))
        growing = watch.growing(number * EVERY)
        for key, said in enumerate(says):
            said.append(key in growing)
    return says


def over_windows(windows: int, leaks: Callable[[Samples], bool]) -> Judge:
    """The judge that looks at the latest windows alone."""
    size = windows * WINDOW

    def judge(batch: Sequence[Samples]) -> list[Says]:
        return [
            [at >= size and leaks(series[at - size : at]) for at in range(1, len(series) + 1)]
            for series in batch
        ]

    return judge


def slope(window: Samples) -> float:
    """The least-squares slope, per second."""
    middle = (len(window) - 1) / 2
    spread = sum((number - middle) ** 2 for number in range(len(window)))
    return sum((number - middle) * value for number, value in enumerate(window)) / spread / EVERY


def low_water(two_windows: Samples) -> float:
    """By how much the minimum of a window is above that of the one before, per second."""
    return (min(two_windows[WINDOW:]) - min(two_windows[:WINDOW])) / (WINDOW * EVERY)


def theil_sen(window: Samples) -> float:
    """The median of the slopes of all pairs, per second."""
    pairs = combinations(enumerate(window), 2)
    return median((later - sooner) / (j - i) for (i, sooner), (j, later) in pairs) / EVERY


def rises_by_mann_kendall(window: Samples) -> bool:
    """Whether a trend upwards is significant at 5 %, one-sided, were the samples independent."""
    score = sum((later > sooner) - (later < sooner) for sooner, later in combinations(window, 2))
    count = len(window)
    deviation = sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return (score - 1) / deviation > 1.645


def naive(batch: Sequence[Samples]) -> list[Says]:
    """The alert `deriv(x[3m]) > 8` with `for: 3m`."""
    found = []
    for says in over_windows(1, lambda window: slope(window) > RATE)(batch):
        found.append([at >= WINDOW and all(says[at - WINDOW : at + 1]) for at in range(len(says))])
    return found


JUDGES: dict[str, Judge] = {
    "ours": ours,
    "OLS": over_windows(1, lambda window: slope(window) >= RATE),
    "low water": over_windows(2, lambda windows: low_water(windows) >= RATE),
    "Theil-Sen": over_windows(1, lambda window: theil_sen(window) >= RATE),
    "Mann-Kendall": over_windows(1, rises_by_mann_kendall),
    "deriv > 8 for 3m": naive,
}


def noises(rho: float, seed: int = 1) -> list[list[int]]:
    """Series of AR(1) noise of every deviation; where rho is 1, random walks of every step."""
    rng = random.Random(f"{seed} {rho}")
    spreads = STEPS if rho == 1 else DEVIATIONS
    return [ar1(rng, rho, spread, HOURS_2, base=BASE) for spread in spreads for _ in range(SERIES)]


def share_at_ends(says: Sequence[Says]) -> float:
    """The share of windows at whose end it is a leak, of those after the first five."""
    ends = [said[at] for said in says for at in range(SKIPPED + WINDOW - 1, len(said), WINDOW)]
    return sum(ends) / len(ends)


def share_at_any(says: Sequence[Says]) -> float:
    """The share of windows in which it is a leak at any moment, of those after the first five."""
    windows = [
        any(said[at : at + WINDOW]) for said in says for at in range(SKIPPED, len(said), WINDOW)
    ]
    return sum(windows) / len(windows)


def sawtooths(period: float) -> list[list[int]]:
    """Sawtooths of 10/s that differ in phase, from birth."""
    phases = [period * number / 24 for number in range(24)]
    return [sampled(sawtooth(10, period, phase), EVERY, HOURS_2) for phase in phases]


def steps() -> list[list[int]]:
    """One step of 2000 each, at times that differ by a few seconds."""
    times = [2400 + 7.5 * number for number in range(24)]
    return [sampled(step(2000, time), EVERY, HOURS_2) for time in times]


def leak_begins() -> list[float]:
    """When the leaks of `leaks` begin."""
    return [2400 + 2.5 * number for number in range(72)]


def leaks(deviation: float = 0) -> list[list[int]]:
    """Leaks of 9/s that begin in steady processes, at times that differ by a few seconds."""
    rng = random.Random(3)
    found = []
    for begin in leak_begins():
        clean = sampled(leak(9, begin), EVERY, HOURS_2)
        noise = ar1(rng, 0.5, deviation, HOURS_2, base=0)
        found.append([value + more for value, more in zip(clean, noise, strict=True)])
    return found


def delays(says: Sequence[Says], begins: Sequence[float]) -> list[float]:
    """Seconds from each begin until it is first said; infinite where it never is."""
    found = []
    for said, begin in zip(says, begins, strict=True):
        after = (at * EVERY - begin for at, yes in enumerate(said) if yes and at * EVERY >= begin)
        found.append(next(after, float("inf")))
    return found


def slow_delay(entry: str, unit: Unit, per_second: float) -> float:
    """The worst delay of ours in hours, of leaks that begin in series just old enough."""
    rule = read_growth_rules([entry], unit)[0]
    begins = [5 * rule.window_seconds + rule.window_seconds * part / 36 for part in range(7)]
    count = int(9 * rule.window_seconds / EVERY)
    batch = [sampled(leak(per_second, begin), EVERY, count) for begin in begins]
    return max(delays(ours(batch, rule), begins)) / 3600


def noise_row(name: str, batch: Sequence[Samples]) -> list[str]:
    """The shares of windows of one noise."""
    cells = []
    for judge in JUDGES:
        says = JUDGES[judge](batch)
        any_moment = f" ({share_at_any(says):.1%})" if judge == "ours" else ""
        cells.append(f"{share_at_ends(says):.1%}{any_moment}")
    return [name, *cells]


def shape_row(name: str, batch: Sequence[Samples]) -> list[str]:
    """How many of these series are ever taken for leaks."""
    cries = [sum(any(said[SKIPPED:]) for said in judge(batch)) for judge in JUDGES.values()]
    return [name, *(f"{cried} of {len(batch)}" for cried in cries)]


def delay_row(name: str, batch: Sequence[Samples], begins: Sequence[float]) -> list[str]:
    """The median and the worst delay in minutes."""
    cells = []
    for judge in JUDGES.values():
        found = delays(judge(batch), begins)
        cells.append(f"{median(found) / 60:.1f}, {max(found) / 60:.1f} min")
    return [name, *cells]


def main() -> None:
    """Print the table."""
    table = Table(title="growth of 8/s over 3 min, each 15 s", box=None)
    table.add_column("series")
    for name in JUDGES:
        table.add_column(name, justify="right")
    for rho in RHOS:
        table.add_row(*noise_row(f"noise, rho {rho}", noises(rho)))
    table.add_row(*noise_row("random walk", noises(1)))
    for period in (200, 300, 600):
        table.add_row(*shape_row(f"sawtooth +10/s, {period} s", sawtooths(period)))
    table.add_row(*shape_row("one step of 2000", steps()))
    table.add_row(*delay_row("leak of 9/s", leaks(), leak_begins()))
    table.add_row(*delay_row("the same in noise of 200", leaks(deviation=200), leak_begins()))
    newborn = [sampled(leak(9, phase), EVERY, HOURS_2) for phase in range(-15, 1)]
    table.add_row(*delay_row("leak of 9/s from birth", newborn, [0.0] * len(newborn)))
    Console(width=150).print(table)
    sys.stdout.write(
        f"ours, of 0.1/s, by 0.05/s over 2 h: {slow_delay('slow=0.05/s,2h', 'fds', 0.1):.1f} h\n"
        "ours, of 50 MB/h, by 32 MiB/h over 20 min: "
        f"{slow_delay('fast=32MiB/h,20m', 'bytes', 50e6 / 3600):.1f} h of idle time\n{LEGEND}"
    )


if __name__ == "__main__":
    main()
