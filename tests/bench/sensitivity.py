"""What the sensitivity score says of simulated pairs whose truth is known, and what it costs.

Run by hand from the root of the repository: `python -m tests.bench.sensitivity [PAIRS]`.

Each row is a scenario of `tests/bandwidth/simulated_pairs.py`, PAIRS of it (300 if not said) with
fixed seeds: the share of pairs with each verdict, those with p <= 0.05 whatever the verdict, and
the median, the 10th and the 90th percentile of the score.
"""

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from time import process_time

from rich.console import Console
from rich.table import Table

from seedance_obs.bandwidth.reading import Sensitivity
from seedance_obs.bandwidth.sensitivity import sensitivity
from tests.bandwidth import simulated_pairs as sim

PAIRS = 300
VERDICTS = ("none", "significant", "association", "undecided")
LEGEND = """
In `falls, all used at once` neighbours take up, in the same window, each time, and never else, what
the tenant leaves when its own load falls: no statistic of 30 s means can tell that from neighbours
that slow it down. Where they leave out one in five, calm windows with as little sent tell it, once
there are enough of them.
"""

Scenario = Callable[[random.Random], sim.Pair]
Row = tuple[str, Scenario]


def slowed_down() -> Iterator[Row]:
    """The pairs whose truth is a number."""
    for truth in (0.0, 0.1, 0.3, 0.6):
        for count in (60, 120, 240, 480):
            yield f"S {truth}, {count} windows", partial(sim.sensitive, truth=truth, count=count)
    for truth in (0.0, 0.1, 0.3):
        yield f"S {truth}, sends with progress", partial(sim.sends_with_its_progress, truth=truth)
        yield f"S {truth}, sends at will", partial(sim.sends_at_will, truth=truth)
        yield f"S {truth}, stutters by itself", partial(sim.stutters, truth=truth)
        yield f"S {truth}, jobs of ten minutes, 480", partial(sim.jobs_come_and_go, truth=truth)
    for late in (-0.1, 0.1):
        scenario = partial(sim.misaligned, truth=0.3, late=late)
        yield f"S 0.3, windows {late * 30:+.0f} s apart", scenario


def confounded() -> Iterator[Row]:
    """The pairs whose truth is 0, but that look as if it were not."""
    for minutes in (10, 20, 30, 60):
        for count in (240, 480):
            on = max(5, minutes // 4)
            scenario = partial(sim.common_phases, period=2 * minutes, on=on, count=count)
            yield f"phases each {minutes} min, {count}", scenario
    yield "phases among other bursts, 480", sim.common_phases_among_bursts
    yield "checkpoints that set others off", sim.writes_meanwhile
    yield "own load falls for good", sim.own_load_drops_once
    for filled, words in ((0.6, "60 %"), (0.8, "80 %"), (1.0, "all")):
        for count in (240, 480):
            scenario = partial(sim.own_load_drops, filled=filled, count=count)
            yield f"falls, {words} used at once, {count}", scenario
    yield "time of day, 480", sim.time_of_day
    yield "throttled under pressure, 480", sim.heat
    for seconds in (0, 6, 10, 15, 30, 60, 90):
        yield f"others react {seconds} s late", partial(sim.reacts, late=seconds / 30)
    for late in (0, 1):
        scenario = partial(sim.reacts_to_noise, late=late)
        yield f"others take its leavings {30 * late} s late", scenario


def row(name: str, found: list[Sensitivity | None]) -> list[str]:
    """What was found of all pairs of one scenario."""
    there = [one for one in found if one is not None]
    shares = [sum(one.verdict == verdict for one in there) / len(found) for verdict in VERDICTS]
    by_chance = sum(one.p_value <= 0.05 for one in there) / len(found)
    scores = sorted(one.score for one in there) or [float("nan")]
    tenth = len(scores) // 10
    return [
        name,
        f"{1 - len(there) / len(found):.1%}",
        *(f"{share:.1%}" for share in (*shares, by_chance)),
        f"{median(scores):.3f}",
        f"{scores[tenth]:.3f} - {scores[-1 - tenth]:.3f}",
    ]


def milliseconds(count: int, pairs: int = 200) -> float:
    """CPU time of one evaluation with all its shifts and doubts."""
    made = (sim.sends_with_its_progress(random.Random(n), 0.3, count) for n in range(pairs))
    histories = [sim.kept(pair) for pair in made]
    begin = process_time()
    for history in histories:
        sensitivity(history, "sm")
    return 1000 * (process_time() - begin) / pairs


def main() -> None:
    """Print the table."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    table = Table(title=f"{pairs} pairs each, 240 windows where not said", box=None)
    table.add_column("scenario")
    for head in ("absent", *VERDICTS, "p <= .05", "median S", "p10 - p90"):
        table.add_column(head, justify="right")
    for number, (name, scenario) in enumerate([*slowed_down(), *confounded()]):
        seeds = (f"{number} {n}" for n in range(pairs))
        found = [sensitivity(sim.kept(scenario(random.Random(seed))), "sm") for seed in seeds]
        table.add_row(*row(name, found))
    Console(width=130).print(table)
    for count in (240, 480):
        sys.stdout.write(f"one evaluation of {count} windows: {milliseconds(count):.1f} ms CPU\n")
    sys.stdout.write(LEGEND)


if __name__ == "__main__":
    main()
