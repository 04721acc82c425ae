"""Totals of counters that wrap, and readings of them that cannot be."""

import pytest

from seedance_obs.sources.nvml.wrapping import Unwrapped

SENT = ("GPU-0", "pcie_transmit_bytes")


@pytest.mark.parametrize("glitch", [0, 2**32 - 1, 2**64 - 1])
@pytest.mark.parametrize("base", [3_000_000_000, 10**15])
def test_a_reading_that_cannot_be_is_none_and_no_total_ever_holds_it(glitch, base):
    unwrapped = Unwrapped()
    readings = [base, base + 10, glitch, base + 30, base + 40]
    totals = [unwrapped.total(*SENT, value, 0.1 * n) for n, value in enumerate(readings)]
    assert totals == [base, base + 10, None, base + 10, base + 20]


def test_more_than_can_pass_is_no_advance():
    unwrapped = Unwrapped()
    assert unwrapped.total(*SENT, 10**12, 0.0) == 10**12
    assert unwrapped.total(*SENT, 2 * 10**12, 1.0) is None
    assert unwrapped.total(*SENT, 2 * 10**12 + 5, 2.0) == 10**12
    assert unwrapped.total(*SENT, 2 * 10**12 + 50 * 10**9, 3.0) == 10**12 + 50 * 10**9 - 5


def test_a_counter_that_begins_at_zero_counts_and_one_that_wraps_goes_on():
    unwrapped = Unwrapped()
    readings = [0, 0, 7, 2**32 - 3, 4]
    totals = [unwrapped.total(*SENT, value, float(n)) for n, value in enumerate(readings)]
    assert totals == [0, 0, 7, 2**32 - 3, 2**32 + 4]
