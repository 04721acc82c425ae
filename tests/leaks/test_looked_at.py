"""How far a page of leaks can be relied on, in words."""

from dataclasses import replace

from seedance_obs.exporter.view import IdleWindowView
from tests.exporter.drawn_leaks import drawn
from tests.exporter.leak_views import NOW, leak_view, suspect


def test_the_top_says_how_far_the_probe_can_be_relied_on():
    top = drawn(leak_view(), columns=160).splitlines()[0]
    assert top == (
        "gpu-17: 409 of 412 processes read 4 s ago; others: 2 not permitted, 1 ended meanwhile; "
        "idle window closed (memory in use); workloads' own: 1 of 2 open"
    )


def test_with_nothing_but_information_there_is_no_suspect_and_it_says_how_far():
    text = drawn(leak_view(suspect("sparse_residency")), columns=160)
    assert "No suspects in what was looked at, 1 for information." in text
    assert "Looked at: open files of 409 processes" in text


def test_a_dead_process_that_is_a_suspect_is_counted_apart_from_those_that_just_ended():
    dead = leak_view(suspect("dead_pid_memory"), processes={"read": 8, "gone": 1})
    assert drawn(dead).startswith("gpu-17: 8 processes read 4 s ago; 1 ended and still on a GPU;")
    two = replace(dead, processes={"read": 8, "gone": 2})
    assert "8 of 9 processes read 4 s ago; others: 1 ended meanwhile;" in (
        drawn(two).replace("\n ", "")
    )


def test_nothing_found_says_what_was_looked_at_and_what_was_not():
    text = drawn(leak_view(), columns=160).split("\n\n")[1]
    assert text.splitlines() == [
        "No suspects in what was looked at.",
        "Looked at: open files of 409 processes; growth of memory in 1 of 2 workloads; 8 GPUs and "
        "who holds them",
        "Not looked at: 2 processes (2 not permitted); growth of memory elsewhere (no idle window, "
        "memory in use; last one 5 h ago)",
    ]


def test_when_all_was_looked_at_nothing_else_is_claimed():
    windows = (IdleWindowView(open=True, seconds=6_000.0),)
    text = drawn(leak_view(windows=windows, processes={"read": 1, "gone": 1}))
    assert "No suspects.\n" in text
    assert "Looked at: open files of 1 process; growth of memory;" in text
    assert "Not looked at" not in text


def test_no_processes_and_no_idle_window_ever_are_not_a_clean_bill():
    text = drawn(leak_view(windows=(), processes={}, probed_in_window_at=None), columns=160)
    assert "Not looked at: processes (none holds a GPU, or belongs to one that does)" in text
    assert "growth of memory (no idle window; never yet)" in text
    assert "open files" not in text


def test_soon_after_its_start_it_says_what_cannot_be_told_yet():
    windows = (IdleWindowView(open=True, seconds=9.0),)
    early = leak_view(windows=windows, watching_since=NOW - 14.0, processes={"read": 8})
    lines = drawn(early, columns=160).splitlines()
    assert lines[0] == (
        "gpu-17: 8 processes read 4 s ago; watched for 14 s; "
        "growth of open files is told from 15 min on; idle window open"
    )
    assert lines[2:] == [
        "No suspects in what was looked at.",
        "Looked at: limits of open files of 8 processes",
        "Not looked at: growth of open files (told from 15 min on); growth of memory (told after "
        "1 h 40 min of idle time);",
        "  dead_pid_memory, memory_without_process, busy_without_process (told from 5 min on); "
        "spinning (told from 10 min on);",
        "  pseudo_idle_context, allocated_without_process (told from 30 min on)",
    ]


def test_what_was_watched_for_long_enough_is_not_said_to_be_early():
    text = drawn(leak_view(watching_since=NOW - 900.0), columns=160)
    assert "watched for" not in text
    assert "Looked at: open files of 409 processes; growth of memory in 1" in text
    assert "8 GPUs and who holds them" in text
    assert "pseudo_idle_context, allocated_without_process (told from 30 min on)" in text


def test_memory_of_a_workload_that_was_idle_too_shortly_is_not_looked_at():
    windows = (
        IdleWindowView(open=False, seconds=60.0, reason="cpu_busy"),
        IdleWindowView(open=True, seconds=600.0, workload="a"),
        IdleWindowView(open=True, seconds=6_000.0, workload="b"),
    )
    text = " ".join(drawn(leak_view(windows=windows)).split())
    assert "growth of memory in 1 of 2 workloads; 8 GPUs" in text
    assert "growth of memory in 1 of 2 workloads (told after 1 h 40 min of idle time)" in text


def test_gpus_that_nobody_can_see_spin_are_counted():
    text = drawn(leak_view(), idle_draw_known=6)
    assert "spinning (idle draw of 2 of 8 GPUs not known)" in text
    assert "idle draw" not in drawn(leak_view())


def test_processes_that_are_hidden_from_the_exporter_leave_no_clean_bill():
    windows = (IdleWindowView(open=True, seconds=6_000.0),)
    hidden = leak_view(windows=windows, processes={"read": 3, "others_hidden": 1})
    text = drawn(hidden)
    assert text.startswith("gpu-17: 3 processes read")
    assert "No suspects in what was looked at.\n" in text
    assert "Not looked at: processes of others (this exporter sees its own" in text


def test_kinds_that_the_probe_failed_to_judge_are_named():
    said = " ".join(drawn(leak_view(), unjudged=["spinning"]).split())
    assert "spinning (the probe failed: see the exporter's log)" in said


def test_no_piece_of_it_is_cut_on_a_narrow_terminal():
    early = leak_view(watching_since=NOW - 14.0, processes={"read": 8, "others_hidden": 1})
    for columns in (60, 80, 100):
        text = drawn(early, columns=columns, idle_draw_known=6)
        assert "…" not in text
        assert "its own, or those of its container, alone)" in " ".join(text.split())
