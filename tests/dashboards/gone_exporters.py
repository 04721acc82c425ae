"""Exporters that stop answering: since when, and what may still be shown of them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.dashboards.every_panel import Drawn, Field
from tests.dashboards.fleets import CLUSTERS
from tests.dashboards.grafana_queries import seconds
from tests.dashboards.history import History

LOOKED_BACK = re.compile(r"\[(\d+[smhd])\]|:\w+?(\d+[smhd])\b")


@dataclass(frozen=True)
class Gone:
    """A node whose exporter has not answered since a Unix time."""

    cluster: str
    instance: str
    since: float

    def has(self, labels: Mapping[str, str]) -> bool:
        return (labels.get("cluster"), labels.get("instance")) == (self.cluster, self.instance)


def gone_exporters(history: History) -> list[Gone]:
    """Those that are down at the end of the history."""
    return [
        Gone(cluster.name, node.name, history.start + node.down_at_s)
        for cluster in CLUSTERS.values()
        for node in cluster.nodes
        if node.down_at_s is not None
    ]


def shown_after(drawn: Drawn, gone: Gone) -> Iterator[tuple[Field, float]]:
    """What a panel over time draws of a node later than its queries look back."""
    last = gone.since + max(_looks_back_s(query.expr) for query in drawn.queries)
    for frame in drawn.frames:
        times = frame["fields"][0]["values"] if frame["fields"] else []
        for field in frame["fields"][1:]:
            if gone.has(field.get("labels") or {}):
                drawn_at = zip(times, field["values"], strict=True)
                yield from ((field, at) for at, v in drawn_at if v is not None and at / 1000 > last)


def _looks_back_s(expr: str) -> int:
    """The longest range in a query, or in the rule that records what it asks for."""
    return max((seconds(a or b) for a, b in LOOKED_BACK.findall(expr)), default=0)
