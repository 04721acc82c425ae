"""How often chance does as well: all circular shifts of who presses against who gets on.

A set of windows is an integer with a bit for each. So all the shifts of a few hundred windows, with
two exact medians each, take milliseconds.
"""

from collections.abc import Collection, Sequence


class Medians:
    """The medians of any subsets of the same values."""

    def __init__(self, values: Sequence[float]) -> None:
        order = sorted(range(len(values)), key=values.__getitem__)
        self._values = [values[index] for index in order]
        self._up_to = [0]  # the windows with the 0, 1, 2, ... lowest values
        for index in order:
            self._up_to.append(self._up_to[-1] | 1 << index)

    def of(self, chosen: int) -> float:
        """The median of the values whose bits are set; at least one is."""
        size = chosen.bit_count()
        lower = self._rank(chosen, (size + 1) // 2)
        if size % 2:
            return self._values[lower]
        upper = lower + 1
        while not chosen & (self._up_to[upper + 1] ^ self._up_to[upper]):
            upper += 1
        return (self._values[lower] + self._values[upper]) / 2

    def _rank(self, chosen: int, count: int) -> int:
        """The rank of the lowest value up to which that many are chosen."""
        low, high = 0, len(self._values) - 1
        while low < high:
            middle = (low + high) // 2
            if (chosen & self._up_to[middle + 1]).bit_count() < count:
                low = middle + 1
            else:
                high = middle
        return low


def p_value(progress: Sequence[float], low: Collection[int], high: Collection[int]) -> float:
    """The share of circular shifts of the pressure under which progress falls as much as it did.

    Every shift is tried, and that by nothing counts as one, so it is never 0. Shifting keeps the
    autocorrelation of both series, which a test of independent windows would take for evidence.

    Args:
        progress: All windows, in order; none is negative.
        low, high: The windows with little and with much pressure; neither is empty.
    """
    size = len(progress)
    medians = Medians(progress)
    lows, highs = _bits(low), _bits(high)
    under_low, under_high = medians.of(lows), medians.of(highs)
    as_much = 0
    for _ in range(size):
        # The same as comparing ratios, and no division by a median of 0.
        as_much += medians.of(highs) * under_low <= under_high * medians.of(lows)
        lows, highs = _rotated(lows, size), _rotated(highs, size)
    return as_much / size


def _bits(indices: Collection[int]) -> int:
    return sum(1 << index for index in indices)


def _rotated(chosen: int, size: int) -> int:
    chosen <<= 1
    return chosen & (1 << size) - 1 | chosen >> size
