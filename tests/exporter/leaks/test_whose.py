from dataclasses import replace

import pytest

from seedance_obs.exporter.leaks.whose import Whose
from seedance_obs.leaks.suspect import Finding, ProcessName, Sandbox

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
def whose():
    return Whose(Chains(), wall=lambda: UNIX)


def found(whose, *findings, now=NOW, draw=(None, None)):
    return whose.suspects(findings, draw_of=lambda _: draw, now=now)


def test_the_processes_of_one_tree_are_one_suspect_the_worst_first(whose):
    (suspect,) = found(whose, *(grows(p, 9.0 + n) for n, p in enumerate(LOADERS)))
    assert suspect.processes == tuple(reversed(LOADERS))
    assert suspect.finding.process == LOADERS[2]
    assert suspect.sandbox == Sandbox((LOADERS[2], ROOT), 7, 8)
    assert (suspect.workload, suspect.tenant) == ("slurm-42-1", "research")
    assert suspect.name == "fd_growth-100-1000"


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
    assert suspect.name == "fd_growth-110-5"


def test_boards_are_named_by_place_and_holder(whose):
    orphan = Finding("memory_without_process", 1.0, gpu_uuid="GPU-a", gpu_instance=3)
    holder = Finding("allocated_without_process", 1.0, gpu_uuid="GPU-a", account=JOB)
    names = {suspect.name for suspect in found(whose, orphan, holder)}
    assert names == {
        "memory_without_process-GPU-a:3",
        "allocated_without_process-GPU-a-research_slurm-42-1",
    }


def test_suspects_of_one_account_on_a_board_share_what_it_draws(whose):
    idle = Finding("pseudo_idle_context", 1.0, process=ROOT, gpu_uuid="GPU-a", account=JOB)
    dead = replace(idle, kind="dead_pid_memory", process=ProcessName(999, None))
    elsewhere = replace(idle, gpu_uuid="GPU-b")
    suspects = found(whose, idle, dead, elsewhere, grows(ROOT, 9.0), draw=(70.0, 0.5))
    told = [(s.finding.kind, s.finding.gpu_uuid, s.power_watts, s.gpu_share) for s in suspects]
    assert sorted(told, key=str) == [
        ("dead_pid_memory", "GPU-a", 35.0, 0.25),
        ("fd_growth", "", None, None),
        ("pseudo_idle_context", "GPU-a", 35.0, 0.25),
        ("pseudo_idle_context", "GPU-b", 70.0, 0.5),
    ]


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
