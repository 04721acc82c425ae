"""The wiring of nodes and of NVLink domains: on exporter pages, and on the simulated history."""

import math
from itertools import combinations
from typing import Any

import pytest
from drawn_panels import draw_all, rows
from loopback_prometheus import Prometheus
from prometheus_client.samples import Sample
from scraped_hosts import pages, samples

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.build import dashboards
from seedance_obs.dashboards.queries.node_graph import HEIGHT
from seedance_obs.dashboards.queries.pair_cost import ONE, OTHER
from tests.dashboards.every_panel import Drawn as DrawnPanel
from tests.dashboards.every_panel import Key

FILE = "gpu-utilization-topology-view.json"
PANELS = {each["title"]: each for each in dashboards()[FILE]["panels"]}
WIRING = PANELS["Where does every GPU sit on $node?"]
MATRIX = PANELS["How do the GPUs of $node reach each other?"]
DOMAIN = PANELS["How busy are the nodes of $domain?"]
DOMAINS = PANELS["Which NVLink domain needs attention?"]
NODES = sorted(pages())
WITH_GPUS = [node for node in NODES if any(samples(node, "seedance_topology_device_info"))]
COLORS = {arc["field"]: arc["color"] for arc in WIRING["options"]["nodes"]["arcs"]}
NOT_DRAWN = {("pcie", "nvme"), ("pcie", "nvswitch")}

Row = dict[str, Any]
Frames = list[dict[str, Any]]
Drawn = dict[tuple[int, str], Frames]
each_node = pytest.mark.parametrize("node", WITH_GPUS)
each_and_all = pytest.mark.parametrize("node", [*WITH_GPUS, ".*"])


@pytest.fixture(scope="module")
def drawn(prometheus: Prometheus) -> Drawn:
    asked = [(panel, node) for panel in (WIRING, MATRIX) for node in [*NODES, ".*"]]
    return draw_all(prometheus, asked)


def graph(drawn: Drawn, node: str) -> tuple[list[Row], list[Row]]:
    """Nodes and edges as Grafana tells them apart: by a field named `source`."""
    return told_apart(drawn[WIRING["id"], node])


def told_apart(frames: Frames) -> tuple[list[Row], list[Row]]:
    kinds = {"source" in {field["name"] for field in frame["fields"]}: frame for frame in frames}
    assert len(frames) == len(kinds) == 2
    return rows(kinds[False]), rows(kinds[True])


def titled(nodes: list[Row], title: str) -> Row:
    (found,) = [each for each in nodes if each["title"] == title]
    return found


def _links(node: str) -> list[Sample]:
    found = samples(node, "seedance_topology_edge_links")
    return [s for s in found if (s.labels["kind"], s.labels["target_kind"]) not in NOT_DRAWN]


def _devices(node: str) -> list[Sample]:
    found = samples(node, "seedance_topology_device_info")
    return [each for each in found if each.labels["kind"] != "nvme"]


@each_and_all
def test_the_graph_is_the_one_that_the_nodes_export(drawn: Drawn, node: str) -> None:
    nodes, edges = graph(drawn, node)
    of = WITH_GPUS if node == ".*" else [node]
    devices = [f"/{each}/{s.labels['device']}" for each in of for s in _devices(each)]
    links = [
        f"/{each}/{s.labels['source']}~{s.labels['kind']}~/{each}/{s.labels['target']}"
        for each in of
        for s in _links(each)
    ]
    assert sorted(each["id"] for each in nodes) == sorted(set(devices))
    assert sorted(each["id"] for each in edges) == sorted(set(links))
    assert (len(nodes), len(edges)) == (len(devices), len(links))
    ends = {end for each in edges for end in (each["source"], each["target"])}
    assert ends <= {each["id"] for each in nodes}


@each_node
def test_no_two_devices_are_drawn_over_each_other_and_all_fit_the_panel(
    drawn: Drawn, node: str
) -> None:
    nodes, _ = graph(drawn, node)
    for one, other in combinations(nodes, 2):
        apart = math.dist(*[(each["fixedx"], each["fixedy"]) for each in (one, other)])
        assert apart >= one["noderadius"] + other["noderadius"], (one["title"], other["title"])
    assert all(abs(each["fixedy"]) < HEIGHT / 2 for each in nodes)
    assert all(abs(each["fixedx"]) < 700 for each in nodes)


@each_node
def test_gpus_and_what_is_above_them_stand_in_the_order_of_their_addresses(
    drawn: Drawn, node: str
) -> None:
    nodes, _ = graph(drawn, node)
    for kind in ("gpu", "pcie_root", "pcie_switch"):
        column = [each for each in nodes if each["kind"] == kind]
        heights = [each["fixedy"] for each in sorted(column, key=lambda each: str(each["id"]))]
        assert heights == sorted(heights)


