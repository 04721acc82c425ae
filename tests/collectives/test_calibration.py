import json
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.collectives.calibrating import curve_of_run
from seedance_obs.collectives.calibration import Calibration, Curve, Origin, Point
from seedance_obs.collectives.calibration_file import read_calibration, write_calibration
from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.collectives.nccl_tests import read_runs
from seedance_obs.errors import UsageError
from tests.collectives.measured_text import Printed, measured, rendered

SIZES = [8 << step for step in range(32)]  # to 16 GiB
RUN = Printed(times=measured(SIZES, latency_us=15.0, gbps=200.0))


def curve(*points, collective=Collective.ALL_REDUCE, group=Group(8), **more):  # noqa: B008 - frozen
    return Curve(collective, group, tuple(Point(*point) for point in points), **more)


texts = st.sampled_from((None, "NV18", 'a "quoted" \\ name', "né\U0001f600"))
times_of_day = st.none() | st.datetimes().map(lambda when: when.isoformat())
curves = st.builds(
    lambda collective, group, times, link_class, origin: Curve(
        collective,
        group,
        tuple(Point(size, time) for size, time in sorted(times.items())),
        link_class,
        origin,
    ),
    st.sampled_from(Collective),
    st.integers(2, 64).map(Group),
    st.dictionaries(st.integers(1, 1 << 40), st.floats(1e-7, 1e4), min_size=2, max_size=5),
    texts,
    st.builds(Origin, texts, texts, texts, times_of_day, texts),
)
calibrations = st.lists(
    curves, max_size=3, unique_by=lambda each: (each.collective, each.group, each.link_class)
).map(Calibration)


@settings(max_examples=40)
@given(calibrations)
def test_a_calibration_reads_back_as_it_was_written(calibration):
    assert read_calibration(write_calibration(calibration)).curves == calibration.curves


@given(curves)
def test_a_curve_tells_its_own_points_exactly(curve):
    for point in curve.points:
        found = curve.time(point.size_bytes)
        assert found.seconds == point.seconds
        assert not found.extrapolated


@given(curves, st.floats(0, 1))
def test_between_two_points_a_time_lies_between_theirs(curve, share):
    low, high = curve.points[:2]
    size = low.size_bytes + share * (high.size_bytes - low.size_bytes)
    least, most = sorted((low.seconds, high.seconds))
    assert least * (1 - 1e-9) <= curve.time(size).seconds <= most * (1 + 1e-9)


@given(
    st.lists(st.floats(1.01, 3), min_size=4, max_size=20),
    st.floats(0.1, 1 << 30),
    st.floats(1, 4),
)
def test_where_measured_times_grow_so_do_all_others(growth, size, more):
    seconds = accumulate(growth, lambda one, factor: one * factor, initial=1e-5)
    measured_curve = curve(*((8 << 2 * step, time) for step, time in enumerate(seconds)))
    found = [measured_curve.time(each) for each in (size, size * more)]
    if None not in found:
        assert found[1].seconds >= found[0].seconds * (1 - 1e-12)


def test_sizes_between_those_measured_are_off_by_a_few_percent_at_most():
    found = curve_of_run(read_runs(rendered(RUN))[0])
    for size in (each * 1.4 for each in SIZES[:-1]):
        true = 15e-6 + size / 200e9
        assert found.time(size).seconds == pytest.approx(true, rel=0.06)


def test_beyond_what_was_measured_a_time_is_told_only_where_it_had_settled():
    settled = curve((8, 2e-5), (16, 2.1e-5), (1 << 30, 0.01), (1 << 31, 0.02))
    assert settled.time(0).seconds == 2e-5
    assert settled.time(1 << 33).seconds == pytest.approx(0.08)
    assert settled.time(1 << 33).extrapolated
    rising = curve((8, 2e-5), (16, 3e-5), (32, 3.1e-5))
    assert rising.time(4) is None
    assert rising.time(64) is None


def test_points_next_to_each_other_prove_nothing_settled():
    close = curve((1000, 2e-5), (1001, 2e-5), (1002, 2e-5))
    assert close.time(500) is None
    assert close.time(5000) is None


def test_a_curve_holds_for_its_own_case_alone():
    near = curve((8, 2e-5), (16, 3e-5), link_class="NV18")
    calibration = Calibration([near])
    assert calibration.curve(Collective.ALL_REDUCE, Group(8), link_class="NV18") is near
    for collective, group, link_class in (
        (Collective.ALL_REDUCE, Group(8), "SYS"),
        (Collective.ALL_REDUCE, Group(8), None),
        (Collective.ALL_REDUCE, Group(8, 2), "NV18"),
        (Collective.ALL_REDUCE, Group(4), "NV18"),
        (Collective.BROADCAST, Group(8), "NV18"),
    ):
        assert calibration.curve(collective, group, link_class=link_class) is None


def test_two_curves_for_one_case_are_refused():
    one = curve((8, 2e-5), (16, 3e-5))
    with pytest.raises(ValueError, match="all_reduce of 8 GPUs on 1 nodes: keep one"):
        Calibration([one, one])


def test_a_run_becomes_a_curve_that_says_where_it_comes_from():
    (run,) = read_runs(rendered(RUN))
    made = curve_of_run(run, link_class="NV18", measured_at="2026-01-31")
    assert [point.size_bytes for point in made.points] == SIZES
    assert made.points[0].seconds == pytest.approx(15e-6)
    assert made.group == Group(8)
    assert made.origin == Origin(
        "nccl-tests 2.17.6", "2.28.7", "NVIDIA H200", "2026-01-31", "out of place"
    )
    within = curve_of_run(run, in_place=True)
    assert within.points[0].seconds == pytest.approx(13.5e-6)
    assert within.origin.buffers == "in place"


