import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import Request

KINDS = [Request(1, 500, cpu) for cpu in range(6)]


def test_the_most_frequent_stay_until_95_percent_and_their_weights_are_made_whole():
    mix = Mix.of([KINDS[0]] * 60 + [KINDS[1]] * 35 + [KINDS[2]] * 5)
    assert mix.weights == ((KINDS[0], 60 / 95), (KINDS[1], 35 / 95))


def test_the_request_that_passes_95_percent_is_kept():
    mix = Mix.of([KINDS[0]] * 60 + [KINDS[1]] * 34 + [KINDS[2]] * 4 + [KINDS[3]] * 2)
    assert [request for request, _ in mix] == KINDS[:3]


def test_all_may_be_kept():
    mix = Mix.of([KINDS[0]] * 99 + [KINDS[1]], percent_kept=100)
    assert dict(mix)[KINDS[1]] == 0.01


def test_no_requests_make_a_mix_that_is_false():
    assert not Mix.of([])
    assert not Mix.of_counts({KINDS[0]: 0})
    assert not Mix()


@given(st.permutations([kind for kind in KINDS for _ in range(3)]))
def test_equally_frequent_requests_do_not_depend_on_their_order(requests):
    assert Mix.of(requests, percent_kept=50) == Mix.of_counts(
        dict.fromkeys(KINDS, 1), percent_kept=50
    )


@given(st.lists(st.sampled_from(KINDS), min_size=1))
def test_weights_add_up_to_one(requests):
    assert sum(weight for _, weight in Mix.of(requests)) == pytest.approx(1)


def test_demands_are_of_requests_for_gpus_alone():
    requests = [Request(0, 0, 8000)] * 6 + [Request(1, 250)] * 1 + [Request(1, 500)] * 2
    mix = Mix.of([*requests, Request(8)], percent_kept=100)
    assert mix.demands_milli((0.2, 0.25, 0.26, 0.75, 0.76, 1)) == [250, 250, 500, 500, 1000, 1000]
    assert Mix.of(requests[:6]).demands_milli() == []
