"""Ways from one dashboard to another: uids, which are promises, and the links that keep choices."""

from collections.abc import Mapping

from seedance_obs.dashboards.theme import JsonObject

TAG = "seedance"
FLEET = "seedance-fleet"
TOPOLOGY = "seedance-gpu-topology"
SENSITIVITY = "seedance-sensitivity"
TENANTS = "seedance-tenants"
WORKLOAD = "seedance-workload"
LEAKS = "seedance-leaks"
HEALTH = "seedance-health"
EXPORTER = "seedance-exporter"


def to(uid: str, title: str, **variables: str) -> JsonObject:
    """A data link to a dashboard with the time range, the cluster and these variables.

    A value is Grafana's own template, such as `${__data.fields.instance}`.
    """
    chosen = "".join(f"&var-{name}={value}" for name, value in variables.items())
    url = f"/d/{uid}?${{datasource:queryparam}}&${{cluster:queryparam}}{chosen}"
    return {"title": title, "url": f"{url}&${{__url_time_range}}"}


def field(name: str) -> str:
    """The text of a field in the row that was clicked."""
    return f"${{__data.fields.{name}}}"


def label(name: str) -> str:
    """A label of the series that was clicked, on a panel over time."""
    return f"${{__field.labels.{name}}}"


def since(uid: str, title: str, start: str, **variables: str) -> JsonObject:
    """As `to`, with a time range of its own: from a field of the row, in ms, until now."""
    return _within(uid, title, start, "now", variables)


def between(uid: str, title: str, start: str, end: str, **variables: str) -> JsonObject:
    """As `since`, until another field of the row."""
    return _within(uid, title, start, f"${{__data.fields.{end}.numeric}}", variables)


def _within(
    uid: str, title: str, start: str, until: str, variables: Mapping[str, str]
) -> JsonObject:
    range_ = f"from=${{__data.fields.{start}.numeric}}&to={until}"
    url = str(to(uid, title, **variables)["url"]).replace("${__url_time_range}", range_)
    return {"title": title, "url": url}
