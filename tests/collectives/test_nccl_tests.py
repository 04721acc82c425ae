import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.collectives.collective import Collective
from seedance_obs.collectives.nccl_tests import read_runs
from tests.collectives.measured_text import (
    GPU,
    Printed,
    blocks,
    foot,
    head,
    heading,
    measured,
    preamble,
    rendered,
)

SIZES = [8, 1024, 1 << 20, 1 << 33]
RUN = Printed(times=measured(SIZES))
LOG = "one:7774:7801 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read"


def only(text):
    (run,) = read_runs(text)
    return run


def times(run):
    """Sizes with microseconds, as `measured` makes them."""

    def us(seconds):
        return None if seconds is None else pytest.approx(seconds * 1e6, rel=1e-3)

    return {
        each.size_bytes: (us(each.out_of_place_seconds), us(each.in_place_seconds))
        for each in run.samples
    }


def test_a_run_says_what_ran_where_and_how_long_each_size_took():
    run = only(rendered(RUN.but(hosts=("one", "two"))))
    assert (run.collective, run.gpus, run.nodes) == (Collective.ALL_REDUCE, 16, 2)
    assert (run.gpu_model, run.tool, run.library) == (GPU, "nccl-tests 2.17.6", "2.28.7")
    assert run.average_bus_bandwidth == pytest.approx(122.073e9)
    assert run.complete
    assert times(run) == RUN.times
    assert {each.wrong for each in run.samples} == {0}


@pytest.mark.parametrize("collective", Collective)
def test_every_test_is_known_by_its_program(collective):
    for program in (f"{collective}_perf", f"{collective}_perf_mpi"):
        run = RUN.but(program=program)
        assert only(rendered(run)).collective is collective
        assert only(rendered(run.but(says_program=False))).collective is collective


# The columns of versions from 2.0 on, and of options that add some.
@pytest.mark.parametrize(
    "changes",
    [
        {"columns": ("redop",), "wrong": "error", "counts": ("5e-07", "5e-07"), "groups": False},
        {"columns": ("root",), "wrong": "error", "counts": ("0e+00", "N/A"), "groups": False},
        {"columns": (), "wrong": "error", "counts": ("1e+00*", "0"), "groups": False},
        {"counts": ("0", "N/A")},
        {"counts": ("N/A", "N/A")},
        {"after_block": ("i_min", "i_max", "i_p99", "i_cv%")},
        {"after_block": ("#bitdiff",)},
        {"after_block": ("algo", "proto", "nchannels")},
    ],
)
def test_columns_of_other_versions_are_told_apart_by_the_heading(changes):
    assert times(only(rendered(RUN.but(**changes)))) == RUN.times


def test_only_one_way_may_be_measured():
    expected = {size: (out, None) for size, (out, _) in RUN.times.items()}
    assert times(only(rendered(RUN.but(blocks=1)))) == expected


def test_a_time_of_day_behind_a_row_is_none_of_its_columns():
    text = rendered(RUN).replace("#wrong\n", "#wrong            timestamp\n")
    lines = [
        f"{line}  2026-01-31 09:30:00" if " float " in line else line for line in text.splitlines()
    ]
    assert times(only("\n".join(lines) + "\n")) == RUN.times


def test_times_of_the_launch_alone_are_no_times_of_the_operation():
    assert read_runs(rendered(RUN.but(time="cputime"))) == ()


def test_wrong_results_are_counted_both_ways_and_only_where_somebody_looked():
    def wrong(**changes):
        return {each.wrong for each in only(rendered(RUN.but(**changes))).samples}

    assert wrong(counts=("3", "4")) == {7}
    assert wrong(counts=("1e+06", "0")) == {1_000_000}
    assert wrong(counts=("2", "N/A")) == {2}
    assert wrong(counts=("N/A", "N/A")) == {None}
    assert wrong(counts=("5e-07", "5e-07"), wrong="error") == {None}


def test_sizes_too_small_to_share_out_are_rows_of_no_bytes():
    run = only(rendered(RUN.but(program="all_gather_perf", times={0: (0.15, 0.14), 8: (9, 8)})))
    assert [each.size_bytes for each in run.samples] == [0, 8]


@pytest.mark.parametrize(
    "prefix",
    ["[1,0]<stdout>:", "(head, rank=0, pid=3808) [1,0]<stdout>:", "0: ", " 12: ", "    "],
)
def test_what_launchers_put_before_lines_does_not_matter(prefix):
    text = "".join(f"{prefix}{line}\n" for line in rendered(RUN).splitlines())
    assert times(only(text)) == RUN.times
    assert only(text).gpus == 8


