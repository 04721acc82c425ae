"""The idle windows of a node that is laid out as files, and of the workloads on its GPUs."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.leaks.windows import Windows
from seedance_obs.exporter.view import IdleWindowView
from seedance_obs.leaks.idle_window import REASONS
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes
from seedance_obs.sources.host_load import MemoryUse
from tests.exporter.books.boards import board, reading

A, B = account_name("lab", "pod-a-1"), account_name("shop", "pod-b-2")
OWNERS = {A: CpuOwner("/pod-a"), B: CpuOwner("/pod-b")}
CPUS, PROBE_SECONDS = 16, 15
TO_OPEN = 300 // PROBE_SECONDS + 1  # quiet probes, of which the first starts the time


@dataclass(slots=True)
class On:
    """An account on boards."""

    activity: dict[str, float | None] = field(default_factory=dict)


def gpu(uuid: str, busy: float | None) -> MergedGpu:
    return board(uuid, readings={} if busy is None else {"utilization_ratio": reading(busy)})


class Node:
    """Four GPUs and 16 CPUs, all quiet but for what a test says; A is on one GPU, B on two."""

    def __init__(self, root: Path, **settings) -> None:
        self.root = root
        self.now = 1000.0
        self.gpus: dict[str, float | None] = dict.fromkeys(("G0", "G1", "G2", "G3"), 0.0)
        self.on = {A: On({"G0": 0.0}), B: On({"G1": 0.0, "G2": 0.0})}
        self.owners = dict(OWNERS)
        self.memory_ratio: float | None = 0.1
        self.ticks: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.windows = Windows(
            NodeSettings(**settings), CpuTimes(root, ticks_per_second=100), MemoryUse(root)
        )
        self.write()
        self.probe()  # what CPU times were before is not known yet

    def write(self) -> None:
        self.put("proc/stat", f"cpu {self.ticks['busy']} 0 0 {self.ticks['idle']} 0 0 0 0\n")
        for name, usec in {"pod-a": 0, "pod-b": 0, **self.used}.items():
            self.put(f"sys/fs/cgroup/{name}/cpu.stat", f"usage_usec {usec}\n")
        available = None if self.memory_ratio is None else round((1 - self.memory_ratio) * 1000)
        known = "" if available is None else f"MemAvailable: {available} kB\n"
        self.put("proc/meminfo", f"MemTotal: 1000 kB\n{known}")

    def put(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def note(self, **expected: int) -> None:
        boards = [gpu(uuid, busy) for uuid, busy in self.gpus.items()]
        self.windows.note(boards, self.on, self.now, **expected)

    def probe(self, *, cpus: float = 0.0, used: Mapping[str, float] | None = None) -> None:
        """15 seconds in which `cpus` CPUs were busy, and those of pods for them, and a probe."""
        for _ in range(PROBE_SECONDS):
            self.now += 1
            self.note()
        self.ticks["busy"] += round(cpus * PROBE_SECONDS * 100)
        self.ticks["idle"] += round((CPUS - cpus) * PROBE_SECONDS * 100)
        for pod, many in (used or {}).items():
            self.used[pod] += round(many * PROBE_SECONDS * 1e6)
        self.write()
        self.windows.probe(self.now, self.owners)

    def probes(self, times: int, **load) -> None:
        for _ in range(times):
            self.probe(**load)

    @property
    def reason(self) -> str:
        return self.windows.view()[0].reason

    def opened(self) -> tuple[bool, frozenset[str]]:
        return self.windows.node_open, self.windows.open_accounts()


@pytest.fixture
def node(tmp_path) -> Node:
    return Node(tmp_path)


def test_all_windows_open_after_five_quiet_minutes_on_real_files(node):
    node.probes(TO_OPEN - 1)
    assert node.opened() == (False, frozenset())
    assert node.reason == "warming_up"
    node.probe()
    assert node.opened() == (True, {A, B})
    assert node.reason == ""
    node.probes(2)
    assert node.windows.view() == (
        IdleWindowView(open=True, seconds=30.0),
        IdleWindowView(open=True, seconds=30.0, workload="pod-a-1", tenant="lab"),
        IdleWindowView(open=True, seconds=30.0, workload="pod-b-2", tenant="shop"),
    )


def test_models_in_host_memory_keep_the_nodes_window_closed_and_no_workloads(node):
    node.memory_ratio = 0.6
    node.probes(TO_OPEN)
    assert node.opened() == (False, {A, B})
    assert node.reason == "memory_in_use"


def test_memory_that_is_not_told_keeps_the_nodes_window_closed(node):
    node.memory_ratio = None
    node.probes(TO_OPEN)
    assert node.opened() == (False, {A, B})
    assert node.reason == "memory_unknown"


@pytest.mark.parametrize(
    ("cpus", "used", "opened"),
    [
        (1.9, {}, (True, {A, B})),  # of 16: 11.9 %
        (2.0, {}, (False, {A, B})),
        (1.0, {"pod-a": 0.47}, (True, {A, B})),  # of the 4 CPUs of one GPU
        (1.0, {"pod-a": 0.49}, (True, {B})),
        (1.0, {"pod-b": 0.94}, (True, {A, B})),  # of the 8 CPUs of two
        (1.0, {"pod-b": 0.98}, (True, {A})),
        (8.0, {"pod-a": 0.1, "pod-b": 0.1}, (False, {A, B})),
    ],
)
def test_a_workload_is_judged_by_the_cpus_that_go_with_its_gpus(node, cpus, used, opened):
    node.probes(TO_OPEN, cpus=cpus, used=used)
    assert node.opened() == opened


def test_one_busy_second_of_a_gpu_between_two_probes_closes_and_restarts(node):
    node.probes(TO_OPEN)
    node.on[A].activity["G0"] = node.gpus["G0"] = 0.05
    node.note()
    node.on[A].activity["G0"] = node.gpus["G0"] = 0.0
    node.probe()
    assert node.opened() == (False, {B})
    assert node.reason == "gpu_busy"
    node.probes(TO_OPEN - 1)
    assert node.opened() == (False, {B})
    node.probe()
    assert node.opened() == (True, {A, B})


def test_a_workload_is_quiet_beside_one_that_works(node):
    node.gpus["G0"] = node.on[A].activity["G0"] = 0.9
    node.probes(TO_OPEN)
    assert node.opened() == (False, {B})


def test_one_busy_board_of_a_workloads_is_enough(node):
    node.gpus["G2"] = node.on[B].activity["G2"] = 0.9
    node.probes(TO_OPEN)
    assert node.opened() == (False, {A})


def test_a_board_that_did_not_tell_for_one_second_is_unknown_in_that_probe(node):
    node.probes(TO_OPEN)
    node.gpus["G0"] = node.on[A].activity["G0"] = None
    node.note()
    node.gpus["G0"] = node.on[A].activity["G0"] = 0.0
    node.probe()
    assert node.opened() == (False, {B})
    assert node.reason == "gpu_unknown"


def test_a_workload_that_one_look_did_not_see_is_unknown_in_that_probe(node):
    node.probes(TO_OPEN)
    gone = node.on.pop(A)
    node.note()
    node.on[A] = gone
    node.probe()
    assert node.opened() == (True, {B})


def test_where_the_activity_of_a_workload_is_not_told_that_of_its_board_is_taken(node):
    node.on[A].activity["G0"] = node.on[B].activity["G1"] = None
    node.gpus["G1"] = 0.9
    node.probes(TO_OPEN)
    assert node.opened() == (False, {A})


def test_a_lost_board_is_unknown_to_the_node_and_nothing_to_those_on_others(node):
    node.probes(TO_OPEN)
    del node.gpus["G3"]
    node.probes(TO_OPEN)
    assert node.opened() == (False, {A, B})
    assert node.reason == "gpu_unknown"


@pytest.mark.parametrize(("expected", "open_accounts"), [(0, {A, B}), (8, {B})])
def test_boards_that_are_not_seen_have_their_part_of_the_cpus(tmp_path, expected, open_accounts):
    node = Node(tmp_path, node_expected_gpus=expected)
    node.probes(TO_OPEN, used={"pod-a": 0.3})  # A has one GPU: 4 CPUs of 16, of 8 boards 2
    assert node.windows.open_accounts() == open_accounts


def test_a_silent_board_takes_nothing_back_from_the_time_its_accounts_were_idle(node):
    node.probes(TO_OPEN + 3)
    was = {each.workload: each.seconds for each in node.windows.view()}
    del node.gpus["G0"]
    node.on[A].activity["G0"] = None
    node.probe()
    (silent,) = [each for each in node.windows.view() if each.workload == "pod-a-1"]
    assert (silent.open, silent.reason, silent.seconds) == (False, "gpu_unknown", was["pod-a-1"])
    node.gpus["G0"] = node.on[A].activity["G0"] = 0.0
    node.probes(TO_OPEN + 1)
    assert {each.workload: each.seconds for each in node.windows.view()}["pod-a-1"] == 60.0


class Bare:
    """A node of which no GPU is seen, idle otherwise."""

    def __init__(self, root: Path, **settings) -> None:
        self.proc = root / "proc"
        self.proc.mkdir()
        (self.proc / "meminfo").write_text("MemTotal: 10 kB\nMemAvailable: 10 kB\n")
        cpu = CpuTimes(root, ticks_per_second=100)
        self.windows = Windows(NodeSettings(**settings), cpu, MemoryUse(root))

    def probes(self, times: int, *, noted: bool = True, **expected: int) -> None:
        for now in range(0, times * PROBE_SECONDS, PROBE_SECONDS):
            (self.proc / "stat").write_text(f"cpu 0 0 0 {now * 100} 0 0 0 0\n")
            if noted:
                self.windows.note([], {}, now, **expected)
            self.windows.probe(now, {})


@pytest.mark.parametrize(("setting", "told"), [(4, 0), (0, 4)], ids=["by setting", "by the bus"])
def test_a_driver_that_never_answered_is_no_node_without_gpus(tmp_path, setting, told):
    bare = Bare(tmp_path, node_expected_gpus=setting)
    bare.probes(TO_OPEN + 1, expected=told)
    assert bare.windows.view()[0].reason == "gpu_unknown"


def test_a_node_without_gpus_needs_cpu_and_memory_only(tmp_path):
    bare = Bare(tmp_path)
    bare.probes(TO_OPEN + 1)
    assert bare.windows.view() == (IdleWindowView(open=True, seconds=0.0),)


def test_without_any_note_the_gpus_are_unknown(tmp_path):
    bare = Bare(tmp_path)
    bare.probes(TO_OPEN + 1, noted=False)
    assert bare.windows.view()[0].reason == "gpu_unknown"


def test_notes_that_stay_away_are_believed_for_as_long_as_readings_are(node):
    node.probes(TO_OPEN)
    for age, expected in ((15, ""), (30, ""), (45, "gpu_unknown")):
        node.ticks["idle"] += 1600
        node.write()
        node.windows.probe(node.now + age, node.owners)
        assert node.reason == expected
    assert node.opened() == (False, frozenset())


def test_a_second_of_silence_between_notes_that_is_too_long_is_unknown(tmp_path):
    node = Node(tmp_path, leaks_interval_seconds=60.0)
    node.probes(TO_OPEN)
    assert node.windows.node_open
    node.now += 31
    node.probe()
    assert node.opened() == (False, frozenset())
    assert node.reason == "gpu_unknown"


def test_probes_that_stay_away_are_a_gap(node):
    node.probes(TO_OPEN)
    for _ in range(46 - PROBE_SECONDS):
        node.now += 1
        node.note()
    node.probe()
    assert node.opened() == (False, frozenset())
    assert node.reason == "gap"


def test_a_counter_of_the_hosts_cpus_that_steps_back_is_unknown(node):
    node.probes(TO_OPEN, cpus=1.0)
    node.ticks["busy"] = 0
    node.probe()
    assert node.reason == "cpu_unknown"
    assert not node.windows.node_open


def test_a_counter_of_a_workload_that_steps_back_is_unknown(node):
    node.probes(TO_OPEN, used={"pod-a": 0.1, "pod-b": 0.1})
    node.used["pod-a"] = 0
    node.probe()
    assert node.opened() == (True, {B})


def test_a_workload_whose_cpu_time_cannot_be_read_never_opens(node):
    node.owners[A] = CpuOwner("/elsewhere")
    node.probes(TO_OPEN)
    assert node.opened() == (True, {B})


def test_times_of_the_host_that_cannot_be_read_are_unknown_to_all(node):
    node.probes(TO_OPEN)
    node.put("proc/stat", "")
    node.windows.probe(node.now + 15, node.owners)
    assert node.opened() == (False, frozenset())
    assert node.reason == "cpu_unknown"


def test_accounts_that_go_are_forgotten_and_begin_anew(node):
    node.probes(TO_OPEN + 1)
    del node.owners[A]
    node.probe()
    assert node.windows.open_accounts() == {B}
    assert [each.workload for each in node.windows.view()] == ["", "pod-b-2"]
    node.owners[A] = OWNERS[A]
    node.probes(2)
    assert node.windows.open_accounts() == {B}
    assert [each.seconds for each in node.windows.view()] == [60.0, 0.0, 60.0]


def test_of_many_workloads_those_asked_for_are_shown_and_the_node_always(node):
    node.probe()
    assert [each.workload for each in node.windows.view({B})] == ["", "pod-b-2"]
    assert [each.workload for each in node.windows.view(())] == [""]


def test_every_probe_of_a_closed_node_counts_one_reason(node):
    before = node.windows.skipped
    none = dict.fromkeys(REASONS, 0)
    assert before == {**none, "cpu_unknown": 1}, "the first has nothing to compare with"
    node.probes(2, cpus=8.0)
    node.memory_ratio = 0.9
    node.probe(cpus=8.0)
    node.probe()
    node.memory_ratio = 0.1
    node.probes(TO_OPEN + 5)
    assert node.windows.skipped == {
        **none,
        "cpu_unknown": 1,
        "cpu_busy": 3,
        "memory_in_use": 1,
        "warming_up": TO_OPEN - 1,
    }
    assert before == {**none, "cpu_unknown": 1}, "what was handed out does not move"


def test_limits_are_those_of_the_settings(tmp_path):
    node = Node(
        tmp_path,
        leaks_idle_seconds=30.0,
        leaks_idle_cpu_ratio=0.6,
        leaks_idle_memory_ratio=0.7,
        leaks_idle_gpu_ratio=0.8,
    )
    node.memory_ratio = 0.69
    node.gpus["G0"] = node.on[A].activity["G0"] = 0.79
    node.probes(3, cpus=9.5, used={"pod-a": 2.3})
    assert node.opened() == (True, {A, B})


def test_threads_that_note_probe_and_look_do_not_disturb_each_other(node):
    failed: list[BaseException] = []

    def go_on(step) -> None:
        try:
            for _ in range(300):
                step()
        except BaseException as error:
            failed.append(error)

    windows = node.windows
    steps = (
        node.note,
        lambda: windows.probe(node.now, node.owners),
        lambda: (windows.view(), windows.open_accounts(), windows.skipped),
    )
    threads = [threading.Thread(target=go_on, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sum(windows.skipped.values()) == 301
