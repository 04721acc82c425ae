"""From a fault in a simulated machine to whom it is told: real exporters' pages, real programs.

All scenarios run at once, each a cluster with a Prometheus of its own, before one Alertmanager.
Their time runs 120 times as fast, so that two hours take a minute; `test_faster_time` shows that
the rules are the shipped ones all the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from tests.conftest import SHOWN
from tests.rules.exporter_pages import all_pages
from tests.rules.fault_scenarios import CALM, NVSWITCH, SCENARIOS, Scenario
from tests.rules.watched_clusters import FACTOR, Cluster, Message, watch

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Outcome:
    """A scenario, what fired in its cluster, and what anybody was told."""

    cluster: Cluster
    messages: list[Message]

    def heard(self, status: str = "firing") -> frozenset[str]:
        return frozenset(
            f"{each.receiver} {each.labels['alertname']} {each.labels.get('instance', '')}"
            for each in self.messages
            if each.status == status
        )

    def first_after_minutes(self) -> float | None:
        """From the fault to the first message, in the cluster's time."""
        firing = [each.at for each in self.messages if each.status == "firing"]
        return (min(firing) - self.cluster.fault_at) * FACTOR / 60 if firing else None


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    pages = all_pages(SCENARIOS)
    clusters = [
        Cluster(
            each, {node.machine.name: pages[each.name, node.machine.name] for node in each.nodes}
        )
        for each in SCENARIOS
    ]
    messages = watch(clusters, tmp_path_factory.mktemp("watched"))
    return {
        each.scenario.name: Outcome(
            each, [told for told in messages if told.labels["cluster"] == each.scenario.name]
        )
        for each in clusters
    }


def test_the_table_of_scenarios(
    outcomes: dict[str, Outcome], record_property: Callable[[str, object], None]
) -> None:
    table = Table("scenario", "expected", "received", "after", "not told", box=None)
    for name, outcome in outcomes.items():
        scenario, after = outcome.cluster.scenario, outcome.first_after_minutes()
        told = {each.labels["alertname"] for each in outcome.messages}
        table.add_row(
            name,
            "\n".join(sorted(scenario.heard)) or "nothing",
            "\n".join(sorted(outcome.heard())) or "nothing",
            "" if after is None else f"{after:.1f} min",
            "\n".join(sorted(outcome.cluster.fired - told)),
        )
    text = StringIO()
    Console(width=150, file=text).print(table)
    record_property(SHOWN, text.getvalue())
    assert set(outcomes) == {each.name for each in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_exactly_the_expected_alerts_are_heard_of(
    outcomes: dict[str, Outcome], scenario: Scenario
) -> None:
    outcome = outcomes[scenario.name]
    assert outcome.cluster.faults == []
    assert outcome.heard() == scenario.heard


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_echoes_fire_and_are_told_to_nobody(
    outcomes: dict[str, Outcome], scenario: Scenario
) -> None:
    outcome = outcomes[scenario.name]
    told = {each.split()[1] for each in outcome.heard()}
    assert outcome.cluster.fired - told == scenario.echoes


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each is not CALM], ids=lambda each: each.name
)
def test_one_fault_is_one_message_after_it(
    outcomes: dict[str, Outcome], scenario: Scenario
) -> None:
    messages = outcomes[scenario.name].messages
    assert len({(each.receiver, each.group) for each in messages}) == 1
    assert min(each.at for each in messages) > outcomes[scenario.name].cluster.fault_at


def test_a_page_is_taken_back_when_the_switch_is_back(outcomes: dict[str, Outcome]) -> None:
    assert outcomes[NVSWITCH.name].heard("resolved") == NVSWITCH.heard
