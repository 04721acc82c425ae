"""Figures and tables from frames: nothing lost, nothing invented."""

import pandas as pd
import pytest

from seedance_obs.web.figures import fold_small, stacked_bars
from seedance_obs.web.tables import TOTAL, step_rows, tenant_rows
from seedance_obs.web.usage import Usage, Window
from seedance_obs.web.view import zone_of

START = 1_761_436_800  # 2025-10-26 00:00 UTC, the night the clocks go back in Berlin
WINDOW = Window(START, START + 3600)


def rates(**by_tenant: list[float | None]) -> pd.DataFrame:
    rows = [
        (float(WINDOW.step_ends[i]), tenant, value)
        for tenant, values in by_tenant.items()
        for i, value in enumerate(values)
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["at", "tenant", "value"])


def test_unallocated_is_last_whatever_its_size() -> None:
    wide = fold_small(rates(unallocated=[9.0], a=[1.0], b=[2.0]))
    assert list(wide.columns) == ["b", "a", "unallocated"]


def test_small_tenants_are_folded_without_loss() -> None:
    many = {f"t{i:02}": [float(i), float(i)] for i in range(1, 13)}
    wide = fold_small(rates(**many))
    assert list(wide.columns) == [*(f"t{i:02}" for i in range(12, 5, -1)), "5 others"]
    assert list(wide.sum(axis=1)) == [78.0, 78.0]


def test_a_step_without_a_sample_stays_empty() -> None:
    wide = fold_small(rates(a=[1.0, None, 3.0], b=[1.0, None, None]))
    figure = stacked_bars(wide, {}, window=WINDOW, zone=zone_of("UTC"), unit="kW")
    a, b, total = figure.data
    assert list(a.y) == [1.0, 3.0]
    assert list(b.y) == [1.0, None]
    assert list(total.y) == [2.0, 3.0]
    assert list(a.x) == ["Oct 26, 00:00 to 00:01", "Oct 26, 00:02 to 00:03"]


def test_a_window_too_young_for_a_rate_says_so() -> None:
    wide = fold_small(rates())
    figure = stacked_bars(wide, {}, window=WINDOW, zone=zone_of("UTC"), unit="W")
    assert "two samples" in figure.layout.annotations[0].text
    assert step_rows(wide, zone_of("UTC"), seconds=False) == []


def test_the_hour_that_happens_twice_has_bars_of_its_own() -> None:
    night = Window(START - 7200, START + 3 * 3600)
    wide = fold_small(
        pd.DataFrame(
            [(float(at), "a", 1.0) for at in night.step_ends], columns=["at", "tenant", "value"]
        )
    )
    figure = stacked_bars(wide, {}, window=night, zone=zone_of("Europe/Berlin"), unit="")
    assert len(set(figure.data[0].x)) == len(night.step_ends)


def test_rows_of_the_chart_are_newest_first_and_add_up_as_shown() -> None:
    wide = fold_small(rates(a=[1 / 3, 1 / 3], b=[1 / 3, None], c=[1 / 3, 1 / 3]))
    rows = step_rows(wide, zone_of("UTC"), seconds=False)
    assert [row["at_text"] for row in rows] == ["Oct 26, 00:02", "Oct 26, 00:01"]
    cells = [float(rows[1][f"c{i}_text"]) for i in range(3)]
    assert sum(cells) == pytest.approx(float(rows[1]["total_text"]))
    assert sorted(rows[0][f"c{i}_text"] for i in range(3))[-1] == "–"  # noqa: RUF001 - the page's dash


def test_tenant_rows_end_with_the_fleet_and_keep_exact_numbers() -> None:
    frame = pd.DataFrame(
        {
            "tenant": ["a", "b", "unallocated"],
            "gpu_seconds": [7200.0, 3600.0, 1800.0],
            "energy_joules": [3.6e6, 1.8e6, None],
        }
    )
    rows = tenant_rows(Usage(WINDOW, frame, None, None), dict.fromkeys(frame["tenant"], "#123456"))
    fleet = rows[-1]
    assert fleet["tenant"] == TOTAL
    assert fleet["gpu_hours"] == pytest.approx(3.5)
    assert fleet["energy"] == pytest.approx(1.5)
    assert fleet["watts"] == pytest.approx(500)
    assert rows[2]["energy"] is None
    assert rows[2]["watts_text"] == "–"  # noqa: RUF001 - the page's dash
    assert [row["gpus"] for row in rows] == pytest.approx([2, 1, 0.5, 3.5])
