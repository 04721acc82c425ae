from dataclasses import replace

import pytest

from seedance_obs.exporter.leaks.whose import Whose
from seedance_obs.leaks.suspect import Finding
from seedance_obs.process_tree import ProcessName, Sandbox
from tests.sources.host_tree import HostTree

ROOT = ProcessName(100, 1000, "python3")
LOADERS = [ProcessName(110 + n, 1100 + n, "pt_data_worker") for n in range(3)]
JOB = "research\x1fslurm-42-1"
NOW, UNIX = 500.0, 1_000_000.0


class Chains:
    """Every loader is a child of the same root."""

    def refresh(self) -> None:
        """Nothing here changes."""

    def of(self, pid: int) -> Sandbox | None:
        found = [process for process in (ROOT, *LOADERS) if process.pid == pid]
        if not found:
            return None
        return Sandbox((found[0],) if found[0] == ROOT else (found[0], ROOT), 7, 8)


def grows(process: ProcessName, per_second: float, **changes) -> Finding:
    evidence = {"growth_fds_per_second": per_second}
    finding = Finding("fd_growth", 200.0, "fast", process, account=JOB, evidence=evidence)
    return replace(finding, **changes)


@pytest.fixture
def whose(tmp_path):
    return Whose(Chains(), root=tmp_path, wall=lambda: UNIX)


def found(whose, *findings, now=NOW, draw_of=lambda _: (None, None)):
    return whose.suspects(findings, draw_of=draw_of, now=now)


def read(suspect) -> str:
    """The name without the digits that make it unique."""
    return suspect.name.rpartition("-")[0]


def test_the_processes_of_one_tree_are_one_suspect_the_worst_first(whose):
    (suspect,) = found(whose, *(grows(p, 9.0 + n) for n, p in enumerate(LOADERS)))
    assert suspect.processes == tuple(reversed(LOADERS))
    assert suspect.finding.process == LOADERS[2]
    assert suspect.sandbox == Sandbox((LOADERS[2], ROOT), 7, 8)
    assert (suspect.workload, suspect.tenant) == ("slurm-42-1", "research")
    assert read(suspect) == "fd_growth-100-1000"


def test_two_kinds_in_one_tree_are_two_suspects_in_the_order_of_kinds(whose):
    near = Finding("fd_near_limit", 400.0, process=ROOT, account=JOB)
    kinds = [suspect.finding.kind for suspect in found(whose, near, grows(LOADERS[0], 9.0))]
    assert kinds == ["fd_growth", "fd_near_limit"]


def test_a_suspect_began_with_its_first_finding_and_keeps_that(whose):
    (suspect,) = found(whose, grows(LOADERS[0], 9.0), grows(LOADERS[1], 9.0, since=150.0))
    assert suspect.started_unix == UNIX - (NOW - 150.0)
    (later,) = found(whose, grows(LOADERS[0], 9.0, since=480.0), now=NOW + 15)
    assert later.started_unix == suspect.started_unix
    assert found(whose) == ()
    (again,) = found(whose, grows(LOADERS[0], 9.0, since=480.0))
    assert again.started_unix == UNIX - 20.0


def test_whoever_has_the_pid_now_is_not_looked_at_for_who_had_it(whose):
    reborn = replace(LOADERS[0], start_ticks=5)
    (suspect,) = found(whose, grows(reborn, 9.0))
    assert suspect.sandbox is None
    assert read(suspect) == "fd_growth-110-5"


def test_boards_are_named_by_place_and_holder(whose):
    orphan = Finding("memory_without_process", 1.0, gpu_uuid="GPU-a", gpu_instance=3)
    holder = Finding("allocated_without_process", 1.0, gpu_uuid="GPU-a", account=JOB)
    names = {read(suspect) for suspect in found(whose, orphan, holder)}
    assert names == {
        "memory_without_process-GPU-a:3",
        "allocated_without_process-GPU-a-research_slurm-42-1",
    }


def test_names_differ_wherever_suspects_do_and_can_be_printed(whose):
    alone = ProcessName(999, None)
    holder = Finding("allocated_without_process", 1.0, gpu_uuid="GPU-a", account="a team\x1fpod-x")
    suspects = found(
        whose,
        grows(LOADERS[0], 9.0),
        grows(LOADERS[1], 9.0, account=""),
        grows(alone, 9.0),
        holder,
        replace(holder, account="a_team\x1fpod-x"),
        replace(holder, account="\u202e\x1b[2J\udcff\x1fpod-x"),
    )
    names = [suspect.name for suspect in suspects]
    assert len(set(names)) == 6
    assert all(name.isprintable() and " " not in name for name in names)
    assert {name.encode() for name in names}  # no halves of characters, which no reader takes


def test_a_start_that_is_not_known_is_not_named(whose):
    (suspect,) = found(whose, grows(ProcessName(999, None), 9.0))
    assert read(suspect) == "fd_growth-999"


