"""A rule: a name, what it wants, and a function that says in sentences what is otherwise.

Rules register where they are written, by what they look at: a dashboard, a panel or a query.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from seedance_obs.dashboards.check.model import Dashboard, Panel, Target

OfDashboard: TypeAlias = Callable[[Dashboard], Iterator[str]]
OfPanel: TypeAlias = Callable[[Panel], Iterator[str]]
OfTarget: TypeAlias = Callable[[Target], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence on a place in a dashboard; panel and target are empty where it is on the whole."""

    file: str
    dashboard: str
    uid: str
    panel: str
    panel_id: int | None
    target: str
    rule: str
    sentence: str

    def __str__(self) -> str:
        """One line for a person."""
        panel = f" panel {self.panel!r} (id {self.panel_id})" if self.panel_id is not None else ""
        if self.panel and not panel:
            panel = f" panel {self.panel!r}"
        target = f" query {self.target}" if self.target else ""
        place = f"{panel}{target}:" if panel or target else ""
        return f"{self.file}: {self.rule}:{place} {self.sentence}"


WANTED: dict[str, str] = {}
DASHBOARD_RULES: dict[str, OfDashboard] = {}
PANEL_RULES: dict[str, OfPanel] = {}
TARGET_RULES: dict[str, OfTarget] = {}


def of_dashboard(name: str, wants: str) -> Callable[[OfDashboard], OfDashboard]:
    """Register a rule on a dashboard as a whole."""

    def register(function: OfDashboard) -> OfDashboard:
        WANTED[name], DASHBOARD_RULES[name] = wants, function
        return function

    return register


def of_panel(name: str, wants: str) -> Callable[[OfPanel], OfPanel]:
    """Register a rule on each panel."""

    def register(function: OfPanel) -> OfPanel:
        WANTED[name], PANEL_RULES[name] = wants, function
        return function

    return register


def of_target(name: str, wants: str) -> Callable[[OfTarget], OfTarget]:
    """Register a rule on each query."""

    def register(function: OfTarget) -> OfTarget:
        WANTED[name], TARGET_RULES[name] = wants, function
        return function

    return register


def findings(dashboard: Dashboard) -> Iterator[Finding]:
    """What every rule says of a dashboard."""
    for name, on_dashboard in DASHBOARD_RULES.items():
        for sentence in on_dashboard(dashboard):
            yield _finding(dashboard, name, sentence)
    for panel in dashboard.panels:
        for name, on_panel in PANEL_RULES.items():
            for sentence in on_panel(panel):
                yield _finding(dashboard, name, sentence, panel=panel)
        for target in panel.targets:
            for name, on_target in TARGET_RULES.items():
                for sentence in on_target(target):
                    yield _finding(dashboard, name, sentence, panel=panel, target=target)


def _finding(
    dashboard: Dashboard,
    rule: str,
    sentence: str,
    *,
    panel: Panel | None = None,
    target: Target | None = None,
) -> Finding:
    return Finding(
        file=dashboard.file,
        dashboard=dashboard.title,
        uid=dashboard.uid,
        panel=panel.title if panel else "",
        panel_id=panel.id if panel else None,
        target=target.ref_id if target else "",
        rule=rule,
        sentence=sentence,
    )
