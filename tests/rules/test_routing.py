"""Who hears of an alert and which alerts are echoes, by amtool and a running Alertmanager."""

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest
import yaml

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


def at(labels: str, **changed: str) -> str:
    """The labels with some of them different."""
    pairs = dict(pair.split("=", 1) for pair in labels.split()) | changed
    return " ".join(f"{name}={value}" for name, value in pairs.items())


GPU = "topic=health instance=n1 gpu_uuid=GPU-5"
PEER = "topic=health instance=n1 gpu_uuid=GPU-6"
FLEET_DOWN = "alertname=SeedanceFleetUnobserved severity=critical topic=exporter"
DOWN = "alertname=SeedanceTargetDown severity=warning topic=exporter instance=n1"
LOST = f"alertname=SeedanceGpuLost severity=critical {GPU}"
MISSING = "alertname=SeedanceGpuMissing severity=warning topic=health instance=n1"
XID48 = f"alertname=SeedanceGpuXidCritical severity=critical xid=48 class=memory {GPU}"
XID74 = f"alertname=SeedanceGpuXidNvlink severity=warning xid=74 class=nvlink {PEER}"
XID45 = f"alertname=SeedanceGpuXidUnexplained severity=info xid=45 class=consequence {PEER}"
XID31 = f"alertname=SeedanceGpuXidApplication severity=info {GPU} tenant=example"
REMAP = f"alertname=SeedanceGpuRowRemapFailed severity=critical {GPU}"
FABRIC = "alertname=SeedanceNvlinkFabricDegraded severity=critical topic=health instance=n1"
LINKS = f"alertname=SeedanceGpuNvlinksDown severity=warning {PEER}"
DRIVER = "alertname=SeedanceGpuSourcesDown severity=critical topic=exporter instance=n1"
FLAKY = "alertname=SeedanceTargetFlaky severity=warning topic=exporter instance=n1"
STUCK = at(DRIVER, alertname="SeedanceSourceWorkersAbandoned", severity="warning", source="nvml")
NO_NVML = at(STUCK, alertname="SeedanceSourceDown")
ECC = f"alertname=SeedanceGpuEccUncorrected severity=warning {GPU}"
PENDING = f"alertname=SeedanceGpuRowRemapPending severity=warning {GPU}"
XID63 = f"alertname=SeedanceGpuXidContained severity=info xid=63 class=contained {GPU}"
LINK = f"alertname=SeedanceGpuNvlinksDown severity=warning {GPU}"
UNJOINED = f"alertname=SeedanceGpuFabricUnhealthy severity=warning {GPU}"
REPLAYS = f"alertname=SeedanceGpuPcieReplays severity=warning {GPU}"
SLOW_LINK = f"alertname=SeedanceGpuPcieLinkDegraded severity=info {GPU}"
FULL_LINK = at(SLOW_LINK, alertname="SeedanceGpuLinkDegradedUnderLoad", severity="warning")
SEGMENT = "topic=contention instance=n1 segment=s"
FULL = f"alertname=SeedanceSegmentContended severity=info {SEGMENT}"
HURTS = f"alertname=SeedanceSegmentContentionHurts severity=warning {SEGMENT}"
WHOM = f"alertname=SeedanceTenantSlowedByNeighbours severity=info tenant=example {SEGMENT}"
REMAPPABLE = f"alertname=SeedanceGpuRowRemapPending severity=warning {GPU}"
RESET = f"alertname=SeedanceGpuRecoveryActionPending severity=critical action=gpu_reset {GPU}"
DUE = RESET.replace("critical", "warning")
LEAK = "alertname=SeedanceGpuOrphaned severity=warning topic=leaks instance=n1 suspect=1"
FILES = "severity=warning topic=leaks instance=n1 workload=w comm=train tenant=example"
OUT = f"alertname=SeedanceOpenFilesRunningOut {FILES}"
GROWS = f"alertname=SeedanceOpenFilesGrowing {FILES}"
IDLE_LEAK = (
    "alertname=SeedanceIdleWindowLeaking severity=warning topic=leaks instance=n1 workload=w"
    " tenant=example"
)
PLACED = "alertname=SeedancePlacementNvlinkMissed severity=warning topic=placement instance=n1"
STRANDED = "alertname=SeedanceFragmentationStranded severity=warning topic=fragmentation"
THRESHOLDS = "alertname=SeedanceThresholdsMissing severity=warning topic=exporter of=x"
FAST = "alertname=SeedanceUsefulBudgetBurnsFast severity=critical topic=energy"
SLOW = "alertname=SeedanceUsefulBudgetBurnsSlowly severity=warning topic=energy"


