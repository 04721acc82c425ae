"""A dashboard in Grafana's classic JSON model, old or new, as the checks see it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from seedance_obs.dashboards.check.json_values import (
    Json,
    JsonObject,
    at,
    mapping,
    mappings,
    text,
    whole,
)
from seedance_obs.rules.series import KnownSeries

PROMETHEUS, LOKI = "prometheus", "loki"
WITHOUT_QUERIES = frozenset(
    {"", "row", "text", "dashlist", "news", "welcome", "alertlist", "annolist"}
)


@dataclass(frozen=True)
class Site:
    """What is known besides a dashboard: variables of all of them by uid, and series.

    `all_names`: every metric has to be known, not only those that are called as ours are.
    """

    variables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)  # of a uid
    known: KnownSeries | None = None
    all_names: bool = False


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard."""

    raw: JsonObject

    @property
    def name(self) -> str:
        """What queries call it."""
        return text(self.raw.get("name"))

    @property
    def kind(self) -> str:
        """query, datasource, interval, custom ..."""
        return text(self.raw.get("type"))

    @property
    def query(self) -> str:
        """What it is filled by; newer Grafana wraps it."""
        found = self.raw.get("query")
        return text(found) or text(at(found, "query")) or text(self.raw.get("definition"))


@dataclass(frozen=True)
class Dashboard:
    """A dashboard of a file."""

    file: str
    raw: JsonObject
    site: Site = field(default_factory=Site, repr=False)

    @property
    def title(self) -> str:
        """What it is called."""
        return text(self.raw.get("title"))

    @property
    def uid(self) -> str:
        """What links call it."""
        return text(self.raw.get("uid"))

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Its choices, in their order."""
        return tuple(Variable(each) for each in mappings(at(self.raw, "templating", "list")))

    def variable(self, name: str) -> Variable | None:
        """The choice of a name."""
        return next((each for each in self.variables if each.name == name), None)

    @cached_property
    def groups(self) -> tuple[tuple[JsonObject, ...], ...]:
        """Panels that share a grid: those on top, then those in each folded row."""
        top = mappings(self.raw.get("panels"))
        rows = (*mappings(self.raw.get("rows")), *(each for each in top if "panels" in each))
        return (top, *(mappings(row.get("panels")) for row in rows))

    @cached_property
    def panels(self) -> "tuple[Panel, ...]":
        """All panels, rows and what they fold away included."""
        return tuple(Panel(self, raw) for group in self.groups for raw in group)

    def datasource(self, reference: Json) -> str:
        """The type of a data source, by what refers to it; empty where nothing tells."""
        if named := text(at(reference, "type")):
            return named
        uid = text(reference) or text(at(reference, "uid"))
        wanted = uid.strip("${}[]")
        if variable := self.variable(wanted):
            return variable.query
        for each in mappings(self.raw.get("__inputs")):
            if text(each.get("name")) == wanted:
                return text(each.get("pluginId"))
        return ""


@dataclass(frozen=True)
class Panel:
    """A panel or a row."""

    dashboard: Dashboard
    raw: JsonObject

    @property
    def kind(self) -> str:
        """timeseries, stat ..."""
        return text(self.raw.get("type"))

    @property
    def title(self) -> str:
        """What stands above it."""
        return text(self.raw.get("title"))

    @property
    def id(self) -> int | None:
        """Its number."""
        return whole(self.raw.get("id"))

    @property
    def asks(self) -> bool:
        """Whether it is of a kind that shows the answers of queries."""
        return self.kind not in WITHOUT_QUERIES

    @property
    def targets(self) -> "tuple[Target, ...]":
        """Its queries."""
        return tuple(Target(self, each) for each in mappings(self.raw.get("targets")))

    @property
    def transformations(self) -> tuple[JsonObject, ...]:
        """What is done to the answers, in this order."""
        return mappings(self.raw.get("transformations"))

    @property
    def defaults(self) -> JsonObject:
        """How values look."""
        return mapping(at(self.raw, "fieldConfig", "defaults"))

    def overridden(self, name: str) -> Iterator[Json]:
        """What overrides set a property to."""
        for each in mappings(at(self.raw, "fieldConfig", "overrides")):
            for one in mappings(each.get("properties")):
                if one.get("id") == name:
                    yield one.get("value")


@dataclass(frozen=True)
class Target:
    """A query of a panel."""

    panel: Panel
    raw: JsonObject

    @property
    def expr(self) -> str:
        """The query as it is written."""
        return text(self.raw.get("expr"))

    @property
    def ref_id(self) -> str:
        """Its letter or name."""
        return text(self.raw.get("refId"))

    @property
    def hidden(self) -> bool:
        """Whether it is switched off."""
        return self.raw.get("hide") is True

    @property
    def language(self) -> str:
        """The type of its data source: what nothing tells is the dashboard's, then Prometheus."""
        dashboard = self.panel.dashboard
        chosen = next((each.query for each in dashboard.variables if each.kind == "datasource"), "")
        own = dashboard.datasource(self.raw.get("datasource"))
        return own or dashboard.datasource(self.panel.raw.get("datasource")) or chosen or PROMETHEUS


def classic(raw: JsonObject) -> JsonObject:
    """The dashboard in what an API or an export wraps around it.

    Raises:
        ValueError: it is of the v2 schema, or no dashboard.
    """
    inner = next((mapping(raw[name]) for name in ("dashboard", "spec") if raw.get(name)), raw)
    if "elements" in inner or re.search(r"/v2\w*$", text(raw.get("apiVersion"))):
        raise ValueError(
            "this dashboard has the v2 schema, of which nothing is known here: export it as "
            "classic JSON"
        )
    if not {"panels", "rows", "templating"} & set(inner):
        raise ValueError("a dashboard in Grafana's JSON is wanted, and this has no panels")
    return inner
