"""Queries: each check over one that is wrong and one that is right."""

from pathlib import Path

import pytest

from tests.rules.small_rules import ENERGY, HEAT, POWER, SEEN, of_query, sentences

# A query that is wrong, a word of what is said about it, and the same put right.
QUERIES: dict[str, tuple[str, str, str]] = {
    "a name that nobody shows": ("seedance_gpu_heat", "in no scrape", HEAT),
    "a name deep inside": (
        f"sum by (job) (rate(nobody_total[5m])) / on () ({SEEN} > 0)",
        "nobody_total is in no scrape",
        "cluster:seedance_gpus_seen:sum",
    ),
    "a selector without a name": (
        '{job="gpu"}',
        "names no metric",
        '{__name__="seedance_gpus_seen",job="gpu"}',
    ),
    "a selector without a job": ("seedance_gpus_seen", 'without job="gpu"', SEEN),
    "a job that is misspelt": ('seedance_gpus_seen{job="gup"}', 'without job="gpu"', SEEN),
    "any job": ('seedance_gpus_seen{job=~".*"}', 'without job="gpu"', SEEN),
    "a label that no series has": (
        'seedance_gpus_seen{job="gpu",gpu_uiid="x"}',
        "no series here has the label gpu_uiid",
        f'{SEEN[:-1]},cluster!=""}}',
    ),
    "a label to group by that no series has": (
        f"sum by (instance, gpu) ({SEEN})",
        "no series here has the label gpu: there are cluster, instance, job",
        f"sum by (instance, gpu) ({HEAT})",
    ),
    "up is nobody's in particular": (f"up2 and {SEEN}", "up2 is in no scrape", "up"),
    "a threshold that nobody sets": (
        f'{SEEN} > scalar(seedance:threshold{{of="shore"}})',
        "the threshold 'shore' is set by no rule",
        f'{SEEN} > scalar(seedance:threshold{{of="share"}})',
    ),
    "one of several thresholds": (
        'seedance:threshold{of=~"share|shore|other"}',
        "the threshold 'shore'",
        'seedance:threshold{of=~"share|other"}',
    ),
    "a pattern of thresholds": (
        'seedance:threshold{of=~"x.+"}',
        "matches 'x.+'",
        'seedance:threshold{of=~"sh.+"}',
    ),
    "a threshold of any name": (
        f"{SEEN} > scalar(seedance:threshold)",
        "of more than one",
        "count by (of) (seedance:threshold) > 1",
    ),
    "rate of a gauge": (f"rate({HEAT}[5m])", "which is a gauge", f"rate({ENERGY}[5m])"),
    "increase of a gauge in a subquery": (
        f"increase(({HEAT})[5m:1m])",
        "which is a gauge",
        f"max_over_time(({HEAT})[5m:1m])",
    ),
    "rate of gauges that something is done to": (
        f"rate(({POWER} + 0)[5m:1m])",
        "rate() of what is computed",
        f"rate(({ENERGY})[5m:1m])",
    ),
    "increase of two series": (
        f"increase(({POWER} or {HEAT})[5m:1m])",
        "increase() of what is computed",
        f"increase({ENERGY}[5m]) or increase({ENERGY}[1h])",
    ),
    "rate of the highest of a gauge": (
        f"rate(max_over_time({POWER}[1m])[5m:1m])",
        "rate() of what is computed",
        f"max_over_time(rate({ENERGY}[1m])[5m:1m])",
    ),
    "deriv of a counter in a product": (
        f"deriv((1 * {ENERGY})[5m:1m])",
        "deriv() of seedance_gpu_energy_joules_total, which is a counter",
        f"deriv(rate({ENERGY}[5m])[1h:1m]) + deriv(count({ENERGY})[1h:1m])",
    ),
    "deriv of a counter": (
        f"deriv({ENERGY}[5m])",
        "deriv() of seedance_gpu_energy_joules_total, which is a counter",
        f"deriv({HEAT}[5m])",
    ),
    "delta of a counter": (f"delta({ENERGY}[5m])", "which is a counter", f"delta({HEAT}[5m])"),
    "rate of a sum": (
        f"rate(sum({ENERGY})[5m:1m])",
        "sum of rate()",
        f"sum(rate({ENERGY}[5m]))",
    ),
    "rate of what a rule records": (
        "increase(cluster:seedance_gpus_seen:sum[5m])",
        "which a rule computes",
        "max_over_time(cluster:seedance_gpus_seen:sum[5m])",
    ),
    "absence on every cluster without GPUs": (
        'absent(up{job="gpu"})',
        "absent() holds on every cluster",
        f'absent(up{{job="gpu"}}) and on () count({SEEN} offset 1h) > 0',
    ),
    "absence joined to another absence": (
        f"absent({SEEN}) and absent_over_time({SEEN}[1h])",
        "holds on every cluster",
        f"{SEEN} unless on () absent({HEAT})",
    ),
    "absence unless something is there": (
        f"absent({SEEN}) unless on () up",
        "holds on every cluster",
        f"(absent({SEEN}) or absent({HEAT})) * on () group_left () count(up)",
    ),
    "absence beside a constant": (
        f"absent({SEEN}) and on () vector(1)",
        "holds on every cluster",
        f"up and on () absent({SEEN})",
    ),
    "nothing counted as zero": (
        f"(count({SEEN}) or vector(0)) == 0",
        "vector() holds on every cluster",
        f"(count({SEEN} > 0) or vector(0)) == 0 and on () up",
    ),
    "a constant unless something is there": (
        f"vector(1) unless on () {SEEN}",
        "vector() holds on every cluster",
        f"up unless on () {SEEN}",
    ),
    "a division by zero": (
        f"{HEAT} / {HEAT}",
        "divides by what can be 0",
        f"{HEAT} / ({HEAT} > 0)",
    ),
    "a guard that binds to the quotient": (
        f"sum({SEEN}) / sum({SEEN}) > 0",
        "divides by what can be 0",
        f"sum({SEEN}) / (sum({SEEN}) > 0)",
    ),
    "a guard that is an answer and no filter": (
        f"{SEEN} / ({SEEN} > bool 0)",
        "divides by what can be 0",
        f"{SEEN} / 3600 + {SEEN} / clamp_min({SEEN}, 1)",
    ),
    "a divisor of which one addend can be zero": (
        f"{SEEN} / (({SEEN} > 0) + {SEEN})",
        "divides by what can be 0",
        f"{SEEN} / ({SEEN} + 1 > 0)",
    ),
    "a divisor whose parts may cancel out": (
        f"{SEEN} / on () group_left () sum({SEEN} - 5 != 0)",
        "divides by what can be 0",
        f"{SEEN} / ({SEEN} - 5 != 0)",
    ),
    "a divisor that is not five": (
        f"{SEEN} / ({SEEN} != 5)",
        "divides by what can be 0",
        f"{SEEN} / ({SEEN} != 0)",
    ),
    "a divisor that is at least zero": (
        f"{SEEN} / ({SEEN} >= 0)",
        "divides by what can be 0",
        f"{SEEN} / ({SEEN} >= 1)",
    ),
    "a number of samples": (
        f"{SEEN} / resets({SEEN}[5m])",
        "divides by what can be 0",
        f"sum_over_time({SEEN}[5m]) / count_over_time({SEEN}[5m]) / time() / exp({SEEN})",
    ),
    "a power": (f"{SEEN} / {SEEN} ^ 2", "divides by what can be 0", f"{SEEN} / 2 ^ {SEEN}"),
    "a clamped divisor": (
        f"{SEEN} / clamp({SEEN}, 0, 2)",
        "divides by what can be 0",
        f"{SEEN} / clamp({SEEN}, 1, 2)",
    ),
    "a divisor rounded to zero": (
        f"{SEEN} / floor({SEEN} > 0)",
        "divides by what can be 0",
        f'{SEEN} / ceil({SEEN} > 0) / label_replace(abs({SEEN} > 0), "a", "b", "job", ".*")',
    ),
    "a guard from the other side": (
        f"{SEEN} / (0 <= {SEEN})",
        "divides by what can be 0",
        f"{SEEN} / (0 < {SEEN}) / (1 <= {SEEN})",
    ),
    "a recorded divisor": (
        f"{SEEN} / on () group_left () cluster:seedance_gpus_seen:sum",
        "divides by what can be 0",
        f'{SEEN} / on () group_left () count({SEEN}) / scalar(seedance:threshold{{of="share"}})',
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_is_wrong_is_found_and_one_that_is_right_passes(
    folder: Path, name: str
) -> None:
    wrong, said, right = QUERIES[name]
    assert any(said in each for each in of_query(folder, wrong))
    assert of_query(folder, right) == []


def test_a_recorded_divisor_passes_if_it_is_guarded_where_it_is_recorded(folder: Path) -> None:
    guarded = {"record": "a", "expr": f"sum({SEEN}) > 0"}
    divided = {"record": "b", "expr": f"{SEEN} / on () group_left () a"}
    assert sentences(folder, guarded, divided) == []


def test_series_of_others_are_known_by_name_or_pattern(folder: Path) -> None:
    rule = {"record": "a", "expr": "node_load1 + on () group_right () kube_node_info"}
    assert len(sentences(folder, rule)) == 2
    assert sentences(folder, rule, foreign=("node_*", "kube_node_info")) == []
    (said,) = sentences(folder, rule, foreign=("node_*", "kube"))
    assert said.startswith("kube_node_info is in no scrape")
