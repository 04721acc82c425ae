"""What comes and goes for hours is told once, or seldom, whatever it is and however fast."""

import re
import subprocess
from itertools import accumulate, chain, islice, repeat
from pathlib import Path

import pytest
import yaml

ALERTS = Path(__file__).parents[2] / "alerts"
MINUTES = 150
LINK = 'instance="n1",gpu="0",gpu_uuid="GPU-0",pci_bus_id="0000:1a:00.0"'
SUSPECT = 'instance="n1",kind="fd_growth",suspect="s1"'
SEGMENT = 'instance="n1",segment="s",segment_kind="pcie_switch",direction="receive"'

# By topic: an alert, and its series with what they show minute by minute, again and again.
FLAPPING: dict[str, tuple[str, dict[str, list[float | None]]]] = {
    "health": (
        "SeedanceNvlinkFabricDegraded",
        {
            f'seedance_gpu_nvlinks_{what}{{job="gpu",instance="n1",gpu_uuid="GPU-{gpu}"}}': values
            for gpu in range(3)
            for what, values in {"expected": [18], "active": [17, 17, 17, 18, 18]}.items()
        },
    ),
    "health, one GPU": (
        "SeedanceGpuNvlinksDown",
        {
            f'seedance_gpu_nvlinks_expected{{job="gpu",{LINK}}}': [4],
            f'seedance_gpu_nvlinks_active{{job="gpu",{LINK}}}': [3, 3, 3, 4, 4],
        },
    ),
    "exporter": ("SeedanceTargetFlaky", {'up{job="gpu",instance="n1"}': [0, 0, 0, 0, 1]}),
    "contention": (
        "SeedanceSegmentContended",
        {f'seedance_segment_contention_seconds_total{{job="gpu",{SEGMENT}}}': [60] * 5 + [0] * 3},
    ),
    "placement": (
        "SeedanceGpuLinkDegradedUnderLoad",
        {
            f'seedance_gpu_pcie_link_degraded{{job="gpu",{LINK}}}': [1],
            f'seedance_gpu_pcie_link_generation{{job="gpu",{LINK}}}': [4],
            f'seedance_gpu_pcie_link_generation_max{{job="gpu",{LINK}}}': [5],
            f'seedance_gpu_pcie_link_width{{job="gpu",{LINK}}}': [16],
            f'seedance_gpu_pcie_link_width_max{{job="gpu",{LINK}}}': [16],
            f'seedance_gpu_link_capacity_bytes_per_second{{job="gpu",medium="pcie",{LINK}}}': [64],
            f'seedance_gpu_link_mean_bytes_per_second{{job="gpu",medium="pcie",{LINK}}}': (
                [28] * 15 + [0] * 5
            ),
        },
    ),
    "leaks": (
        "SeedanceOpenFilesGrowing",
        {
            f'seedance_leak_suspect_info{{job="gpu",{SUSPECT},comm="python"}}': [1, None, None],
            f'seedance_leak_fd_growth_per_second{{job="gpu",{SUSPECT}}}': [9, None, None],
        },
    ),
    "energy": (
        "SeedanceGpuPowerCapped",
        {
            f'seedance_gpu_clocks_event_active{{job="gpu",reason="sw_power_cap",{LINK}}}': (
                [1] * 19 + [0]
            )
        },
    ),
    "fragmentation": (
        "SeedanceFragmentationStranded",
        {
            'seedance_node_free_gpus{job="gpu",instance="n1"}': [16],
            'seedance_node_stranded_free_gpus{job="gpu",instance="n1"}': [12] * 18 + [4] * 2,
        },
    ),
}


def samples(series: str, pattern: list[float | None]) -> str:
    values = islice(chain.from_iterable(repeat(pattern)), MINUTES)
    shown = accumulate(each or 0 for each in values) if "_total{" in series else values
    return " ".join("_" if each is None else str(each) for each in shown)


@pytest.mark.parametrize("case", FLAPPING)
def test_an_alert_goes_on_while_its_condition_comes_and_goes(tmp_path: Path, case: str) -> None:
    alert, series = FLAPPING[case]
    firing = f'(count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0))'
    test = {
        "rule_files": [
            str(ALERTS / f"{name}.rules.yml")
            for name in ("thresholds", "recording", case.partition(",")[0])
        ],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": each, "values": samples(each, pattern)}
                    for each, pattern in series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f"{function}({firing}[1h:1m])",
                        "eval_time": f"{MINUTES - 1}m",
                        "exp_samples": [{"labels": "{}", "value": value}],
                    }
                    for function, value in (("resets", 0), ("max_over_time", 1))
                ],
            }
        ],
    }
    (tmp_path / "flapping.test.yml").write_text(yaml.safe_dump(test, width=100_000))
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "flapping.test.yml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alertmanager_sends_few_messages_an_hour_of_a_node_and_a_kind_of_fault() -> None:
    route = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())["route"]
    assert "alertname" in route["group_by"]
    for each in (route, *route["routes"]):
        interval = each.get("group_interval", route["group_interval"])
        most = 4 if each["receiver"] == "page" else 2
        assert 60 / minutes(interval) <= most, each


def minutes(duration: str) -> int:
    return int(duration[:-1]) * {"m": 1, "h": 60}[duration[-1]]


def topic_files() -> list[Path]:
    recorded = ("recording", "thresholds")
    return [f for f in sorted(ALERTS.glob("*.rules.yml")) if not f.name.startswith(recorded)]


@pytest.mark.parametrize("file", topic_files(), ids=lambda file: file.name)
def test_every_alert_says_why_it_waits_as_it_does(file: Path) -> None:
    spoken = re.compile(r"minute|hour|\bwait|\bpatience|`for`|[Aa]s above")
    comments = re.findall(r"((?:^ *#.*\n)*)^ *- alert: (\w+)", file.read_text(), flags=re.MULTILINE)
    assert comments
    assert {alert for comment, alert in comments if not spoken.search(comment)} == set()