def test_a_suspect_keeps_its_name_when_its_process_takes_another(whose, tmp_path):
    before, after = (
        found(whose, grows(ProcessName(999, 5, comm), 9.0))[0] for comm in ("python3", "trainer")
    )
    assert before.name == after.name
    assert (
        Whose(Chains(), root=tmp_path, wall=lambda: UNIX + 60)
        .suspects([before.finding], draw_of=lambda _: (None, None), now=NOW)[0]
        .name
        == before.name
    )  # nor has it to do with what was seen before


def test_of_processes_that_are_about_as_bad_the_first_stays_the_worst(whose):
    told = []
    for one, other in ((9.0, 8.9), (9.0, 9.4), (9.1, 11.3), (9.0, 11.4), (9.5, 11.4)):
        (suspect,) = found(whose, grows(LOADERS[0], one), grows(LOADERS[1], other))
        assert suspect.processes[0] == suspect.finding.process
        assert set(suspect.processes) == set(LOADERS[:2])
        told.append(LOADERS.index(suspect.finding.process))
    assert told == [0, 0, 0, 1, 1]


def test_the_rules_that_find_a_process_take_no_turns(whose):
    for slow in (8.0, 11.0):
        rates = {"fast": 9.0, "slow": slow}
        by_rule = [grows(LOADERS[0], rates[rule], rule=rule) for rule in rates]
        (suspect,) = found(whose, *by_rule)
        assert (suspect.finding.rule, suspect.processes) == ("fast", (LOADERS[0],))


def test_a_suspect_draws_what_its_findings_do(whose):
    idle = Finding("pseudo_idle_context", 1.0, process=ROOT, gpu_uuid="GPU-a", account=JOB)
    beside = replace(idle, process=LOADERS[0])
    dead = replace(idle, kind="dead_pid_memory", process=ProcessName(999, None))
    draws = {ROOT: (30.0, 0.25), LOADERS[0]: (20.0, 0.125), dead.process: (None, 0.5)}
    suspects = found(whose, idle, beside, dead, draw_of=lambda one: draws[one.process])
    told = [(s.finding.kind, s.power_watts, s.gpu_share) for s in suspects]
    assert told == [("pseudo_idle_context", 50.0, 0.375), ("dead_pid_memory", None, 0.5)]


def test_what_is_not_known_of_one_finding_is_not_known_of_the_suspect(whose):
    idle = Finding("pseudo_idle_context", 1.0, process=ROOT, gpu_uuid="GPU-a", account=JOB)
    draws = {ROOT: (30.0, 0.25), LOADERS[0]: (None, 0.125)}
    (suspect,) = found(
        whose,
        idle,
        replace(idle, process=LOADERS[0]),
        draw_of=lambda one: draws[one.process],
    )
    assert (suspect.power_watts, suspect.gpu_share) == (None, 0.375)


def test_of_what_is_left_of_a_process_its_former_owner_is_told(whose):
    dead = Finding(
        "dead_pid_memory",
        1.0,
        process=ProcessName(999, None),
        gpu_uuid="GPU-a",
        account="unknown\x1fprocess-unknown-0",
        owner=JOB,
    )
    (suspect,) = found(whose, dead)
    assert (suspect.workload, suspect.tenant) == ("slurm-42-1", "research")


class Orphans(Chains):
    """The same, until the root of all ends."""

    ended = False

    def of(self, pid: int) -> Sandbox | None:
        sandbox = super().of(pid)
        return Sandbox(sandbox.chain[:1], 7, 8) if sandbox and self.ended else sandbox


def test_a_parent_that_ends_renames_no_suspect(tmp_path):
    sandboxes = Orphans()
    whose = Whose(sandboxes, root=tmp_path, wall=lambda: UNIX)
    (before,) = found(whose, grows(LOADERS[0], 9.0))
    sandboxes.ended = True
    (after,) = found(whose, grows(LOADERS[0], 9.0), now=NOW + 15)
    assert after == before
    assert found(whose) == ()
    (anew,) = found(whose, grows(LOADERS[0], 9.0))
    assert anew.name != before.name


def test_whose_the_worst_process_is_and_where_is_looked_up_while_it_is_the_same(whose, tmp_path):
    tree = HostTree(tmp_path)
    tree.start(110, "/user.slice/user-1001.slice", ticks=1100, uid=1001)
    (suspect,) = found(whose, grows(LOADERS[0], 9.0))
    assert (suspect.user, suspect.cgroup) == ("anna", "/user.slice/user-1001.slice")
    tree.end(110)
    (later,) = found(whose, grows(LOADERS[0], 9.0))
    assert (later.user, later.cgroup) == (suspect.user, suspect.cgroup)
    tree.start(111, "/elsewhere", ticks=1)  # another that has the pid by now
    (other,) = found(whose, grows(LOADERS[1], 90.0))
    assert (other.user, other.cgroup) == ("", "")


def test_a_suspect_has_all_its_findings_and_where_the_worst_run(whose):
    (suspect,) = found(whose, *(grows(p, 9.0 + n) for n, p in enumerate(LOADERS)))
    rates = [each.evidence["growth_fds_per_second"] for each in suspect.findings]
    assert rates == [11.0, 10.0, 9.0]
    assert [sandbox.chain[0] for sandbox in suspect.sandboxes] == list(reversed(LOADERS))
