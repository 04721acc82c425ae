"""How fast each tenant's work goes on each GPU: means over the windows of the sensitivity score."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.merge import MergedGpu

# Of nvmlClocksEventReasons: power cap, hardware slowdown, software and hardware thermal slowdown,
# power brake.
THROTTLED = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
MOST_THROTTLED = 0.1  # of a window's looks, for it to count as not throttled
RUNNING = 0.05  # activity from which a tenant counts as running
KEPT_WINDOWS = 6


@dataclass(slots=True)
class _Sums:
    looks: int = 0
    progress: float = 0.0
    activity: float = 0.0
    throttled: int = 0
    process: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """One window: SM activity (0 to 1) times SM clock in GHz; `proxy` says whose activity."""

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
            for tenant, (activity, process) in _activities(on).items():
                _add(sums[uuid, tenant], on[0].gpu, activity, process=process)
        for old in [each for each in self._windows if each <= index - KEPT_WINDOWS]:
            del self._windows[old]

    def of(self, start: float, tenant: str, gpus: Iterable[str]) -> Progress | None:
        """A tenant's mean progress on some GPUs in the window that begins at `start`.

        None where nobody looked, or where what it did could not be told.
        """
        window: Mapping[tuple[str, str], _Sums]
        window = self._windows.get(round(start / self._window_seconds), {})
        found = [window[uuid, tenant] for uuid in gpus if (uuid, tenant) in window]
        looks = sum(sums.looks for sums in found)
        if not looks:
            return None
        return Progress(
            progress=sum(sums.progress for sums in found) / looks,
            running=sum(sums.activity for sums in found) / looks >= RUNNING,
            throttled=sum(sums.throttled for sums in found) > MOST_THROTTLED * looks,
            proxy="process" if any(sums.process for sums in found) else "sm",
        )


def _add(sums: _Sums, gpu: MergedGpu, activity: float, *, process: bool) -> None:
    clock = gpu.value("clock_sm_hertz")
    if clock is None:
        return
    sums.looks += 1
    sums.activity += activity
    sums.progress += activity * clock / 1e9
    sums.throttled += bool(int(gpu.value("clocks_event_reasons") or 0) & THROTTLED)
    sums.process |= process


def _activities(seats: Sequence[Seat]) -> Mapping[str, tuple[float, bool]]:
    """The SM activity of each tenant on a board, and whether it is told by process.

    The board's own where one tenant has it for itself, the instances' in MIG mode, else that of
    its processes. Who cannot be told is missing.
    """
    tenants = {tenant_of(seat.account) for seat in seats}
    whole = seats[0].gpu.value("sm_active_ratio")
    if len(tenants) == 1 and whole is not None:
        return dict.fromkeys(tenants, (whole, False))
    found = {}
    for tenant in tenants:
        own = [seat for seat in seats if tenant_of(seat.account) == tenant]
        activity = _of_instances(own)
        if activity is not None:
            found[tenant] = (activity, False)
        else:
            by_account = {seat.account: seat.activity for seat in own}
            told = [value for value in by_account.values() if value is not None]
            if len(told) == len(by_account):
                found[tenant] = (min(1.0, sum(told)), True)
    return found


def _of_instances(seats: Sequence[Seat]) -> float | None:
    instances = {
        (seat.instance.gpu_instance, seat.instance.compute_instance): seat.instance
        for seat in seats
        if seat.instance is not None
    }
    told = [
        instance.values["sm_active_ratio"]
        for instance in instances.values()
        if "sm_active_ratio" in instance.values
    ]
    return sum(told) / len(told) if told and len(told) == len(instances) else None
