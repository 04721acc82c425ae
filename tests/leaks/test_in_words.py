"""Numbers as a person reads them at night."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.leaks.report.in_words import (
    NEXT,
    bytes_rate,
    duration,
    fds_rate,
    main_number,
    money,
    next_step,
    number,
    numbers,
    percent,
    size,
)
from seedance_obs.leaks.report.page import ToldSuspect
from seedance_obs.leaks.suspect import KINDS
from seedance_obs.process_tree import ProcessName


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (duration(0), "0 s"),
        (duration(59.4), "59 s"),
        (duration(59.6), "1 min"),
        (duration(3_599.7), "1 h"),
        (duration(6_728), "1 h 52 min"),
        (duration(47 * 3_600), "47 h"),
        (duration(2 * 86_400 + 3 * 3_600), "2 d 3 h"),
        (size(0), "0 B"),
        (size(1_023), "1.0 KiB"),
        (size(3.2 * 2**30), "3.2 GiB"),
        (size(2.0**70), "1,048,576 PiB"),
        (number(9.0), "9.0"),
        (number(9.96), "10"),
        (number(0.04), "0.04"),
        (number(0.0004), "0.0004"),
        (number(31_200), "31,200"),
        (percent(0.001), "0.1 %"),
        (percent(0.959), "96 %"),
        (fds_rate(9.0), "9.0 fds/s"),
        (fds_rate(0.05), "180 fds/h"),
        (bytes_rate(50 * 2**20 / 3_600), "50 MiB/h"),
        (money(0.0408, "EUR"), "0.04 EUR/h"),
        (money(2.5, ""), "2.50 per hour"),
        (money(0.0004, "EUR"), "0.0004 EUR/h"),
    ],
)
def test_numbers_read_as_people_say_them(shown, wanted):
    assert shown == wanted


@given(st.floats(0, 2.0**59))
def test_a_size_never_has_more_than_three_digits_before_its_point(size_bytes):
    assert len(size(size_bytes).split()[0].split(".")[0]) <= 3


def test_every_kind_says_what_to_do_next():
    assert NEXT.keys() == KINDS.keys()
    for kind in KINDS:
        known = ToldSuspect("x", kind, 0.0, processes=(ProcessName(7, 1),))
        assert "{" not in next_step(kind, known)


def test_where_no_process_is_known_no_step_takes_its_pid():
    for kind in KINDS:
        step = next_step(kind, ToldSuspect("x", kind, 0.0, gpu="3"))
        assert "PID" not in step
        assert "{" not in step
    assert "pmon -i 3" in next_step("spinning", ToldSuspect("x", "spinning", 0.0, gpu="3"))


def test_evidence_that_has_no_words_yet_is_told_by_its_name():
    suspect = ToldSuspect("x", "fd_growth", 60.0, evidence={"sockets": 12.0, "seconds": 60.0})
    assert numbers(suspect, "") == ["sockets 12 for 1 min"]


def test_every_number_that_detectors_agreed_on_has_words():
    names = [
        *("open_fds", "fd_limit", "growth_fds_per_second", "low_water_fds_per_second"),
        *("exhaustion_seconds", "anonymous_bytes", "growth_bytes_per_second"),
        *("low_water_bytes_per_second", "resident_bytes", "file_bytes", "shared_bytes"),
        *("swap_bytes", "residency_ratio", "referenced_ratio", "gpu_memory_bytes", "samples"),
        *("seconds", "sm_ratio", "dram_ratio", "utilization_ratio", "power_watts", "idle_watts"),
    ]
    suspect = ToldSuspect("x", "fd_growth", 60.0, evidence=dict.fromkeys(names, 1.0))
    assert "_" not in " ".join(numbers(suspect, ""))


def test_a_suspect_without_any_number_still_says_for_how_long():
    suspect = ToldSuspect("x", "allocated_without_process", 2_700.0)
    assert numbers(suspect, "") == ["nothing run on the GPU for 45 min"]


def test_a_gpu_that_nothing_runs_on_says_so_first_and_not_that_nothing_is_held():
    evidence = {"gpu_memory_bytes": 0.0, "utilization_ratio": 0.0, "sm_ratio": 0.0}
    suspect = ToldSuspect("x", "allocated_without_process", 2_700.0, evidence=evidence)
    assert numbers(suspect, "") == ["nothing run on the GPU for 45 min", "0 % busy", "SM 0 %"]


def test_a_boards_draw_is_told_apart_from_what_is_booked_to_the_suspect():
    evidence = {"power_watts": 116.0, "idle_watts": 65.0}
    alone = ToldSuspect("x", "spinning", 60.0, evidence=evidence)
    assert numbers(alone, "") == ["so for 1 min", "board 116 W (65 W when idle)"]
    shared = replace(alone, power_watts=58.0)
    assert numbers(shared, "")[1:] == [
        "board 116 W (65 W when idle)",
        "of which 58 W are booked to it",
    ]
    assert numbers(ToldSuspect("x", "fd_growth", 60.0, power_watts=58.0), "")[1:] == ["58 W"]


def test_several_processes_say_what_they_show_together_before_what_the_worst_does():
    several = ToldSuspect(
        "x",
        "fd_growth",
        60.0,
        processes=(ProcessName(7, 1), ProcessName(8, 1)),
        totals={"growth_fds_per_second": 15.0},
        evidence={"growth_fds_per_second": 9.0},
    )
    assert numbers(several, "") == ["15 fds/s together", "the worst 9.0 fds/s for 1 min"]
    assert numbers(replace(several, processes=(ProcessName(7, 1),)), "") == ["9.0 fds/s for 1 min"]


def test_the_main_number_of_a_process_is_that_of_its_kind():
    told = {"open_fds": 983.0, "fd_limit": 1_024.0, "growth_fds_per_second": 9.0}
    assert main_number("fd_growth", told) == "9.0 fds/s"
    assert main_number("fd_near_limit", told) == "983 of 1,024 open (96 %)"
    assert main_number("dead_pid_memory", {"gpu_memory_bytes": 2.0**30}) == "1.0 GiB held"
    assert main_number("fd_growth", {}) == ""


def test_memory_that_is_not_there_is_not_worth_a_word():
    evidence = {"residency_ratio": 0.0, "swap_bytes": 0.0, "file_bytes": 1.0}
    suspect = ToldSuspect("x", "sparse_residency", 60.0, evidence=evidence)
    assert numbers(suspect, "") == ["0 % of anonymous memory resident for 1 min", "1 B of files"]
