"""What the accounts of one board are told at each tick, and what they answer: plain values."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

UNALLOCATED = "unallocated"  # what nobody held
UNOBSERVED = "unobserved"  # what passed while nobody looked, or by holders nobody could list


@dataclass(frozen=True, slots=True)
class Holder:
    """One account's hold of a board since the tick before.

    Attributes:
        account: Who pays.
        parts: Its part of the board, out of `Tick.parts`. 0 for one that has ended since the tick
            before and is here for its last activity only.
        activity: The share (0 to 1) of the board's SM time it kept busy since the tick before, None
            where nobody can tell.
        memory_bytes: What it holds of the board's memory.
        links: The link class its traffic takes, by kind: `{"nvlink": "NV18", "pcie": "PHB"}`.
    """

    account: Hashable
    parts: int
    activity: float | None = None
    memory_bytes: int = 0
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """A board's energy counter: millijoules since its driver was loaded, as read at a moment."""

    millijoules: int
    at_us: int  # monotonic
    source: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """One board as seen at one moment; times are monotonic microseconds.

    Attributes:
        at_us: When the board was seen.
        holders: Each account once; None where the holders could not be listed.
        parts: Into how many parts the board is divided; what holders leave is unallocated.
        energy: The energy counter, None on a board that has none or did not answer.
        power_watts: The draw, for boards without a counter and to judge a delta by.
        power_limit_watts: The most it may draw.
        traffic: Bytes that passed since the tick before, by kind of link.
    """

    at_us: int
    holders: tuple[Holder, ...] | None
    parts: int = 1
    energy: EnergyReading | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    traffic: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Balance:
    """What one account has used of one board so far.

    The energies of all accounts add up to what the board's counter advanced, the times to what
    passed. `UNALLOCATED` and `UNOBSERVED` have reserved parts only.
    """

    active_mj: int = 0  # burned by its own work
    reserved_mj: int = 0  # of the idle board, by the part it held
    shapley_mj: int = 0  # active energy by Shapley value, where that contract is on
    active_us: int = 0
    reserved_us: int = 0
    memory_byte_us: int = 0
    link_bytes: Counter[str] = field(default_factory=Counter)  # by link class

    def add(self, other: "Balance") -> None:
        """Take in another balance."""
        self.active_mj += other.active_mj
        self.reserved_mj += other.reserved_mj
        self.shapley_mj += other.shapley_mj
        self.active_us += other.active_us
        self.reserved_us += other.reserved_us
        self.memory_byte_us += other.memory_byte_us
        for link, passed in other.link_bytes.items():
            self.link_bytes[link] += passed

    def copy(self) -> "Balance":
        """Another balance of the same amounts."""
        copied = Balance()
        copied.add(self)
        return copied