def test_links_between_gpus_do_not_hide_behind_gpus(drawn: Drawn) -> None:
    nodes, edges = graph(drawn, "8x-v100-cube-mesh")
    at = {each["id"]: (each["fixedx"], each["fixedy"]) for each in nodes if each["kind"] == "gpu"}
    for edge in edges:
        if edge["kind"] == "nvlink":
            one, other = at[edge["source"]], at[edge["target"]]
            between = [p for end, p in at.items() if end not in (edge["source"], edge["target"])]
            assert all(_off_the_line(point, one, other) > 1 for point in between)


def _off_the_line(
    point: tuple[float, float], one: tuple[float, float], other: tuple[float, float]
) -> float:
    across = (other[0] - one[0]) * (one[1] - point[1]) - (one[0] - point[0]) * (other[1] - one[1])
    return abs(across) / math.dist(one, other)


def test_a_node_without_gpus_draws_nothing(drawn: Drawn) -> None:
    assert drawn[WIRING["id"], "no-gpu"] == []


@each_node
def test_readings_are_shown_or_nothing(drawn: Drawn, node: str) -> None:
    nodes, _ = graph(drawn, node)
    busy, watts = (
        {s.labels["gpu_uuid"]: s.value for s in samples(node, f"seedance_gpu_{name}")}
        for name in ("utilization_ratio", "power_watts")
    )
    for gpu in (each for each in nodes if each["kind"] == "gpu"):
        share = busy.get(gpu["gpu_uuid"])
        assert gpu.get("mainstat") == (None if share is None else pytest.approx(100 * share))
        assert gpu.get("secondarystat") == watts.get(gpu["gpu_uuid"])


def test_devices_are_called_what_people_call_them(drawn: Drawn) -> None:
    node = "8x-h100-nvswitch-mig"
    nodes, _ = graph(drawn, node)
    called = {(each["title"], each["subtitle"]) for each in nodes}
    assert {
        ("GPU 3", "0000:3b:00.0"),
        ("NVSwitch", "0000:05:00.0"),
        ("PCIe switch", "0000:16:00.0"),
        ("pci0000:15", "NUMA 0"),
        (node, None),
    } <= called
    fabric = titled(graph(drawn, "4x-gb200")[0], "NVLink fabric")
    assert fabric["id"] == "/4x-gb200/hidden"


def test_a_lost_gpu_keeps_its_place_and_cannot_be_overlooked(drawn: Drawn) -> None:
    nodes, edges = graph(drawn, "one-lost")
    gpu = titled(nodes, "GPU 5")
    shown = (gpu["arc__missing"], gpu["icon"], gpu["subtitle"])
    assert shown == (1, "exclamation-triangle", "missing")
    assert (gpu["mainstat"], gpu.get("arc__busy"), gpu["arc__unknown"]) == (None, None, None)
    assert COLORS["arc__missing"] == theme.FIRING
    assert [each["icon"] for each in nodes if each["icon"]] == ["exclamation-triangle"]
    assert [each["color"] for each in edges if each["target"] == gpu["id"]] == [theme.PCIE]


@each_node
def test_links_are_counted_dashed_and_as_thick_as_they_are_wide(drawn: Drawn, node: str) -> None:
    _, edges = graph(drawn, node)
    links = {_ends(s): s.value for s in samples(node, "seedance_topology_edge_links")}
    name = "seedance_topology_edge_bandwidth_bytes_per_second"
    widths = {_ends(s): s.value for s in samples(node, name, state="nominal")}
    for edge in edges:
        ends = tuple(edge[end].rsplit("/", 1)[1] for end in ("source", "target"))
        wide = widths.get((*ends, edge["kind"]), 0)
        assert edge["thickness"] == pytest.approx(
            min(max(math.log2(wide / 16e9), 1), 6) if wide else 1
        )
        is_pcie = edge["kind"] == "pcie"
        assert bool(edge["strokedasharray"]) == is_pcie
        assert edge.get("secondarystat") == (None if is_pcie else links[*ends, edge["kind"]])


def _ends(link: Sample) -> tuple[str, ...]:
    return tuple(link.labels[name] for name in ("source", "target", "kind"))


def test_links_of_a_dead_switch_are_red_and_no_others(drawn: Drawn) -> None:
    _, edges = graph(drawn, "switch-down")
    red = [each for each in edges if each["color"] == theme.LINK_WRONG]
    assert {each["target"] for each in red} == {"/switch-down/0000:05:00.0"}
    assert len(red) == 8
    assert {each["secondarystat"] for each in red} == {0}


@pytest.mark.parametrize("node", ["4x-l40s", "2x-rtx3090-bridge"])
def test_pcie_that_is_slow_because_it_is_idle_is_not_red(drawn: Drawn, node: str) -> None:
    _, edges = graph(drawn, node)
    assert theme.LINK_WRONG not in {each["color"] for each in edges}


