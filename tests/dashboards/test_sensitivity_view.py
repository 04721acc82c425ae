"""What is special about the sensitivity dashboard: matrices, and numbers worked out by hand."""

from itertools import permutations
from pathlib import Path
from typing import Any

from drawn_panels import rows, run_grafana

from seedance_obs.dashboards import transformations
from seedance_obs.dashboards.build import dashboards
from seedance_obs.dashboards.queries import sensitivity as queries
from seedance_obs.dashboards.queries.pair_cost import ONE, OTHER, PAIR_COST
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from tests.dashboards.given_series import given

DASHBOARD = dashboards()["topology-sensitivity.json"]
GPUS = ("GPU 00", "GPU 01", "GPU 10")


def panel(title: str) -> dict[str, Any]:
    (found,) = [each for each in DASHBOARD["panels"] if title in each["title"]]
    return found


def cell(value: float, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [0, str(value)]}


def drawn(shape: Any, cells: list[dict[str, Any]]) -> dict[str, Any]:
    answers = [{"refId": "A", "legend": "__auto", "expr": "", "result": cells}]
    (shown,) = run_grafana([{"transformations": shape, "answers": answers}])["panels"]
    (frame,) = shown["frames"]
    return frame


def node(name: str, gpus: int) -> dict[str, str]:
    """GPUs at addresses d0, d1, …; every path carries 2 GB/s, but that of the first two 16."""
    on = f'job="gpu",instance="{name}"'
    info, path = (
        "seedance_topology_device_info",
        "seedance_topology_path_bandwidth_bytes_per_second",
    )
    devices = {
        f'{info}{{{on},kind="gpu",device="d{i}",gpu="{i}",gpu_uuid="GPU-{i}"}}': "1x10"
        for i in range(gpus)
    }
    paths = {
        f'{path}{{{on},source="d{i}",target="d{j}"}}': "16e9x10" if j == 1 else "2e9x10"
        for i in range(gpus)
        for j in range(i + 1, gpus)
    }
    return devices | paths


def moved(name: str, gpu: int, workload: str, gigabytes: float, link_class: str = "SYS") -> str:
    """A workload's counter on a GPU, and bytes a second."""
    labels = f'job="gpu",instance="{name}",tenant="red",workload="{workload}"'
    series = f'{labels},gpu_uuid="GPU-{gpu}",link_class="{link_class}"'
    return f"seedance_workload_link_bytes_total{{{series}}}={gigabytes * 60}e9"


def counters(*moving: str) -> dict[str, str]:
    split = (each.rpartition("=") for each in moving)
    return {series: f"0+{a_minute}x10" for series, _, a_minute in split}


def pair(name: str, workload: str, one: int, other: int) -> str:
    return (
        f'{{{ONE}="GPU 0{one}",{ONE}_device="d{one}",instance="{name}",{OTHER}="GPU 0{other}",'
        f'{OTHER}_device="d{other}",stat="cost",tenant="red",workload="{workload}"}}'
    )


def test_a_pair_costs_its_share_of_the_bytes_over_what_its_path_carries(tmp_path: Path) -> None:
    """Of 8, 4 and 2 GB/s each half is for either peer: (4 + 2) / 2 GB/s over 16, and so on."""
    work = counters(
        moved("a", 0, "w", 6),
        moved("a", 0, "w", 2, "PHB"),
        moved("a", 1, "w", 4),
        moved("a", 2, "w", 2),
        moved("a", 3, "alone", 9),
        moved("b", 2, UNKNOWN_WORKLOAD.key, 9),
        moved("b", 3, UNKNOWN_WORKLOAD.key, 9),
        moved("b", 0, "w", 1),
        moved("b", 1, "w", 1),
    )
    costs = {
        ("a", 0, 1): (8 + 4) / 2 / 2 / 16,
        ("a", 0, 2): (8 + 2) / 2 / 2 / 2,
        ("a", 1, 2): (4 + 2) / 2 / 2 / 2,
        ("b", 0, 1): 1 / 16,
    }
    expected = {
        pair(name, "w", *ends): cost
        for (name, *pair_of_gpus), cost in costs.items()
        for ends in (pair_of_gpus, pair_of_gpus[::-1])
    }
    given(tmp_path, {**node("a", 4), **node("b", 4), **work}, PAIR_COST, expected)


def test_a_shared_gpu_shows_the_workload_that_moves_most(tmp_path: Path) -> None:
    work = counters(
        moved("a", 0, "w", 4),
        moved("a", 1, "w", 4),
        moved("a", 0, "v", 1),
        moved("a", 1, "v", 1),
    )
    expected = {pair("a", "w", 0, 1): 4 / 16, pair("a", "w", 1, 0): 4 / 16}
    given(tmp_path, {**node("a", 2), **work}, PAIR_COST, expected)


def test_without_paths_or_traffic_there_is_no_cost(tmp_path: Path) -> None:
    given(tmp_path, node("a", 2), PAIR_COST, {})
    given(tmp_path, counters(moved("a", 0, "w", 1), moved("a", 1, "w", 1)), PAIR_COST, {})


