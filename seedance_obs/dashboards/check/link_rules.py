"""Where links lead: to dashboards that exist, with variables that they have."""

import re
from collections.abc import Iterator

from seedance_obs.dashboards.check.json_values import texts_under
from seedance_obs.dashboards.check.model import Dashboard
from seedance_obs.dashboards.check.rule import of_dashboard

INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
TO_DASHBOARD = re.compile(r"/d/(?P<uid>[^/?#]+)[^?#]*\??(?P<query>[^#]*)")


@of_dashboard("link-target-rule", "links lead to dashboards among the files, with their variables")
def targets(dashboard: Dashboard) -> Iterator[str]:
    """A link that passes what its target does not declare changes nothing there."""
    own = {each.name for each in dashboard.variables}
    for url in _urls(dashboard):
        found = TO_DASHBOARD.match(url.strip())
        if found is None or "$" in found["uid"]:
            continue
        uid, query = found["uid"], found["query"]
        if uid not in dashboard.site.variables:
            yield f"a link leads to /d/{uid}, which is none of the dashboards that were given"
            continue
        there = dashboard.site.variables[uid]
        forwarded = set(re.findall(r"\$\{(\w+):queryparam\}", query))
        for name in sorted((forwarded | set(re.findall(r"\bvar-(\w+)=", query))) - there):
            yield f"a link passes {name} to /d/{uid}, which has no such variable"
        for name in sorted(forwarded - own):
            yield f"a link passes ${{{name}:queryparam}}, which is no variable here"


@of_dashboard("link-characters-rule", "links have no characters that nobody sees")
def characters(dashboard: Dashboard) -> Iterator[str]:
    """They come from pasting, and are part of the address."""
    for url in _urls(dashboard):
        for letter in dict.fromkeys(INVISIBLE.findall(url)):
            shown = INVISIBLE.sub("", url)
            yield f"the link {shown!r} has an invisible U+{ord(letter):04X}: type it anew"


def _urls(dashboard: Dashboard) -> list[str]:
    return list(dict.fromkeys(texts_under(dashboard.raw, "url")))
