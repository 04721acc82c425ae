"""A capture taken over the C library replays as the machine it was taken from, without names."""

import json
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.capture import _without_owners
from seedance_obs.capture import capture as write_capture
from seedance_obs.config import NodeSettings
from seedance_obs.demo.simulation import running_simulation
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_sysfs
from tests.exporter_process import OPENER
from tests.machine import replayed
from tests.nvml_abi.conftest import StandInMachine
from tests.nvml_abi.machines import machine_library
from tests.nvml_abi.state_file import state_of


def capture(
    folder: Path, environment: Mapping[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seedance_obs", "capture", str(folder), *options]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", ["h100-mig", "gb200", "rtx3090-bridge"])
def test_a_capture_replays_as_the_machine_without_its_names(name, stand_in, tmp_path, clock):
    library = machine_library(name)
    machine: StandInMachine = stand_in(state_of(library))
    write_sysfs(load_machine(name), tmp_path / "host")
    folder = tmp_path / "captured"
    done = capture(folder, machine.environment, "--node-root", str(tmp_path / "host"), "--json")
    assert done.returncode == 0, done.stderr
    written = {part["name"] for part in json.loads(done.stdout) if part["written"]}
    assert written == {"nvml.jsonl", "pci.json", "has_cpu", "host.toml"}

    reader = NvmlReader(library, monotonic=clock)
    reader.start()
    live = reader.read().gpus
    text = "".join(file.read_text() for file in folder.iterdir())
    for gpu in live:
        assert gpu.uuid not in text
        serial = gpu.facts.get("serial", "")
        assert not serial or serial not in text

    host = replayed(folder, clock, tmp_path / "replayed")
    host.pass_once()
    shown = [located.merged for located in host.node.view.gpus]
    host.node.close()
    assert [gpu.pci_bus_id for gpu in shown] == [gpu.pci_bus_id for gpu in live]
    assert [gpu.model for gpu in shown] == [gpu.model for gpu in live]
    assert [{k: v.value for k, v in gpu.readings.items()} for gpu in shown] == [
        dict(gpu.values) for gpu in live
    ]
    assert [len(gpu.mig) for gpu in shown] == [len(gpu.mig) for gpu in live]
    assert [gpu.nvlinks for gpu in shown] == [gpu.nvlinks for gpu in live]


def test_a_page_is_captured_without_the_names_on_it(tmp_path, clock):
    folder = tmp_path / "captured"
    epoch = time.time() - 20
    with running_simulation(["h100-nvswitch"], tmp_path / "fleet", epoch_unix=epoch) as (node,):
        original = OPENER.open(node.dcgm_url, timeout=10).read().decode()
        done = capture(
            folder,
            {},
            f"--nvml-library={node.nvml_library}",
            f"--dcgm-url={node.dcgm_url}",
            f"--node-root={node.root}",
        )
    assert done.returncode == 0, done.stderr
    page = (folder / "dcgm.prom").read_text()
    uuids = set(re.findall(r'UUID="([^"]+)"', original))
    names = set(re.findall(r'(?:Hostname|pod|namespace|container)="([^"]+)"', original))
    assert len(uuids) == 8
    assert len(names) > 4
    assert not any(f'"{name}"' in page for name in uuids | names)
    recorded = re.findall(r"GPU-[0-9a-f-]{36}", (folder / "nvml.jsonl").read_text())
    assert set(re.findall(r'UUID="([^"]+)"', page)) == set(recorded), "one name, one stand-in"
    host = replayed(folder, clock, tmp_path / "replayed")
    host.pass_once()
    assert all(
        located.merged.value("sm_active_ratio") is not None for located in host.node.view.gpus
    )


def test_a_recorder_that_crashes_is_a_capture_too(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "seedance_obs.capture.python_command",
        lambda *_: [sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"],
    )
    folder = tmp_path / "captured"
    parts = write_capture(folder, NodeSettings(node_root=str(tmp_path)), deadline_seconds=20.0)
    assert "ended the recorder with status -11" in parts[0].about
    assert "status -11" in tomllib.loads((folder / "host.toml").read_text())["files"]["nvml.jsonl"]


def test_the_host_name_does_not_leave_in_a_message(tmp_path):
    url = f"http://{platform.node()}:1/metrics"
    done = capture(tmp_path / "captured", {}, f"--dcgm-url={url}", f"--node-root={tmp_path}")
    assert done.returncode == 0
    assert f"//{platform.node()}:" not in (tmp_path / "captured/host.toml").read_text()


def test_a_capture_of_a_hung_driver_names_the_call_that_hangs(
    stand_in: Callable[..., StandInMachine], tmp_path: Path
) -> None:
    lines = state_of(machine_library("rtx3090-bridge"))
    hung = {key: "hang" for key in lines if key.startswith("nvmlDeviceGetPowerUsage gpu1")}
    machine = stand_in({**lines, **hung})
    folder = tmp_path / "captured"
    done = capture(folder, machine.environment, "--deadline-seconds", "3")
    assert done.returncode == 0
    assert "nvmlDeviceGetPowerUsage(gpu1) never returned" in done.stdout
    *answered, last = (folder / "nvml.jsonl").read_text().splitlines()
    assert json.loads(last)["hung"] is True
    assert all("ms" in json.loads(line) for line in answered)


def test_a_host_without_a_driver_is_a_capture_too(tmp_path):
    folder = tmp_path / "captured"
    done = capture(folder, {}, "--node-root", str(tmp_path))
    assert done.returncode == 0
    assert "library_not_found" in done.stdout
    assert "left out" in done.stdout


@pytest.mark.parametrize(
    ("library", "sentence"),
    [
        ("nope", "nvml.library = 'nope': wanted pynvml,"),
        ("sim:nope", "no simulated machine nope: known are"),
        ("replay:/nowhere/nvml.jsonl", "cannot read the NVML recording /nowhere/nvml.jsonl"),
    ],
)
def test_a_library_that_does_not_exist_is_a_usage_error(library, sentence, tmp_path):
    done = capture(tmp_path / "captured", {}, "--nvml-library", library)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("captured/*"))


def test_an_old_capture_is_not_overwritten(tmp_path):
    (tmp_path / "host.toml").touch()
    done = capture(tmp_path, {})
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_names_of_owners_do_not_leave_with_a_page():
    page = 'M{gpu="0",Hostname="ws-7",pod="train-1",namespace="secret",container=""} 1\n' * 2
    page += 'M{gpu="1",modelName="H100",DCGM_FI_DRIVER_VERSION="580.1",pod="train-2",'
    page += 'namespace="secret",team="secret"} 1\n'
    page += 'M{gpu="1",DCGM_FI_DEV_SERIAL="1654922012345",DCGM_FI_PROCESS_NAME="/opt/secret"} 1\n'
    text = _without_owners(page)
    assert not any(name in text for name in ("ws-7", "train", "secret", "16549"))
    assert 'modelName="H100",DCGM_FI_DRIVER_VERSION="580.1"' in text
    names = [
        (sample.labels["pod"], sample.labels["namespace"])
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "pod" in sample.labels
    ]
    assert names == [("pod-1", "namespace-1"), ("pod-1", "namespace-1"), ("pod-2", "namespace-1")]
