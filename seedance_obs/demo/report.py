"""What the demo tells: who used what on which node, beside what really happened there."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from seedance_obs.promql.client import Prometheus
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.truth import truth

SECONDS_COUNTER = "seedance_tenant_gpu_seconds_total"
ENERGY_COUNTER = "seedance_tenant_gpu_energy_joules_total"
TRUTH_STEP_SECONDS = 0.01  # bursts of 50 ms are whole steps
SETTLED_SECONDS = 1.0  # scrapes of so long ago are stored, whatever is queried of them
RESIDUAL_STEP = "2s"
LAST_ACCOUNTS = ("unallocated", "unobserved", "unknown")


@dataclass(frozen=True, slots=True)
class Row:
    """One tenant on one node; the true figures are None on real hardware."""

    node: str
    tenant: str
    gpu_seconds: float
    joules: float | None  # None where no board has an energy counter
    true_gpu_seconds: float | None = None
    true_joules: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything `--once` checks and prints."""

    targets_up: int
    targets: int
    series: int
    alert: str | None
    alert_seen_after_seconds: float | None
    page: str
    page_answers: bool
    residual_joules: float | None  # None where no board has an energy counter
    rows: tuple[Row, ...]

    @property
    def largest_tenant_error(self) -> float | None:
        """The furthest that a tenant's joules are from the truth, as a ratio; None without it."""
        errors = [
            abs(row.joules / row.true_joules - 1)
            for row in self.rows
            if row.joules is not None and row.true_joules and row.tenant not in LAST_ACCOUNTS
        ]
        return max(errors, default=None)

    def as_json(self) -> dict[str, Any]:
        """The report as plain data, to the milli of each unit."""
        error = self.largest_tenant_error
        return {
            **asdict(self),
            "rows": [
                {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(row).items()}
                for row in self.rows
            ],
            "largest_tenant_error": error and round(error, 5),
        }


@dataclass(frozen=True, slots=True)
class NodeTruth:
    """A simulated node, and when its time began."""

    node: str
    machine: Machine
    epoch_unix: float

    def until_last_reading(
        self, prometheus: Prometheus, at: float
    ) -> tuple[Mapping[str, float], Mapping[str, float]] | None:
        """GPU-seconds and joules by tenant, from the exporter's first view to its last by `at`."""
        matcher = f'instance="{self.node}"'
        started = prometheus.instant(f"seedance_exporter_start_time_seconds{{{matcher}}}", at)
        age = f'seedance_source_age_seconds{{source="nvml",{matcher}}}'
        read_at = prometheus.instant(f"timestamp({age}) - {age}", at)
        if not started or not read_at:
            return None
        first, last = started[0].value - self.epoch_unix, read_at[0].value - self.epoch_unix
        happened = truth(self.machine, first, last, step_s=TRUTH_STEP_SECONDS)
        return happened.gpu_seconds, happened.joules


def usage_rows(prometheus: Prometheus, truths: Mapping[str, NodeTruth]) -> tuple[Row, ...]:
    """What each tenant has used on each node since its exporter started."""
    at = time.time() - SETTLED_SECONDS
    seconds = _by_node_and_tenant(prometheus, SECONDS_COUNTER, at)
    joules = _by_node_and_tenant(prometheus, ENERGY_COUNTER, at)
    true = {node: known.until_last_reading(prometheus, at) for node, known in truths.items()}
    accounts = {key for key, value in seconds.items() if value} | {
        (node, tenant) for node, known in true.items() if known for tenant in known[0]
    }
    rows = []
    for node, tenant in sorted(accounts, key=lambda key: (key[0], _tenant_order(key[1]))):
        known = true.get(node)
        rows.append(
            Row(
                node=node,
                tenant=tenant,
                gpu_seconds=seconds.get((node, tenant), 0.0),
                joules=joules.get((node, tenant)),
                true_gpu_seconds=known and known[0].get(tenant, 0.0),
                true_joules=known and known[1].get(tenant, 0.0),
            )
        )
    return tuple(rows)


def residual_joules(prometheus: Prometheus) -> float | None:
    """The most that any GPU's tenants and its board's counter drifted apart between two scrapes."""
    tenants = f"sum by (instance, gpu_uuid) ({ENERGY_COUNTER})"
    boards = "sum by (instance, gpu_uuid) (seedance_gpu_energy_joules_total)"
    apart = f"({tenants} - {boards})"
    window = f"[1h:{RESIDUAL_STEP}]"
    samples = prometheus.instant(
        f"max(max_over_time({apart}{window}) - min_over_time({apart}{window}))"
    )
    return round(samples[0].value, 3) if samples else None


def series_count(prometheus: Prometheus) -> int:
    """Series of the fleet's exporters that Prometheus holds now."""
    samples = prometheus.instant('count({__name__=~"seedance_.+",job="gpu"})')
    return int(samples[0].value) if samples else 0


def print_rows(rows: Sequence[Row], console: Console) -> None:
    """The table a person reads."""
    simulated = any(row.true_joules is not None for row in rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("Node", "Tenant"):
        table.add_column(name)
    for name in ("GPU-seconds", "kJ", *(("true GPU-seconds", "true kJ") if simulated else ())):
        table.add_column(name, justify="right")
    previous = ""
    for row in rows:
        if previous and row.node != previous:
            table.add_section()
        figures = [f"{row.gpu_seconds:,.1f}", _kilojoules(row.joules)]
        if row.true_gpu_seconds is not None and row.true_joules is not None:
            figures += [f"{row.true_gpu_seconds:,.1f}", _kilojoules(row.true_joules)]
        table.add_row("" if row.node == previous else row.node, row.tenant, *figures)
        previous = row.node
    console.print(table)


def _kilojoules(joules: float | None) -> str:
    return "-" if joules is None else f"{joules / 1000:,.2f}"


def _by_node_and_tenant(
    prometheus: Prometheus, counter: str, at: float
) -> dict[tuple[str, str], float]:
    samples = prometheus.instant(f"sum by (instance, tenant) ({counter})", at)
    return {(s.labels["instance"], s.labels["tenant"]): s.value for s in samples}


def _tenant_order(tenant: str) -> tuple[bool, str]:
    return (tenant in LAST_ACCOUNTS, tenant)
