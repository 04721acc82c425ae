"""Where a process runs and who started it, of real processes and on made-up hosts."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from seedance_obs.process_tree import ProcessName, Sandbox
from seedance_obs.sources import sandbox
from seedance_obs.sources.process_table import ProcessStat, read_stat
from seedance_obs.sources.sandbox import Sandboxes, tree_of
from tests.privileges import as_nobody
from tests.sources.family import can_unshare, family
from tests.sources.host_tree import CID, JOB, POD, SIDECAR, HostTree

TRAINER = f"{POD}/cri-containerd-{CID}.scope"
DOCKER = f"/system.slice/docker-{CID}.scope"
SESSION = "/user.slice/user-1001.slice/session-3.scope"

unshared = pytest.mark.skipif(not can_unshare(), reason="only root makes namespaces")


def found(root: str | Path, pid: int) -> Sandbox:
    seen = Sandboxes(root).of(pid)
    assert seen is not None
    return seen


def pids(root: str | Path, pid: int) -> list[int]:
    return [each.pid for each in found(root, pid).chain]


def inode(pid: int, kind: str) -> int:
    """A namespace's, by another way than its name."""
    return os.stat(f"/proc/{pid}/ns/{kind}").st_ino


def test_a_chain_leads_from_parent_to_parent() -> None:
    with family("tell(leaf=child(lambda: (tell(deep=child()), rest()))); rest()") as parents:
        told = {**parents.told(), **parents.told()}
        leaf, deep = told["leaf"], told["deep"]
        assert pids("/", deep)[:3] == [deep, leaf, parents.pid]
        seen = found("/", deep)
        assert (seen.mount_namespace, seen.net_namespace) == (
            inode(deep, "mnt"),
            inode(deep, "net"),
        )
        stat = read_stat("/proc", deep)
        assert stat is not None
        assert seen.chain[0] == ProcessName(deep, stat.start_ticks, stat.comm)
        assert tree_of(seen) == tree_of(found("/", parents.pid))


def test_who_was_started_by_a_thread_has_its_process_as_parent() -> None:
    program = """
def fork(): tell(leaf=child()); rest()
threading.Thread(target=fork, daemon=True).start(); rest()
"""
    with family(program) as many:
        leaf = many.told()["leaf"]
        assert pids("/", leaf)[:2] == [leaf, many.pid]


def test_a_child_that_was_handed_on_twice_is_whose_it_is_now() -> None:
    with family("adopt_orphans(); tell(leaf=child_of_child()); rest()") as parents:
        leaf = parents.told()["leaf"]
        assert pids("/", leaf)[:2] == [leaf, parents.pid]


def test_a_child_that_nobody_here_took_over_stands_alone() -> None:
    with family("tell(leaf=child_of_child()); rest()") as parents:
        leaf = parents.told()["leaf"]
        chain = pids("/", leaf)
        assert parents.pid not in chain
        stat = read_stat("/proc", leaf)
        assert stat is not None
        if stat.parent == 1:
            assert chain == [leaf]


def test_a_chain_is_mended_when_a_parent_dies() -> None:
    program = """
adopt_orphans()
def middle(): tell(leaf=child(), middle=os.getpid()); rest()
os.waitpid(child(middle), 0); tell(); rest()
"""
    with family(program) as parents:
        told = parents.told()
        assert pids("/", told["leaf"])[:3] == [told["leaf"], told["middle"], parents.pid]
        os.kill(told["middle"], signal.SIGKILL)
        parents.told()
        assert pids("/", told["leaf"])[:2] == [told["leaf"], parents.pid]


def test_a_process_that_is_gone_runs_nowhere() -> None:
    with family("tell(); rest()") as gone:
        gone.told()
    assert Sandboxes("/").of(gone.pid) is None


@unshared
def test_the_first_process_in_another_mount_namespace_ends_the_chain() -> None:
    with family("tell(leaf=child()); rest()", "unshare", "--mount", "--net") as inside:
        leaf = inside.told()["leaf"]
        seen = found("/", leaf)
        assert [each.pid for each in seen.chain] == [leaf, inside.pid]
        assert (seen.mount_namespace, seen.net_namespace) == (
            inode(leaf, "mnt"),
            inode(leaf, "net"),
        )
        assert seen.mount_namespace != inode(os.getpid(), "mnt")
        assert seen.net_namespace != inode(os.getpid(), "net")