@each_node
def test_every_gpu_has_a_class_for_every_other_from_either_end(drawn: Drawn, node: str) -> None:
    (frame,) = drawn[MATRIX["id"], node]
    corner = f"{ONE}\\{OTHER}"
    found = {row[corner]: row for row in rows(frame)}
    gpus = {f"GPU {int(s.labels['gpu']):02}": s.labels["device"] for s in _gpus(node)}
    assert list(found) == list(gpus)
    paths = [s.labels for s in samples(node, "seedance_topology_path_info", target_kind="gpu")]
    told = {frozenset((each["source"], each["target"])): each["link_class"] for each in paths}
    for one, other in combinations(gpus, 2):
        link_class = told.get(frozenset((gpus[one], gpus[other]))) or None
        assert found[one].get(other) == found[other].get(one) == link_class
    assert all(found[gpu][gpu] == "X" for gpu in gpus)


def _gpus(node: str) -> list[Sample]:
    found = samples(node, "seedance_topology_device_info", kind="gpu")
    return sorted(found, key=lambda each: int(each.labels["gpu"]))


def test_close_and_far_have_their_colours() -> None:
    mapped = MATRIX["fieldConfig"]["defaults"]["mappings"]
    colors = {
        each["options"]["pattern"]: each["options"]["result"].get("color")
        for each in mapped
        if each["type"] == "regex"
    }
    assert colors["/^NV[0-9]+$/"] == theme.NVLINK
    assert colors["/^SYS$/"] == theme.VERMILION
    assert len(set(colors.values())) == len(colors)


def shown(drawn_panels: dict[Key, list[DrawnPanel]], panel: Row, fleet: str) -> list[DrawnPanel]:
    return drawn_panels[FILE, panel["id"], fleet]


def test_links_are_coloured_by_their_load(
    drawn_panels: dict[Key, list[DrawnPanel]],
) -> None:
    steps = [(80, theme.ORANGE), (30, theme.YELLOW), (5, theme.SKY), (0, "#31507A")]
    edges = [
        edge
        for fleet in ("calm", "sixteen")
        for each in shown(drawn_panels, WIRING, fleet)
        for edge in told_apart(each.frames)[1]
        if edge["mainstat"] is not None
    ]
    assert {each["kind"] for each in edges} == {"pcie", "nvlink"}
    assert len({each["color"] for each in edges}) > 2
    for edge in edges:
        assert edge["color"] == next(color for least, color in steps if edge["mainstat"] >= least)


def test_the_time_of_a_board_in_mig_mode_is_that_of_its_slices(
    drawn_panels: dict[Key, list[DrawnPanel]],
) -> None:
    nodes, _ = told_apart(shown(drawn_panels, WIRING, "mig")[0].frames)
    board = titled(nodes, "GPU 0")
    assert board["mainstat"] is None
    assert 0 < board["arc__idle"] < board["arc__busy"]
    assert board["arc__held_idle"] > 0
    assert titled(nodes, "GPU 2")["arc__idle"] == 1


def test_adapters_and_switches_show_the_load_of_what_leads_to_them(
    drawn_panels: dict[Key, list[DrawnPanel]],
) -> None:
    nodes, edges = told_apart(shown(drawn_panels, WIRING, "sixteen")[0].frames)
    for kind in ("nic", "pcie_switch"):
        loaded = [each for each in nodes if each["kind"] == kind and each["mainstat"]]
        assert loaded
        for each in loaded:
            assert each["arc__plain"] == 1
            (uplink,) = [edge for edge in edges if edge["target"] == each["id"]]
            assert uplink["mainstat"] == round(each["mainstat"])


def test_nodes_of_a_rack_stand_around_their_fabric(
    drawn_panels: dict[Key, list[DrawnPanel]],
) -> None:
    (first, *_) = shown(drawn_panels, DOMAIN, "rack")
    nodes, edges = told_apart(first.frames)
    assert {each["title"] for each in nodes} == {"tray-0", "tray-1", "tray-2", "NVLink fabric"}
    fabric = titled(nodes, "NVLink fabric")
    assert (fabric["fixedx"], fabric["fixedy"]) == (0, 0)
    assert {edge["target"] for edge in edges} == {fabric["id"]}
    assert [edge["secondarystat"] for edge in edges] == [4 * 18] * 3
    third = titled(nodes, "tray-2")
    assert third["arc__idle"] == pytest.approx(1 / 4)


def test_a_domain_has_one_row_whatever_its_nodes(
    drawn_panels: dict[Key, list[DrawnPanel]],
) -> None:
    (first, *_) = shown(drawn_panels, DOMAINS, "rack")
    (row,) = rows(first.frames[0])
    assert (row["nodes"], row["gpus"], row["links_up"]) == (3, 12, 1)
    assert row["held"] + row["free"] == row["gpus"]
    assert 0 < row["busy"] <= row["held"]
