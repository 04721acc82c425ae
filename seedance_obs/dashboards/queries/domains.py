"""NVLink domains: what each has, and the nodes of one that spans several, such as a rack's."""

from collections.abc import Sequence

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.queries import gpu_time, node_graph
from seedance_obs.dashboards.queries.scope import (
    BY_NODE,
    FIRING,
    FLEET,
    RECORDED,
    SAME_GPU,
    SAME_NODE,
)
from seedance_obs.dashboards.queries.shape import columns, joined, with_label

MOST_ROWS = 100
DOMAIN = "cluster, nvlink_domain"
HOST = "cluster, instance, nvlink_domain"
IN_DOMAIN = f'{FLEET},nvlink_domain!=""'


def _links_up(scope: str) -> str:
    active = f"seedance_gpu_nvlinks_active{{{scope}}}"
    return f"{active} / (seedance_gpu_nvlinks_expected{{{scope}}} > 0)"


def _domains() -> str:
    """The domains whose nodes have most alerts: also of NVLinks that are down."""
    members = f"seedance_gpu_info{{{IN_DOMAIN}}}"
    gpus, nodes = (f"count by ({each}) ({members})" for each in (DOMAIN, HOST))
    free = f"seedance_gpu_free_ratio{{{IN_DOMAIN}}}"
    active = f"{gpu_time.seconds(FLEET, 'active')} * {SAME_GPU} group_left (nvlink_domain) "
    firing = f"0 * {nodes} + {SAME_NODE} group_left () sum {BY_NODE} ({FIRING})"
    alerts = f"(sum by ({DOMAIN}) ({firing}) or 0 * {gpus})"
    found = columns(
        alerts=alerts,
        gpus=gpus,
        nodes=f"count by ({DOMAIN}) ({nodes})",
        busy=f"sum by ({DOMAIN}) ({active}{members})",
        held=f"sum by ({DOMAIN}) (1 - {free})",
        free=f"sum by ({DOMAIN}) ({free})",
        power=f"sum by ({DOMAIN}) (seedance_gpu_power_watts{{{IN_DOMAIN}}})",
        links_up=f"min by ({DOMAIN}) ({_links_up(IN_DOMAIN)})",
    )
    return f"{found}\nand on ({DOMAIN}) topk({MOST_ROWS}, {alerts})"


CHOSEN = f'{IN_DOMAIN},nvlink_domain=~"$domain"'
# Nodes stand left and right of the fabric, by the last digit of their names.
COLUMNS = {"fabric": 0, "left": -450, "right": 450}
LEFT = ".*[02468]"
# By node, as all GPUs of a node are in one domain where that spans nodes.
GPU_SECONDS = f"node_tenant:seedance_gpu_seconds:rate5m{{{RECORDED}}}"
MEMBERS = f"seedance_gpu_info{{{CHOSEN}}}"
HOSTS = f"count by ({HOST}) ({MEMBERS})"
FABRIC = with_label(f"count by ({DOMAIN}) ({MEMBERS})", "kind", "fabric")
SPANNING = f"on ({DOMAIN}) (count by ({DOMAIN}) ({HOSTS}) > 1)"
RADIUS = 28


def _nodes(kinds: Sequence[str]) -> str:
    """The fabric alone, with the nodes on its left, or with all."""
    if "left" not in kinds:
        return FABRIC
    hosts = HOSTS
    if "right" not in kinds:
        hosts = f'count by ({HOST}) (seedance_gpu_info{{{CHOSEN},instance=~"{LEFT}"}})'
    sided = with_label(with_label(hosts, "kind", "right"), "kind", "left", "instance", LEFT)
    return f"{FABRIC} or {sided}"


def _graph_nodes() -> str:
    """The node frame: a node's GPUs as shares of those that it has or should have."""
    seen = f"clamp_max(seedance_gpus_seen{{{FLEET}}} / (seedance_gpus_expected{{{FLEET}}} > 0), 1)"
    seen = f"{SAME_NODE} group_left () {seen}"
    seconds = f"sum by (cluster, instance, state) ({GPU_SECONDS})"
    seconds = f"({seconds} * {SAME_NODE} group_left (nvlink_domain) (0 * {HOSTS} + 1))"
    found = columns(
        mainstat=f"100 * avg by ({HOST}) (seedance_gpu_utilization_ratio{{{CHOSEN}}})",
        secondarystat=f"sum by ({HOST}) (seedance_gpu_power_watts{{{CHOSEN}}})",
        arc__unknown=f"0 * {HOSTS} + {seen} unless sum by ({HOST}) ({seconds}) > 0",
        arc__missing=f"0 * {HOSTS} + 1 - {seen}",
        arc__plain=f"0 * {FABRIC} + 1",
        noderadius=f"{RADIUS} + 0 * ({HOSTS} or {FABRIC})",
        **node_graph.places(COLUMNS, _nodes),
    )
    ring = f"({gpu_time.ring(seconds, HOST)}) * {seen}"
    expr = f"(({ring}\nor {found})\nand {SPANNING})"
    expr = joined(expr, "id", "/", "cluster", "nvlink_domain", "instance")
    expr = joined(expr, "title", "", "instance")
    return with_label(expr, "title", "NVLink fabric", "kind", "fabric")


def _graph_edges() -> str:
    """The edge frame: the NVLinks of each node's GPUs to the fabric, together."""
    mean, capacity = (
        f'seedance_gpu_link_{each}_bytes_per_second{{{CHOSEN},medium="nvlink"}}'
        for each in ("mean", "capacity")
    )
    load = f"max by ({HOST}) ({mean} / ignoring (direction) group_left () ({capacity} > 0))"
    colors = node_graph.colored(
        HOSTS,
        HOST,
        load=load,
        wrong=f"min by ({HOST}) ({_links_up(CHOSEN)}) < 1",
        classes={"": theme.NVLINK},
    )
    wide = f"({node_graph.thickness(f'sum by ({HOST}) ({capacity})')} or 0 * {HOSTS} + 1)"
    found = columns(
        thickness=f"{wide} * on ({HOST}) group_left (color) {colors}",
        mainstat=f"round(100 * {load})",
        secondarystat=f"sum by ({HOST}) (seedance_gpu_nvlinks_active{{{CHOSEN}}})",
    )
    expr = f"({found}\nand on ({HOST}) {HOSTS}\nand {SPANNING})"
    expr = joined(expr, "source", "/", "cluster", "nvlink_domain", "instance")
    expr = with_label(expr, "target", "$1/", "source", "(.*)/.*")
    return joined(expr, "id", "~", "source", "target")


DOMAINS = _domains()
GRAPH_NODES = _graph_nodes()
GRAPH_EDGES = _graph_edges()
