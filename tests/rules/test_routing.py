"""Who hears of an alert and which alerts are echoes, by amtool and a running Alertmanager."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rules.running_alertmanager import ALERTS, Alertmanager, labels_of, running_alertmanager

CONFIG = ALERTS / "alertmanager.yml"


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
    return " ".join(f"{name}={value}" for name, value in (labels_of(labels) | changed).items())


GPU = "topic=health instance=n1 gpu_uuid=GPU-5"
PEER = "topic=health instance=n1 gpu_uuid=GPU-6"
FLEET_DOWN = "alertname=SeedanceFleetUnobserved severity=critical topic=exporter"
DOWN = "alertname=SeedanceTargetDown severity=warning topic=exporter instance=n1"
LOST = f"alertname=SeedanceGpuLost severity=critical {GPU}"
MISSING = "alertname=SeedanceGpuMissing severity=warning topic=health instance=n1"
XID48 = f"alertname=SeedanceGpuXidCritical severity=critical xid=48 class=memory {GPU}"
XID119 = at(XID48, xid="119", **{"class": "driver"})
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
NIC = "alertname=SeedanceNicSaturated severity=info topic=contention instance=n1 nic=mlx5_0"
REMAPPABLE = f"alertname=SeedanceGpuRowRemapPending severity=warning {GPU}"
RESET = f"alertname=SeedanceGpuRecoveryActionPending severity=critical action=gpu_reset {GPU}"
DUE = RESET.replace("critical", "warning")
LEAK = "alertname=SeedanceGpuOrphaned severity=warning topic=leaks instance=n1 suspect=1"
UNUSED = at(LEAK, alertname="SeedanceGpuHeldUnused", workload="w", tenant="example")
UNDERUSED = "alertname=SeedanceNodeUnderused severity=warning topic=energy instance=n1"
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
    "a node that is down is all there is to say of it": ([DOWN], [MISSING, LINKS, FULL, LEAK]),
    "a ticket silences no page, whose end would be lost": (
        [DOWN, LOST, at(XID48, gpu_uuid="GPU-7"), at(REMAP, gpu_uuid="GPU-8")],
        [at(ECC, gpu_uuid="GPU-9")],
    ),
    "other people's alerts are none of our business": (
        [
            DOWN,
            "alertname=NodeDown severity=critical job=node instance=n1",
            "alertname=NodeFilesystemFull severity=warning instance=n1 mountpoint=/data",
            "alertname=NodeFilesystemFull severity=critical instance=n1 mountpoint=/tmp",
            "alertname=KubePersistentVolumeFillingUp severity=critical namespace=a",
            "alertname=KubePersistentVolumeFillingUp severity=warning namespace=b",
        ],
        [LEAK],
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
            XID119,
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
        [LOST, at(LEAK, gpu_uuid="GPU-6"), at(XID31, gpu_uuid="GPU-6"), MISSING],
        [at(LEAK, gpu_uuid="GPU-5")],
    ),
    "a board that has moved to another node is sound or not by what that says": (
        [LOST, at(REMAP, instance="n2"), at(DUE, instance="n3"), at(ECC, instance="n4")],
        [],
    ),
    "a board beyond repair that is lost is told of until it is gone": ([LOST, REMAP], []),
    "work that waits for a GPU that is gone is idle": (
        [LOST, at(UNUSED, instance="n2"), at(LEAK, gpu_uuid="GPU-6")],
        [UNUSED, at(UNUSED, alertname="SeedanceGpuSpinning"), UNDERUSED],
    ),
    "work that waits for a driver or a switch is idle": (
        [DRIVER, at(FABRIC, instance="n2")],
        [UNUSED, UNDERUSED, at(UNUSED, instance="n2"), at(UNDERUSED, instance="n2")],
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
        [XID119, at(LINKS, instance="n2")],
        [XID74, LINKS, DRIVER],
    ),
    "a switch that dies while a GPU waits for its reset is another page": ([XID119, FABRIC], []),
    "memory that fails takes no switch and no driver with it": ([XID48, FABRIC, DRIVER], []),
    "memory that fails takes no neighbour's link with it": ([XID48, XID74], [XID45]),
    "a board that waits to be replaced explains no broken link": ([REMAP, LINKS], [XID74]),
    "a node that comes and goes is told as that": ([FLAKY], [DOWN, MISSING]),
    "a driver that hangs without another source is one page": ([DRIVER], [STUCK, NO_NVML]),
    "a driver that hangs beside DCGM is one ticket": (
        [STUCK, at(NO_NVML, source="podresources"), at(NO_NVML, instance="n2")],
        [NO_NVML],
    ),
    "memory that fails is its XID": (
        [XID48, at(REMAP, gpu_uuid="GPU-6"), at(PENDING, gpu_uuid="GPU-7")],
        [REMAP, PENDING, ECC, XID63, XID31],
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
    "traffic meets on the detours around links that are down, not in the network": (
        [LINKS, at(FULL, instance="n2"), NIC, WHOM],
        [FULL, HURTS],
    ),
    "an error of a link that is up again turns no traffic aside": ([XID74, HURTS, NIC], [FULL]),
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
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with running_alertmanager(tmp_path_factory.mktemp("alertmanager")) as running:
        yield running


@pytest.fixture(scope="module")
def heard(alertmanager: Alertmanager) -> dict[str, set[str]]:
    """By scenario, each in a cluster of its own: the alerts that Alertmanager does not inhibit."""
    for name, (causes, echoes) in SCENARIOS.items():
        alertmanager.push(name, *causes, *echoes)
    return _settled(alertmanager, sum(len(c) + len(e) for c, e in SCENARIOS.values()))


def _settled(alertmanager: Alertmanager, count: int) -> dict[str, set[str]]:
    """What is heard of once two looks in a row agree: sources of inhibition arrive one by one."""
    before: dict[str, set[str]] | None = None
    for _ in range(50):
        alerts = [a for a in alertmanager.alerts() if a["labels"]["cluster"] in SCENARIOS]
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


MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"(.*)"')


def matches(matchers: list[str], labels: dict[str, str]) -> bool:
    """Whether an alert may match, by the labels that its rule writes; others can be anything."""
    for name, sign, value in (
        found.groups() for found in map(MATCHER.fullmatch, matchers) if found
    ):
        if name in labels:
            same = re.fullmatch(value if "~" in sign else re.escape(value), labels[name])
            if bool(same) == sign.startswith("!"):
                return False
    return True


def inhibitions() -> list[tuple[list[str], list[str]]]:
    read = yaml.safe_load(CONFIG.read_text())["inhibit_rules"]
    return [(each["source_matchers"], each["target_matchers"]) for each in read]


def test_nothing_below_a_page_silences_a_page() -> None:
    alerts = [{"alertname": r["alert"], **r["labels"]} for r in rules() if "alert" in r]
    pages = [each for each in alerts if each["severity"] == "critical"]
    assert pages
    assert [
        (source, page["alertname"])
        for source, target in inhibitions()
        for page in pages
        if matches(target, page)
        and any(matches(source, each) for each in alerts if each["severity"] != "critical")
    ] == []


def test_other_peoples_alerts_neither_silence_nor_are_silenced() -> None:
    foreign = {"alertname": "NodeDown"}
    assert not any(matches(side, foreign) for each in inhibitions() for side in each)
