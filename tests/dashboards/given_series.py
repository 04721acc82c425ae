"""What promtool makes of a panel's query, given a few series."""

import json
import subprocess
from pathlib import Path

from drawn_panels import substitute

RANGE = "270s"  # of five samples


def given(folder: Path, series: dict[str, str], expr: str, expected: dict[str, float]) -> None:
    """Hold a query to what promtool makes of series after five minutes, a sample a minute."""
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    question = {
        "expr": substitute(expr).replace("[4s]", "[2m]").replace("[60s]", f"[{RANGE}]"),
        "eval_time": "5m",
        "exp_samples": samples,
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [question],
    }
    file = folder / "query.test.yml"
    file.write_text(json.dumps({"tests": [test]}))
    done = subprocess.run(
        ["promtool", "test", "rules", file.name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
