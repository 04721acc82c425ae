"""Counters of the driver that begin again at zero when their register is full."""

import threading

REGISTER = 2**32


class Unwrapped:
    """Carries wrapping counters on for as long as this process reads them.

    Within that time the driver is held, so a counter that went back has wrapped: at 32 bits if it
    was never above them. More than one wrap between two readings (over 4.29 GB) cannot be seen, so
    what is counted is the least that can have passed.

    Two threads may read the same counters if each holds `lock` from before it asks the driver until
    it has the total: else the older of two values could come last, and look like a wrap.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._registers: dict[tuple[str, str], int] = {}
        self._shown: dict[tuple[str, str], int] = {}

    def total(self, owner: str, counter: str, value: int) -> int:
        """What a counter of `owner` that now shows `value` has counted."""
        key = owner, counter
        before = self._registers.get(key, value)
        advance = value - before
        if advance < 0:
            advance = advance + REGISTER if before < REGISTER else value
        shown = self._shown.get(key, value) + advance
        self._registers[key], self._shown[key] = value, shown
        return shown

    def restart(self, owner: str | None = None) -> None:
        """Count on from whatever comes next: the board (None: any) may have been reset meanwhile.

        What passes until the next reading is not counted, and no total falls back.
        """
        with self.lock:
            for key in [key for key in self._registers if owner in (None, key[0])]:
                del self._registers[key]
