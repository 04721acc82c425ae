"""Each way a counter can meet a window, on a real Prometheus, against values known by hand.

The window is one hour from T0, samples are 15 s apart, and every case has its own node and tenant.
"""

from collections.abc import Callable

import pandas as pd
import pytest
from hand_made_prometheus import Exposition, Points

from seedance_obs.promql.client import Prometheus
from seedance_obs.web.usage import (
    ENERGY_JOULES,
    GPU_SECONDS,
    Usage,
    Window,
    rate_query,
    read_rates,
    read_usage,
)

T0 = 1_762_171_200
HOUR = 3600
SCRAPE = 15
WINDOW = Window(T0, T0 + HOUR)


def counting(first: float, last: float, start: float = 0.0, rate: float = 1.0) -> Points:
    """Samples in [first, last] seconds after T0 of a counter that is `start` at `first`."""
    times = range(int(first), int(last) + 1, SCRAPE)
    return [(float(T0 + t), start + rate * (t - first)) for t in times]


def node(
    tenant: str, samples: Points, *, scraped: tuple[int, int], started: float, gpu: str = "0"
) -> Exposition:
    target = {"job": "gpu", "instance": f"node-of-{tenant}"}
    start_time = [(float(T0 + t), T0 + started) for t in range(*scraped, SCRAPE)]
    return [
        (GPU_SECONDS, target | {"gpu": gpu, "tenant": tenant}, samples),
        ("seedance_exporter_start_time_seconds", target, start_time),
    ]


AFTER = HOUR + 600
CASES: dict[str, tuple[Exposition, float]] = {
    "present at the start": (
        node("steady", counting(-900, AFTER, 5000), scraped=(-900, AFTER), started=-9000),
        3600,
    ),
    "born while its target was scraped": (
        node("born", counting(600, AFTER, 7), scraped=(-900, AFTER), started=-9000),
        7 + 3000,
    ),
    "its exporter started inside the window": (
        node("fresh", counting(1200, AFTER, 4), scraped=(1200, AFTER), started=1196),
        4 + 2400,
    ),
    "restored from a checkpoint after an outage across the start": (
        node(
            "restored",
            counting(-7200, -3600, 90_000) + counting(1200, AFTER, 93_600),
            scraped=(1200, AFTER),
            started=1196,
        ),
        2400,
    ),
    "first scraped inside the window, exporter older": (
        node("found", counting(1800, AFTER, 40_000), scraped=(1800, AFTER), started=-50_000),
        1800,
    ),
    "ended inside the window": (
        node("gone", counting(-900, 900, 100), scraped=(-900, AFTER), started=-9000),
        900,
    ),
    "born and ended inside the window": (
        node("brief", counting(600, 660, 2), scraped=(-900, AFTER), started=-9000),
        62,
    ),
    "reset between the start and the first sample after it": (
        node(
            "edge",
            counting(-905, -5, 8000) + counting(10, AFTER, 3),
            scraped=(-900, AFTER),
            started=6,
        ),
        3 + 3585,
    ),
    "frozen": (
        node("frozen", counting(-900, AFTER, 77, rate=0), scraped=(-900, AFTER), started=-9000),
        0,
    ),
}
TENANT_OF = {case: exposition[0][1]["tenant"] for case, (exposition, _) in CASES.items()}
BEFORE_ONLY = node("past", counting(-900, -315), scraped=(-900, AFTER), started=-9000)
RESET = node(
    "reset",
    counting(-900, 1800, 500) + counting(1815, AFTER, 0),
    scraped=(-900, AFTER),
    started=-9000,
)


@pytest.fixture(scope="module")
def prometheus(prometheus_of: Callable[[Exposition], str]) -> Prometheus:
    exposition = [row for rows, _ in CASES.values() for row in rows]
    return Prometheus(prometheus_of([*exposition, *BEFORE_ONLY, *RESET]))


@pytest.fixture(scope="module")
def hours(prometheus: Prometheus) -> dict[str, float]:
    frame = read_usage(prometheus, WINDOW).by_tenant
    return dict(zip(frame["tenant"], frame["gpu_seconds"], strict=True))


@pytest.mark.parametrize("case", CASES)
def test_the_growth_of_a_series_is_exact(hours: dict[str, float], case: str) -> None:
    assert hours[TENANT_OF[case]] == pytest.approx(CASES[case][1], abs=1e-6)


def test_a_series_without_samples_in_the_window_is_absent(hours: dict[str, float]) -> None:
    assert "past" not in hours


def test_a_reset_inside_the_window_is_within_one_scrape_at_each_edge(
    hours: dict[str, float],
) -> None:
    assert hours["reset"] == pytest.approx(3600 - SCRAPE, abs=2 * SCRAPE)


