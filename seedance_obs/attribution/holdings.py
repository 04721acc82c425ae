"""Who held a board and how busy they were, summed over the ticks that one advance covers."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from seedance_obs.attribution.state import State, number, numbers, whole
from seedance_obs.attribution.tick import Tick


@dataclass(slots=True)
class Holdings:
    """Sums of shares of time, in microseconds of the whole board.

    Attributes:
        active_us: Busy time of each account; 0 for one whose activity nobody can tell.
        part_us: Time held, by the part of the board; the same accounts in the same order.
        free_us: Time that parts were held by nobody while the board was seen.
        held_us: Time in which anybody held any part.
        blind_us: Time in which the holders are not known.
        total_us: All of it.
        unknown: Whether anybody's activity is not known.
    """

    active_us: dict[Hashable, float] = field(default_factory=dict)
    part_us: dict[Hashable, float] = field(default_factory=dict)
    free_us: float = 0.0
    held_us: int = 0
    blind_us: int = 0
    total_us: int = 0
    unknown: bool = False

    @classmethod
    def of(cls, tick: Tick, elapsed_us: int, *, gap: bool) -> "Holdings":
        """What one tick says of the time since the tick before; nothing, after a gap.

        Holders of more parts than the board has share it in proportion. Who has no part and shows
        no activity is no holder.
        """
        found = cls(total_us=elapsed_us)
        if tick.holders is None or gap:
            found.blind_us = elapsed_us
            return found
        holders = [holder for holder in tick.holders if holder.parts or holder.activity]
        parts = {holder.account: holder.parts for holder in holders}
        taken = sum(parts.values())
        part = elapsed_us / max(1, tick.parts, taken)
        found.part_us = {account: count * part for account, count in parts.items()}
        found.active_us = {
            holder.account: (holder.activity or 0.0) * elapsed_us for holder in holders
        }
        found.unknown = None in [holder.activity for holder in holders]
        found.free_us = max(0, tick.parts - taken) * part
        found.held_us = elapsed_us if holders else 0
        return found

    @property
    def seen_us(self) -> int:
        """Time in which the holders are known."""
        return self.total_us - self.blind_us

    def joined(self, later: "Holdings") -> "Holdings":
        """These and those of the time after; either may be used up."""
        if not self.total_us:
            return later
        for account, part_us in later.part_us.items():
            self.part_us[account] = self.part_us.get(account, 0.0) + part_us
            self.active_us[account] = self.active_us.get(account, 0.0) + later.active_us[account]
        self.free_us += later.free_us
        self.held_us += later.held_us
        self.blind_us += later.blind_us
        self.total_us += later.total_us
        self.unknown |= later.unknown
        return self

    def as_state(self) -> dict[str, object]:
        """All of it, as `from_state` takes it; accounts must be strings."""
        return {
            "active_us": dict(self.active_us),
            "part_us": dict(self.part_us),
            "free_us": self.free_us,
            "held_us": self.held_us,
            "blind_us": self.blind_us,
            "total_us": self.total_us,
            "unknown": int(self.unknown),
        }

    @classmethod
    def from_state(cls, state: State) -> "Holdings":
        """The holdings as they were kept.

        Raises:
            SeedanceError: the state is of another form.
        """
        return cls(
            active_us=numbers(state, "active_us"),
            part_us=numbers(state, "part_us"),
            free_us=number(state, "free_us"),
            held_us=whole(state, "held_us"),
            blind_us=whole(state, "blind_us"),
            total_us=whole(state, "total_us"),
            unknown=bool(whole(state, "unknown")),
        )
