"""Our own attribution of a simulated machine: the whole node, and a split by activity alone."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from math import lcm
from pathlib import Path
from tempfile import TemporaryDirectory

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from seedance_obs.sources.sim.machine import Machine
from tests.attribution.simulated_node import Bill, Course, simulated_node
from tests.bench.sim_readings import BoardReading, Second

MICROSECONDS = 1_000_000
GAP_US = 10 * MICROSECONDS


def ours(machine: Machine, seconds: Collection[int]) -> Course:
    """What the exporter of a machine makes of it up to the last of these seconds from its epoch."""
    with TemporaryDirectory() as folder, simulated_node(machine, Path(folder)) as node:
        return node.course(seconds)


def by_activity_alone(seconds: Sequence[Second]) -> Bill:
    """Boards split by activity, without learning who burns more for the same activity.

    The accounts of a board are written `TENANT/WORKLOAD/RUN`.
    """
    bill = Bill()
    for gpu in range(len(seconds[0])):
        board = BoardAccount(gap_us=GAP_US)
        for tick in _ticks(seconds, gpu):
            board.advance(tick)
        for account, balance in board.balances().items():
            tenant, _, run = str(account).partition("/")
            if run:
                bill.use[tenant] += balance.active_mj / 1000
                bill.reservation[tenant] += (balance.active_mj + balance.reserved_mj) / 1000
    return bill


def _ticks(seconds: Sequence[Second], gpu: int) -> Iterator[Tick]:
    for second, readings in enumerate(seconds):
        board = readings[gpu]
        sharers = Counter(process.mig for process in board.alive)
        units = lcm(*sharers.values())  # of a device, so that each sharer has a whole number
        yield Tick(
            at_us=second * MICROSECONDS,
            holders=_holders(board, {mig: units // count for mig, count in sharers.items()}),
            parts=units * (board.slices if board.instances else 1),
            energy=EnergyReading(board.energy_mj, second * MICROSECONDS, "nvml"),
            power_watts=board.power_watts,
            power_limit_watts=board.power_limit_watts,
        )


def _holders(board: BoardReading, units: dict[int | None, int]) -> tuple[Holder, ...]:
    """Who is on the board, and who has left since the second before with its last activity."""
    parts: defaultdict[str, int] = defaultdict(int)
    activity: defaultdict[str, float] = defaultdict(float)
    for process in board.processes:
        account = f"{process.tenant}/{process.run.workload}/{process.run.run}"
        slices = 1 if process.mig is None else board.instances[process.mig].slices
        if process.alive:
            parts[account] += slices * units[process.mig]
        size = slices / board.slices if board.instances else 1.0
        activity[account] += size * process.activity
    return tuple(Holder(account, parts[account], activity[account]) for account in activity)
