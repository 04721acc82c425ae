"""Who hears of an alert and which alerts are echoes, by amtool and a running Alertmanager."""

import json
import re
import subprocess
import time
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from seedance_obs.demo.programs import Programs, find_program, free_port, wait_until

ALERTS = Path(__file__).parents[2] / "alerts"
CONFIG = ALERTS / "alertmanager.yml"
OPENER = build_opener(ProxyHandler({}))


def amtool(*command: str | Path) -> str:
    done = subprocess.run(
        ["amtool", *map(str, command)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_amtool_accepts_the_file_and_its_template() -> None:
    said = amtool("check-config", CONFIG)
    assert "1 templates" in said
    assert "FAILED" not in said


def test_the_examples_behind_a_hash_are_configuration(tmp_path: Path) -> None:
    text = CONFIG.read_text()
    taken = re.sub(r"^( *)#(?=\S|  )", r"\1", text, flags=re.MULTILINE)
    assert taken.count("_configs:") == text.count("\n    webhook_configs:") + 2
    (tmp_path / "alertmanager.yml").write_text(taken)
    (tmp_path / "seedance.tmpl").write_bytes((ALERTS / "seedance.tmpl").read_bytes())
    amtool("check-config", tmp_path / "alertmanager.yml")


def test_every_template_that_is_named_is_there() -> None:
    named = set(re.findall(r'template "([\w.]+)" \. ', CONFIG.read_text()))
    there = set(re.findall(r'define "([\w.]+)"', (ALERTS / "seedance.tmpl").read_text()))
    assert named
    assert named <= there


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("severity=critical topic=health", "page"),
        ("severity=critical topic=energy", "page"),
        ("severity=warning topic=health", "ticket"),
        ("severity=warning topic=leaks", "ticket"),
        ("severity=info topic=contention", "info"),
        ("severity=info tenant=example", "tenant-example,info"),
        ("severity=critical tenant=example", "tenant-example,page"),
        ("severity=warning tenant=unallocated topic=energy", "ticket"),
        ("alertname=SomebodyElses", "ticket"),
    ],
)
def test_severity_and_tenant_decide_who_hears_of_it(labels: str, receivers: str) -> None:
    said = amtool("config", "routes", "test", f"--config.file={CONFIG}", *labels.split())
    assert said.strip() == receivers


GPU = "instance=n1 gpu_uuid=GPU-5"
XID79 = f"alertname=SeedanceGpuXidCritical severity=critical topic=health xid=79 class=bus {GPU}"
DOWN = "alertname=SeedanceTargetDown severity=critical topic=exporter instance=n1"
LOST = f"alertname=SeedanceGpuLost severity=critical topic=health {GPU}"
MISSING = "alertname=SeedanceGpuMissing severity=warning topic=health instance=n1"
XID74 = "alertname=X severity=warning xid=74 class=nvlink instance=n1 gpu_uuid=GPU-6"
XID45 = "alertname=Y severity=info xid=45 class=consequence instance=n1 gpu_uuid=GPU-6"
XID48 = f"alertname=SeedanceGpuXidCritical severity=critical xid=48 class=memory {GPU}"
LINKS = "alertname=SeedanceNvlinkDown severity=warning instance=n1 gpu_uuid=GPU-6"
NOISY = "alertname=C severity=warning topic=contention instance=n1 segment=s direction=transmit"
LEAK = "alertname=L severity=warning topic=leaks instance=n1 suspect=1"
FLEET = "alertname=F severity=warning topic=fragmentation"
THRESHOLDS = "alertname=SeedanceThresholdsMissing severity=warning topic=exporter"


def at(labels: str, **changed: str) -> str:
    """The labels with some of them different."""
    pairs = dict(pair.split("=", 1) for pair in labels.split()) | changed
    return " ".join(f"{name}={value}" for name, value in pairs.items())


