"""Counters of the driver that begin again at zero when their register is full."""

REGISTER = 2**32


class Unwrapped:
    """Carries wrapping counters on for as long as this process reads them.

    Within that time the driver is held, so a counter that went back has wrapped: at 32 bits if it
    was never above them. More than one wrap between two readings (over 4.29 GB) cannot be seen, so
    what is counted is the least that can have passed.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[int, int]] = {}  # the register and what is shown

    def total(self, owner: str, counter: str, value: int) -> int:
        """What a counter of `owner` that now shows `value` has counted."""
        before, shown = self._last.get((owner, counter), (value, value))
        advance = value - before
        if advance < 0:
            advance = advance + REGISTER if before < REGISTER else value
        self._last[owner, counter] = value, shown + advance
        return shown + advance
