"""Writes the generated product files: `make generate` runs it, a test compares its output.

`exporters/node.prom` is one whole scrape of a simulated node that has everything the exporter can
show: NVSwitch and MIG, NVML and DCGM, an XID error, a refused reading, a shared board, the host's
own energy, a quota, leaks. Dashboards, rules and the app may use only names that occur in it or
that a rule records.
"""

import dataclasses
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from seedance_obs.bandwidth.reading import TenantSensitivity
from seedance_obs.bandwidth.sensitivity import sensitivity
from seedance_obs.bandwidth.sensitivity_history import History, Observation
from seedance_obs.config import NodeSettings
from seedance_obs.dashboards.build import dashboards, render
from seedance_obs.exporter.node import Node
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.exporter.view import NodeView
from seedance_obs.metrics_page import metrics_page
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.wrapping import Unwrapped
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.sim.adapter_files import write_nics
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Fault, HostUse, Machine
from seedance_obs.sources.sim.page import render_page
from seedance_obs.sources.sim.pods import cgroup_path

CONTRACT_MACHINE = "h100-mig"
CONTRACT_STARTED_AT = 1_767_225_600.0  # 2026-01-01T00:00:00Z
# A pass a second: boards are idle first, then busy for long enough to learn who burns how much.
FIRST_PASS, LAST_PASS, XID_AT = -20, 100, 99.5
QUOTAS_EVERY_PASSES = 5
FAST_SECONDS = 1.0  # one tick of the fast loops before each pass
# Two rows that the machine's own page lacks: a fan, and a sentinel that no reader may believe.
EXTRA_ROWS = (
    'DCGM_FI_DEV_FAN_SPEED{{gpu="1",UUID="{uuid}"}} 30\n'
    'DCGM_FI_DEV_MEMORY_TEMP{{gpu="1",UUID="{uuid}"}} 9223372036854775794\n'
)


# Rows of a board on which these fields stand at 0 whatever passes, as DCGM's do on some.
STANDING_ROWS = re.compile(r'^(DCGM_FI_PROF_PCIE_[RT]X_BYTES\{gpu="1".*\}) \S+$', re.MULTILINE)
# A tenant that was slower whenever its neighbours filled a link: two hours that the contract's two
# minutes have no room for.
SENSITIVITY_WINDOWS = 240

# Workloads whose processes leak, and rules so quick that two minutes tell it; whoever is less than
# wholly busy counts as idle, so that memory is judged and a context is pseudo-idle.
LEAKING = HostUse(fds=1100, fds_per_s=9, fd_limit=2048, anonymous_mb=500, anonymous_mb_per_h=3600)
LEAK_SETTINGS: dict[str, Any] = {
    "leaks_interval_seconds": 1.0,
    "leaks_idle_seconds": 5.0,
    "leaks_idle_cpu_ratio": 1.0,
    "leaks_idle_memory_ratio": 1.0,
    "leaks_idle_gpu_ratio": 1.0,
    "leaks_fd_growth": ("fast=8/s,6s",),
    "leaks_memory_growth": ("fast=32MiB/h,6s",),
    "leaks_context_seconds": 10.0,
    "leaks_context_samples": 10,
    "leaks_context_activity_ratio": 0.95,
    "prices_currency": "EUR",
    "prices_kwh": 0.25,
    "prices_gpu_hour": 2.5,
}


class _Clock:
    """The simulated node's time."""

    now = float(FIRST_PASS)

    def __call__(self) -> float:
        return self.now


class _Driver:
    """The simulated driver read in this process."""

    name = "nvml"
    restarts = 0
    abandoned = 0

    def __init__(self, machine: Machine, clock: _Clock) -> None:
        library = SimNvml(machine, clock)
        self._fast = FastReader(
            library, interval_seconds=FAST_SECONDS, monotonic=clock, unwrapped=Unwrapped()
        )
        self._reader = NvmlReader(library, fast=self._fast, monotonic=clock)
        self._reader.start()

    def read(self) -> SourceSnapshot:
        """One pass over the driver, and one of the fast loop."""
        self._fast.tick()
        return self._reader.read()

    def close(self) -> None:
        """Shut the driver down."""
        self._reader.stop()