# What fires together, and which of it is heard of.
SCENARIOS: dict[str, tuple[list[str], list[str]]] = {
    "a node that is down is all there is to say of it": (
        [DOWN, XID79, MISSING, LINKS, NOISY, LEAK],
        [DOWN],
    ),
    "a node that is down silences no other node and not the fleet": (
        [DOWN, at(MISSING, instance="n2"), FLEET, THRESHOLDS],
        [DOWN, at(MISSING, instance="n2"), FLEET, THRESHOLDS],
    ),
    "targets that are all gone, without a node, silence nothing": (
        [DOWN.replace(" instance=n1", ""), FLEET, THRESHOLDS, MISSING],
        [DOWN.replace(" instance=n1", ""), FLEET, THRESHOLDS, MISSING],
    ),
    "a GPU off the bus is one page": (
        [XID79, LOST, MISSING, at(XID45, gpu_uuid="GPU-5"), XID74, LINKS, NOISY],
        [XID79],
    ),
    "a GPU that is lost without an XID has no other problems": (
        [LOST, MISSING, at(LEAK, gpu_uuid="GPU-5"), at(LEAK, gpu_uuid="GPU-6")],
        [LOST, at(LEAK, gpu_uuid="GPU-6")],
    ),
    "another GPU that is lost is another page": (
        [XID79, at(LOST, gpu_uuid="GPU-7")],
        [XID79, at(LOST, gpu_uuid="GPU-7")],
    ),
    "a lost GPU that is only counted follows from the XID of its node": (
        [XID79, LOST.replace(" gpu_uuid=GPU-5", "")],
        [XID79],
    ),
    "XID 45 follows from any other XID of its node, and alone it is heard of": (
        [XID74, XID45, at(XID45, instance="n2")],
        [XID74, at(XID45, instance="n2")],
    ),
    "links fail after a GPU that does not answer": (
        [XID48, XID74, LINKS, at(LINKS, instance="n2")],
        [XID48, at(LINKS, instance="n2")],
    ),
    "traffic meets on the detours around links with errors": (
        [XID74, NOISY, at(NOISY, instance="n2")],
        [XID74, at(NOISY, instance="n2")],
    ),
    "the louder of two alerts on one device says it all": (
        [
            at(NOISY, severity="critical"),
            NOISY,
            at(NOISY, severity="info"),
            at(NOISY, segment="t"),
            at(NOISY, direction="receive"),
            at(LEAK, severity="info"),
            LEAK,
            at(LEAK, suspect="2", severity="info"),
        ],
        [
            at(NOISY, severity="critical"),
            at(NOISY, segment="t"),
            at(NOISY, direction="receive"),
            LEAK,
            at(LEAK, suspect="2", severity="info"),
        ],
    ),
    "thresholds that are missing silence nothing and are heard of": (
        [THRESHOLDS, FLEET, MISSING, XID79.replace("n1", "n2")],
        [THRESHOLDS, FLEET, MISSING, XID79.replace("n1", "n2")],
    ),
}


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """By scenario, each in a cluster of its own: the alerts that Alertmanager does not inhibit."""
    folder = tmp_path_factory.mktemp("alertmanager")
    url = f"http://127.0.0.1:{free_port()}"
    programs = Programs(folder)
    try:
        programs.start(
            "alertmanager",
            [
                find_program("alertmanager"),
                f"--config.file={CONFIG}",
                f"--storage.path={folder}",
                f"--web.listen-address={url.removeprefix('http://')}",
                "--cluster.listen-address=",
            ],
        )
        wait_until(lambda: _answers(url), programs, seconds=30, what="Alertmanager's start")
        body = [
            {"labels": dict(pair.split("=", 1) for pair in labels.split()) | {"cluster": name}}
            for name, (firing, _) in SCENARIOS.items()
            for labels in firing
        ]
        headers = {"Content-Type": "application/json"}
        OPENER.open(Request(f"{url}/api/v2/alerts", json.dumps(body).encode(), headers), timeout=5)
        return _settled(url, len(body))
    finally:
        programs.stop()


def _answers(url: str) -> bool:
    try:
        return bool(OPENER.open(f"{url}/-/ready", timeout=5).status == 200)
    except OSError:
        return False


def _settled(url: str, count: int) -> dict[str, set[str]]:
    """What is heard of once two looks in a row agree: sources of inhibition arrive one by one."""
    before: dict[str, set[str]] | None = None
    for _ in range(50):
        alerts = json.load(OPENER.open(f"{url}/api/v2/alerts", timeout=5))
        now: dict[str, set[str]] = {name: set() for name in SCENARIOS}
        for alert in alerts:
            if not alert["status"]["inhibitedBy"]:
                pairs = (f"{k}={v}" for k, v in alert["labels"].items() if k != "cluster")
                now[alert["labels"]["cluster"]].add(" ".join(sorted(pairs)))
        if len(alerts) == count and now == before:
            return now
        before = now
        time.sleep(0.2)
    raise AssertionError("Alertmanager does not settle")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cause_is_heard_of_and_its_echoes_are_not(
    heard: dict[str, set[str]], name: str
) -> None:
    expected = SCENARIOS[name][1]
    assert heard[name] == {" ".join(sorted(labels.split())) for labels in expected}
