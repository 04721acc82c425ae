"""How far our energy by tenant, and that of the peers' rules, is from the simulator's truth.

Run by hand from the root of the repository: `python -m tests.bench.attribution_accuracy`, with the
names of scenarios (files in tests/attribution/scenarios) to run only those. Each is ten simulated
minutes, read once a second; where intensities are learned also the ten minutes after.

A cell is the largest error of any tenant, in per cent of its true joules. Kepler gives out active
energy alone and is held to the truth of use; CEEMS and OpenCost give out all of it and are held to
the truth of the reservation; ours and the activity split are held to both.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from seedance_obs.sources.sim.loading import read_machine
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.truth import truth
from tests.bench.own_rules import Bill, by_activity_alone, ours
from tests.bench.peer_rules import Rule, ceems, ceems_without_profiling, kepler, opencost
from tests.bench.sim_readings import read_seconds

SCENARIOS = Path(__file__).parent.parent / "attribution" / "scenarios"
MINUTES_10 = 600
Joules = Mapping[str, float]  # by tenant
Measured = Callable[[Machine, int], Joules]  # from the machine's epoch up to a second


def _ours(rule: Callable[[Machine, int], Bill], contract: str) -> Measured:
    def measured(machine: Machine, seconds: int) -> Joules:
        bill: Joules = getattr(rule(machine, seconds), contract)
        return bill

    return measured


def _peer(rule: Rule, machine: Machine, seconds: int) -> Joules:
    return rule(read_seconds(machine, seconds))


USE: Mapping[str, Measured] = {
    "ours": _ours(ours, "use"),
    "activity": _ours(by_activity_alone, "use"),
    "Kepler": partial(_peer, kepler),
}
RESERVATION: Mapping[str, Measured] = {
    "ours": _ours(ours, "reservation"),
    "activity": _ours(by_activity_alone, "reservation"),
    "CEEMS": partial(_peer, ceems),
    "CEEMS by size": partial(_peer, ceems_without_profiling),
    "OpenCost": partial(_peer, opencost),
}


def scenario_names() -> list[str]:
    """Every scenario; what others are only based on is none."""
    names = (file.stem for file in SCENARIOS.glob("*.yaml"))
    return sorted(name for name in names if not name.startswith("base-"))


def windows(name: str) -> Iterator[tuple[str, int, int]]:
    """What a row says, and the seconds it covers."""
    yield name, 0, MINUTES_10
    if "intensities" in name:
        yield f"{name}, 10-20 min", MINUTES_10, 2 * MINUTES_10


def largest_error(true: Joules, found: Joules) -> float:
    """Per cent by which the tenant with the worst figure is off."""
    return max(100 * abs(found.get(name, 0.0) / joules - 1) for name, joules in true.items())


def errors(machine: Machine, start: int, end: int) -> list[float]:
    """The largest error of each column."""
    tenants = truth(machine, start, end).tenants
    use = {name: had.active_joules for name, had in tenants.items()}
    reservation = {name: had.joules for name, had in tenants.items()}
    columns = [(use, rule) for rule in USE.values()]
    columns += [(reservation, rule) for rule in RESERVATION.values()]
    return [largest_error(true, _between(rule, machine, start, end)) for true, rule in columns]


def _between(rule: Measured, machine: Machine, start: int, end: int) -> Joules:
    whole = rule(machine, end)
    before = rule(machine, start) if start else {}
    return {name: joules - before.get(name, 0.0) for name, joules in whole.items()}


def main(names: Sequence[str]) -> None:
    """Print a row for each scenario."""
    table = Table(title="largest error of any tenant's energy, %", box=None)
    table.add_column("scenario")
    for column in (
        *(f"use: {name}" for name in USE),
        *(f"reserved: {name}" for name in RESERVATION),
    ):
        table.add_column(column, justify="right")
    table.add_column("s", justify="right")
    for name in names or scenario_names():
        machine = read_machine(SCENARIOS / f"{name}.yaml")
        for label, start, end in windows(name):
            begin = perf_counter()
            cells = [f"{error:.2f}" for error in errors(machine, start, end)]
            table.add_row(label, *cells, f"{perf_counter() - begin:.0f}")
    Console(width=170).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
