"""How far our energy by tenant, and that of the peers' rules, is from the simulator's truth.

Run by hand from the root of the repository: `python -m tests.bench.attribution_accuracy`, with the
names of scenarios (files in tests/attribution/scenarios) to run only those. Each is ten simulated
minutes, read once a second; where intensities are learned also the ten minutes after.

A cell is the largest error of any tenant, in per cent of its true joules. Kepler gives out active
energy alone and is held to the truth of use; CEEMS and OpenCost give out all of it and are held to
the truth of the reservation; ours and the activity split are held to both. Ours is all that the
exporter does with a simulated machine; the others are told of its processes by the simulator.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from seedance_obs.sources.sim.loading import read_machine
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.truth import truth
from tests.attribution.simulated_node import Bill
from tests.bench.own_rules import by_activity_alone, ours
from tests.bench.peer_rules import ceems, ceems_without_profiling, kepler, opencost
from tests.bench.sim_readings import read_seconds

SCENARIOS = Path(__file__).parent.parent / "attribution" / "scenarios"
MINUTES_10 = 600
USE = {"Kepler": kepler}
RESERVATION = {
    "CEEMS": ceems,
    "CEEMS by size": ceems_without_profiling,
    "OpenCost": opencost,
}
OURS = ("ours", "activity")
Joules = Mapping[str, float]  # by tenant


def scenario(name: str) -> Machine:
    """The machine of a scenario."""
    return read_machine(SCENARIOS / f"{name}.yaml")


def scenario_names() -> list[str]:
    """Every scenario; what others are only based on is none."""
    names = (file.stem for file in SCENARIOS.glob("*.yaml"))
    return sorted(name for name in names if not name.startswith("base-"))


def marks(name: str) -> list[int]:
    """The seconds between which there is a row each."""
    return [0, MINUTES_10, 2 * MINUTES_10] if "intensities" in name else [0, MINUTES_10]


def true_bill(machine: Machine, start: int, end: int) -> Bill:
    """What each tenant had between two seconds."""
    bill = Bill()
    for name, had in truth(machine, start, end).tenants.items():
        bill.use[name] = had.active_joules
        bill.reservation[name] = had.joules
    return bill


def largest_error(true: Joules, found: Joules) -> float:
    """Per cent by which the tenant with the worst figure is off."""
    return max(100 * abs(found.get(name, 0.0) / joules - 1) for name, joules in true.items())


def bills(machine: Machine, seconds: Sequence[int]) -> dict[str, list[Bill]]:
    """What each tenant owes by each rule at each of these seconds."""
    read = read_seconds(machine, max(seconds))
    course = ours(machine, seconds)
    found = {"ours": [course.bills[second] for second in seconds]}
    found["activity"] = [by_activity_alone(read[: second + 1]) for second in seconds]
    for name, rule in (USE | RESERVATION).items():
        owed = [rule(read[: second + 1]) if second else {} for second in seconds]
        found[name] = [Bill(Counter(joules), Counter(joules)) for joules in owed]
    return found


def rows(name: str) -> Iterator[list[str]]:
    """The cells of a scenario, a row for each of its windows."""
    machine, seconds = scenario(name), marks(name)
    found = bills(machine, seconds)
    for number, (start, end) in enumerate(pairwise(seconds)):
        true = true_bill(machine, start, end)
        owed = {rule: each[number + 1].less(each[number]) for rule, each in found.items()}
        cells = [largest_error(true.use, owed[rule].use) for rule in (*OURS, *USE)]
        cells += [
            largest_error(true.reservation, owed[rule].reservation)
            for rule in (*OURS, *RESERVATION)
        ]
        minutes = f", {start // 60}-{end // 60} min" if start else ""
        yield [f"{name}{minutes}", *(f"{cell:.2f}" for cell in cells)]


def main(names: Sequence[str]) -> None:
    """Print a row for each scenario."""
    table = Table(title="largest error of any tenant's energy, %", box=None)
    table.add_column("scenario")
    headings = [f"use: {name}" for name in (*OURS, *USE)]
    headings += [f"reserved: {name}" for name in (*OURS, *RESERVATION)]
    for heading in (*headings, "s"):
        table.add_column(heading, justify="right")
    for name in names or scenario_names():
        begin = perf_counter()
        for row in rows(name):
            table.add_row(*row, f"{perf_counter() - begin:.0f}")
            begin = perf_counter()
    Console(width=170).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
