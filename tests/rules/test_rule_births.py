"""Counters: those that are born by their first event, and those on which an alert would stay."""

from pathlib import Path

import pytest

from seedance_obs.rules.series import BORN_BY_AN_EVENT, read_contract
from tests.rules.small_rules import ENERGY, HEAT, ROOT, SEEN, XID, alert, of_query, sentences

BIRTH = f"or ({XID} unless {XID} offset 10m) > 0"
MOST = f"max by (instance, gpu_uuid, xid) ({XID})"
LATER = f"last_over_time({XID}[6h] offset 10m)"

# A query that is blind to a birth, a word of what is said about it, and the same put right.
QUERIES: dict[str, tuple[str, str, str]] = {
    "the first event of a counter": (
        f"increase({XID}[10m]) > 0",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 {BIRTH}",
    ),
    "the birth of other series": (
        f'increase({XID[:-1]},class="bus"}}[10m]) > 0 {BIRTH}',
        "is born by its first event",
        f"sum by (instance) (increase({XID}[10m]) {BIRTH}) > 0",
    ),
    "a birth beside older series of one sum": (
        f"increase({XID}[10m]) > 0 or (sum({XID}) unless sum({XID} offset 10m))",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or ({MOST} unless {MOST[:-1]} offset 10m))",
    ),
    "a birth that is subtracted to nothing": (
        f"increase({XID}[10m]) > 0 or {XID} - {XID} offset 10m > 0",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or {XID} - ({XID} offset 10m or 0 * {XID}) > 0",
    ),
    "a birth that is subtracted twice over": (
        f"increase({XID}[10m]) > 0 or {XID} - ({XID} offset 10m or 1 * {XID}) > 0",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or {XID} - ({XID} offset 10m or {LATER} or 0 * {XID}) > 0",
    ),
    "a rate above zero": (
        f"rate({XID}[10m]) > 0",
        "is born by its first event",
        f'rate({XID}[10m]) > scalar(seedance:threshold{{of="share"}})',
    ),
    "a rate above next to nothing": (
        f"600 * rate({XID}[10m]) >= 1e-9",
        "is born by its first event",
        f"rate({XID}[10m]) > 1e-9 {BIRTH}",
    ),
    "changes": (
        f"changes({XID}[10m]) > 0",
        "is born by its first event",
        f"changes({XID}[10m]) > 0 {BIRTH}",
    ),
    "a difference": (
        f"{XID} - {XID} offset 10m > 0",
        "is born by its first event",
        f"{XID} - {XID} offset 10m > 0 {BIRTH}",
    ),
    "more than before": (
        f"{XID} > {XID} offset 10m",
        "is born by its first event",
        f"{XID} > ({XID} offset 10m or 0 * {XID})",
    ),
    "a birth that has to have grown as well": (
        f"increase({XID}[10m]) > 0 and ({XID} unless {XID} offset 10m)",
        "is born by its first event",
        f"(increase({XID}[10m]) > 0 {BIRTH}) and on (instance) {SEEN}",
    ),
    "a birth of another range": (
        f"increase({XID}[10m]) > 0 or ({XID} unless {XID} offset 1d)",
        "is born by its first event",
        f"increase({XID}[10m:1m]) > 0 or ({XID} unless {XID} offset 10m)",
    ),
    "a birth that has to be large": (
        f"increase({XID}[10m]) > 0 or ({XID} unless {XID} offset 10m) > 1e9",
        "is born by its first event",
        f"increase({XID}[10m]) > 1e9 {BIRTH}",
    ),
    "a birth on a node that had none": (
        f"increase({XID}[10m]) > 0 or ({XID} unless on (instance) {XID} offset 10m)",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or (last_over_time({XID}[5m]) unless {XID} offset 10m)",
    ),
    "a birth unless something else": (
        f"increase({XID}[10m]) > 0 or ({XID} unless ({XID} offset 10m or {SEEN}))",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or ({XID} unless ({XID} offset 10m or {LATER}))",
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_growth_without_its_birth_is_found_and_with_it_passes(folder: Path, name: str) -> None:
    wrong, said, right = QUERIES[name]
    assert any(said in each for each in of_query(folder, wrong))
    assert of_query(folder, right) == []


def test_the_max_of_a_counter_by_what_names_it_is_a_counter_that_is_born_as_it_is(
    folder: Path,
) -> None:
    most = {"record": "xid:max", "expr": f"max by (instance, gpu_uuid, xid) ({XID})"}
    blind = {"record": "b", "expr": "increase(xid:max[10m])"}
    sees = {"record": "b", "expr": "increase(xid:max[10m]) or xid:max unless xid:max offset 10m"}
    assert sentences(folder, most, sees) == []
    (said,) = sentences(folder, most, blind)
    assert said.startswith("xid:max is born by its first event")
    (said,) = sentences(folder, most, {"record": "b", "expr": "deriv(xid:max[10m])"})
    assert "which is a counter" in said


@pytest.mark.parametrize(
    "expr",
    [
        f"{XID} > 0",
        f"sum by (instance, gpu) ({XID}) >= 3",
        f"2 < max_over_time({XID}[1h])",
        f"max by (instance, gpu) ({XID} > 0)",
        f"{HEAT} > 90 or {ENERGY} > 1e9",
    ],
)
def test_an_alert_on_the_value_of_a_counter_does_not_end(folder: Path, expr: str) -> None:
    (said,) = sentences(folder, alert(expr=expr))
    assert "is a counter and never falls" in said


def test_the_value_of_a_counter_may_be_asked_for_beside_something_else(folder: Path) -> None:
    for expr in (f"{XID} > 0 and on (instance) {SEEN} < 8", f"count({XID}) > 3"):
        assert not any("never falls" in each for each in sentences(folder, alert(expr=expr)))


def test_counters_that_are_born_by_an_event_are_counters_of_the_contract() -> None:
    known = read_contract(ROOT / "exporters")
    assert {known.type_of(name) for name in BORN_BY_AN_EVENT} == {"counter"}