@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:"])
def test_what_nccl_logs_inside_a_row_does_not_break_it(prefix):
    lines = [*head(RUN), LOG, *heading(RUN).splitlines()]
    for size, both in RUN.times.items():
        out, within = blocks(RUN, size, both)
        lines += [preamble(RUN, size) + LOG, LOG, out + LOG, f"0: {LOG}", within, LOG]
    text = "".join(f"{prefix}{line}\n" for line in (*lines, *foot(RUN)))
    assert times(only(text)) == RUN.times


def test_a_log_between_rows_is_no_row():
    text = rendered(RUN).replace("\n", f"\n{LOG}\none:1:2 [3] NCCL INFO Ring 00 : 7 -> 0 -> 1\n")
    assert times(only(text)) == RUN.times


@settings(max_examples=150)
@given(st.integers(0, len(rendered(RUN))))
def test_a_text_cut_anywhere_tells_true_times_only(place):
    for run in read_runs(rendered(RUN)[:place]):
        assert run.complete in (False, "Avg bus bandwidth    : 1" in rendered(RUN)[:place])
        for size, (out, within) in times(run).items():
            assert RUN.times[size][0] == out
            assert within is None or RUN.times[size][1] == within


def test_a_run_cut_short_keeps_the_sizes_it_came_to():
    whole = rendered(RUN)
    run = only(whole[: whole.index(f"{1 << 33:12}") + 60])
    assert list(times(run)) == SIZES[:3]
    assert not run.complete
    assert run.average_bus_bandwidth is None


def test_rows_without_a_heading_are_read_as_usual_ones():
    rows = rendered(RUN).partition("(GB/s)\n")[2]
    run = only(rows)
    assert times(run) == RUN.times
    assert run.collective is run.gpus is run.nodes is run.gpu_model is run.tool is None


def test_rows_without_a_heading_are_no_part_of_the_run_behind_them():
    rows = rendered(RUN.but(times={16: (7.0, 6.0)})).partition("(GB/s)\n")[2]
    first, second = read_runs(rows.partition("#")[0] + rendered(RUN))
    assert (first.gpus, list(times(first))) == (None, [16])
    assert (second.gpus, times(second)) == (8, RUN.times)


def test_runs_in_one_text_are_kept_apart():
    second = RUN.but(program="alltoall_perf", times={16: (7.0, 6.0)}, gpus_per_host=2)
    failed = "".join(f"{line}\n" for line in head(RUN.but(program="reduce_perf")))
    runs = read_runs(rendered(RUN) + failed + rendered(second))
    assert [run.collective for run in runs] == [Collective.ALL_REDUCE, Collective.ALL_TO_ALL]
    assert [run.gpus for run in runs] == [8, 2]
    assert [times(run) for run in runs] == [RUN.times, second.times]


def test_old_runs_one_after_another_take_each_its_own_command():
    old = RUN.but(says_program=False)
    text = rendered(old) + rendered(old.but(program="reduce_scatter_perf"))
    found = [run.collective for run in read_runs(text)]
    assert found == [Collective.ALL_REDUCE, Collective.REDUCE_SCATTER]


def test_a_test_that_is_none_of_ours_is_not_taken_for_the_one_before():
    text = rendered(RUN) + rendered(RUN.but(program="hypercube_perf"))
    assert [run.collective for run in read_runs(text)] == [Collective.ALL_REDUCE, None]


def test_ranks_that_are_missing_doubled_or_split_leave_the_group_unknown():
    whole = rendered(RUN)
    missing = "".join(line for line in whole.splitlines(keepends=True) if "Rank  3" not in line)
    for text in (
        missing,
        whole.replace("Rank  3", "Rank  0"),
        whole.replace("Rank  3 Group  0", "Rank  3 Group  1"),
    ):
        assert (only(text).gpus, only(text).nodes) == (None, None)
        assert times(only(text)) == RUN.times


def test_gpus_that_differ_have_no_model():
    assert only(rendered(RUN).replace(f"[0000:03:00] {GPU}", "[0000:03:00] L4")).gpu_model is None


def test_versions_of_the_library_are_read_in_every_form():
    plain = rendered(RUN).replace("# nccl-tests version", "# some other version")

    def library(line):
        return only(plain.replace(" nccl-headers=22807 nccl-library=22807", "\n" + line)).library

    assert library("NCCL version 2.26.6+cuda12.8") == "2.26.6"
    assert library("RCCL version : 2.22.3-develop") == "2.22.3"
    assert library("x nccl-library=2708") == "2.7.8"
    assert library("") is None


def test_text_without_a_run_gives_none():
    assert read_runs("") == ()
    assert read_runs("".join(f"{line}\n" for line in (*head(RUN), heading(RUN)))) == ()
    assert read_runs(f"{LOG}\n" * 10) == ()
