"""dashboard-linter's rules on choices at the top of a dashboard, and on who may edit it."""

import re
from collections.abc import Iterator

from seedance_obs.dashboards.check.model import PROMETHEUS, Dashboard, Variable
from seedance_obs.dashboards.check.queries import tree
from seedance_obs.dashboards.check.rule import of_dashboard

REFRESH_ON_TIME_RANGE_CHANGE = 2
FUNCTIONS = ("label_names", "label_values", "metrics", "query_result")


@of_dashboard("template-datasource-rule", "the data source is a variable of the usual name")
def datasource(dashboard: Dashboard) -> Iterator[str]:
    """One that is called datasource, or after its type."""
    found = [each for each in dashboard.variables if each.kind == "datasource"]
    if not found:
        yield "no variable chooses the data source: add one called datasource"
    for each in found:
        of_type = each.query.lower()
        names, labels = [f"{of_type}_datasource"], [f"{of_type} data source"]
        if len(found) == 1:
            names, labels = ["datasource", *names], ["data source", *labels]
        if each.name not in names:
            yield f"the data source's variable is called {each.name!r}: call it {names[0]}"
        label = each.raw.get("label")
        if not isinstance(label, str) or label.lower() not in labels:
            yield f"the variable {each.name} is labelled {label!r}: write {labels[0].capitalize()}"


@of_dashboard("template-job-rule", "a variable job chooses among jobs, several or all")
def job(dashboard: Dashboard) -> Iterator[str]:
    """As all dashboards of mixins have it."""
    yield from _choice(dashboard, "job")


@of_dashboard("template-instance-rule", "a variable instance chooses among targets, several or all")
def instance(dashboard: Dashboard) -> Iterator[str]:
    """As all dashboards of mixins have it."""
    yield from _choice(dashboard, "instance")


@of_dashboard("template-label-promql-rule", "variables are filled by a function and PromQL")
def label_queries(dashboard: Dashboard) -> Iterator[str]:
    """label_values(SELECTOR, LABEL) and the like."""
    for each in _of_prometheus(dashboard):
        function, argument = _call(each.query)
        if function not in FUNCTIONS:
            yield (
                f"the variable {each.name} is filled by {each.query!r}: use one of "
                f"{', '.join(FUNCTIONS)}"
            )
        elif argument:
            try:
                tree(argument)
            except ValueError as error:
                yield f"the variable {each.name} asks {argument!r}, which is no PromQL: {error}"


@of_dashboard(
    "template-on-time-change-reload-rule", "variables are filled anew with the time range"
)
def reload(dashboard: Dashboard) -> Iterator[str]:
    """What has gone can be chosen where the past is looked at."""
    for each in dashboard.variables:
        refresh = each.raw.get("refresh")
        if each.kind == "query" and refresh != REFRESH_ON_TIME_RANGE_CHANGE:
            yield (
                f"the variable {each.name} has refresh {refresh!r}: set "
                f"{REFRESH_ON_TIME_RANGE_CHANGE}, on time range change"
            )


@of_dashboard("uneditable-dashboard", "a provisioned dashboard is not edited in the browser")
def uneditable(dashboard: Dashboard) -> Iterator[str]:
    """Edits would be lost with the next provisioning."""
    if dashboard.raw.get("editable") is not False:
        yield "it can be edited, and the edits would get lost: set editable to false"


def _choice(dashboard: Dashboard, name: str) -> Iterator[str]:
    if not any(each.query == PROMETHEUS for each in dashboard.variables):
        return
    variable = dashboard.variable(name)
    if variable is None:
        yield f"there is no variable {name}: add one, filled by label_values(..., {name})"
        return
    raw = variable.raw
    wrong = {
        f"its label is {raw.get('label')!r}, not {name}": str(raw.get("label")).lower() != name,
        f"its type is {variable.kind!r}, not query": variable.kind != "query",
        "its data source is no variable": not dashboard.variable(_source(raw.get("datasource"))),
        "several cannot be chosen: set multi": raw.get("multi") is not True,
        f"all of them are {raw.get('allValue')!r}: set allValue to .+": raw.get("allValue") != ".+",
    }
    yield from (f"the variable {name}: {text}" for text, is_wrong in wrong.items() if is_wrong)


def _source(reference: object) -> str:
    uid = reference.get("uid") if isinstance(reference, dict) else reference
    return str(uid).strip("${}[]")


def _of_prometheus(dashboard: Dashboard) -> Iterator[Variable]:
    chosen = next((each.query for each in dashboard.variables if each.kind == "datasource"), "")
    for each in dashboard.variables:
        source = dashboard.datasource(each.raw.get("datasource")) or chosen
        if each.kind == "query" and source in ("", PROMETHEUS):
            yield each


def _call(query: str) -> tuple[str, str]:
    """The function of a variable's query, and what of its argument is PromQL."""
    found = re.fullmatch(r"\s*([a-z_]+)\s*\((.*)\)\s*", query, re.DOTALL)
    if not found:
        return "", ""
    function, argument = found[1], found[2].strip()
    if function == "label_values":
        selector, comma, _ = argument.rpartition(",")
        return function, selector if comma else ""
    return function, argument if function == "query_result" else ""
