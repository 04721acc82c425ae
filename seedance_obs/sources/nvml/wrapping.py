"""Counters of the driver that begin again at zero when their register is full."""

import threading

REGISTER = 2**32
BEYOND_PCIE = 256e9  # bytes per second: twice what 16 lanes of PCIe 6 carry
_STEP_SECONDS = 0.1  # what a driver that writes it in steps may show at once
_ALL_ONES = (2**32 - 1, 2**64 - 1)


class Unwrapped:
    """Carries wrapping counters on for as long as this process reads them.

    Within that time the driver is held, so a counter that went back has wrapped: at 32 bits if it
    was never above them. More than one wrap between two readings (over 4.29 GB) cannot be seen, so
    what is counted is the least that can have passed.

    A reading of all ones, or of 0 once more was seen, is taken for none: the driver shows them now
    and then, and goes on as before. So is one that would mean more than can pass.

    Two threads may read the same counters if each holds `lock` from before it asks the driver until
    it has the total: else the older of two values could come last, and look like a wrap.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._registers: dict[tuple[str, str], tuple[int, float]] = {}  # and when it was read
        self._shown: dict[tuple[str, str], int] = {}

    def total(self, owner: str, counter: str, value: int, at: float) -> int | None:
        """What a counter of `owner` that shows `value` has counted; `at` is monotonic seconds.

        None where the reading cannot be: what passes until the next is not counted then.
        """
        key = owner, counter
        before, since = self._registers.pop(key, (value, at))
        advance = value - before
        if advance < 0:
            advance = advance + REGISTER if before < REGISTER else value
        if (
            value in _ALL_ONES
            or (before and not value)
            or advance > BEYOND_PCIE * (at - since + _STEP_SECONDS)
        ):
            return None
        shown = self._shown.get(key, value) + advance
        self._registers[key], self._shown[key] = (value, at), shown
        return shown

    def restart(self, owner: str | None = None) -> None:
        """Count on from whatever comes next: the board (None: any) may have been reset meanwhile.

        What passes until the next reading is not counted, and no total falls back.
        """
        with self.lock:
            for key in [key for key in self._registers if owner in (None, key[0])]:
                del self._registers[key]