@unshared
def test_a_net_namespace_alone_is_told_and_ends_nothing() -> None:
    with family("tell(leaf=child()); rest()", "unshare", "--net") as inside:
        leaf = inside.told()["leaf"]
        seen = found("/", leaf)
        assert os.getpid() in [each.pid for each in seen.chain]
        assert seen.net_namespace == inode(leaf, "net") != inode(os.getpid(), "net")


@unshared
def test_where_namespaces_may_not_be_read_they_are_unknown_and_the_chain_is_there() -> None:
    with family("tell(leaf=child()); rest()", "unshare", "--mount", "--net") as inside:
        leaf = inside.told()["leaf"]
        with as_nobody():
            seen = found("/", leaf)
        assert (seen.mount_namespace, seen.net_namespace) == (None, None)
        assert [each.pid for each in seen.chain][:2] == [leaf, inside.pid]


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (TRAINER, "/system.slice/containerd.service"),
        (TRAINER, f"{POD}/cri-containerd-{SIDECAR}.scope"),
        (TRAINER, "/"),
        (f"{DOCKER}/worker", SESSION),
        (f"{JOB}/step_0/user/task_0", "/system.slice/slurmstepd.scope/job_41/step_0"),
        ("/system.slice/ollama.service", SESSION),
    ],
)
@pytest.mark.parametrize("namespaces", [None, (4026531841, 4026531840)])
def test_a_parent_that_was_placed_elsewhere_is_outside(
    host: HostTree, inside: str, outside: str, namespaces: tuple[int, int] | None
) -> None:
    host.start(40, outside, comm="runs", namespaces=namespaces)
    host.start(41, inside, parent=40, namespaces=namespaces)
    host.start(42, inside, parent=41, namespaces=namespaces)
    assert pids(host.root, 42) == [42, 41]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (f"{JOB}/step_0/user/task_1", f"{JOB}/step_0/user/task_0"),
        (f"{DOCKER}/a/b", DOCKER),
        (SESSION, "/user.slice/user-1001.slice/user@1001.service/app.slice/run-5.scope"),
        ("/martian.slice", "/venusian.slice"),
    ],
)
def test_a_parent_in_another_cgroup_of_the_same_place_is_inside(
    host: HostTree, lower: str, upper: str
) -> None:
    host.start(41, upper)
    host.start(42, lower, parent=41)
    assert pids(host.root, 42) == [42, 41]


def test_with_cgroup_v1_any_controller_may_tell_the_place(host: HostTree) -> None:
    host.start(41, SESSION)
    host.start(42, SESSION, parent=41)
    text = f"3:memory:/\n2:devices:{JOB}/step_0\n1:name=systemd:/system.slice/slurmd.service\n"
    host.write("proc/42/cgroup", text)
    assert pids(host.root, 42) == [42]


@pytest.mark.parametrize(
    "comm",
    [
        *("containerd-shim", "conmon", "docker-containe", "slurmstepd", "sshd", "sshd-session"),
        *("systemd", "tmux: server", "cron"),
    ],
)
def test_whoever_starts_containers_jobs_and_sessions_is_outside(host: HostTree, comm: str) -> None:
    host.start(40, SESSION, comm=comm)
    host.start(41, SESSION, parent=40)
    host.start(42, SESSION, parent=41)
    assert pids(host.root, 42) == [42, 41]
    assert pids(host.root, 40) == [40], "itself it is somewhere too"


@pytest.mark.parametrize("comm", ["systemd-run", "docker-init", "tini", "bash", "slurm_script"])
def test_what_only_sounds_alike_is_inside(host: HostTree, comm: str) -> None:
    host.start(41, SESSION, comm=comm)
    host.start(42, SESSION, parent=41)
    assert pids(host.root, 42) == [42, 41]


