"""Every panel of every dashboard as it is drawn for every cluster and choice of variables.

The queries of all go to one Prometheus, each once; the answers of all through one start of Node.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.dashboards.grafana_engine import run_grafana
from tests.dashboards.grafana_queries import Asked, Window, asked, shown_since
from tests.dashboards.grafana_variables import ALL, EVERY_CLUSTER, FIRST, TWO, Choice, filled
from tests.dashboards.history import Answer, History

AT_ONCE = 4
Field = dict[str, Any]
Frame = dict[str, Any]
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Drawn:
    """One panel for one choice: what was asked, what came, and what Grafana shows of it."""

    file: str
    panel: Mapping[str, Any]
    choice: Choice
    window: Window
    queries: tuple[Asked, ...]
    answers: tuple[Answer, ...] = ()
    frames: list[Frame] = field(default_factory=list)
    numbers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not any(self.answers)

    @property
    def over_time(self) -> bool:
        return any(not query.instant for query in self.queries)

    def fields(self, kind: str = "") -> list[Field]:
        """The fields of all frames, or those of one type."""
        every = [each for frame in self.frames for each in frame["fields"]]
        return [each for each in every if kind in ("", each["type"])]


def panels_of(dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All panels, those in collapsed rows too."""
    items = [each for each in dashboard["panels"] if each["type"] != "row"]
    rows = [each for each in dashboard["panels"] if each["type"] == "row"]
    return items + [panel for row in rows for panel in row.get("panels", [])]


def choices(clusters: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Which cluster, and how many of everything in it, the panels are drawn for."""
    for cluster in clusters:
        yield cluster, FIRST
        yield cluster, ALL
    yield clusters[0], TWO
    yield EVERY_CLUSTER, ALL


def every_panel(
    files: Mapping[str, Mapping[str, Any]],
    history: History,
    chosen: Sequence[tuple[str, str]] = (),
) -> list[Drawn]:
    """All panels of the dashboards for all choices, or for those that are said."""
    drawings = [
        each
        for file, dashboard in files.items()
        for cluster, how_many in chosen or choices(history.clusters)
        for each in planned(
            file, dashboard, filled(dashboard, history, cluster=cluster, how_many=how_many), history
        )
    ]
    answers = _answers(drawings, history)
    answered = [(each, tuple(answers[query] for query in each.queries)) for each in drawings]
    shown = run_grafana([_request(each, answer) for each, answer in answered])["panels"]
    return [
        Drawn(p.file, p.panel, p.choice, p.window, p.queries, answer, **what)
        for (p, answer), what in zip(answered, shown, strict=True)
    ]


def by_fleet(drawn: list[Drawn]) -> dict[Key, list[Drawn]]:
    """What was drawn by dashboard, panel and fleet."""
    found: dict[Key, list[Drawn]] = {}
    for each in drawn:
        key = (each.file, each.panel["id"], each.choice.cluster)
        found.setdefault(key, []).append(each)
    return found


def planned(
    file: str, dashboard: Mapping[str, Any], choice: Choice, history: History
) -> Iterator[Drawn]:
    """The panels of a dashboard for one choice, not asked yet."""
    window = shown_since(dashboard, history.end)
    for panel in panels_of(dashboard):
        for each in _repeated(panel, choice):
            queries = tuple(asked(panel, target, each, window) for target in panel["targets"])
            yield Drawn(file, panel, each, window, queries)


def _repeated(panel: Mapping[str, Any], choice: Choice) -> list[Choice]:
    """The choice for each of the panels that Grafana makes of one that is repeated."""
    name = panel.get("repeat")
    if not name or not choice.chosen[name]:
        return [choice]
    return [choice.with_one(name, value) for value in choice.chosen[name]]


def _answers(drawings: list[Drawn], history: History) -> dict[Asked, Answer]:
    queries = list(dict.fromkeys(query for each in drawings for query in each.queries))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda query: _answer(query, history), queries)
        return dict(zip(queries, found, strict=True))


def _answer(query: Asked, history: History) -> Answer:
    if query.instant:
        return history.instant(query.expr, query.end)
    return history.range(query.expr, query.start, query.end, query.step_s)


def _request(drawn: Drawn, answers: tuple[Answer, ...]) -> dict[str, Any]:
    targets = drawn.panel["targets"]
    window = {"from": drawn.window.start * 1000, "to": drawn.window.end * 1000}
    return {
        "transformations": drawn.panel.get("transformations", []),
        "fieldConfig": drawn.panel["fieldConfig"],
        "reduceOptions": drawn.panel["options"].get("reduceOptions"),
        "answers": [
            {
                "refId": target["refId"],
                "legend": target.get("legendFormat", ""),
                "expr": query.expr,
                "stepMs": 0 if query.instant else query.step_s * 1000,
                "result": answer,
            }
            for target, query, answer in zip(targets, drawn.queries, answers, strict=True)
        ],
        **(window if drawn.over_time else {}),
    }
