"""Whose the bytes of a GPU are."""

from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.exporter.bandwidth.shares import shares_of
from tests.exporter.bandwidth.seats import seat
from tests.exporter.books.boards import board, instance


def test_bytes_go_by_activity_and_equally_where_nobody_knows_it():
    gpu = board("G0")
    by_activity = [seat("a", gpu, activity=0.75), seat("b", gpu, activity=0.25)]
    assert shares_of(by_activity) == {"G0": {"a": 0.75, "b": 0.25}}
    half_known = [seat("a", gpu, activity=0.6), seat("b", gpu)]
    assert shares_of(half_known) == {"G0": {"a": 0.5, "b": 0.5}}
    idle = [seat("a", gpu, activity=0.0), seat("b", gpu, activity=0.0)]
    assert shares_of(idle) == {"G0": {"a": 0.5, "b": 0.5}}
    assert shares_of([]) == {}


def test_an_account_on_two_instances_counts_once():
    gpu, one, two = board("G0"), instance(1, 1), instance(2, 1)
    seats = [
        seat("a", gpu, activity=0.3, mig=one),
        seat("a", gpu, activity=0.3, mig=two),
        seat("b", gpu, activity=0.3, mig=instance(3, 1)),
    ]
    assert shares_of(seats) == {"G0": {"a": 0.5, "b": 0.5}}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.floats(0, 1)), min_size=1))
def test_shares_of_a_gpu_add_up_to_one(told):
    gpu = board("G0")
    seats = [seat(t, gpu, activity=a, pod=str(n)) for n, (t, a) in enumerate(told)]
    shares = shares_of(seats)["G0"]
    assert abs(sum(shares.values()) - 1) < 1e-9
    assert set(shares) == {tenant for tenant, _ in told}
