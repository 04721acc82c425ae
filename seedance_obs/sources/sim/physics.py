"""What a board does at a moment, in closed form: nothing here remembers an earlier moment."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from seedance_obs.sources.recovery import ACTIONS, FIRST_RELEASE
from seedance_obs.sources.sim.kinds import KINDS, Kind
from seedance_obs.sources.sim.machine import (
    GHOST,
    HOLDER,
    ZOMBIE,
    Gpu,
    Held,
    Machine,
    MigInstance,
    Workload,
)

Rate = Callable[[float], float]  # of the activity, while the process lives

CONCAVITY = 0.7  # half the activity draws clearly more than half the dynamic power
THERMAL_WINDOW_S = 30.0
BUSY_WINDOW_S = 1.0
COOL_CELSIUS = 26.0
THROTTLE_FROM = 0.9  # of the power limit
POWER_CAPPED_FROM = 0.97
REASON_IDLE = 0x1
REASON_POWER_CAP = 0x4


def run_at(workload: Workload, t: float) -> int | None:
    """The number of the run that is alive at t, or None between runs."""
    elapsed = t - workload.start_s
    if elapsed < 0:
        return None
    run, into = _split(workload, elapsed)
    return run if workload.duration_s is None or into < workload.duration_s else None


def run_start(workload: Workload, run: int) -> float:
    """When a run begins, in seconds since the machine's epoch."""
    return workload.start_s + run * (workload.repeat_every_s or 0.0)


def activity_at(workload: Workload, rank: int, t: float) -> float | None:
    """The activity (0..1) of one process at t, or None while it does not live."""
    if run_at(workload, t) is None:
        return None
    _, into = _split(workload, t - workload.start_s)
    if into < workload.load_s:
        return 0.0
    into = (into - workload.load_s + rank * workload.stagger_s) % _period(workload)
    for seconds, activity in workload.phases:
        if into < seconds:
            return activity
        into -= seconds
    return workload.phases[-1][1]


def integral(workload: Workload, rank: int, t: float, rate: Rate) -> float:
    """The integral of `rate(activity)` over the life of one process's runs, up to t."""
    elapsed = t - workload.start_s
    if elapsed <= 0:
        return 0.0
    life = float("inf") if workload.duration_s is None else workload.duration_s
    runs, into = _split(workload, elapsed)
    total = _within_run(workload, rank, min(into, life), rate)
    return total if runs == 0 else total + runs * _within_run(workload, rank, life, rate)