@pytest.mark.parametrize(
    ("below", "above", "chain"),
    [
        ((7, 5), (8, 5), [42]),
        ((7, 5), (7, 6), [42, 41]),
        (None, (8, 5), [42, 41]),
        ((7, 5), None, [42, 41]),
    ],
    ids=["apart", "another net", "below unreadable", "above unreadable"],
)
def test_mount_namespaces_part_where_both_can_be_read(
    host: HostTree,
    below: tuple[int, int] | None,
    above: tuple[int, int] | None,
    chain: list[int],
) -> None:
    host.start(41, SESSION, namespaces=above)
    host.start(42, SESSION, parent=41, namespaces=below)
    seen = found(host.root, 42)
    assert [each.pid for each in seen.chain] == chain
    assert (seen.mount_namespace, seen.net_namespace) == (below or (None, None))


def test_a_place_that_cannot_be_read_parts_nothing(host: HostTree) -> None:
    host.start(41, TRAINER)
    host.start(42, TRAINER, parent=41)
    (host.root / "proc/41/cgroup").unlink()
    assert pids(host.root, 42) == [42, 41]


@pytest.mark.parametrize("name", ["", "mnt:[]", "mnt:[x]", "net:[5]", "mnt:[5]x", "mnt:[-5]"])
def test_what_is_no_name_of_a_namespace_is_unknown(host: HostTree, name: str) -> None:
    host.start(42, SESSION)
    (host.root / "proc/42/ns").mkdir()
    if name:
        (host.root / "proc/42/ns/mnt").symlink_to(name)
    assert found(host.root, 42).mount_namespace is None


@pytest.mark.parametrize("parent", [0, 1, 41])
def test_init_and_parents_that_are_not_shown_are_in_no_chain(host: HostTree, parent: int) -> None:
    host.start(1, "/init.scope", comm="tini")
    host.start(42, "/init.scope", parent=parent)
    assert pids(host.root, 42) == [42]


def test_the_kernel_is_nobodys_parent(host: HostTree) -> None:
    host.start(2, None, comm="kthreadd", flags=0x208040)
    host.start(42, None, parent=2)
    assert pids(host.root, 42) == [42]


def test_who_started_later_is_no_parent(host: HostTree) -> None:
    host.start(41, SESSION, ticks=900)
    host.start(42, SESSION, ticks=800, parent=41)
    assert pids(host.root, 42) == [42]
    host.start(41, SESSION, ticks=800)
    assert pids(host.root, 42) == [42, 41], "of one tick either may be the first"


def test_parents_in_a_circle_end(host: HostTree) -> None:
    host.start(41, SESSION, parent=42)
    host.start(42, SESSION, parent=41)
    assert pids(host.root, 42) == [42, 41]


def test_a_chain_has_an_end_however_deep_the_tree(host: HostTree) -> None:
    for pid in range(100, 180):
        host.start(pid, SESSION, parent=pid - 1)
    assert pids(host.root, 179) == list(range(179, 115, -1))


class Meanwhile:
    """How often each process is read, and what happens right after the n-th time."""

    def __init__(self) -> None:
        self.then: dict[tuple[int, int], Callable[[], None]] = {}
        self.reads: Counter[int] = Counter()

    def read(self, proc: str, pid: int) -> ProcessStat | None:
        stat = read_stat(proc, pid)
        self.reads[pid] += 1
        if act := self.then.get((pid, self.reads[pid])):
            act()
        return stat


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    events = Meanwhile()
    monkeypatch.setattr(sandbox, "read_stat", events.read)
    return events


def test_a_parent_that_dies_while_it_is_looked_at_is_followed_by_who_took_over(
    host: HostTree, meanwhile: Meanwhile
) -> None:
    host.start(40, SESSION)
    host.start(41, SESSION, parent=40)
    host.start(42, SESSION, parent=41)

    def die() -> None:
        host.end(41)
        host.start(42, SESSION, parent=40)

    meanwhile.then[41, 1] = die
    assert pids(host.root, 42) == [42, 40]


