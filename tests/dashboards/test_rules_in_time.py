"""Rules evaluated over a history give what `promtool test rules` gives for the same series."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.dashboards.history import History, empty_prometheus
from tests.dashboards.remote_write import STALE, Labels, Samples, labels_of, push
from tests.dashboards.rules_in_time import evaluate, read_rules

STEP_S, STEPS = 15, 20
GAP = "_"
RULES = """
groups:
  - name: read-first
    rules:
      - alert: Hot
        expr: hot > 0
        for: 45s
        labels: {severity: page}
      - alert: Resets
        expr: increase(resets_total[1m]) > 0
      - alert: Silent
        expr: absent(up{job="gpu"} == 1)
        for: 1m
      - record: watts:of_the_rack
        expr: watts / on (rack) group_left () rack:watts:sum
  - name: evaluated-first
    rules:
      - record: rack:watts:sum
        expr: sum by (rack) (watts)
      - record: hot
        expr: rack:watts:sum > 250
        labels: {of: racks}
"""
SERIES: dict[tuple[str, ...], list[Any]] = {
    ("watts", "rack", "a", "gpu", "0"): [100] * 5 + [200] * 9 + [100] * 6,
    ("watts", "rack", "a", "gpu", "1"): [100] * 8 + [GAP] * 2 + [140] * 10,
    ("watts", "rack", "b", "gpu", "0"): [300] * 7 + [STALE] + [GAP] * 4 + [260] * 8,
    ("resets_total", "gpu", "0"): [0] * 6 + [1] * 7 + [2] * 7,
    ("up", "job", "gpu"): [1] * 10 + [0] * 7 + [1] * 3,
}


RECORDED = ("rack:watts:sum", "hot", "watts:of_the_rack", "ALERTS", "ALERTS_FOR_STATE")
START = 1_790_000_040.0


def test_rules_over_a_history_give_what_promtool_gives(tmp_path: Path) -> None:
    rules = tmp_path / "made-up.rules.yml"
    rules.write_text(RULES)
    with empty_prometheus(tmp_path) as url:
        history = History(url, START, START + STEP_S * (STEPS - 1))
        push(url, written())
        evaluated = evaluate(
            read_rules([rules], interval_s=STEP_S),
            lambda expr, step_s: history.range(expr, step=step_s),
            end=history.end,
        )
        for encoded in evaluated:
            push(url, encoded)
        expected = [answer(history, name, step) for name in RECORDED for step in range(STEPS)]
    assert {"pending", "firing"} <= set(re.findall(r'alertstate="(\w+)"', str(expected)))
    assert len({len(each["exp_samples"]) for each in expected}) > 3
    done = run_promtool(tmp_path, rules, expected)
    assert done.returncode == 0, done.stdout + done.stderr
    expected[-1]["exp_samples"].pop()
    assert run_promtool(tmp_path, rules, expected).returncode == 1


def written() -> dict[Labels, bytearray]:
    samples = Samples()
    for key, values in SERIES.items():
        series = labels_of(key[0], labels(key))
        for step, value in enumerate(values):
            if value != GAP:
                samples.add(series, round(1000 * (START + step * STEP_S)), value)
    return samples.encoded


def labels(key: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(key[1::2], key[2::2], strict=True))


def answer(history: History, name: str, step: int) -> dict[str, Any]:
    """What our Prometheus answers at a step, as promtool is to: its time begins at 0."""
    expr = name + " - {}" * (name == "ALERTS_FOR_STATE")
    samples = [
        {"labels": text(row["metric"]), "value": float(row["value"][1])}
        for row in history.instant(expr.format(START), START + step * STEP_S)
    ]
    return {"expr": expr.format(0), "eval_time": f"{step * STEP_S}s", "exp_samples": samples}


def text(metric: dict[str, str]) -> str:
    inside = ",".join(f'{name}="{of}"' for name, of in metric.items() if name != "__name__")
    return f"{metric.get('__name__', '')}{{{inside}}}"


def run_promtool(
    folder: Path, rules: Path, expected: list[dict[str, Any]]
) -> subprocess.CompletedProcess[str]:
    series = [
        {
            "series": text({"__name__": key[0], **labels(key)}),
            "values": " ".join("stale" if value is STALE else str(value) for value in values),
        }
        for key, values in SERIES.items()
    ]
    test = {
        "rule_files": [str(rules)],
        "evaluation_interval": f"{STEP_S}s",
        "group_eval_order": ["evaluated-first", "read-first"],
        "tests": [{"interval": f"{STEP_S}s", "input_series": series, "promql_expr_test": expected}],
    }
    file = folder / "made-up.test.yml"
    file.write_text(json.dumps(test))
    return subprocess.run(
        ["promtool", "test", "rules", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