def runs_between(held: "Holding", t0: float, t1: float) -> Iterator[tuple[int, float]]:
    """The runs of a process that live at some time from t0 to t1, with their mean activity in it.

    The mean is over the whole of t0 to t1: while a run does not live it counts as idle.
    """
    workload = held.workload
    every, life = workload.repeat_every_s, workload.duration_s
    first, last = (0 if every is None else int((t - workload.start_s) // every) for t in (t0, t1))
    for run in range(max(first, 0), last + 1):
        begin = run_start(workload, run)
        start, end = max(t0, begin), t1 if life is None else min(t1, begin + life)
        if start < end:
            busy = [
                integral(workload, held.rank, t, lambda activity: activity) for t in (start, end)
            ]
            yield run, max(0.0, (busy[1] - busy[0]) / (t1 - t0))


def _split(workload: Workload, elapsed: float) -> tuple[int, float]:
    if workload.repeat_every_s is None:
        return 0, elapsed
    runs, into = divmod(elapsed, workload.repeat_every_s)
    return int(runs), into


def _period(workload: Workload) -> float:
    return sum(seconds for seconds, _ in workload.phases)


def _within_run(workload: Workload, rank: int, seconds: float, rate: Rate) -> float:
    ahead = rank * workload.stagger_s
    loading = min(seconds, workload.load_s)
    done = _from_cycle_start(workload, ahead + seconds - loading, rate)
    return rate(0.0) * loading + done - _from_cycle_start(workload, ahead, rate)


def _from_cycle_start(workload: Workload, seconds: float, rate: Rate) -> float:
    if not seconds:
        return 0.0
    cycles, rest = divmod(seconds, _period(workload))
    total = 0.0
    for length, activity in workload.phases:
        if rest <= 0.0 and not cycles:
            break
        total += rate(activity) * (cycles * length + min(max(rest, 0.0), length))
        rest -= length
    return total


@dataclass(frozen=True, slots=True)
class Holding:
    """One process place on a board: a workload's rank, and the part of the board it can use."""

    workload: Workload
    rank: int
    mig: int | None
    weight: float

    instance: MigInstance | None

    @property
    def kind(self) -> Kind:
        """Which parts of the board this process keeps busy."""
        return KINDS[self.workload.kind]

    @property
    def size(self) -> float:
        """The part of the board that its device is: 1 for the whole, its slices for an instance."""
        return self.weight / self.workload.share


@dataclass(frozen=True, slots=True)
class Process:
    """A process that has, or had, a context on a board at some moment."""

    pid: int
    holding: Holding
    start_s: float

    @property
    def workload(self) -> Workload:
        """The program it runs."""
        return self.holding.workload

    @property
    def instance(self) -> MigInstance | None:
        """The MIG instance it runs on, or None on a whole board."""
        return self.holding.instance


class Board:
    """One GPU of a machine at any moment: power in watts, energy in joules, memory in MiB.

    From the moment a board is lost it draws nothing and has no processes.
    """

    def __init__(self, machine: Machine, gpu: Gpu) -> None:
        self.machine = machine
        self.gpu = gpu
        self.model = gpu.model
        self.lost_at = machine.lost_at(gpu.index)
        self.idle_watts = self.model.idle_watts * (1 + 0.04 * machine.spread(gpu.index, "idle"))
        self.holdings = tuple(_holdings(machine, gpu))

    def processes(self, t: float, *, mig: int | None = None) -> list[Process]:
        """The processes that are alive at t and have a context on the board or MIG instance."""
        return [
            self._process(held, run)
            for held in self._on(mig)
            if held.workload.has_contexts and (run := self._run(held, t)) is not None
        ]

    def listed(self, t: float, *, mig: int | None = None) -> list[Process]:
        """The processes that the driver lists at t: those alive, and those it has not let go."""
        dead = [
            self._process(held, 0)
            for held in self._on(mig)
            if held.workload.guise == ZOMBIE and self._has_ended(held, t)
        ]
        return self.processes(t, mig=mig) + dead

    def ghosts(self, t: float, *, mig: int | None = None) -> list[Holding]:
        """What uses the board or MIG instance at t without being listed."""
        return [
            held
            for held in self._on(mig)
            if held.workload.guise == GHOST and self._run(held, t) is not None
        ]

    def power_watts(self, t: float) -> float:
        """The board's draw at t; 0 once it is lost."""
        if t >= self.lost_at:
            return 0.0
        return self.idle_watts + sum(self.holding_watts(held, t) for held in self.holdings)

    def holding_watts(self, held: Holding, t: float) -> float:
        """What one holding adds to the idle draw at t; 0 between its runs and on a lost board."""
        activity = activity_at(held.workload, held.rank, t)
        if activity is None or t >= self.lost_at:
            return 0.0
        return held.weight * self._dynamic_watts(held.workload, activity)

    def energy_joules(self, t: float) -> float:
        """What the board has drawn since the machine booted, up to t or to its loss."""
        t = min(t, self.lost_at)
        joules = self.idle_watts * (self.machine.uptime_s + t)
        for held in self.holdings:
            rate = partial(self._dynamic_watts, held.workload)
            joules += held.weight * integral(held.workload, held.rank, t, rate)
        return joules

    def busy_ratio(self, t: float, *, mig: int | None = None, of: str | None = None) -> float:
        """The mean activity over the second before t, of the board or of one MIG instance.

        `of` names a part in `Kind` (such as `tensor`), in that part's unit; None is plain activity.
        """
        return self.mean_ratio(t - BUSY_WINDOW_S, t, mig=mig, of=of)

    def mean_ratio(
        self, start: float, end: float, *, mig: int | None = None, of: str | None = None
    ) -> float:
        """The mean activity from one moment to a later one, as `busy_ratio` has it."""
        total = 0.0
        for held in self._on(mig):
            weight = held.weight if mig is None else held.workload.share
            factor = 1.0 if of is None else float(getattr(held.kind, of))
            total += weight * factor * _mean(held, end, end - start)
        return total

    def memory_used_mib(self, t: float, *, mig: int | None = None) -> int:
        """What the processes that the driver lists hold, and what nobody is listed for."""
        listed = sum(process.workload.memory_mib for process in self.listed(t, mig=mig))
        return listed + sum(held.workload.memory_mib for held in self.ghosts(t, mig=mig))

    def moved_bytes(self, t: float, kind: str) -> float:
        """What has passed over a link since the machine's epoch; `kind` is a field of `Kind`."""
        t = min(t, self.lost_at)
        return sum(
            held.weight
            * float(getattr(held.kind, kind))
            * integral(held.workload, held.rank, t, lambda activity: activity)
            for held in self.holdings
        )

    def temperature_celsius(self, t: float) -> float:
        """The die, from the mean draw over the last half minute."""
        earlier = self.energy_joules(t - THERMAL_WINDOW_S)
        load = (self.energy_joules(t) - earlier) / THERMAL_WINDOW_S / self.model.limit_watts
        inlet = COOL_CELSIUS + 2.0 * self.machine.spread(self.gpu.index, "inlet")
        return inlet + (self.model.hot_celsius - COOL_CELSIUS) * load

    def memory_celsius(self, t: float) -> float:
        """The memory stacks, a little warmer than the die under load."""
        return self.temperature_celsius(t) + 1.0 + 9.0 * self.busy_ratio(t, of="dram")

    def sm_mhz(self, t: float) -> int:
        """The SM clock: lowest without a process, boost with one, less near the power limit."""
        low, boost = self.model.sm_mhz
        if not self.processes(t):
            return low
        over = max(0.0, self.power_watts(t) / self.model.limit_watts - THROTTLE_FROM)
        return int(boost * (1.0 - 1.2 * over) / 15) * 15

    def clock_mhz(self, t: float, pair: tuple[int, int]) -> int:
        """A clock that has two settings: without and with a process."""
        return pair[1] if self.processes(t) else pair[0]

    def event_reasons(self, t: float) -> int:
        """NVML's bit mask of why clocks are not higher."""
        if not self.processes(t) or self.busy_ratio(t) == 0:
            return REASON_IDLE
        capped = self.power_watts(t) >= POWER_CAPPED_FROM * self.model.limit_watts
        return REASON_POWER_CAP if capped else 0

    def pcie_generation(self, t: float) -> int:
        """The link's generation now; boards that save power fall back to the first."""
        slow = self.model.pcie_slows_when_idle and not self.processes(t)
        return 1 if slow else self.model.pcie_generation

    def fan_percent(self, t: float) -> int:
        """The fan of a board that has one, from its temperature."""
        return max(0, min(100, round(1.6 * (self.temperature_celsius(t) - 30.0))))

    def count(self, fault: str, t: float) -> int:
        """How many errors of one kind (a counting field of `Fault`) there were up to t."""
        mine = (f for f in self.machine.faults if f.gpu == self.gpu.index and f.at_s <= t)
        return sum(int(getattr(f, fault)) for f in mine)

    def recovery_action(self, t: float) -> int | None:
        """NVML's number of what the driver asks for; None before it has such a verdict."""
        release, _, _ = (self.machine.driver_version or "").partition(".")
        if not release.isdecimal() or int(release) < FIRST_RELEASE:
            return None
        mine = (f for f in self.machine.faults if f.gpu == self.gpu.index and f.at_s <= t)
        asked = [(f.at_s, f.recovery_action) for f in mine if f.recovery_action is not None]
        return ACTIONS.index(max(asked)[1]) if asked else 0

    def _run(self, held: Holding, t: float) -> int | None:
        return run_at(held.workload, t) if t < self.lost_at else None

    def _has_ended(self, held: Holding, t: float) -> bool:
        ended = t >= held.workload.start_s and run_at(held.workload, t) is None
        return ended and t < self.lost_at

    def _process(self, held: Holding, run: int) -> Process:
        pid = self.machine.pid(held.workload, run, held.rank)
        return Process(pid, held, run_start(held.workload, run))

    def _dynamic_watts(self, workload: Workload, activity: float) -> float:
        if workload.guise == HOLDER:
            return 0.0
        span = self.model.limit_watts - self.idle_watts - self.model.context_watts
        return self.model.context_watts + workload.intensity * span * math.pow(activity, CONCAVITY)

    def _on(self, mig: int | None) -> Iterator[Holding]:
        return (held for held in self.holdings if mig is None or held.mig == mig)


def boards(machine: Machine) -> tuple[Board, ...]:
    """The boards of a machine in NVML's order."""
    return tuple(Board(machine, gpu) for gpu in machine.gpus)


def _mean(held: Holding, t: float, window_s: float) -> float:
    def busy(until: float) -> float:
        return integral(held.workload, held.rank, until, lambda activity: activity)

    return min(1.0, max(0.0, (busy(t) - busy(t - window_s)) / window_s))


def _holdings(machine: Machine, gpu: Gpu) -> Iterator[Holding]:
    for workload in machine.workloads:
        for rank, held in enumerate(workload.devices):
            if held.gpu == gpu.index:
                weight = workload.share * _size(gpu, held)
                instance = None if held.mig is None else gpu.mig[held.mig]
                yield Holding(workload, rank, held.mig, weight, instance)


def _size(gpu: Gpu, held: Held) -> float:
    return 1.0 if held.mig is None else gpu.profile(held.mig).slices / gpu.model.mig_slices
