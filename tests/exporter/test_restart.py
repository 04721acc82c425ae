"""An exporter that is killed goes on where it stood: no counter falls, nothing is billed twice."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from seedance_obs.demo.programs import free_port
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from tests.exporter_process import PATIENCE_SECONDS, get, labelled_values, until

MACHINE = "h100-nvswitch"
RUNNING_SINCE_SECONDS = 120.0
ENERGY = "seedance_tenant_gpu_energy_joules_total"


@pytest.fixture
def host(tmp_path) -> Path:
    root = tmp_path / "root"
    machine = load_machine(MACHINE)
    write_sysfs(machine, root)
    write_proc(machine, root, RUNNING_SINCE_SECONDS, epoch_unix=time.time())
    return root


def start(host: Path, state: Path, epoch: float) -> tuple[subprocess.Popen[bytes], str]:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "seedance_obs", "exporter", "node"]
    command += [
        f"--server-address={address}",
        f"--node-root={host}",
        f"--state-directory={state}",
        f"--nvml-library=sim:{MACHINE}@{epoch}",
        "--sampler-interval-seconds=0.2",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    return process, f"http://{address}/metrics"


def counters(text: str) -> dict:
    """What is kept: what the fast loops have counted begins anew, as any counter may."""
    return {
        (name, labels): value
        for (name, labels), value in labelled_values(text).items()
        if name.startswith(("seedance_tenant", "seedance_workload"))
        and name.endswith("_total")
        and not name.startswith("seedance_tenant_segment")
    }


def by_tenant(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for (name, labels), value in labelled_values(text).items():
        if name == ENERGY:
            found[dict(labels)["tenant"]] += value
    return found


def boards_joules(text: str) -> float:
    values = labelled_values(text).items()
    return sum(v for (name, _), v in values if name == "seedance_gpu_energy_joules_total")


def test_a_killed_exporter_goes_on_and_books_its_absence_as_unobserved(host, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    epoch = time.time() - RUNNING_SINCE_SECONDS
    process, url = start(host, state, epoch)
    try:
        first = until(lambda: get(url), lambda text: by_tenant(text)["research"] > 0)
        before = until(lambda: get(url), lambda text: by_tenant(text) > by_tenant(first))
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_SECONDS)
    process, url = start(host, state, epoch)
    try:
        after = until(
            lambda: get(url),
            lambda text: by_tenant(text)["research"] > by_tenant(before)["research"],
        )
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)
    fallen = {
        key: (value, counters(after).get(key))
        for key, value in counters(before).items()
        if counters(after).get(key, -1.0) < value
    }
    assert fallen == {}
    assert by_tenant(before)["unobserved"] == 0
    assert by_tenant(after)["unobserved"] > 0
    booked = sum(by_tenant(after).values()) - sum(by_tenant(before).values())
    assert booked == pytest.approx(boards_joules(after) - boards_joules(before), abs=0.002)
