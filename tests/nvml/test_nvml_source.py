"""The worker process: deadlines, kills, back-off, release. Real processes, real pipes."""

import json
import os
import time
from pathlib import Path

import pytest

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.nvml.source import MAX_ABANDONED, NvmlSource

ANSWERS = [
    ("nvmlInit", None, [], None),
    ("nvmlDeviceGetCount", None, [], 1),
    ("nvmlDeviceGetUUID", "gpu0", [], "GPU-11111111-2222-3333-4444-555555555555"),
    ("nvmlDeviceGetPciInfo_v3", "gpu0", [], {"busId": "00000000:3B:00.0"}),
    ("nvmlDeviceGetPowerUsage", "gpu0", [], 250_000),
]


def recording(folder: Path, *extra: dict, without: str = "") -> str:
    file = folder / "nvml.jsonl"
    lines = [
        {"function": function, "device": device, "args": args, "ms": 0.1, "answer": answer}
        for function, device, args, answer in ANSWERS
        if function != without
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in (*lines, *extra)))
    return f"replay:{file}"


@pytest.fixture
def source_of(clock):
    opened = []

    def build(library: str, **options) -> NvmlSource:
        options = {"start_deadline_seconds": 20.0, "deadline_seconds": 20.0, **options}
        opened.append(NvmlSource(library, monotonic=clock, **options))
        return opened[-1]

    yield build
    for source in opened:
        source.close()


def processes_running(spec: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if spec.encode() in command and state != "Z":
                found.append(int(entry.name))
    return found


def test_a_driver_that_answers_is_read_by_one_worker_that_stays(tmp_path, source_of):
    spec = recording(tmp_path)
    source = source_of(spec)
    first, second = source.read(), source.read()
    assert [gpu.values["power_watts"] for gpu in (*first.gpus, *second.gpus)] == [250.0, 250.0]
    assert first.gpus[0].pci_bus_id == "0000:3b:00.0"
    assert len(processes_running(spec)) == 1
    assert source.restarts == 0


def test_closing_ends_the_worker(tmp_path, source_of):
    spec = recording(tmp_path)
    source = source_of(spec)
    source.read()
    source.close()
    assert processes_running(spec) == []


def test_a_hung_call_is_killed_at_its_deadline_and_tried_again_after_a_growing_pause(
    tmp_path, source_of, clock
):
    hung = {"function": "nvmlDeviceGetPowerUsage", "device": "gpu0", "args": [], "hung": True}
    spec = recording(tmp_path, hung, without="nvmlDeviceGetPowerUsage")
    source = source_of(spec, start_deadline_seconds=1.0)
    for failures in range(1, 4):
        with pytest.raises(SourceUnavailableError, match="did not answer within 1 s"):
            source.read()
        assert processes_running(spec) == []
        assert source.restarts == failures
        clock.advance(2.0 ** (failures - 1) - 0.1)
        with pytest.raises(SourceUnavailableError, match="did not answer within 1 s"):
            source.read()  # still backing off: no worker is started for this
        assert source.restarts == failures
        clock.advance(0.2)


def test_the_pause_grows_to_a_minute_and_no_further(tmp_path, source_of, clock):
    init = {"function": "nvmlInit", "device": None, "args": [], "ms": 0.1, "error": 9}
    source = source_of(recording(tmp_path, init, without="nvmlInit"))
    source._failures = 5_000
    with pytest.raises(SourceUnavailableError):
        source.read()
    for seconds, restarts in ((59.0, 1), (2.0, 2)):
        clock.advance(seconds)
        with pytest.raises(SourceUnavailableError, match="modprobe nvidia"):
            source.read()
        assert source.restarts == restarts


def test_a_worker_killed_from_outside_costs_one_reading(tmp_path, source_of, clock):
    spec = recording(tmp_path)
    source = source_of(spec)
    source.read()
    (pid,) = processes_running(spec)
    os.kill(pid, 9)
    with pytest.raises(SourceUnavailableError, match="ended while it was reading"):
        source.read()
    clock.advance(1.1)
    assert source.read().gpus[0].values["power_watts"] == 250.0
    assert source.restarts == 1


def test_an_absent_library_is_one_sentence_that_says_what_to_do(tmp_path, source_of):
    init = {"function": "nvmlInit", "device": None, "args": [], "ms": 0.1, "error": 12}
    source = source_of(recording(tmp_path, init, without="nvmlInit"))
    with pytest.raises(SourceUnavailableError, match=r"install the NVIDIA driver here"):
        source.read()


def test_the_driver_is_let_go_while_the_release_file_exists(tmp_path, source_of):
    spec, release = recording(tmp_path), tmp_path / "release"
    source = source_of(spec, release_file=release)
    source.read()
    release.touch()
    with pytest.raises(SourceUnavailableError, match="NVML is released: remove"):
        source.read()
    assert processes_running(spec) == []
    release.unlink()
    assert source.read().gpus


def test_workers_that_cannot_be_killed_are_not_piled_up(tmp_path, source_of, clock, monkeypatch):
    hung = {"function": "nvmlInit", "device": None, "args": [], "hung": True}
    spec = recording(tmp_path, hung, without="nvmlInit")
    monkeypatch.setattr(
        "seedance_obs.sources.nvml.source.kill_process", lambda *_args, **_options: False
    )
    source = source_of(spec, start_deadline_seconds=0.3)
    for _ in range(MAX_ABANDONED):
        with pytest.raises(SourceUnavailableError, match="did not answer"):
            source.read()
        clock.advance(100.0)
    with pytest.raises(SourceUnavailableError, match="uninterruptible"):
        source.read()
    pids = processes_running(spec)
    assert len(pids) == source.abandoned == MAX_ABANDONED
    for pid in pids:
        os.kill(pid, 9)
    deadline = time.monotonic() + 10
    while source.abandoned and time.monotonic() < deadline:
        time.sleep(0.01)
    assert source.abandoned == 0


def test_reading_and_failing_fifty_times_leaks_no_file_descriptor(tmp_path, source_of, clock):
    init = {"function": "nvmlInit", "device": None, "args": [], "ms": 0.1, "error": 9}
    source = source_of(recording(tmp_path, init, without="nvmlInit"))
    counts = []
    for _ in range(50):
        with pytest.raises(SourceUnavailableError):
            source.read()
        clock.advance(100.0)
        counts.append(len(os.listdir("/proc/self/fd")))
    # Threads of other tests may open a file meanwhile; fifty rounds that leak leave fifty.
    assert counts[-1] < counts[0] + 10
