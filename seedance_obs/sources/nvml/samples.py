"""What processes or vGPUs used of a board, from the samples that the driver takes by itself.

The driver samples the engines of a board a few times a second, notes with each sample who was on
them, and keeps the last few seconds. A call gives the samples newer than a time stamp. Time in
which nobody was on the board leaves none. Real drivers give each owner once: the mean since that
time stamp, stamped when it was last seen; so the stamps of two owners need not be alike, and the
value is taken as it is. A driver that gives single samples gives an owner several: then the mean
is over all sampling periods that have passed, and one in which the owner is missing counts as 0,
because it was not yet there, no longer there, or not on the board.

Buffers come back with entries that were never filled in, and with percentages of millions.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.calls import Calls
from seedance_obs.sources.nvml.library import Plain

MEMBERS = ("smUtil", "memUtil", "encUtil", "decUtil")
BUFFER_SECONDS = 10.0  # what the driver keeps; what is older cannot be among the samples
SHORTEST_PERIOD_US = 10_000  # entries that are closer are two of one sample
QUIET_PASSES = 30
PID_MAX = 2**22  # the kernel's PID_MAX_LIMIT

Shares = tuple[float | None, ...]  # 0 to 1, in the order of MEMBERS


@dataclass(frozen=True, slots=True)
class _Sample:
    owner: int
    at_us: int
    percents: tuple[int | None, ...]


@dataclass(slots=True)
class _Seen:
    """Where the reading of one board left off."""

    newest_us: int
    pass_at: float
    period_us: int | None = None  # known once a driver has given single samples
    quiet: int = 0


class SampleReader:
    """Takes each sample of each board once.

    Args:
        function: the call that gives samples.
        owner: the member of a sample that says whose it is.
        highest: the largest number an owner can have; what is above is garbage.
    """

    def __init__(self, function: str, owner: str, highest: int) -> None:
        self._function = function
        self._owner = owner
        self._highest = highest
        self._seen: dict[str, _Seen] = {}

    def read(self, calls: Calls, board: Board, at: float) -> Mapping[int, Shares] | None:
        """Each owner's mean shares of the board since the pass before, those of `MEMBERS`.

        Owners without a sample were idle and are missing; no owner at all is an empty mapping.
        None where the board does not tell, and in the first pass, which only learns from where to
        count. `at` is monotonic, in seconds.

        Raises:
            NvmlError: the board is lost or the driver is gone.
        """
        seen = self._seen.get(board.uuid)
        since = 0 if seen is None or seen.quiet >= QUIET_PASSES else seen.newest_us
        answer = calls.samples(board, self._function, since)
        if answer is None:
            return None
        samples = self._usable(calls, answer)
        newest = max((sample.at_us for sample in samples), default=0)
        if seen is None:
            self._seen[board.uuid] = _Seen(newest, at)
            return None
        fresh = [sample for sample in samples if sample.at_us > seen.newest_us]
        shares = _mean_shares(fresh, seen, at)
        _move_on(seen, newest, at, asked_for_all=since == 0, empty=not fresh)
        return shares

    def _usable(self, calls: Calls, answer: Plain) -> list[_Sample]:
        found = []
        for entry in answer if isinstance(answer, list) else ():
            owner, at_us = entry.get(self._owner), entry.get("timeStamp")
            if not isinstance(owner, int) or not isinstance(at_us, int) or at_us <= 0:
                continue
            if not 0 < owner <= self._highest:
                continue
            percents = tuple(_percent(entry.get(member)) for member in MEMBERS)
            if percents[0] is None:
                calls.dropped["out_of_range"] += 1
                continue
            found.append(_Sample(owner, at_us, percents))
        return found


def _percent(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= 100 else None


def _move_on(seen: _Seen, newest: int, at: float, *, asked_for_all: bool, empty: bool) -> None:
    # Stamps are of the system's clock, which can be set back: then nothing is ever newer. So after
    # a while without a sample all of them are asked for, and the newest there is starts anew.
    if not empty or asked_for_all:
        seen.newest_us = newest
    seen.quiet = seen.quiet + 1 if empty and not asked_for_all else 0
    seen.pass_at = at


def _mean_shares(samples: Sequence[_Sample], seen: _Seen, at: float) -> dict[int, Shares]:
    by_owner: defaultdict[int, list[_Sample]] = defaultdict(list)
    for sample in samples:
        by_owner[sample.owner].append(sample)
    seen.period_us = _period_us(by_owner.values()) or seen.period_us
    periods = _periods({sample.at_us for sample in samples}, seen, at)
    return {owner: _shares(by_owner[owner], periods) for owner in sorted(by_owner)}


def _period_us(owned: Iterable[Sequence[_Sample]]) -> int | None:
    """The shortest time between two samples of one owner."""
    gaps = [
        later - earlier
        for samples in owned
        for earlier, later in pairwise(sorted({sample.at_us for sample in samples}))
        if later - earlier >= SHORTEST_PERIOD_US
    ]
    return min(gaps, default=None)


def _periods(stamps: set[int], seen: _Seen, at: float) -> int | None:
    """How many periods single samples are to be seen against; None where they are means.

    One less than fit into the time since the pass before, because passes and samples are not in
    step: a pass can be one sample short, and the next has one more.
    """
    if seen.period_us is None:
        return None
    elapsed_us = 1e6 * min(max(at - seen.pass_at, 0.0), BUFFER_SECONDS)
    return max(len(stamps), round(elapsed_us / seen.period_us) - 1)


def _shares(samples: Sequence[_Sample], periods: int | None) -> Shares:
    columns = zip(*(sample.percents for sample in samples), strict=True)
    return tuple(_share(column, periods or len(samples)) for column in columns)


def _share(column: Sequence[int | None], periods: int) -> float | None:
    known = [percent for percent in column if percent is not None]
    if len(known) < len(column):
        return None
    return min(1.0, fmean(known) * len(known) / periods / 100)
