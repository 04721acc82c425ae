"""What the advance of a RAPL energy counter means: it wraps every few minutes, and may restart."""

from dataclasses import dataclass
from enum import Enum

CEILING_WATTS = 2000  # more than any CPU package or its memory draws


class Advance(Enum):
    """How well an advance is known."""

    KNOWN = "known"
    UNKNOWN_WRAPS = "unknown_wraps"  # it may have wrapped more than once
    IMPLAUSIBLE = "implausible"  # more than the zone can draw
    RESTARTED = "restarted"  # it went back, and not by a wrap


@dataclass(slots=True)
class ZoneCounter:
    """One zone's counter as it was last read: microjoules, and monotonic microseconds.

    `watched` is False while nobody looks at whose the next advance is.
    """

    microjoules: int
    at_us: int
    watched: bool = True

    def advance(self, microjoules: int, *, range_uj: int | None, at_us: int) -> tuple[int, Advance]:
        """The microjoules since the last reading, which this one replaces.

        Never negative. What may have wrapped several times advances by what can be seen, the least
        it can be; a restarted counter by what it shows, if that can have been drawn since. Whoever
        books must not take these, nor what is implausible, for anybody's.
        """
        delta = microjoules - self.microjoules
        # A second more, since the counter is not read at the very moment that is told.
        most = CEILING_WATTS * (max(0, at_us - self.at_us) + 1_000_000)
        self.microjoules, self.at_us = microjoules, at_us
        if range_uj is not None and most >= range_uj:
            return delta % range_uj, Advance.UNKNOWN_WRAPS
        if delta < 0 and range_uj is not None and delta + range_uj <= most:
            return delta + range_uj, Advance.KNOWN
        if delta < 0:
            return microjoules if microjoules <= most else 0, Advance.RESTARTED
        return delta, Advance.KNOWN if delta <= most else Advance.IMPLAUSIBLE
