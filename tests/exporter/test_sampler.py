"""The threads around a node: they start, keep going, and let the sources go."""

import threading
import time

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.node import Node
from seedance_obs.exporter.sampler import Sampler
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot

PATIENCE_SECONDS = 20.0


class Source:
    def __init__(self, name: str) -> None:
        self.name = name
        self.reads = 0
        self.closed_in: list[str] = []
        self.broken = False
        self.hang = threading.Event()
        self.hang.set()

    def read(self) -> SourceSnapshot:
        self.reads += 1
        self.hang.wait()
        if self.broken:
            raise ZeroDivisionError
        return SourceSnapshot(self.name, time.monotonic(), gpus=(GpuReadings("GPU-a", index=0),))

    def close(self) -> None:
        self.closed_in.append(threading.current_thread().name)


def sampler_of(tmp_path, *sources: Source) -> tuple[Node, Sampler]:
    node = Node(NodeSettings(node_root=str(tmp_path)), sources, node_name="n")
    intervals = {source.name: 0.01 for source in sources}
    return node, Sampler(
        node, interval_seconds=0.01, source_intervals=intervals, probe_seconds=0.01
    )


def eventually(holds) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_source_that_hangs_or_breaks_does_not_stop_the_others(tmp_path):
    good, hung, broken = Source("nvml"), Source("dcgm"), Source("other")
    hung.hang.clear()
    broken.broken = True
    node, sampler = sampler_of(tmp_path, good, hung, broken)
    assert not sampler.ready
    sampler.start()
    eventually(lambda: good.reads > 5 and broken.reads > 5)
    hung.hang.set()
    eventually(lambda: sampler.ready and len(node.view.gpus) == 1)
    assert sampler.healthy
    sampler.stop()


def test_each_source_is_closed_by_the_thread_that_used_it(tmp_path):
    source = Source("nvml")
    _, sampler = sampler_of(tmp_path, source)
    sampler.start()
    eventually(lambda: sampler.ready)
    sampler.stop()
    assert source.closed_in[0] == "poll-nvml"
    assert [t.name for t in threading.enumerate() if t.name.startswith("poll-")] == []


def test_a_poll_that_fails_in_any_way_is_made_again(tmp_path, monkeypatch):
    source = Source("nvml")
    node, sampler = sampler_of(tmp_path, source)
    polls = []

    def poll(name: str) -> None:
        polls.append(name)
        raise ZeroDivisionError

    monkeypatch.setattr(node, "poll", poll)
    sampler.start()
    eventually(lambda: len(polls) > 3 and sampler.ready)
    sampler.stop()


def test_a_probe_that_fails_is_made_again_and_holds_nothing_up(tmp_path, monkeypatch):
    node, sampler = sampler_of(tmp_path, Source("nvml"))
    probes = []

    def probe() -> None:
        probes.append(threading.current_thread().name)
        raise ZeroDivisionError

    monkeypatch.setattr(node, "probe", probe)
    sampler.start()
    eventually(lambda: len(probes) > 3 and sampler.ready)
    sampler.stop()
    assert set(probes) == {"probe"}
