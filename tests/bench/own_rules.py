"""Our own attribution over the readings: each board's account, told of every second."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import lcm

from seedance_obs.attribution import board as boards
from seedance_obs.attribution import intensity
from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from seedance_obs.sources.sim.machine import Machine
from tests.bench.sim_readings import BoardReading, Second, read_seconds

MICROSECONDS = 1_000_000
GAP_US = 10 * MICROSECONDS


@dataclass(frozen=True)
class Bill:
    """Joules by tenant under the two contracts: for use alone, and with what was reserved."""

    use: Counter[str] = field(default_factory=Counter)
    reservation: Counter[str] = field(default_factory=Counter)


def ours(machine: Machine, seconds: int) -> Bill:
    """What each tenant of a machine owes after so many seconds from its epoch."""
    return account_for(
        read_seconds(machine, seconds),
        lambda: boards.BoardAccount(gap_us=GAP_US, weigh=intensity.Intensities()),
    )


def by_activity_alone(machine: Machine, seconds: int) -> Bill:
    """The same, without learning who burns more for the same activity."""
    return account_for(read_seconds(machine, seconds), lambda: boards.BoardAccount(gap_us=GAP_US))


def account_for(seconds: Sequence[Second], open_account: Callable[[], boards.BoardAccount]) -> Bill:
    """The bill of all boards; the accounts of a board are written `TENANT/WORKLOAD/RUN`."""
    bill = Bill()
    for gpu in range(len(seconds[0])):
        board = open_account()
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
