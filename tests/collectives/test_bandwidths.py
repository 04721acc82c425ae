import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.collectives.collective import (
    Collective,
    Group,
    algorithm_bandwidth,
    bus_bandwidth,
    bus_factor,
    seconds_at_algorithm_bandwidth,
    seconds_at_bus_bandwidth,
)


# What nccl-tests print for 1 GB in 10 ms: algbw 100 GB/s.
@pytest.mark.parametrize(
    ("collective", "gpus", "busbw"),
    [
        (Collective.ALL_REDUCE, 8, 175e9),
        (Collective.ALL_REDUCE, 2, 100e9),
        (Collective.ALL_GATHER, 8, 87.5e9),
        (Collective.REDUCE_SCATTER, 4, 75e9),
        (Collective.ALL_TO_ALL, 16, 93.75e9),
        (Collective.GATHER, 4, 75e9),
        (Collective.SCATTER, 4, 75e9),
        (Collective.BROADCAST, 8, 100e9),
        (Collective.REDUCE, 8, 100e9),
        (Collective.SEND_RECV, 2, 100e9),
    ],
)
def test_bus_bandwidth_is_what_nccl_tests_state(collective, gpus, busbw):
    assert bus_bandwidth(collective, 1e9, 0.01, gpus=gpus) == pytest.approx(busbw)


@given(
    st.sampled_from(Collective),
    st.integers(2, 4096),
    st.floats(1, 1e12),
    st.floats(1e-7, 1e3),
)
def test_a_time_and_its_bandwidths_lead_to_each_other(collective, gpus, size, seconds):
    algbw = algorithm_bandwidth(size, seconds)
    busbw = bus_bandwidth(collective, size, seconds, gpus=gpus)
    assert seconds_at_algorithm_bandwidth(size, algbw) == pytest.approx(seconds)
    assert seconds_at_bus_bandwidth(collective, size, busbw, gpus=gpus) == pytest.approx(seconds)


def test_a_single_gpu_sends_nothing_over_its_link():
    assert bus_factor(Collective.ALL_REDUCE, 1) == 0


@pytest.mark.parametrize(
    "asked",
    [
        lambda: algorithm_bandwidth(8, 0),
        lambda: algorithm_bandwidth(8, float("nan")),
        lambda: algorithm_bandwidth(-8, 1),
        lambda: algorithm_bandwidth(float("inf"), 1),
        lambda: seconds_at_algorithm_bandwidth(8, 0),
        lambda: seconds_at_algorithm_bandwidth(8, float("nan")),
        lambda: seconds_at_algorithm_bandwidth(float("nan"), 8),
        lambda: bus_factor(Collective.ALL_REDUCE, 0),
        lambda: Group(1),
        lambda: Group(8, 0),
        lambda: Group(2, 3),
    ],
)
def test_what_cannot_be_is_refused(asked):
    with pytest.raises(ValueError, match=r"not|cannot"):
        asked()