# What fires together, and which of it is an echo.
SCENARIOS: dict[str, tuple[list[str], list[str]]] = {
    "a node that is down is all there is to say of it": (
        [DOWN],
        [XID48, LOST, MISSING, LINKS, FULL, LEAK],
    ),
    "a node that is down silences no other node and not the fleet": (
        [DOWN, at(MISSING, instance="n2"), STRANDED, THRESHOLDS],
        [],
    ),
    "a fleet that is down is one page": ([FLEET_DOWN, STRANDED], [DOWN, at(DOWN, instance="n2")]),
    "a down without a node silences nothing": (
        [DOWN.replace(" instance=n1", ""), STRANDED, THRESHOLDS, MISSING],
        [],
    ),
    "a GPU off the bus is one page": (
        [LOST],
        [
            MISSING,
            at(XID48, xid="119", **{"class": "driver"}),
            XID31,
            at(XID45, gpu_uuid="GPU-5"),
            XID45,
            XID74,
            LINKS,
            FABRIC,
            DRIVER,
            FULL,
        ],
    ),
    "a GPU that is lost silences its own alerts only": (
        [LOST, at(LEAK, gpu_uuid="GPU-6"), at(XID31, gpu_uuid="GPU-6"), at(MISSING, instance="n2")],
        [at(LEAK, gpu_uuid="GPU-5")],
    ),
    "another GPU that is lost is another page": ([LOST, at(LOST, gpu_uuid="GPU-7")], []),
    "XID 45 follows from any other XID of its node": ([XID74], [XID45]),
    "XID 45 alone is heard of": ([XID45, at(XID74, instance="n2")], []),
    "what the driver asks for is told where nothing pages for that GPU": (
        [XID48, at(DUE, gpu_uuid="GPU-7"), at(XID31, gpu_uuid="GPU-7")],
        [RESET, DUE, REMAPPABLE],
    ),
    "a GPU that is lost or is to be replaced waits for nothing else": (
        [REMAP, at(LOST, gpu_uuid="GPU-7")],
        [DUE, REMAPPABLE, at(RESET, gpu_uuid="GPU-7")],
    ),
    "a GPU that takes no work is one page, and its links fail with it": (
        [RESET, at(DUE, gpu_uuid="GPU-7"), at(LINKS, instance="n2")],
        [DUE, REMAPPABLE, XID74, LINKS],
    ),
    "a GPU that goes on until it is reset explains no broken link": ([DUE, XID74], [REMAPPABLE]),
    "links and the driver's readers fail after a GPU that does not answer": (
        [XID48, at(LINKS, instance="n2")],
        [XID74, LINKS, DRIVER],
    ),
    "a board that waits to be replaced explains no broken link": ([REMAP, LINKS], [XID74]),
    "a node that comes and goes is told as that": ([FLAKY], [DOWN, XID48]),
    "a driver that hangs without another source is one page": ([DRIVER], [STUCK, NO_NVML]),
    "a driver that hangs beside DCGM is one ticket": (
        [STUCK, at(NO_NVML, source="podresources"), at(NO_NVML, instance="n2")],
        [NO_NVML],
    ),
    "memory that fails is its XID": (
        [XID48, at(REMAP, gpu_uuid="GPU-6"), at(PENDING, gpu_uuid="GPU-7")],
        [REMAP, PENDING, ECC, XID63],
    ),
    "memory that waits for a reset is no other error": ([PENDING], [ECC, XID63]),
    "an error that was counted and contained is one": ([ECC, at(XID63, gpu_uuid="GPU-6")], [XID63]),
    "links that are down are no errors of links": (
        [LINK, at(XID74, instance="n2"), at(UNJOINED, gpu_uuid="GPU-6")],
        [XID74, at(XID74, gpu_uuid="GPU-5"), UNJOINED],
    ),
    "a slow PCIe link without work is for information": ([SLOW_LINK], []),
    "a slow PCIe link that work waits for is one ticket": (
        [FULL_LINK, at(SLOW_LINK, gpu_uuid="GPU-6")],
        [SLOW_LINK],
    ),
    "a PCIe link with errors is told by them": ([REPLAYS], [SLOW_LINK, FULL_LINK]),
    "a switch that fails is one page": (
        [FABRIC],
        [XID74, at(XID74, gpu_uuid="GPU-7"), XID45, LINKS, FULL],
    ),
    "a placement is no broken link": ([FABRIC, PLACED], []),
    "traffic meets on the detours around links with errors": (
        [XID74, at(FULL, instance="n2")],
        [FULL, HURTS],
    ),
    "that a segment is full follows from that it hurts, and the tenant is told": (
        [HURTS, WHOM, at(FULL, segment="t")],
        [FULL],
    ),
    "the louder of two alerts on one device says it all": (
        [at(LINKS, severity="critical"), at(LEAK, suspect="2", severity="info"), LEAK],
        [LINKS, at(LINKS, severity="info"), at(LEAK, severity="info")],
    ),
    "files that grow and those that run out": (
        [OUT, at(GROWS, comm="other"), at(GROWS, workload="v")],
        [GROWS],
    ),
    "a leak in an idle window is one leak": (
        [IDLE_LEAK, at(GROWS, workload="v")],
        [GROWS, at(GROWS, comm="other")],
    ),
    "a board that nobody's process keeps awake": (
        [at(LEAK, gpu_uuid="GPU-5")],
        [f"alertname=SeedanceGpuBurnsForNobody severity=warning {at(GPU, topic='energy')}"],
    ),
    "waste that is fast is slow waste, too": ([FAST], [SLOW]),
    "thresholds that are missing silence nothing and are heard of": (
        [THRESHOLDS, STRANDED, MISSING, at(LOST, instance="n2"), FLEET_DOWN],
        [],
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
            for name, (causes, echoes) in SCENARIOS.items()
            for labels in (*causes, *echoes)
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
    causes = SCENARIOS[name][0]
    assert heard[name] == {" ".join(sorted(labels.split())) for labels in causes}


def rules() -> list[dict[str, Any]]:
    read = (yaml.safe_load(file.read_text()) for file in sorted(ALERTS.glob("*.rules.yml")))
    return [rule for each in read for group in each["groups"] for rule in group["rules"]]


def test_every_alert_that_the_file_names_exists() -> None:
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    named = set(re.findall(r'alertname!?=~?"([^"]+)"', CONFIG.read_text()))
    assert len(named) > 5
    assert {name for name in named if not any(re.fullmatch(name, each) for each in alerts)} == set()
