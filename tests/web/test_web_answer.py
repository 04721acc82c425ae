"""What one reading sends to the browser."""

import json

from plotly.utils import PlotlyJSONEncoder

from seedance_obs.promql.client import Sample, Series
from seedance_obs.web.answer import PARTS, answer

NOW = 1_762_171_200.0
TENANTS = [f"tenant-{i:04}" for i in range(1000)] + ["unallocated"]


class Crowd:
    """A fleet with a thousand tenants."""

    url = "http://127.0.0.1:9090"

    def instant(self, expr: str, at: float | None = None) -> list[Sample]:
        if "by (tenant)" not in expr:
            return []
        rows = enumerate(TENANTS)
        return [Sample({"tenant": name}, 1234.567 * (i + 1) / 7, at or NOW) for i, name in rows]

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:  # noqa: ARG002 - the engine's shape
        times = [start + i * step for i in range(60)]
        rows = enumerate(TENANTS)
        return [Series({"tenant": n}, tuple((at, i / 3) for at in times)) for i, n in rows]


def test_a_thousand_tenants_fit_the_budget_of_a_reading() -> None:
    parts = answer(Crowd(), "?range=24h", now=NOW, shown=None)
    assert len(json.dumps(parts, cls=PlotlyJSONEncoder)) < 500_000
    assert len(parts["tenants"]["rowData"]) == 1000


def test_every_answer_has_a_value_for_every_part() -> None:
    for search in ("?range=24h", "?range=2h"):
        parts = answer(Crowd(), search, now=NOW, shown=None)
        assert parts.keys() == PARTS.keys()
        assert parts["tenants"].keys() == PARTS["tenants"].keys()