class _Page:
    """The simulated dcgm-exporter read in this process."""

    name = "dcgm"

    def __init__(self, machine: Machine, clock: _Clock) -> None:
        self._machine, self._clock = machine, clock

    def read(self) -> SourceSnapshot:
        """The page now, and the extra rows."""
        page = STANDING_ROWS.sub(r"\1 0", render_page(self._machine, self._clock()))
        extra = EXTRA_ROWS.format(uuid=self._machine.gpu_uuid(1))
        return read_page(page + extra, taken_at=self._clock())

    def close(self) -> None:
        """Nothing is held."""


def contract_scrape() -> str:
    """One whole scrape of the contract machine; the same text on every run."""
    clock = _Clock()
    xid = Fault(at_s=XID_AT, gpu=1, xid=48, recovery_action="drain_and_reset")
    machine = load_machine(CONTRACT_MACHINE)
    leaking = dataclasses.replace(machine.workloads[-1], host=LEAKING)
    machine = dataclasses.replace(
        machine, faults=(xid,), workloads=(*machine.workloads[:-1], leaking)
    )
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_sysfs(machine, root)
        write_proc(machine, root, clock(), epoch_unix=CONTRACT_STARTED_AT)
        settings = NodeSettings(
            node_root=folder,
            attribution_shapley=True,
            bandwidth_interval_seconds=FAST_SECONDS,
            **LEAK_SETTINGS,
        )
        node = Node(
            settings,
            [_Driver(machine, clock), _Page(machine, clock)],
            node_name="node-1",
            monotonic=clock,
            wall=lambda: CONTRACT_STARTED_AT,
            cpu_clock=lambda: 0.0,
        )
        for second in range(FIRST_PASS, LAST_PASS + 1):
            clock.now = float(second)
            write_proc(machine, root, clock(), epoch_unix=CONTRACT_STARTED_AT)
            if second % QUOTAS_EVERY_PASSES == 0:
                _write_quota(machine, root)
                node.refresh()
            write_nics(machine, root, clock())
            for name in node.sources:
                node.poll(name)
            node.read_fast()
            node.probe()
            node.assemble()
        return _render(node, settings, clock)


def _write_quota(machine: Machine, root: Path) -> None:
    """The quota of one pod, as old as the machine's epoch."""
    folder = root / "sys/fs/cgroup" / cgroup_path(machine, machine.workloads[-1], 0).lstrip("/")
    if folder.is_dir():
        file = folder / "cgroup.gpu-quota"
        file.write_text("64G:80%\n")
        os.utime(file, (CONTRACT_STARTED_AT, CONTRACT_STARTED_AT))


def _render(node: Node, settings: NodeSettings, clock: _Clock) -> str:
    registry = CollectorRegistry(auto_describe=False)
    view = _with_sensitivity(node.view)
    registry.register(CollectorSet(lambda: view, settings, monotonic=clock, timer=lambda: 0.0))
    return generate_latest(registry).decode()


def _with_sensitivity(view: NodeView) -> NodeView:
    """The view with the score of one tenant on one segment."""
    node = view.bandwidth
    if node is None or not node.tenants:
        return view
    history = History()
    for window in range(SENSITIVITY_WINDOWS):
        pressed = window % 12 >= 10 + window // 12 % 2
        pressure = 0.75 if pressed else 0.0
        history.add(
            Observation(
                at=30.0 * window,
                progress=1.0 - 0.5 * pressure,
                pressure=pressure,
                own=None,
                running=True,
                throttled=False,
            )
        )
    score = sensitivity(history, "sm")
    if score is None:
        return view
    first = node.tenants[0]
    told = (TenantSensitivity(first.segment, first.tenant, score),)
    return dataclasses.replace(view, bandwidth=dataclasses.replace(node, sensitivities=told))


def generated_files() -> dict[str, str]:
    """Every generated file's text, by its path in the repository."""
    scrape = contract_scrape()
    return {
        "exporters/node.prom": scrape,
        "exporters/METRICS.md": metrics_page(scrape),
        **{f"dashboards/{name}": render(value) for name, value in dashboards().items()},
    }


def main() -> None:
    """Write the generated files into the checkout this package is run from."""
    checkout = Path(__file__).resolve().parent.parent
    for name, text in generated_files().items():
        (checkout / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
