"""The processes of a suspect as a tree in a terminal."""

from dataclasses import replace

from seedance_obs.process_tree import ProcessName, Sandbox
from tests.exporter.drawn_leaks import drawn
from tests.exporter.leak_views import BASH, LOADER, PYTHON, leak_view, suspect, tree_suspect


def test_each_process_of_a_tree_comes_with_its_number_the_worst_first():
    lines = drawn(leak_view(tree_suspect(9)), columns=160).splitlines()
    assert lines[4].startswith("  pt_data_worker[4711] and 8 more  team-vision")
    assert lines[5].startswith(
        "    63 fds/s together, the worst 9.0 fds/s for 2 h 10 min, low water"
    )
    assert lines[6:-3] == [
        "    bash[4690] > python3.11[4700]",
        "      pt_data_worker[4711]  9.0 fds/s",
        "      pt_data_worker[4712]  8.5 fds/s",
        "      pt_data_worker[4713]  8.0 fds/s",
        "      pt_data_worker[4714]  7.5 fds/s",
        "      pt_data_worker[4715]  7.0 fds/s",
        "      pt_data_worker[4716]  6.5 fds/s",
        "      and 3 more of them",
        "    mnt 4026532001 net 4026532002",
    ]


def test_processes_of_a_tree_stand_below_their_parents_as_far_as_anybody_looked():
    tree = tree_suspect(4)
    middle, child, stranger, lone = tree.processes
    looked = (
        Sandbox((middle, BASH)),
        Sandbox((child, middle, BASH)),
        Sandbox((lone, PYTHON, BASH)),
    )
    whole = replace(tree, sandbox=looked[0], sandboxes=looked)
    lines = drawn(leak_view(whole), columns=160).splitlines()
    assert lines[6:11] == [
        "    bash[4690]",
        "      pt_data_worker[4711]  9.0 fds/s",
        "        pt_data_worker[4712]  8.5 fds/s",
        "      pt_data_worker[4713]  8.0 fds/s",
        "      python3.11[4700] > pt_data_worker[4714]  7.5 fds/s",
    ]
    assert stranger.pid == 4713


def test_where_nobody_kept_the_findings_the_processes_are_named_without_numbers():
    bare = tree_suspect(2, findings=(), sandboxes=())
    lines = drawn(leak_view(bare)).splitlines()
    assert "    bash[4690]" in lines
    assert "      python3.11[4700] > pt_data_worker[4711]  9.0 fds/s" in lines
    assert "      pt_data_worker[4712]" in lines
    assert not any("together" in line for line in lines)


def test_a_tree_that_nobody_could_see_is_said_not_to_be_known():
    bare = suspect("fd_growth", sandbox=None, tenant="", workload="")
    text = drawn(leak_view(bare))
    assert "process tree not known" in text
    assert "tenant not known" in text
    unseen = suspect("fd_growth", sandbox=Sandbox((LOADER,), None, 7))
    assert "mnt ? net 7" in drawn(leak_view(unseen))


def test_a_long_tree_keeps_its_first_process_and_the_nearest_ones():
    chain = tuple(ProcessName(100 + step, 1, f"step-{step}") for step in range(40))
    whole = suspect("fd_growth", sandbox=Sandbox(chain, 1, 1), processes=chain[:1])
    (line,) = [line for line in drawn(leak_view(whole)).splitlines() if " > " in line]
    assert line.startswith("    step-39[139] > ... > step-")
    assert line.endswith(" > step-1[101] > step-0[100]")
