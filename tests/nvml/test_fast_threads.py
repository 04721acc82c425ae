"""The threads of the fast loop in the worker: real processes, real pipes."""

import json
from pathlib import Path

import pytest

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.flow import MEDIA
from seedance_obs.sources.nvml.fast_fields import FIELDS
from seedance_obs.sources.nvml.source import NvmlSource

UUID = "GPU-11111111-2222-3333-4444-555555555555"
ANSWERS = [
    ("nvmlInit", None, [], None),
    ("nvmlDeviceGetCount", None, [], 1),
    ("nvmlDeviceGetUUID", "gpu0", [], UUID),
    ("nvmlDeviceGetPowerUsage", "gpu0", [], 250_000),
]
FAST = {"function": "nvmlDeviceGetFieldValues", "device": "gpu0"}
MANY = 2000  # passes, of which a few are enough


@pytest.fixture
def source_of():
    opened = []

    def build(library: str, *, seconds: float) -> NvmlSource:
        opened.append(
            NvmlSource(
                library,
                start_deadline_seconds=20.0,
                deadline_seconds=seconds,
                fast_interval_seconds=0.01,
            )
        )
        return opened[-1]

    yield build
    for source in opened:
        source.close()


def recording(folder: Path, *extra: dict) -> str:
    file = folder / "nvml.jsonl"
    lines = [
        {"function": function, "device": device, "args": args, "ms": 0.1, "answer": answer}
        for function, device, args, answer in ANSWERS
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in (*lines, *extra)))
    return f"replay:{file}"


def read_on(source: NvmlSource) -> None:
    for _ in range(MANY):
        source.read()


def test_snapshots_of_a_worker_have_flows(source_of):
    source = source_of("sim:h100-nvswitch@0", seconds=20.0)
    snapshots = [source.read()]
    gpus = {gpu.uuid for gpu in snapshots[0].gpus}
    while len(snapshots) < MANY and gpus != {
        flow.channel.device
        for snapshot in snapshots
        for flow in snapshot.flows
        if flow.source == "gpm"
    }:
        snapshots.append(source.read())
    flows = [flow for snapshot in snapshots for flow in snapshot.flows]
    assert {flow.channel.medium for flow in flows} == set(MEDIA) - {"network"}
    assert {flow.channel.device for flow in flows} == gpus
    assert all(window.seconds > 0 for flow in flows for window in flow.windows)
    source.close()
    assert source.abandoned == 0


def test_a_replay_without_the_calls_of_the_fast_loop_has_no_flows(tmp_path, source_of):
    source = source_of(recording(tmp_path), seconds=20.0)
    snapshots = [source.read() for _ in range(50)]
    assert {snapshot.flows for snapshot in snapshots} == {()}
    assert {snapshot.gpus[0].values["power_watts"] for snapshot in snapshots} == {250.0}


def test_a_driver_that_hangs_in_the_fast_loop_is_killed_at_the_deadline(tmp_path, source_of):
    hung = {**FAST, "args": [field.code for field in FIELDS], "hung": True}
    source = source_of(recording(tmp_path, hung), seconds=1.0)
    with pytest.raises(SourceUnavailableError, match="did not answer within 1 s"):
        read_on(source)
    assert source.restarts == 1


def test_a_driver_that_never_starts_is_told_in_one_sentence(capfd, source_of):
    source = source_of("sim:no-gpu@0", seconds=20.0)
    with pytest.raises(SourceUnavailableError, match="libnvidia-ml"):
        source.read()
    assert "Traceback" not in capfd.readouterr().err