def test_the_matrix_of_pairs_is_square_ordered_and_symmetric() -> None:
    costs = {ends: int(ends[0][4:]) + int(ends[1][4:]) for ends in permutations(GPUS, 2)}
    cells = [
        cell(cost, **{ONE: one, OTHER: other, "stat": "cost"})
        for (one, other), cost in costs.items()
    ]
    frame = drawn(panel("pairs of GPUs")["transformations"], cells[::-1])
    names = [field["name"] for field in frame["fields"]]
    assert names == [f"{ONE}\\{OTHER}", *GPUS]
    table = {row[names[0]]: row for row in rows(frame)}
    assert [*table] == [*GPUS]
    for one in GPUS:
        assert table[one][one] is None
        for other in GPUS:
            assert table[one][other] == table[other][one] == costs.get((one, other))


def test_link_classes_stand_from_near_to_far_and_tenants_lead_by_their_total() -> None:
    asked = panel("one link class further")
    cells = [
        cell(1.0, tenant=tenant, link_class=name, stat="lost")
        for tenant, names in {"red": "total SYS NV2", "blue": "total PIX NV18 PHB NV12"}.items()
        for name in names.split()
    ]
    frame = drawn(asked["transformations"], cells)
    names = [field["name"] for field in frame["fields"]]
    assert names == ["tenant\\link_class", "total", "NV18", "NV12", "NV2", "PIX", "PHB", "SYS"]
    assert asked["options"]["sortBy"] == [{"desc": True, "displayName": "total"}]


def test_what_tenants_would_lose_has_a_total_over_clusters(tmp_path: Path) -> None:
    name = "tenant:seedance_next_link_class_gpu_seconds:hourly_rate5m"
    series = {
        f'{name}{{cluster="{cluster}",tenant="red",link_class="{link_class}"}}': "8x10"
        for cluster in "ab"
        for link_class in ("NV18", "PHB")
    }
    cost = {"NV18": 16, "PHB": 16, "total": 32}
    expected = {f'{{link_class="{c}",stat="lost",tenant="red"}}': v for c, v in cost.items()}
    given(tmp_path, series, queries.LOST_BY_CLASS, expected)


def test_only_scores_that_hold_against_chance_are_called_slow(tmp_path: Path) -> None:
    of = 'job="gpu",instance="n",tenant="{}",segment="s",segment_kind="pcie_switch",direction="rx"'
    red, blue = of.format("red"), of.format("blue")
    series = {
        f"seedance_tenant_sensitivity_ratio{{{red}}}": "0.25x10",
        f'seedance_tenant_sensitivity_info{{{red},verdict="significant",proxy="sm"}}': "1x10",
        f"seedance_tenant_sensitivity_ratio{{{blue}}}": "0.75x10",
        f'seedance_tenant_sensitivity_info{{{blue},verdict="none",proxy="sm"}}': "1x10",
    }
    kinds = ("pcie_switch", "worst")
    expected = {f'{{segment_kind="{k}",stat="score",tenant="red"}}': 0.25 for k in kinds}
    given(tmp_path, series, queries.TENANTS_BY_SEGMENT_KIND, expected)
    given(tmp_path, series, queries.TENANTS_SLOWED, {"{}": 1})
    given(tmp_path, {}, queries.TENANTS_SLOWED, {})


def test_a_workload_is_shown_since_it_began() -> None:
    (links,) = [
        each["properties"][0]["value"]
        for each in panel("sit better")["fieldConfig"]["overrides"]
        if each["matcher"]["options"] == "workload"
    ]
    assert links[0]["url"].endswith("&from=${__data.fields.start.numeric}&to=now")


def test_a_segment_is_as_full_as_its_worse_direction(tmp_path: Path) -> None:
    """The contention of one that has no load is not shown; a node may have any segment's name."""
    of, seen = 'instance="{}",segment="s",segment_kind="pcie_switch"', "seedance_segment_"
    peak = {("a", "receive"): 2, ("a", "transmit"): 6, ("b", "receive"): 1}
    series = {
        f'{seen}{what}_bytes_per_second{{job="gpu",{of.format(name)},direction="{way}"}}': (
            f"{value}x10"
        )
        for (name, way), load in peak.items()
        for what, value in (("peak", load), ("capacity", 8))
    }
    for name, share in (("a", 0.5), ("c", 0.75)):
        contention = "segment:seedance_segment_contention_seconds:rate5m"
        series[f'{contention}{{job="gpu",{of.format(name)}}}'] = f"{share}x10"
    shown = {("a", "load"): 0.75, ("a", "capacity"): 8, ("a", "contended"): 0.5}
    shown |= {("b", "load"): 0.125, ("b", "capacity"): 8}
    expected = {f'{{{of.format(name)},stat="{stat}"}}': v for (name, stat), v in shown.items()}
    given(tmp_path, series, queries.SEGMENTS, expected)


def test_a_matrix_keeps_its_order_where_first_cells_lack() -> None:
    cells = [cell(1.0, row=r, column=c, stat="v") for r, c in ("bz", "ax", "by", "cx")]
    frame = drawn(transformations.matrix("row", "column", "v"), cells)
    assert [field["name"] for field in frame["fields"]] == ["row\\column", "x", "y", "z"]
    assert frame["fields"][0]["values"] == ["a", "b", "c"]
