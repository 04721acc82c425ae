"""The fleet that the bench of the rules measures with has what the rules read."""

from dataclasses import replace

import pytest

from seedance_obs.assets import assets_folder
from seedance_obs.errors import SeedanceError
from seedance_obs.rules.expression import parse
from seedance_obs.rules.rule_file import Rule, read_rules, rule_files
from tests.bench.fleet_page import EncodedPages, Fleet, labels_of_node, node_page
from tests.bench.fleet_past import past_of_rules
from tests.bench.rules import page_of_rules
from tests.bench.thousand_nodes import HOUR_SECONDS

NODES = 3


@pytest.fixture(scope="module")
def rules() -> list[Rule]:
    return [r for file in rule_files(assets_folder("alerts")) for r in read_rules(file)[0]]


def test_a_rule_that_reads_what_the_fleet_lacks_is_told(rules: list[Rule]) -> None:
    assert page_of_rules(rules, whole=False)
    unknown = replace(rules[0], tree=parse("sum(seedance_of_tomorrow)"))
    with pytest.raises(SeedanceError, match="seedance_of_tomorrow"):
        page_of_rules([*rules, unknown], whole=False)


def test_every_series_of_the_fleet_is_its_own() -> None:
    page = node_page()
    fleet = {
        (each.name, *sorted(labels_of_node(each.labels, number).items()))
        for each in page
        for number in range(NODES)
    }
    assert len(fleet) == NODES * len(page)


def test_every_gpu_of_the_fleet_is_held() -> None:
    free = [each.value for each in node_page() if each.name == "seedance_gpu_free_ratio"]
    assert len(free) == 8
    assert max(free) < 1


def test_bytes_and_labels_of_a_node_agree() -> None:
    for each in node_page():
        for label, value in labels_of_node(each.labels, 107).items():
            pages = EncodedPages(each.labels[label].encode(), b"")
            assert pages.of_node(107) == value.encode()


def test_only_some_nodes_of_the_fleet_have_faults() -> None:
    page = node_page()
    assert all(each.on_node(0) for each in page)
    healthy = {each.name for each in page if each.on_node(1)}
    assert "seedance_leak_suspect_info" not in healthy
    assert "seedance_gpu_power_watts" in healthy


def test_what_rules_look_back_at_is_known_for_as_long(rules: list[Rule]) -> None:
    past = {
        each.series[0].name: each
        for each in past_of_rules(
            rules,
            Fleet(node_page(), NODES),
            rule_seconds=60,
            hour_seconds=HOUR_SECONDS,
        )
    }
    day, three_days = 24 * 3600, 72 * 3600
    up = past["node:seedance_target_up:max5m"]
    assert up.seconds == day
    assert len(up.series) == NODES
    wasted = past["tenant:seedance_gpus_wasted:rate5m"]
    assert wasted.seconds == three_days
    assert [set(each.labels) for each in wasted.series] == [{"cluster", "tenant"}] * NODES * 3
