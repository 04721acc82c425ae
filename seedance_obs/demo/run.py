"""`seedance-obs demo`: start the stack, show what it sees, and leave nothing behind."""

import contextlib
import json
import platform
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from seedance_obs.demo.programs import wait_until
from seedance_obs.demo.report import (
    NodeTruth,
    Report,
    print_rows,
    residual_joules,
    series_count,
    usage_rows,
)
from seedance_obs.demo.simulation import running_simulation
from seedance_obs.demo.stack import START_PATIENCE_SECONDS, Stack, Target, read_page, running_stack
from seedance_obs.errors import SeedanceError, SourceUnavailableError, UsageError
from seedance_obs.promql.client import Prometheus
from seedance_obs.sources.sim.fleet import DEMO_FLEET

INJECTED_ALERT = "SeedanceGpuLost"
# Time in the fleet begins when every exporter is there and knows what its idle boards draw.
EPOCH_LEAD_SECONDS = 16.0
DCGM_INTERVAL_SECONDS = "2"
FAST_INTERVAL_SECONDS = "0.25"  # a simulated driver takes longer to answer than a real one
FIRST_TABLE_AFTER_SECONDS = {"sim": 46.0, "nvml": 15.0}


@dataclass(frozen=True, slots=True)
class Fleet:
    """What the stack watches: the exporters to start, and for simulated nodes what is true."""

    targets: Sequence[Target]
    truths: Mapping[str, NodeTruth]
    alert: str | None
    table_after_seconds: float


def run_demo(source: str, *, dcgm_url: str, once: bool, as_json: bool) -> None:
    """Run the stack: `source` is `sim` or `nvml`; `once` checks everything, prints and returns.

    Raises:
        UsageError: the options do not go together.
        SourceUnavailableError: a program is not installed, or the GPUs do not answer.
        SeedanceError: something that should have happened did not.
    """
    if source == "sim" and dcgm_url:
        raise UsageError("--dcgm-url goes with --source nvml: a simulated fleet has its own pages")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    console = Console(stderr=as_json)
    ignored = () if once else (KeyboardInterrupt,)
    with contextlib.suppress(*ignored), _stack(source, dcgm_url) as (fleet, stack):
        _say_where(console, stack)
        report = _observe(fleet, stack)
        if as_json:
            click.echo(json.dumps(report.as_json(), indent=2))
        else:
            _print_report(console, report)
        if once:
            _judge(report)
            return
        console.print("\nRunning until Ctrl-C.")
        while True:
            stack.programs.check()
            time.sleep(1.0)


