"""What is special about tenants, workloads and leaks: sums that add up, ends, neighbours."""

from pathlib import Path
from typing import Any

import pytest

from seedance_obs.dashboards.build import dashboards
from seedance_obs.dashboards.queries import leaks, tenants, workload
from tests.dashboards.every_panel import Drawn, Key, panels_of
from tests.dashboards.fleets import CLUSTERS
from tests.dashboards.given_series import given

FILE = "tenants-and-workloads.json"
ON_N1 = 'job="gpu",instance="n1"'


def only(column: str, table: str) -> str:
    """One column of a table."""
    return f'({table}) and on (stat) label_replace(vector(1), "stat", "{column}", "", "")'


def test_smaller_tenants_are_one_line_so_that_the_stack_adds_up(tmp_path: Path) -> None:
    count = tenants.MOST_LINES + 2
    series = {
        f'tenant:seedance_gpus_held:rate5m{{cluster="{cluster}",tenant="t{gpus}"}}': f"{gpus}x10"
        for cluster in ("a", "b")
        for gpus in range(1, count + 1)
    }
    shown = {f'{{tenant="t{gpus}"}}': 2.0 * gpus for gpus in range(3, count + 1)}
    given(tmp_path, series, tenants.GPUS_BY_TENANT, {**shown, '{tenant="all others"}': 2 * (1 + 2)})


def test_a_workload_that_has_ended_keeps_its_row_and_says_when(tmp_path: Path) -> None:
    """Of five minutes the one was there for all, the other for three; ever since second 7."""
    series, rows = {}, {"alive": ("x10", 5, 300e3), "gone": ("x2 stale", 2, 120e3)}
    for name, (values, _, _) in rows.items():
        labels = f'{ON_N1},tenant="red",workload="{name}"'
        named = f'{labels},kind="pod",container="main",pod="{name}-0"'
        series |= {
            f"workload:seedance_start_time_seconds:named{{{named}}}": f"7{values}",
            f"seedance_workload_start_time_seconds{{{labels}}}": f"7{values}",
            f'workload:seedance_gpu_seconds:rate5m{{{labels},state="active"}}': f"3{values}",
            f'workload:seedance_gpu_seconds:rate5m{{{labels},state="reserved"}}': f"1{values}",
            f"workload:seedance_seen_time_seconds:max{{{labels}}}": f"0+60{values}",
        }
    columns: dict[str, dict[str, float]] = {}
    for name, (_, minutes, seen_ms) in rows.items():
        values = {"seen": seen_ms, "used_hours": 3 * minutes / 60, "wasted": minutes / 60}
        labels = f'instance="n1",tenant="red",workload="{name}"'
        for column, value in values.items():
            columns.setdefault(column, {})[f'{{stat="{column}",{labels}}}'] = value
        start = f'{{stat="start",{labels},kind="pod",name="{name}-0"}}'
        columns.setdefault("start", {})[start] = 7e3
    columns["state"] = {'{stat="state",instance="n1",tenant="red",workload="alive"}': 1.0}
    for column, expected in columns.items():
        given(tmp_path, series, only(column, tenants.WORKLOADS), expected)


def test_neighbours_are_other_tenants_on_the_segments_of_its_own_gpus(tmp_path: Path) -> None:
    """The nodes have the same addresses and UUIDs, as recorded machines do."""
    series = {
        f'seedance_workload_info{{{ON_N1},tenant="red",workload="w"}}': "1x10",
        f'seedance_workload_gpu_seconds_total{{{ON_N1},tenant="red",workload="w",'
        'gpu_uuid="GPU-0",state="active"}': "0+60x10",
    }
    for node in ("n1", "n2"):
        on = f'job="gpu",instance="{node}"'
        for gpu, switch in ((0, "s0"), (1, "s1")):
            info = f'{on},gpu="{gpu}",gpu_uuid="GPU-{gpu}",pcie_switch="{switch}"'
            series[f"seedance_gpu_info{{{info}}}"] = "1x10"
            segment = f'{on},segment="{switch}",segment_kind="pcie_switch"'
            series[f"segment:seedance_segment_contention_seconds:rate5m{{{segment}}}"] = "0.25x10"
            for tenant, share in (("red", 0.7), ("blue", 0.3), ("green", 0)):
                sent = f'{segment},direction="receive",tenant="{tenant}"'
                series[f"seedance_tenant_segment_share_ratio{{{sent}}}"] = f"{share}x10"
    labels = 'instance="n1",segment="s0",segment_kind="pcie_switch"'
    expected = {
        f'{{{labels},stat="share",tenant="blue"}}': 0.3,
        f'{{{labels},stat="contended",tenant="blue"}}': 0.25,
    }
    given(tmp_path, series, workload.NEIGHBOURS, expected)


def test_only_workloads_whose_idle_window_is_open_are_idle(tmp_path: Path) -> None:
    series = {}
    for name, is_open in (("quiet", 1), ("busy-again", 0)):
        labels = f'{ON_N1},tenant="red",workload="{name}"'
        series |= {
            f"seedance_workload_idle_window_open{{{labels}}}": f"{is_open}x10",
            f"seedance_workload_idle_window_seconds_total{{{labels}}}": "600x10",
            f'workload:seedance_gpu_seconds:rate5m{{{labels},state="reserved"}}': "2x10",
        }
    labels = 'instance="n1",tenant="red",workload="quiet"'
    expected = {f'{{stat="gpus",{labels}}}': 2.0, f'{{stat="idle",{labels}}}': 600.0}
    given(tmp_path, series, leaks.IDLE_WORKLOADS, expected)


def test_a_suspect_without_known_power_is_listed_all_the_same(tmp_path: Path) -> None:
    suspect = f'{ON_N1},kind="spinning",suspect="s"'
    series = {
        f'seedance_leak_suspect_info{{{suspect},gpu_uuid="GPU-0"}}': "1x10",
        f"seedance_leak_suspect_start_time_seconds{{{suspect}}}": "9x10",
    }
    expected = {'{instance="n1",kind="spinning",stat="since",suspect="s"}': 9000.0}
    given(tmp_path, series, only("since", leaks.GPU_SUSPECTS), expected)


@pytest.mark.parametrize("cluster", ["calm", "mig", "sixteen"])
@pytest.mark.parametrize("title", ["Who holds the GPUs?", "What are their GPUs doing?"])
def test_all_tenants_together_have_every_board_once(
    drawn_panels: dict[Key, list[Drawn]], cluster: str, title: str
) -> None:
    (panel,) = [each for each in panels_of(dashboards()[FILE]) if each["title"] == title]
    boards = sum(len(node.gpu_uuids) for node in CLUSTERS[cluster].nodes)
    whole: list[Any] = [
        each
        for each in drawn_panels[FILE, panel["id"], cluster]
        if each.choice.texts["tenant"] == ".*"
    ]
    assert whole
    for each in whole:
        last = [field["values"][-1] for field in each.fields("number")]
        assert sum(last) == pytest.approx(boards, rel=0.02)
