"""The tables of the page: frames to grid rows, with cells that add up as shown."""

from datetime import tzinfo
from typing import Any

import dash_ag_grid as dag
import pandas as pd
from dash.development.base_component import Component

from seedance_obs.web import clockface
from seedance_obs.web.numerals import (
    addends,
    decimals_for,
    energy_unit,
    fixed,
    significant,
)
from seedance_obs.web.usage import UNALLOCATED, Usage

TOTAL = "Fleet"
_MOST_ROWS_IN_FULL = 25
_THEME = (
    "themeQuartz.withParams({backgroundColor: 'var(--card)', foregroundColor: 'var(--ink)',"
    " borderColor: 'var(--line)', headerBackgroundColor: 'var(--card)',"
    " headerTextColor: 'var(--quiet)', headerFontWeight: 400, accentColor: 'var(--accent)',"
    " rowHoverColor: 'var(--hover)', pinnedRowBackgroundColor: 'var(--card)',"
    " fontFamily: 'inherit', fontSize: 14, rowHeight: 40, headerHeight: 36,"
    " wrapperBorder: false, wrapperBorderRadius: 0, cellHorizontalPadding: 8})"
)


def tenant_rows(usage: Usage, colours: dict[str, str]) -> list[dict[str, Any]]:
    """A row for each tenant and one for the fleet: exact numbers, and `<name>_text` as shown."""
    frame = usage.by_tenant
    columns = {
        "gpu_hours": frame["gpu_seconds"] / 3600,
        "share": 100 * frame["gpu_seconds"] / frame["gpu_seconds"].sum(),
        "energy": frame["energy_joules"] / energy_unit(frame["energy_joules"].sum())[1],
        "gpus": frame["gpu_seconds"] / usage.window.seconds,
    }
    rows: list[dict[str, Any]] = [
        {"id": f"tenant {name}", "tenant": name, "colour": colours[name]}
        for name in frame["tenant"]
    ]
    rows.append({"id": "fleet", "tenant": TOTAL, "colour": "transparent"})
    for name, values in columns.items():
        _fill(rows, name, [*_known(values), _sum(values)])
    for row, watts in zip(rows, _watts_per_gpu(frame), strict=True):
        row |= {"watts": watts, "watts_text": significant(watts)}
    return rows


def tenants_table(usage: Usage, colours: dict[str, str]) -> dict[str, Any]:
    """The table by tenant, largest first; `unallocated` and the fleet stay at the foot."""
    rows = tenant_rows(usage, colours)
    foot = [row for row in rows if row["tenant"] in (UNALLOCATED, TOTAL)]
    columns = [
        _name_column(max(len(row["tenant"]) for row in rows)),
        _number_column("gpu_hours", "GPU-hours"),
        _number_column("energy", energy_unit(float(usage.by_tenant["energy_joules"].sum()))[0]),
        _share_column(),
        _number_column("gpus", "Mean GPUs"),
        _number_column("watts", "W per GPU"),
    ]
    return _filled(columns, [row for row in rows if row not in foot], foot)


def step_rows(wide: pd.DataFrame, zone: tzinfo, *, seconds: bool) -> list[dict[str, Any]]:
    """A row for each chart step, newest first: one cell a tenant, `c0` on, and their total."""
    decimals = decimals_for(float(wide.sum(axis=1).max())) if len(wide) else 0
    clock = "%H:%M:%S" if seconds else "%H:%M"
    rows = []
    for at, *values in wide.sort_index(ascending=False).itertuples(name=None):
        moment = clockface.at(at, zone)
        text = f"{clockface.day(moment)}, {moment:{clock}}"
        row: dict[str, Any] = {"id": str(at), "at": at, "at_text": text}
        cells = _known(pd.Series(values))
        for i, (cell, text) in enumerate(zip(cells, addends(cells, decimals), strict=True)):
            row |= {f"c{i}": cell, f"c{i}_text": text}
        total = _sum(pd.Series(values))
        rows.append(row | {"total": total, "total_text": fixed(total, decimals)})
    return rows