def test_a_parents_pid_that_is_reused_while_it_is_looked_at_brings_no_stranger(
    host: HostTree, meanwhile: Meanwhile
) -> None:
    host.start(41, SESSION)
    host.start(42, SESSION, parent=41)

    def reuse() -> None:
        host.end(41)
        host.start(41, SESSION)  # in the same tick even
        host.start(42, SESSION, parent=1)

    meanwhile.then[42, 2] = reuse
    assert pids(host.root, 42) == [42]


def test_a_process_that_dies_or_is_another_meanwhile_runs_nowhere(
    host: HostTree, meanwhile: Meanwhile
) -> None:
    host.start(42, SESSION)
    meanwhile.then[42, 1] = lambda: host.end(42)
    assert Sandboxes(host.root).of(42) is None
    host.start(43, SESSION)
    meanwhile.then[43, 1] = lambda: host.start(43, SESSION, ticks=900)
    assert Sandboxes(host.root).of(43) is None
    host.start(44, SESSION)
    meanwhile.then[44, 3] = lambda: host.end(44)  # its chain is known by then
    assert Sandboxes(host.root).of(44) is None


def test_a_name_is_kept_as_it_is_whatever_is_in_it(host: HostTree) -> None:
    host.start(42, SESSION, comm="\x1b[2J) R 1 (\n")
    assert found(host.root, 42).chain == (ProcessName(42, 500, "\x1b[2J) R 1 (\n"),)


def probed(sandboxes: Sandboxes, *pids: int) -> list[list[int]]:
    """The chains of these processes at one more probe; empty where there is none."""
    sandboxes.refresh()
    found = map(sandboxes.of, pids)
    return [[each.pid for each in seen.chain] if seen else [] for seen in found]


def test_an_ancestor_of_many_is_looked_at_once_a_probe(
    host: HostTree, meanwhile: Meanwhile
) -> None:
    host.start(40, SESSION)
    host.start(41, SESSION, parent=40)
    for pid in range(100, 119):
        host.start(pid, SESSION, parent=41)
    sandboxes = Sandboxes(host.root)
    chains = probed(sandboxes, *range(100, 119))
    assert chains == [[pid, 41, 40] for pid in range(100, 119)]
    once = meanwhile.reads[40]
    assert once < 5
    probed(sandboxes, *range(100, 119))
    assert meanwhile.reads[40] <= 2 * once


def test_when_any_ancestor_dies_the_chains_of_all_below_are_mended(host: HostTree) -> None:
    host.start(40, SESSION)
    host.start(41, SESSION, parent=40)
    host.start(42, SESSION, parent=41)
    host.start(43, SESSION, parent=42)
    sandboxes = Sandboxes(host.root)
    assert probed(sandboxes, 43, 42) == [[43, 42, 41, 40], [42, 41, 40]]
    host.end(41)
    host.start(42, SESSION, parent=40)
    assert probed(sandboxes, 43, 42) == [[43, 42, 40], [42, 40]]
    host.end(43)
    assert probed(sandboxes, 43, 42) == [[], [42, 40]]


def test_the_next_process_with_a_pid_runs_where_it_runs(host: HostTree) -> None:
    host.start(41, SESSION)
    host.start(42, SESSION, parent=41)
    sandboxes = Sandboxes(host.root)
    probed(sandboxes, 42)
    host.start(42, SESSION, ticks=900)
    assert probed(sandboxes, 42) == [[42]]
    seen = sandboxes.of(42)
    assert seen is not None
    assert seen.chain[0].start_ticks == 900


def test_another_name_and_other_namespaces_are_seen_at_the_next_probe(host: HostTree) -> None:
    sandboxes = Sandboxes(host.root)
    for comm, mount in (("bash", 7), ("python3", 8)):
        host.start(41, SESSION, comm=comm)
        host.start(42, SESSION, parent=41, namespaces=(mount, 5))
        sandboxes.refresh()
        seen = sandboxes.of(42)
        assert seen is not None
        assert (seen.chain[1].comm, seen.mount_namespace) == (comm, mount)
        (host.root / "proc/42/ns/mnt").unlink()
