"""GPU time and energy by tenant over a window, summed by the time-series engine.

The counters are per GPU and tenant and are born at zero when a tenant first holds the GPU.
`increase()` would miss that first value and extrapolate to the edges, so a window is read from
the samples themselves: the last one at or before the end less the last one at or before the start.
Neighbouring windows therefore add up, and each edge is right to one scrape interval.
"""

from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from seedance_obs.promql.client import Sample, Series

UNALLOCATED = "unallocated"
UNOBSERVED = "unobserved"  # time and energy that passed while nobody looked
NOT_TENANTS = (UNALLOCATED, UNOBSERVED, "unknown")
GPU_SECONDS = "seedance_tenant_gpu_seconds_total"
ENERGY_JOULES = "seedance_tenant_gpu_energy_joules_total"
CHART_STEPS = 60
MEMORY_SECONDS = 86_400

_JOB = '{job="gpu"}'
_START_TIME = f"seedance_exporter_start_time_seconds{_JOB}"
_SHORTEST_RATE_SECONDS = 60


class QueryEngine(Protocol):
    """Whatever answers PromQL; times are seconds since the epoch."""

    @property
    def url(self) -> str:
        """Where it is, for messages."""

    def instant(self, expr: str, at: float | None = None) -> list[Sample]:
        """The value of every series at one moment."""

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """The values of every series at start, start + step … end."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, start < end, in whole seconds since the epoch."""

    start: int
    end: int

    @property
    def seconds(self) -> int:
        """Its length."""
        return self.end - self.start

    @property
    def step(self) -> int:
        """The length of a chart step: a minute or more, so that rates do not overlap.

        Sixty steps or a few less fill a longer window.
        """
        return min(self.seconds, max(_SHORTEST_RATE_SECONDS, -(-self.seconds // CHART_STEPS)))

    @property
    def step_ends(self) -> range:
        """The moments at which chart steps end, counted back from the window's end."""
        return range(self.start + self.seconds % self.step + self.step, self.end + 1, self.step)


@dataclass(frozen=True, slots=True)
class Usage:
    """What tenants used in a window.

    `by_tenant` has the columns tenant, gpu_seconds and energy_joules, largest GPU time first and
    `unallocated` last; a quantity nobody reported for a tenant is NaN. `expected_gpu_seconds` is
    what the fleet's GPUs could have been observed for, `newest_at` the time of the newest sample;
    each is None where no sample tells.
    """

    window: Window
    by_tenant: pd.DataFrame
    expected_gpu_seconds: float | None
    newest_at: float | None

    def held(self, *names: str) -> float:
        """The GPU-seconds of these accounts together."""
        accounts = self.by_tenant["tenant"].isin(names)
        return float(self.by_tenant.loc[accounts, "gpu_seconds"].sum())

    @property
    def observed_gpu_seconds(self) -> float:
        """All GPU-seconds but those that passed while nobody looked."""
        return float(self.by_tenant["gpu_seconds"].sum()) - self.held(UNOBSERVED)

    @property
    def coverage(self) -> float | None:
        """The observed share of the fleet's GPU-seconds; over 1 would be counted twice."""
        if not self.expected_gpu_seconds:
            return None
        return self.observed_gpu_seconds / self.expected_gpu_seconds


def window_query(counter: str, window: Window) -> str:
    """PromQL, to be evaluated at the window's end, for a counter's growth in it by tenant.

    For each series, the first that applies:

    1. reset inside the window: `increase()`, which knows of the reset and extrapolates;
    2. present at the start, and not reset across it: last value less the value at the start;
    3. its exporter was scraped at the start, so the series was born inside the window or reset
       across its start: the whole last value;
    4. its exporter started inside the window and the series was not seen in the day before, so
       it does not come from a checkpoint: the whole last value;
    5. scraping began inside the window: last value less the first one seen, the least it can be.

    Series that ended inside the window count with the last value they had.
    """
    series = f"{counter}{_JOB}"
    within = f"[{window.seconds}s]"
    before = f"offset {window.seconds}s"
    last = f"last_over_time({series}{within})"
    first = f"min_over_time({series}{within})"
    started = f"last_over_time({_START_TIME}{within}) >= {window.start}"
    seen = f"last_over_time({series}[{MEMORY_SECONDS}s] {before})"
    return (
        "sum by (tenant) (\n"
        f"  (increase({series}{within}) and resets({series}{within}) > 0)\n"
        f"  or ({last} - ({series} {before} <= {first}))\n"
        f"  or ({last} and on (job, instance) {_START_TIME} {before})\n"
        f"  or (({last} and on (job, instance) {started}) unless {seen})\n"
        f"  or ({last} - {first})\n"
        ")"
    )


def rate_query(counter: str, step: int) -> str:
    """PromQL for a counter's mean rate by tenant over the chart step (one minute at least).

    A rate misses the value a series is born with, so the chart shows the shape of a window and
    `window_query` its total.
    """
    seconds = max(step, _SHORTEST_RATE_SECONDS)
    return f"sum by (tenant) (rate({counter}{_JOB}[{seconds}s]))"


def read_usage(engine: QueryEngine, window: Window) -> Usage:
    """GPU-seconds and joules by tenant in a window.

    Raises:
        SourceUnavailableError: the engine did not answer or refused a query.
    """
    columns = {
        "gpu_seconds": _by_tenant(engine, GPU_SECONDS, window),
        "energy_joules": _by_tenant(engine, ENERGY_JOULES, window),
    }
    frame = pd.DataFrame(columns, dtype=float)
    frame = frame.rename_axis("tenant").reset_index()
    return Usage(window, _ordered(frame), _expected(engine, window), _newest(engine, window))


def read_rates(engine: QueryEngine, counter: str, window: Window) -> pd.DataFrame:
    """The rate of a counter by tenant at the end of each chart step, per second.

    Columns `at` (seconds since the epoch), `tenant`, `value`; a step without samples has no row.
    """
    expr = rate_query(counter, window.step)
    series = engine.range(expr, window.step_ends[0], window.end, window.step)
    rows = [(at, s.labels.get("tenant", ""), value) for s in series for at, value in s.points]
    return pd.DataFrame(rows, columns=["at", "tenant", "value"])


def _by_tenant(engine: QueryEngine, counter: str, window: Window) -> dict[str, float]:
    samples = engine.instant(window_query(counter, window), at=window.end)
    return {sample.labels.get("tenant", ""): sample.value for sample in samples}


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.assign(last=frame["tenant"] == UNALLOCATED)
    frame = frame.sort_values(["last", "gpu_seconds", "tenant"], ascending=[True, False, True])
    return frame.drop(columns="last").reset_index(drop=True)


def _expected(engine: QueryEngine, window: Window) -> float | None:
    within = f"{_JOB}[{window.seconds}s]"
    expr = (
        f"sum(max_over_time(seedance_gpus_expected{within})"
        f" or max_over_time(seedance_gpus_seen{within})) * {window.seconds}"
    )
    return _only(engine.instant(expr, at=window.end))


def _newest(engine: QueryEngine, window: Window) -> float | None:
    step = max(60, window.seconds // 240)
    expr = (
        f"max(timestamp({_START_TIME}))"
        f" or max(max_over_time(timestamp({_START_TIME})[{window.seconds}s:{step}s]))"
    )
    return _only(engine.instant(expr, at=window.end))


def _only(samples: list[Sample]) -> float | None:
    return samples[0].value if samples else None