def steps_table(wide: pd.DataFrame, zone: tzinfo, *, name: str, step: int) -> dict[str, Any]:
    """The chart as a table: the end of each step in the zone of that name, tenants across."""
    columns = [
        _number_column("at", f"Until ({name})") | _pinned(150) | {"type": None},
        *(_number_column(f"c{i}", tenant) for i, tenant in enumerate(wide.columns)),
        _number_column("total", "Total"),
    ]
    return _filled(columns, step_rows(wide, zone, seconds=step < 60), [])


def empty_grid(name: str) -> Component:
    """A table that a `*_table` fills: its values are properties of the grid of that name."""
    grid: Component = dag.AgGrid(
        id=name,
        className=f"grid {name}",
        defaultColDef={"sortable": True, "resizable": False, "suppressMovable": True, "flex": 1},
        getRowId="params.data.id",
        columnDefs=[],
        rowData=[],
        dashGridOptions=_options([], whole=True),
    )
    return grid


def _filled(
    columns: list[dict[str, Any]], rows: list[dict[str, Any]], foot: list[dict[str, Any]]
) -> dict[str, Any]:
    whole = len(rows) <= _MOST_ROWS_IN_FULL
    return {
        "columnDefs": columns,
        "rowData": rows,
        "dashGridOptions": _options(foot, whole=whole),
        "style": {"height": None if whole else "560px"},
    }


def _options(foot: list[dict[str, Any]], *, whole: bool) -> dict[str, Any]:
    return {
        "theme": {"function": _THEME},
        "domLayout": "autoHeight" if whole else "normal",
        "pinnedBottomRowData": foot,
        "tooltipShowDelay": 300,
        "enableCellTextSelection": True,
        "animateRows": False,
    }


def _name_column(longest: int) -> dict[str, Any]:
    return {
        "field": "tenant",
        "headerName": "Tenant",
        "cellClass": "tenant",
        "cellStyle": {"function": "({'--swatch': params.data.colour})"},
        "tooltipField": "tenant",
        **_pinned(min(320, max(150, 50 + 8 * longest))),
    }


def _pinned(width: int) -> dict[str, Any]:
    return {"pinned": "left", "width": width, "flex": None}


def _share_column() -> dict[str, Any]:
    return _number_column("share", "% of GPU time") | {
        "type": None,
        "minWidth": 220,
        "flex": 3,
        "cellClass": "share",
        "cellStyle": {
            "function": "({'--swatch': params.data.colour, '--part': params.value / 100})"
        },
    }


def _number_column(field: str, title: str) -> dict[str, Any]:
    return {
        "field": field,
        "headerName": title,
        "type": "rightAligned",
        "minWidth": 90,
        "valueFormatter": {"function": f"params.data.{field}_text"},
        "tooltipValueGetter": {"function": f"params.data.{field}"},
    }


def _fill(rows: list[dict[str, Any]], name: str, values: list[float | None]) -> None:
    total = values[-1]
    decimals = decimals_for(total or 0.0)
    texts = [*addends(values[:-1], decimals), fixed(total, decimals)]
    for row, value, text in zip(rows, values, texts, strict=True):
        row |= {name: value, f"{name}_text": text}


def _watts_per_gpu(frame: pd.DataFrame) -> list[float | None]:
    """Mean power of a GPU while each tenant held it, and over the fleet; None without energy."""
    watts = frame["energy_joules"] / frame["gpu_seconds"].where(frame["gpu_seconds"] > 0)
    measured = frame[frame["energy_joules"].notna()]
    fleet = _ratio(float(measured["energy_joules"].sum()), float(measured["gpu_seconds"].sum()))
    return [*_known(watts), fleet]


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _sum(values: pd.Series) -> float | None:
    known = values.dropna()
    return float(known.sum()) if len(known) else None


def _known(values: pd.Series) -> list[float | None]:
    return [None if pd.isna(value) else float(value) for value in values]
