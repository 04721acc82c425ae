"""Whose the bytes of a GPU are, and how fast tenants' work goes."""

from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.exporter.bandwidth.progress import ProgressWatch
from seedance_obs.exporter.bandwidth.shares import shares_of
from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.workload import Workload
from tests.exporter.books.boards import board, instance, reading

CAPPED = 0x04


def seat(tenant: str, gpu, *, activity: float | None = None, mig=None, pod: str = "p") -> Seat:
    workload = Workload("pod", f"{tenant}/{pod}", 0)
    name = account_name(tenant, workload.key)
    return Seat(name, workload, gpu, mig, (), 0, activity)


def active(**values: float):
    return board("G0", readings={name: reading(value) for name, value in values.items()})


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


def watched(*looks: list[Seat]) -> ProgressWatch:
    watch = ProgressWatch(window_seconds=30.0)
    for second, seats in enumerate(looks):
        watch.note(seats, float(second))
    return watch


def test_progress_is_sm_activity_times_clock_of_who_has_a_board_alone():
    busy = seat("a", active(sm_active_ratio=0.8, clock_sm_hertz=1.5e9), activity=0.9)
    slow = seat("a", active(sm_active_ratio=0.4, clock_sm_hertz=1.5e9), activity=0.9)
    told = watched([busy], [slow]).of(0.0, "a", ["G0"])
    assert told is not None
    assert abs(told.progress - 0.6 * 1.5) < 1e-9
    assert (told.running, told.throttled, told.proxy) == (True, False, "sm")


def test_on_a_shared_board_progress_is_that_of_processes():
    gpu = active(sm_active_ratio=0.8, clock_sm_hertz=1e9)
    told = watched([seat("a", gpu, activity=0.5), seat("b", gpu, activity=0.02)])
    assert told.of(0.0, "a", ["G0"]).progress == 0.5
    assert told.of(0.0, "a", ["G0"]).proxy == "process"
    assert not told.of(0.0, "b", ["G0"]).running
    assert watched([seat("a", gpu), seat("b", gpu)]).of(0.0, "a", ["G0"]) is None


def test_in_mig_mode_it_is_that_of_the_instance():
    gpu = active(clock_sm_hertz=1e9)
    one, two = (instance(n, 1, sm_active_ratio=ratio) for n, ratio in ((1, 0.7), (2, 0.1)))
    told = watched([seat("a", gpu, mig=one), seat("b", gpu, mig=two)]).of(0.0, "a", ["G0"])
    assert (told.progress, told.proxy) == (0.7, "sm")


def test_a_window_with_more_than_a_tenth_throttled_counts_as_throttled():
    values = {"sm_active_ratio": 0.8, "clock_sm_hertz": 1e9}
    free = [seat("a", active(**values))]
    capped = [seat("a", active(**values, clocks_event_reasons=float(CAPPED)))]
    assert not watched(*[free] * 9, capped).of(0.0, "a", ["G0"]).throttled
    assert watched(*[free] * 8, capped).of(0.0, "a", ["G0"]).throttled


def test_what_nobody_looked_at_has_no_progress():
    watch = watched([seat("a", active(sm_active_ratio=0.8, clock_sm_hertz=1e9))])
    assert watch.of(30.0, "a", ["G0"]) is None
    assert watch.of(0.0, "b", ["G0"]) is None
    assert watch.of(0.0, "a", ["G1"]) is None
    for window in range(1, 20):
        watch.note([], window * 30.0)
    assert watch.of(0.0, "a", ["G0"]) is None, "only a few windows are kept"
