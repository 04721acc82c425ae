"""The history that panels are drawn from is what it says it is: as scraped, and of known truth."""

import re
from pathlib import Path

import pytest

from seedance_obs.sources.sim.physics import Board
from tests.dashboards.fleets import CLUSTERS, DOWN_AT_S, LOST_AT_S, SCRAPE_S, Node
from tests.dashboards.history import ALERTS, Answer, History

NODES = {node.name: node for cluster in CLUSTERS.values() for node in cluster.nodes}
PEACEFUL = ("calm", "one", "none", "mig", "sixteen", "rack")
CONTRACT = Path(__file__).parents[2] / "exporters" / "node.prom"
NOT_SEEN = {
    "windows of a day and more": "wasted:ratio_rate[13]d",
    "boards with fans": "fan_speed",
    "sharers told apart well": "intensity_(residual_)?ratio|shapley",
    "sources that differ": "source_(disagreement|stuck)",
    "quota files": "quota_change_time",
    "SMs that wait for data": "gpus_stalled",
}


def values(answer: Answer, *labels: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(row["metric"].get(label, "") for label in labels): float(row["value"][1])
        for row in answer
    }


def test_every_node_of_every_cluster_was_scraped(history: History) -> None:
    up = values(history.instant('up{job="gpu"}'), "cluster", "instance")
    nodes = {(cluster.name, node.name) for cluster in CLUSTERS.values() for node in cluster.nodes}
    assert up.keys() == nodes
    assert [key for key, value in up.items() if value == 0] == [("down", "goes-down")]
    assert history.label_values("up", "cluster") == sorted(history.clusters)


def test_nearly_all_that_can_be_seen_or_recorded_is_there(history: History) -> None:
    wanted = set(re.findall(r"^([a-z]\w+)", CONTRACT.read_text(), flags=re.MULTILINE))
    for file in ALERTS.glob("*.rules.yml"):
        wanted |= set(re.findall(r"record: (\S+)", file.read_text()))
    missing = wanted - set(history.get("label/__name__/values"))
    excused = re.compile("|".join(f"({each})" for each in NOT_SEEN.values()))
    assert [name for name in sorted(missing) if not excused.search(name)] == []


@pytest.mark.parametrize("name", NODES)
def test_gpus_and_instances_are_those_of_the_machine(history: History, name: str) -> None:
    boards = history.instant(f'seedance_gpu_info{{instance="{name}"}}', at=history.start)
    instances = history.instant(f'seedance_mig_info{{instance="{name}"}}', at=history.start)
    assert {row["metric"]["gpu_uuid"] for row in boards} == set(NODES[name].gpu_uuids)
    assert {row["metric"]["mig_uuid"] for row in instances} == set(NODES[name].mig_uuids)


@pytest.mark.parametrize("name", ["hgx-1", "one-gpu", "sixteen-gpus", "tray-2"])
def test_rates_are_those_of_the_machine(history: History, name: str) -> None:
    expr = f'rate(seedance_gpu_energy_joules_total{{instance="{name}"}}[4m])'
    watts = values(history.instant(expr), "gpu_uuid")
    assert len(watts) == len(NODES[name].machine.gpus)
    for index, uuid in enumerate(NODES[name].gpu_uuids):
        assert watts[uuid,] == pytest.approx(mean_watts(history, NODES[name], index, 240), 1e-3)


def mean_watts(history: History, node: Node, gpu: int, seconds: float) -> float:
    board = Board(node.machine, node.machine.gpus[gpu])
    end = history.end - history.start + node.before_s
    return (board.energy_joules(end) - board.energy_joules(end - seconds)) / seconds


