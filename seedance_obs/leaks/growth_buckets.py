"""One series in buckets: those of three windows, and in a few numbers what was before them."""

import math

BUCKETS = 6  # of a window
GROWN = 3 * BUCKETS
WATCHED_WINDOWS = 5
WATCHED = WATCHED_WINDOWS * BUCKETS
# The past is forgotten after 20 to 40 windows. At windows of two hours that is more than a day, so
# what comes and goes with the hours of a day is not taken for a leak.
REMEMBERED = 20 * BUCKETS
# Without it 1.8 % of windows of noise (AR(1), rho 0.95) are taken for leaks where it is large
# against the rate, with it 0.3 %; a leak below a sawtooth is found later by that much.
FALL_SHARE = 0.5

Bucket = tuple[int, int, float]  # the lowest, the highest and the mean of its values


class Series:
    """One series by one rule: the bucket that is being filled, those before it, and the past.

    Attributes:
        age: How many buckets were closed.
        buckets: Those of three windows at most, the latest last.
        low: The lowest value of the bucket that is being filled; `high` and `total` likewise.
        peak: The highest value of what was before `buckets`, without what `older_peak` is of.
        fall: The deepest fall from that peak.
    """

    __slots__ = (
        "age",
        "buckets",
        "fall",
        "high",
        "low",
        "older_fall",
        "older_peak",
        "peak",
        "total",
    )

    def __init__(self, value: int) -> None:
        self.low = self.high = self.total = value
        self.buckets: list[Bucket] = []
        self.age = 0
        self.peak = self.older_peak = -math.inf
        self.fall = self.older_fall = 0.0

    def close(self, notes: int, value: int) -> None:
        """Close the bucket after so many notes, and begin the next with a value."""
        buckets = self.buckets
        bucket = (self.low, self.high, self.total / notes)
        # Most series are flat: equal buckets are kept as one object.
        buckets.append(buckets[-1] if buckets and buckets[-1] == bucket else bucket)
        self.age += 1
        if len(buckets) > GROWN:
            self._remember(buckets.pop(0))
        self.low = self.high = self.total = value

    def _remember(self, bucket: Bucket) -> None:
        low, high, _ = bucket
        if self.peak - low > self.fall:
            self.fall = self.peak - low
        if self.age % REMEMBERED == 0:
            self.older_peak, self.peak = self.peak, high
            self.older_fall, self.fall = self.fall, 0
        elif high > self.peak:
            self.peak = high

    def past(self) -> float:
        """What the latest window must be above, to be beyond what was before the three."""
        fall = max(self.fall, self.older_fall)
        return max(self.peak, self.older_peak) + FALL_SHARE * fall

    def low_waters(self) -> tuple[int, int, int]:
        """The lowest values of the three windows, the latest last."""
        lows = [bucket[0] for bucket in self.buckets]
        return min(lows[:BUCKETS]), min(lows[BUCKETS:-BUCKETS]), min(lows[-BUCKETS:])


def slope_weights(times: list[float]) -> list[float]:
    """What to multiply the values at these times with, so that their sum is the slope per second.

    That is the least-squares line's: the covariance of time and value over the variance of time.
    """
    middle = sum(times) / len(times)
    variance = sum((time - middle) ** 2 for time in times)
    return [(time - middle) / variance for time in times] if variance else []