def test_sizes_measured_again_count_by_their_median_and_no_bytes_do_not():
    rows = rendered(RUN.but(times={0: (0.1, 0.1), 8: (10, 9), 16: (30, 9)}))
    again = rows.replace("  10.00", "  90.00").replace("  30.00", "  20.00")
    third = rows.replace("  10.00", "  12.00")
    (run,) = read_runs(rows.partition("# Out")[0] + _rows(third) + _rows(again))
    points = curve_of_run(run).points
    assert points == (Point(8, pytest.approx(12e-6)), Point(16, pytest.approx(30e-6)))


def _rows(text):
    return "".join(line for line in text.splitlines(keepends=True) if " float " in line)


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({"program": "hypercube_perf"}, {}, "does not say which test it was"),
        ({"gpus_per_host": 1}, {}, "measures nothing between GPUs: a collective needs 2 GPUs"),
        ({"counts": ("0", "2")}, {}, "8 results of the run were wrong"),
        ({"blocks": 1}, {"in_place": True}, "gives no curve: 2 sizes or more are wanted"),
        ({"times": {8: (0.01, 1), 16: (1, 1)}}, {}, "1e-07 s to 10000 s are wanted, found 1e-08"),
    ],
)
def test_a_run_that_gives_no_curve_is_refused_with_a_sentence(changes, options, sentence):
    few = RUN.but(times=measured([8, 16, 32, 64])).but(**changes)
    (run,) = read_runs(rendered(few))
    with pytest.raises(UsageError, match=sentence):
        curve_of_run(run, **options)


def test_what_a_run_does_not_say_can_be_given():
    text = rendered(RUN.but(program="hypercube_perf")).replace("Rank  3", "Rank  0")
    (run,) = read_runs(text)
    with pytest.raises(UsageError, match="does not say which GPUs"):
        curve_of_run(run, collective=Collective.BROADCAST)
    made = curve_of_run(run, collective=Collective.BROADCAST, group=Group(16, 2))
    assert (made.collective, made.group) == (Collective.BROADCAST, Group(16, 2))


GOOD = {"collective": "all_reduce", "gpus": 8, "nodes": 1, "points": [[8, 2e-5], [16, 3e-5]]}


def written(*tables, **more):
    return json.dumps({"format": "seedance-collectives/1", "curves": tables, **more})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"collective": "allreduce"}, "curve 1, collective: one of all_reduce, .* 'allreduce'"),
        ({"gpus": 1}, "curve 1: a collective needs 2 GPUs or more, not 1"),
        ({"gpus": "8"}, "curve 1, gpus: a whole number above 0 is wanted, found '8'"),
        ({"gpus": True}, "found True"),
        ({"nodes": 0}, "curve 1, nodes: a whole number above 0 is wanted, found 0"),
        ({"nodes": 9}, "8 GPUs cannot be spread over 9 nodes"),
        ({"points": []}, "2 sizes or more are wanted, found 0"),
        ({"points": [[8, 2e-5], [8, 3e-5]]}, "rising order, each once, found 8 behind 8"),
        ({"points": [[8, 20.5], [16, 2e10]]}, "s are wanted, found 2e.10 for 16 bytes"),
        ({"points": [[8, 0], [16, 1]]}, "found 0 for 8 bytes"),
        ({"points": [[8, float("nan")], [16, 1]]}, r"\[bytes, seconds\] is wanted"),
        ({"points": [[1 << 61, 1], [1 << 62, 2]]}, "a whole number above 0"),
        ({"points": [[8.5, 1], [16, 2]]}, "found 8.5"),
        ({"points": [8, 16]}, r"\[bytes, seconds\] is wanted, found 8"),
        ({"points": "many"}, r"a list of \[bytes, seconds\] is wanted, found 'many'"),
        ({"gpu_model": ""}, "leave out what is unknown"),
        ({"link_class": None}, "leave out what is unknown"),
        ({"link_class": "NV18\x1b[2J"}, r"without control characters is wanted, .*x1b"),
        ({"tool": "nccl-tests\n2.17.6"}, "without control characters is wanted"),
        ({"measured_at": "yesterday"}, "a time such as .* found 'yesterday'"),
        ({"link_clas": "SYS"}, r"'link_clas' \(did you mean link_class\?\)"),
    ],
)
def test_nonsense_in_a_file_is_refused_with_a_sentence(changes, sentence):
    read_calibration(written(GOOD))
    with pytest.raises(UsageError, match=sentence) as refused:
        read_calibration(written({**GOOD, **changes}), name="cal.json")
    assert str(refused.value).startswith("cal.json: curve 1")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ("[]", 'with "format": "seedance-collectives/1" is wanted, found .list.'),
        ('{"format": "seedance-collectives/2"}', "found 'seedance-collectives/2'"),
        ('{"format": "seedance-collectives/1"}', "curves: a list is wanted, found None"),
        (written(8), "curve 1: an object is wanted, found 8"),
        (written({"gpus": 8}), "curve 1: 'collective' is wanted, found none"),
        (written(curve=1), "found 'curve'"),
        (written(GOOD).replace('"gpus"', '"nodes": 2, "gpus"'), "'nodes' is there twice"),
        (written(GOOD, GOOD), "two curves are for all_reduce of 8 GPUs"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(UsageError, match=sentence):
        read_calibration(text)


def test_what_is_unknown_is_left_out_of_the_file():
    (table,) = json.loads(write_calibration(Calibration([curve((8, 2e-5), (16, 3e-5))])))["curves"]
    assert table == GOOD