def test_series_end_where_the_exporter_goes_down(history: History) -> None:
    at = history.start + DOWN_AT_S
    series = '{instance="goes-down",job="gpu",__name__!~"[a-z_]+:.+|ALERTS.*|up|scrape_.+|dcgm.+"}'
    assert len(history.instant(series, at - SCRAPE_S)) > 200
    assert len(history.instant(series, at - 1)) > 200
    assert history.instant(series, at) == []
    (up,) = history.range('up{instance="goes-down"}')
    assert next(float(at) for at, value in up["values"] if value == "0") == at


def test_series_end_where_a_gpu_is_lost(history: History) -> None:
    uuid = NODES["loses-one"].gpu_uuids[1]
    (power,) = history.range(f'seedance_gpu_power_watts{{gpu_uuid="{uuid}"}}')
    assert power["values"][-1][0] == history.start + LOST_AT_S
    missing = 'seedance_topology_device_info{instance="loses-one",state="missing"}'
    assert [row["metric"]["gpu_uuid"] for row in history.instant(missing)] == [uuid]


def test_a_recorded_series_ends_with_what_it_is_of(history: History) -> None:
    (line,) = history.range('dcgm_gpu_utilization{instance="goes-down",gpu="0"}')
    assert line["values"][-1][0] == history.start + DOWN_AT_S - SCRAPE_S


@pytest.mark.parametrize("cluster", PEACEFUL)
def test_where_all_is_well_no_alert_is_even_pending(history: History, cluster: str) -> None:
    assert history.range(f'ALERTS{{cluster="{cluster}"}}') == []


def fired(history: History, cluster: str) -> dict[str, float]:
    """The alerts that fired, with the seconds since the start at which each began to."""
    rows = history.range(f'ALERTS{{cluster="{cluster}",alertstate="firing"}}')
    return {
        row["metric"]["alertname"]: row["values"][0][0] - history.start
        for row in sorted(rows, key=lambda row: -row["values"][0][0])
    }


def test_a_lost_gpu_fires_one_alert_that_stays(history: History) -> None:
    assert fired(history, "lost") == {"SeedanceGpuLost": LOST_AT_S}
    (now,) = history.instant('ALERTS{cluster="lost"}')
    assert now["metric"]["gpu_uuid"] == NODES["loses-one"].gpu_uuids[1]


def test_a_target_that_is_down_fires_after_a_while(history: History) -> None:
    assert fired(history, "down") == {"SeedanceTargetDown": DOWN_AT_S + 180}


def test_there_are_suspects_of_every_kind_and_some_alerts_of_theirs(history: History) -> None:
    suspects = values(history.instant('seedance_leak_suspects{cluster="leaky"}'), "kind")
    assert len(suspects) == 10
    assert set(suspects.values()) == {1.0}
    assert {"SeedanceGpuOrphaned", "SeedanceGpuSpinning"} <= fired(history, "leaky").keys()


def test_boards_that_are_held_idle_are_paid_for_by_their_holders(history: History) -> None:
    idle = 'seedance_tenant_gpu_energy_joules_total{component="reserved_idle"} > 0'
    clusters = {cluster for cluster, _ in values(history.instant(idle), "cluster", "tenant")}
    assert clusters == set(history.clusters) - {"none"}


def test_tenants_share_segments_and_one_is_seen_to_suffer(history: History) -> None:
    contended = 'seedance_segment_contention_seconds_total{cluster="calm"} > 60'
    assert len(history.instant(contended)) == 1
    scores = values(history.instant("seedance_tenant_sensitivity_ratio > 0"), "instance", "tenant")
    assert scores.keys() == {("pcie-1", "vision")}


def test_an_nvlink_domain_spans_the_trays_of_a_rack(history: History) -> None:
    (domain,) = history.instant(
        'count by (nvlink_domain) (seedance_gpu_power_watts{cluster="rack"})'
    )
    assert float(domain["value"][1]) == 12


def test_the_longest_history_is_long_enough_for_six_hours(history: History) -> None:
    wasted = 'cluster:seedance_gpus_wasted:ratio_rate6h{cluster="one"}'
    assert len(history.instant(wasted)) == 1