def _interrupt(number: int, _frame: object) -> None:
    """Leave through every context manager once; a second signal must not cut that short."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


@contextlib.contextmanager
def _stack(source: str, dcgm_url: str) -> Iterator[tuple[Fleet, Stack]]:
    with contextlib.ExitStack() as owned:
        folder = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix="seedance-demo-")))
        fleet = _simulated(owned, folder) if source == "sim" else _this_machine(dcgm_url)
        stack = owned.enter_context(running_stack(fleet.targets, folder))
        yield fleet, stack


def _simulated(owned: contextlib.ExitStack, folder: Path) -> Fleet:
    epoch_unix = time.time() + EPOCH_LEAD_SECONDS
    nodes = owned.enter_context(running_simulation(DEMO_FLEET, folder, epoch_unix=epoch_unix))
    targets = [
        Target(
            node=node.machine.name,
            flags={
                "nvml-library": node.nvml_library,
                "dcgm-url": node.dcgm_url,
                "dcgm-interval-seconds": DCGM_INTERVAL_SECONDS,
                "bandwidth-interval-seconds": FAST_INTERVAL_SECONDS,
                "node-root": str(node.root),
            },
        )
        for node in nodes
    ]
    truths = {
        node.machine.name: NodeTruth(node.machine.name, node.machine, epoch_unix) for node in nodes
    }
    return Fleet(targets, truths, INJECTED_ALERT, FIRST_TABLE_AFTER_SECONDS["sim"])


def _this_machine(dcgm_url: str) -> Fleet:
    flags = {"dcgm-url": dcgm_url} if dcgm_url else {}
    target = Target(platform.node(), flags)
    return Fleet([target], {}, None, FIRST_TABLE_AFTER_SECONDS["nvml"])


def _say_where(console: Console, stack: Stack) -> None:
    for node, url in stack.exporters.items():
        console.print(f"exporter      {url}/metrics  ({node})", highlight=False)
    console.print(f"Prometheus    {stack.prometheus_url}", highlight=False)
    console.print(f"Alertmanager  {stack.alertmanager_url}", highlight=False)
    console.print(f"cost app      {stack.web_url}\n", highlight=False)


def _observe(fleet: Fleet, stack: Stack) -> Report:
    started = time.monotonic()
    prometheus = Prometheus(stack.prometheus_url)
    wait = START_PATIENCE_SECONDS
    wait_until(
        lambda: read_page(f"{stack.prometheus_url}/-/ready") is not None,
        stack.programs,
        seconds=wait,
        what="Prometheus becoming ready",
    )
    wait_until(
        lambda: _targets_up(prometheus) == len(fleet.targets),
        stack.programs,
        seconds=wait,
        what="every exporter being scraped",
    )
    if not fleet.truths:
        _require_nvml(prometheus, stack)
    alert_after = None
    if fleet.alert is not None:
        name = fleet.alert
        wait_until(
            lambda: _alert_arrived(stack, name),
            stack.programs,
            seconds=wait,
            what=f"the alert {name} reaching Alertmanager",
        )
        alert_after = round(time.monotonic() - started, 1)
    wait_until(
        lambda: read_page(stack.web_url) is not None,
        stack.programs,
        seconds=wait,
        what="the cost app answering",
    )
    remaining = fleet.table_after_seconds - (time.monotonic() - started)
    time.sleep(max(0.0, remaining))
    return Report(
        targets_up=_targets_up(prometheus),
        targets=len(fleet.targets),
        series=series_count(prometheus),
        alert=fleet.alert,
        alert_seen_after_seconds=alert_after,
        page=stack.web_url,
        page_answers=read_page(stack.web_url) is not None,
        residual_joules=residual_joules(prometheus),
        rows=usage_rows(prometheus, fleet.truths),
    )


def _targets_up(prometheus: Prometheus) -> int:
    return sum(target.health == "up" for target in prometheus.targets())


def _require_nvml(prometheus: Prometheus, stack: Stack) -> None:
    wait_until(
        lambda: bool(prometheus.instant('seedance_source_up{source="nvml"}')),
        stack.programs,
        seconds=START_PATIENCE_SECONDS,
        what="the exporter asking NVML",
    )
    if prometheus.instant('seedance_source_up{source="nvml"} == 0'):
        raise SourceUnavailableError(
            "this machine's GPUs do not answer through NVML: "
            f"{stack.programs.last_words_of('exporter')}"
        )


def _alert_arrived(stack: Stack, name: str) -> bool:
    page = read_page(f"{stack.alertmanager_url}/api/v2/alerts")
    alerts = json.loads(page) if page else []
    return any(alert["labels"].get("alertname") == name for alert in alerts)


def _print_report(console: Console, report: Report) -> None:
    print_rows(report.rows, console)
    residual = report.residual_joules
    console.print(
        f"\n{report.targets_up} of {report.targets} targets up, {report.series} series; "
        + (
            "no board has an energy counter"
            if residual is None
            else f"tenants and boards differ by {residual:g} J"
        ),
        highlight=False,
    )
    if report.largest_tenant_error is not None:
        console.print(
            f"the furthest that a tenant's energy is from the truth: "
            f"{report.largest_tenant_error:.2%}",
            highlight=False,
        )
    if report.alert is not None:
        console.print(
            f"{report.alert} reached Alertmanager after {report.alert_seen_after_seconds:g} s",
            highlight=False,
        )


def _judge(report: Report) -> None:
    if not report.rows:
        raise SeedanceError("no tenant and no unallocated GPU was measured on any node")
    if report.alert is not None and report.residual_joules is None:
        raise SeedanceError("no energy was measured on a fleet whose boards all have a counter")
    if report.residual_joules:
        raise SeedanceError(
            f"the tenants' energy and a board's counter differ by {report.residual_joules:g} J"
        )
    if report.targets_up != report.targets or not report.page_answers:
        raise SeedanceError(
            f"{report.targets_up} of {report.targets} targets are up and the cost app "
            f"{'answers' if report.page_answers else 'does not answer'}"
        )
