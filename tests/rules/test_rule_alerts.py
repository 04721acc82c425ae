"""Alerts: each check over the one alert that is right and something that is changed of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.rules.small_rules import HEAT, SEEN, alert, check, sentences


def test_an_alert_that_is_right_passes_every_check(folder: Path) -> None:
    assert check(folder, alert()) == []


# What is changed of the alert that is right, and what is said about it.
ALERTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a value in a label": (
        {"labels": {"severity": "warning", "level": "{{ $value }}"}},
        ["the label level is a template"],
    ),
    "another template in a label": (
        {"labels": {"severity": "warning", "level": "{{ $labels.gpu }}"}},
        ["the label level is a template"],
    ),
    "a value in a label by way of the query": (
        {"expr": f'count_values by (instance, gpu) ("degrees", {HEAT}) > 0'},
        ["count_values() makes a label of the value"],
    ),
    "the highest ones": ({"expr": f"topk(1, {HEAT}) > 90"}, ["topk() is of other series"]),
    "what vmalert refuses": (
        {"keep_firing_for": "5m"},
        ["vmalert 1.79 refuses files with keep_firing_for"],
    ),
    "an answer for every GPU": ({"expr": f"{HEAT} > bool 90"}, ["it fires wherever its series"]),
    "no comparison": ({"expr": f"2 * {HEAT}"}, ["it fires wherever its series"]),
    "a branch without comparison": (
        {"expr": f"{HEAT} > 90 or {HEAT}"},
        ["it fires wherever its series"],
    ),
    "no severity": ({"labels": {}}, ["it has no severity: critical, warning or info is wanted"]),
    "a severity of one's own": ({"labels": {"severity": "page"}}, ["it has the severity 'page'"]),
    "no summary": ({"annotations": {"summary": None}}, ["it has no summary"]),
    "an empty description": ({"annotations": {"description": " "}}, ["it has no description"]),
    "no value": (
        {"annotations": {"description": "Hot on {{ $labels.instance }}."}},
        ["the description does not say the value"],
    ),
    "a value in a comment": (
        {"annotations": {"description": "{{/* $value */}}Hot on {{ $labels.instance }}."}},
        ["the description does not say the value"],
    ),
    "a value that is not filled in": (
        {"annotations": {"description": "$value degrees on {{ $labels.instance }}."}},
        ["the description does not say the value"],
    ),
    "no node": (
        {"annotations": {"summary": "Hot", "description": "{{ $value }}"}},
        ["the summary does not say where", "the description does not say where"],
    ),
    "a label that is misspelt": (
        {"annotations": {"summary": "{{ $labels.instance }} {{ $labels.gpuid }}"}},
        ["summary names the label gpuid, which the query does not leave"],
    ),
    "a label that was summed away": (
        {"expr": f"max by (instance) ({HEAT}) > 90"},
        ["summary names the label gpu, which the query does not leave: instance"],
    ),
    "no runbook": (
        {"annotations": {"runbook_url": None}},
        ["it has no runbook_url that ends in #seedancetry"],
    ),
    "another alert's entry": (
        {"annotations": {"runbook_url": "alerts/runbook.md#seedanceother"}},
        ["it has no runbook_url that ends in #seedancetry"],
    ),
    "an entry that is not there": (
        {"alert": "SeedanceOther", "annotations": {"runbook_url": "runbook.md#seedanceother"}},
        ["runbook.md has no entry ## SeedanceOther", "no alert here is called so"],
    ),
    "no dashboard": ({"annotations": {"dashboard": None}}, ["it has no dashboard"]),
    "a dashboard that is not there": (
        {"annotations": {"dashboard": "/d/nowhere?var-node={{ $labels.instance }}"}},
        ["no dashboard has the uid nowhere"],
    ),
    "a query that cannot be read": ({"expr": "sum("}, ["it cannot be read: "]),
}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_that_is_not_fit_for_a_person_is_found(folder: Path, name: str) -> None:
    changes, said = ALERTS[name]
    found = sentences(folder, alert(**changes))
    assert len(found) == len(said)
    assert all(any(start in each for each in found) for start in said)


def test_an_alert_of_the_whole_fleet_names_no_device(folder: Path) -> None:
    notes = {
        "summary": "The fleet is hot",
        "description": "{{ $value }} degrees.",
        "dashboard": "/d/seedance-gpu-topology",
    }
    for query in ("max", "max by (cluster, job)"):
        assert check(folder, alert(expr=f"{query} ({HEAT}) > 90", annotations=notes)) == []


def test_an_alert_of_part_of_the_fleet_names_the_part(folder: Path) -> None:
    expr = 'sum by (segment) (seedance_segment_capacity_bytes_per_second{job="gpu"}) > 0'
    notes = {"summary": "Full", "description": "{{ $value }} at {{ $labels.segment }}"}
    said = sentences(
        folder, alert(expr=expr, annotations={**notes, "dashboard": "/d/seedance-gpu-topology"})
    )
    assert said == ["the summary names no device: of segment it has none"]


@pytest.mark.parametrize(
    "expr",
    [
        f"max by (instance, gpu) ({HEAT} > 90 or 0 * hot > 0)",
        "hot",
        "max_over_time(hot[5m]) > bool 100",
        'label_replace(seedance_topology_device_info{job="gpu",state="missing"}, "a", "b", "", "")',
        f"{HEAT} unless on (instance) {SEEN}",
        f"{HEAT} * on (instance) group_left () (absent({SEEN}) and on () up)",
    ],
)
def test_a_condition_may_be_anywhere_in_an_alert(folder: Path, expr: str) -> None:
    hot = {"record": "hot", "expr": f"{HEAT} > 80"}
    found = sentences(folder, hot, alert(expr=expr))
    assert not any("it fires wherever" in each for each in found)


@pytest.mark.parametrize(
    "expr",
    [
        f'{HEAT[:-1]},gpu="3"}}',
        'seedance_topology_device_info{job="gpu"}',
        f"{HEAT} * scalar({HEAT} > 90)",
        "warm",
    ],
)
def test_what_is_there_in_any_case_is_no_condition(folder: Path, expr: str) -> None:
    warm = {"record": "warm", "expr": f"{HEAT} + 1"}
    found = sentences(folder, warm, alert(expr=expr))
    assert any("it fires wherever its series are" in each for each in found)


def test_values_may_be_counted_where_another_series_says_which_there_are(folder: Path) -> None:
    asked = f'count_values by (instance) ("gpu", {HEAT})'
    found = sentences(folder, alert(expr=f"{asked} and on (instance, gpu) {HEAT} > 90"))
    assert found == []


def test_two_numbers_are_no_condition(folder: Path) -> None:
    found = sentences(folder, alert(expr="vector(1) > 0"))
    assert any("it fires wherever its series are" in each for each in found)