@pytest.mark.parametrize("cut", [333, 1800, 2997])
def test_neighbouring_windows_add_up(prometheus: Prometheus, cut: int) -> None:
    def sums(start: int, end: int) -> dict[str, float]:
        frame = read_usage(prometheus, Window(T0 + start, T0 + end)).by_tenant
        return dict(zip(frame["tenant"], frame["gpu_seconds"], strict=True))

    whole, left, right = sums(0, HOUR), sums(0, cut), sums(cut, HOUR)
    for tenant in ("steady", "born", "gone", "brief", "edge", "frozen"):
        assert left.get(tenant, 0) + right.get(tenant, 0) == pytest.approx(whole[tenant])


@pytest.fixture(scope="module")
def fleet(prometheus_of: Callable[[Exposition], str]) -> Prometheus:
    """Two GPUs held by a, one by b, one by nobody, of which only the first three burn energy."""
    rows: Exposition = []
    for gpu, tenant in enumerate(["a", "a", "b", "unallocated"]):
        series = {"job": "gpu", "instance": "n", "gpu": str(gpu), "tenant": tenant}
        rows.append((GPU_SECONDS, series, counting(-300, HOUR, rate=1)))
        if tenant != "unallocated":
            rows.append((ENERGY_JOULES, series, counting(-300, HOUR, rate=100 * (gpu + 1))))
    other_job = {"job": "copy", "instance": "n", "gpu": "0", "tenant": "a"}
    rows.append((GPU_SECONDS, other_job, counting(-300, HOUR, rate=1)))
    target = {"job": "gpu", "instance": "n"}
    rows.append(("seedance_gpus_expected", target, [(T0 + t, 8.0) for t in range(0, HOUR, 60)]))
    start_time = [(T0 + t, T0 - 9000.0) for t in range(-300, HOUR, 60)]
    rows.append(("seedance_exporter_start_time_seconds", target, start_time))
    return Prometheus(prometheus_of(rows))


@pytest.fixture(scope="module")
def usage(fleet: Prometheus) -> Usage:
    return read_usage(fleet, WINDOW)


def test_gpus_are_summed_by_tenant_and_unallocated_is_last(usage: Usage) -> None:
    assert list(usage.by_tenant["tenant"]) == ["a", "b", "unallocated"]
    assert list(usage.by_tenant["gpu_seconds"]) == pytest.approx([7200, 3600, 3600])


def test_energy_that_nobody_reported_is_absent_not_zero(usage: Usage) -> None:
    joules = usage.by_tenant.set_index("tenant")["energy_joules"]
    assert joules["a"] == pytest.approx(300 * 3600)
    assert pd.isna(joules["unallocated"])


def test_coverage_is_the_observed_share_of_the_expected_gpus(usage: Usage) -> None:
    assert usage.expected_gpu_seconds == 8 * 3600
    assert usage.coverage == pytest.approx(0.5)


def test_the_newest_sample_is_known(usage: Usage) -> None:
    assert usage.newest_at == T0 + HOUR - 60


def test_the_newest_sample_is_known_long_after_it(fleet: Prometheus) -> None:
    late = read_usage(fleet, Window(T0, T0 + 4 * HOUR))
    assert late.newest_at == T0 + HOUR - 60


def test_an_empty_server_gives_an_empty_frame(fleet: Prometheus) -> None:
    nothing = read_usage(fleet, Window(T0 - 40 * HOUR, T0 - 39 * HOUR))
    assert nothing.by_tenant.empty
    assert nothing.coverage is None
    assert nothing.newest_at is None
    rates = read_rates(fleet, GPU_SECONDS, Window(T0 - 40 * HOUR, T0 - 39 * HOUR))
    assert rates.empty


def test_rates_are_per_second_and_have_sixty_steps(fleet: Prometheus) -> None:
    rates = read_rates(fleet, GPU_SECONDS, WINDOW)
    of_a = rates[rates["tenant"] == "a"]
    assert list(of_a["at"]) == [T0 + 60 * i for i in range(1, 61)]
    assert list(of_a["value"]) == pytest.approx([2.0] * 60)


def test_a_rate_never_looks_at_less_than_a_minute() -> None:
    assert "[60s]" in rate_query(GPU_SECONDS, 15)
    assert "[1440s]" in rate_query(GPU_SECONDS, 1440)


def test_time_that_nobody_observed_is_neither_coverage_nor_a_tenants():
    accounts = [("vision", 60.0), ("unobserved", 30.0), ("unallocated", 10.0)]
    frame = pd.DataFrame(accounts, columns=["tenant", "gpu_seconds"])
    usage = Usage(Window(0, 100), frame, expected_gpu_seconds=100.0, newest_at=None)
    assert usage.observed_gpu_seconds == 70.0
    assert usage.coverage == 0.7


def test_time_that_is_counted_twice_is_not_hidden():
    frame = pd.DataFrame([("vision", 250.0)], columns=["tenant", "gpu_seconds"])
    assert Usage(Window(0, 100), frame, expected_gpu_seconds=100.0, newest_at=None).coverage == 2.5
