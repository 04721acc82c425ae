"""Whether what is asked for exists, and reaches the panel: series, variables, frames, columns."""

from collections.abc import Iterator

from seedance_obs.dashboards.check.json_values import at, mappings, text
from seedance_obs.dashboards.check.model import PROMETHEUS, Dashboard, Panel, Target
from seedance_obs.dashboards.check.panel_rules import grafana_ids
from seedance_obs.dashboards.check.queries import references, tree_or_none
from seedance_obs.dashboards.check.rule import of_dashboard, of_panel, of_target
from seedance_obs.rules.expression import Call, Literal, Node, selectors, walk
from seedance_obs.rules.labels_left import labels_left
from seedance_obs.rules.series import KnownSeries

OURS = "seedance"
HOSTS = frozenset({"Hostname", "host", "hostname", "instance", "node", "node_name", "nodename"})
WITHOUT_LEGEND = frozenset({"nodeGraph", "table", "table-old"})
RENAMING = frozenset({"organize", "renameByRegex"})
INTO_ONE = frozenset({"filterByRefId", "joinByField", "merge"})
# Those of the application itself: of them the library that the others are read from has none.
OF_THE_APPLICATION = frozenset(
    {
        *("configFromData", "extractFields", "fieldLookup", "heatmap", "joinByLabels"),
        *("partitionByValues", "prepareTimeSeries", "regression", "rowsToFields", "smoothing"),
        *("spatial", "timeSeriesTable", "seriesToColumns"),
    }
)


@of_target("metric-known-rule", "series are in a contract, or a rule records them")
def metrics(target: Target) -> Iterator[str]:
    """Of names that are not ours nothing is known, unless a contract is given."""
    site, parsed = target.panel.dashboard.site, tree_or_none(target.expr)
    if site.known is None or parsed is None or target.language != PROMETHEUS:
        return
    for name in sorted({each.name for each in selectors(parsed) if each.name}):
        ours = OURS in name.split("_")[0].split(":")[:2] or name.split(":")[-1].startswith(OURS)
        if (ours or site.all_names) and name not in site.known:
            yield f"{name} is in no scrape that was given, and no rule records it"


@of_target("variable-declared-rule", "variables in queries are declared")
def declared(target: Target) -> Iterator[str]:
    """Others stay in the query as they are written."""
    dashboard = target.panel.dashboard
    names = {each.name for each in dashboard.variables}
    for name in sorted(references(target.expr) - names):
        if target.language == PROMETHEUS:
            yield f"${name} is no variable of this dashboard: declare it"


@of_target("legend-host-rule", "legends name the host of series that have one")
def legend(target: Target) -> Iterator[str]:
    """GPU 0 is on every host."""
    written, parsed = text(target.raw.get("legendFormat")), tree_or_none(target.expr)
    if parsed is None or "{{" not in written or target.panel.kind in WITHOUT_LEGEND:
        return
    known = target.panel.dashboard.site.known or KnownSeries({})
    left = labels_left(parsed, known)
    chosen = {label for each in selectors(parsed) for label, how, _ in each.matchers if how == "="}
    hosts = HOSTS if left is None else HOSTS & left
    named = {each.split("}}")[0].strip() for each in written.split("{{")[1:]}
    if hosts and not (hosts | _made_of(hosts, parsed)) & (named | chosen):
        yield f"the legend {written!r} names no host: add {{{{{_first(hosts)}}}}}"


@of_dashboard("alerts-annotation-rule", "firing alerts are marked on the time axis")
def annotation(dashboard: Dashboard) -> Iterator[str]:
    """Who sees a curve bend wants to know what fired then."""
    listed = mappings(at(dashboard.raw, "annotations", "list"))
    if not any("ALERTS" in text(each.get("expr")) for each in listed):
        yield 'no annotation shows alerts: add one that asks ALERTS{alertstate="firing"}'


@of_panel("transformer-known-rule", "transformations are ids that Grafana has")
def transformers(panel: Panel) -> Iterator[str]:
    """Grafana passes over others without a word."""
    known = grafana_ids("transformers") | OF_THE_APPLICATION
    for each in panel.transformations:
        if each.get("id") not in (None, *known):
            yield f"Grafana has no transformation {each.get('id')!r}: write the id of another"


@of_panel("matrix-rule", "a matrix is made of one query")
def matrix(panel: Panel) -> Iterator[str]:
    """Of two frames Grafana makes none, without a word."""
    used = [text(each.get("id")) for each in panel.transformations]
    if "groupingToMatrix" not in used:
        return
    before = used[: used.index("groupingToMatrix")]
    asked = [each for each in panel.targets if not each.hidden]
    if len(asked) > 1 and not INTO_ONE & set(before):
        yield f"groupingToMatrix does nothing with the frames of {len(asked)} queries: keep one"


@of_panel("node-graph-rule", "a node graph has queries nodes and edges, with real names")
def node_graph(panel: Panel) -> Iterator[str]:
    """It reads what fields are called, not what they are displayed as."""
    if panel.kind != "nodeGraph":
        return
    for target in panel.targets:
        if target.language == PROMETHEUS and target.ref_id not in ("nodes", "edges"):
            yield f"the frame of query {target.ref_id!r} counts as nodes: call it nodes or edges"
    for each in panel.transformations:
        renames = at(each, "options", "renameByName") or each.get("id") == "renameByRegex"
        if each.get("id") in RENAMING and renames:
            yield f"{each.get('id')} sets what a field is displayed as: rename with labelsToFields"


def _made_of(hosts: frozenset[str], parsed: Node) -> frozenset[str]:
    """Labels that a query makes of a host's name, whatever they are called."""
    made = frozenset[str]()
    for call in reversed([*walk(parsed)]):  # from the inside out
        if isinstance(call, Call) and call.function in ("label_join", "label_replace"):
            given = [each.value for each in call.arguments if isinstance(each, Literal)]
            if given and (hosts | made).intersection(given[2:]):
                made |= {str(given[0])}
    return made


def _first(hosts: frozenset[str]) -> str:
    return "instance" if "instance" in hosts else min(hosts)
