"""How fast each tenant's work goes on each GPU: means over the windows of the sensitivity score."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.merge import MergedGpu

# Of nvmlClocksEventReasons: power cap, hardware slowdown, software and hardware thermal slowdown,
# power brake.
THROTTLED = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
MOST_THROTTLED = 0.1  # of a window's looks, for it to count as not throttled
RUNNING = 0.05  # activity from which a tenant counts as running
KEPT_WINDOWS = 6
PROXIES = ("sm", "process")  # the better one first


@dataclass(slots=True)
class _Told:
    looks: int = 0
    progress: float = 0.0
    activity: float = 0.0


@dataclass(slots=True)
class _Sums:
    looks: int = 0
    throttled: int = 0
    by_proxy: Mapping[str, _Told] = field(
        default_factory=lambda: {proxy: _Told() for proxy in PROXIES}
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """One window: SM activity (0 to 1) times SM clock in GHz.

    Attributes:
        throttled: It was, or nobody can tell.
        proxy: Whose activity it is: `sm`, that of boards or instances which the tenant had to
            itself, or `process`, that of its processes.
    """

    progress: float
    running: bool
    throttled: bool
    proxy: str


class ProgressWatch:
    """Adds up looks by window, GPU and tenant; a few windows are kept until they are asked for."""

    def __init__(self, *, window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._windows: dict[int, defaultdict[tuple[str, str], _Sums]] = {}

    def note(self, seats: Iterable[Seat], now: float) -> None:
        """Take one look at who sits where."""
        index = int(now // self._window_seconds)
        sums = self._windows.setdefault(index, defaultdict(_Sums))
        by_gpu: defaultdict[str, list[Seat]] = defaultdict(list)
        for seat in seats:
            by_gpu[seat.gpu.uuid].append(seat)
        for uuid, on in by_gpu.items():
            for tenant in {tenant_of(seat.account) for seat in on}:
                _add(sums[uuid, tenant], on[0].gpu, _activities(on, tenant))
        for old in [each for each in self._windows if each <= index - KEPT_WINDOWS]:
            del self._windows[old]

    def of(self, start: float, tenant: str, gpus: Iterable[str]) -> tuple[Progress, ...]:
        """A tenant's mean progress on some GPUs in the window that begins at `start`.

        By each proxy that was known in all looks, the better one first; none where nobody looked.
        """
        window: Mapping[tuple[str, str], _Sums]
        window = self._windows.get(round(start / self._window_seconds), {})
        found = [window[uuid, tenant] for uuid in gpus if (uuid, tenant) in window]
        return tuple(_progresses(found)) if found else ()


def _progresses(found: Sequence[_Sums]) -> Iterator[Progress]:
    looks = sum(sums.looks for sums in found)
    throttled = sum(sums.throttled for sums in found) > MOST_THROTTLED * looks
    for proxy in PROXIES:
        told = [sums.by_proxy[proxy] for sums in found]
        if looks and sum(each.looks for each in told) == looks:
            yield Progress(
                progress=sum(each.progress for each in told) / looks,
                running=sum(each.activity for each in told) / looks >= RUNNING,
                throttled=throttled,
                proxy=proxy,
            )


def _add(sums: _Sums, gpu: MergedGpu, activities: Mapping[str, float | None]) -> None:
    """Take one look at a board by each proxy; without a clock it says nothing."""
    clock = gpu.value("clock_sm_hertz")
    if clock is None:
        return
    sums.looks += 1
    reasons = gpu.value("clocks_event_reasons")
    sums.throttled += reasons is None or bool(int(reasons) & THROTTLED)
    for proxy, activity in activities.items():
        if activity is not None:
            told = sums.by_proxy[proxy]
            told.looks += 1
            told.activity += activity
            told.progress += activity * clock / 1e9


def _activities(seats: Sequence[Seat], tenant: str) -> Mapping[str, float | None]:
    """The SM activity of a tenant on a board by each proxy; None where it cannot be told."""
    own = [seat for seat in seats if tenant_of(seat.account) == tenant]
    whole = seats[0].gpu.value("sm_active_ratio")
    alone = len(own) == len(seats) and whole is not None
    others = [seat for seat in seats if tenant_of(seat.account) != tenant]
    return {"sm": whole if alone else _of_instances(own, others), "process": _of_processes(own)}


def _of_processes(seats: Sequence[Seat]) -> float | None:
    by_account = {seat.account: seat.activity for seat in seats}
    told = [value for value in by_account.values() if value is not None]
    return min(1.0, sum(told)) if len(told) == len(by_account) else None


def _of_instances(seats: Sequence[Seat], others: Sequence[Seat]) -> float | None:
    """The mean over the instances that someone sits on and the others do not; None if not all."""
    instances = {_place(seat): seat.instance for seat in seats if seat.instance is not None}
    if not instances.keys().isdisjoint(map(_place, others)):
        return None
    told = [
        instance.values["sm_active_ratio"]
        for instance in instances.values()
        if "sm_active_ratio" in instance.values
    ]
    return sum(told) / len(told) if told and len(told) == len(instances) else None


def _place(seat: Seat) -> tuple[int, int | None] | None:
    if seat.instance is None:
        return None
    return (seat.instance.gpu_instance, seat.instance.compute_instance)
