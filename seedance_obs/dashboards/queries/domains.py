"""NVLink domains: what each has, and the nodes of one that spans several, such as a rack's."""

from collections.abc import Sequence

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.queries import gpu_time, node_graph
from seedance_obs.dashboards.queries.scope import BY_NODE, FIRING, FLEET, SAME_GPU, SAME_NODE
from seedance_obs.dashboards.queries.shape import columns, joined, with_label

MOST_ROWS = 100
DOMAIN = "cluster, nvlink_domain"
HOST = "cluster, instance, nvlink_domain"
IN_DOMAIN = f'{FLEET},nvlink_domain!=""'


def _gpus(scope: str) -> str:
    return f"max by ({HOST}, gpu_uuid) (seedance_gpu_info{{{scope}}})"


def _links_up(scope: str) -> str:
    active = f"seedance_gpu_nvlinks_active{{{scope}}}"
    return f"{active} / (seedance_gpu_nvlinks_expected{{{scope}}} > 0)"


def _domains() -> str:
    """The domains with alerts first, then those with NVLinks down."""
    gpus = f"count by ({DOMAIN}) ({_gpus(IN_DOMAIN)})"
    nodes = f"count by ({HOST}) ({_gpus(IN_DOMAIN)})"
    free = f"seedance_gpu_free_ratio{{{IN_DOMAIN}}}"
    active = f"{gpu_time.counted(FLEET, 'active')} * {SAME_GPU} group_left (nvlink_domain) "
    firing = f"0 * {nodes} + {SAME_NODE} group_left () sum {BY_NODE} ({FIRING})"
    alerts = f"(sum by ({DOMAIN}) ({firing}) or 0 * {gpus})"
    links_up = f"min by ({DOMAIN}) ({_links_up(IN_DOMAIN)})"
    found = columns(
        alerts=alerts,
        gpus=gpus,
        nodes=f"count by ({DOMAIN}) ({nodes})",
        busy=f"sum by ({DOMAIN}) ({active}{_gpus(IN_DOMAIN)})",
        held=f"sum by ({DOMAIN}) (1 - {free})",
        free=f"sum by ({DOMAIN}) ({free})",
        power=f"sum by ({DOMAIN}) (seedance_gpu_power_watts{{{IN_DOMAIN}}})",
        links_up=links_up,
    )
    worst = f"topk({MOST_ROWS}, {alerts} + (1 - {links_up}) or {alerts})"
    return f"{found}\nand on ({DOMAIN}) {worst}"


CHOSEN = f'{IN_DOMAIN},nvlink_domain=~"$domain"'
# Nodes stand left and right of the fabric, by the last digit of their names.
COLUMNS = {"fabric": 0, "left": -450, "right": 450}
SIDES = {"left": "=~", "right": "!~"}
SPANNING = f"count by ({DOMAIN}) (count by ({HOST}) (seedance_gpu_info{{{CHOSEN}}})) > 1"
EDGE = f"{HOST}, kind"
RADIUS = 32


def _hosts(expr: str = "") -> str:
    """What each node has in the domain: its GPUs, or the sum of something else of them."""
    of = f"sum by ({HOST}) ({expr or _gpus(CHOSEN)})"
    return f"({of} and on ({DOMAIN}) ({SPANNING}))"


def _nodes(kinds: Sequence[str]) -> str:
    sides = [_side(kind) for kind in kinds if kind in SIDES]
    fabric = with_label(f"({SPANNING})", "kind", "fabric")
    return "\nor ".join([*([fabric] if "fabric" in kinds else []), *sides])


def _side(side: str) -> str:
    scope = f'{CHOSEN},instance{SIDES[side]}".*[02468]"'
    return with_label(
        f"(count by ({HOST}) ({_gpus(scope)}) and on ({DOMAIN}) ({SPANNING}))", "kind", side
    )


def _of_hosts(expr: str) -> str:
    """The nodes, both sides, with a number of each in the place of theirs."""
    return f"0 * ({_nodes(list(SIDES))}) + on ({HOST}) group_left () ({expr})"


def _graph_nodes() -> str:
    """The node frame: a node's GPUs as shares of those that it has or should have."""
    of_node = [f"sum {BY_NODE} (seedance_gpus_{each}{{{FLEET}}})" for each in ("expected", "seen")]
    missing = f"clamp_min({of_node[0]} - {of_node[1]}, 0)"
    all_of_it = f"({_hosts()} + {SAME_NODE} group_left () {missing})"

    def in_state(states: str) -> str:
        shares = f"({gpu_time.share(FLEET, states)})"
        return _hosts(f"{shares} * {SAME_GPU} group_left (nvlink_domain) {_gpus(CHOSEN)}")

    def arc(states: str) -> str:
        return _of_hosts(f"{in_state(states)} / {all_of_it}")

    known = in_state(gpu_time.KNOWN)
    unknown = f"clamp_min({_hosts()} - ({known} or 0 * {_hosts()}), 0) / {all_of_it}"
    busy = f"avg by ({HOST}) (seedance_gpu_utilization_ratio{{{CHOSEN}}})"
    power = f"sum by ({HOST}) (seedance_gpu_power_watts{{{CHOSEN}}})"
    lost = f"0 * {_hosts()} + {SAME_NODE} group_left () {missing}"
    expr = columns(
        mainstat=_of_hosts(f"100 * {busy}"),
        secondarystat=_of_hosts(power),
        **gpu_time.ring(arc, _of_hosts(unknown)),
        arc__missing=_of_hosts(f"({lost}) / {all_of_it}"),
        arc__plain=f"0 * {_nodes(['fabric'])} + 1",
        noderadius=f"0 * ({_nodes(list(COLUMNS))}) + {RADIUS}",
        **node_graph.places(COLUMNS, _nodes),
    )
    expr = joined(expr, "id", "/", "cluster", "nvlink_domain", "instance")
    expr = joined(expr, "title", "", "instance")
    return with_label(expr, "title", "NVLink fabric", "kind", "fabric")


def _graph_edges() -> str:
    """The edge frame: the NVLinks of each node's GPUs to the fabric, together."""
    mean = f'seedance_gpu_link_mean_bytes_per_second{{{CHOSEN},medium="nvlink"}}'
    capacity = f'seedance_gpu_link_capacity_bytes_per_second{{{CHOSEN},medium="nvlink"}}'
    load = f"{mean} / ignoring (direction) group_left () ({capacity} > 0)"
    edges = with_label(_hosts(), "kind", "nvlink")
    colors = node_graph.colored(
        edges,
        EDGE,
        load=with_label(f"max by ({HOST}) ({load})", "kind", "nvlink"),
        wrong=with_label(f"min by ({HOST}) ({_links_up(CHOSEN)}) < 1", "kind", "nvlink"),
        classes={"nvlink": theme.NVLINK},
    )
    wide = node_graph.thickness(f"sum by ({HOST}) ({capacity})")
    expr = columns(
        thickness=f"({with_label(wide, 'kind', 'nvlink')} or 0 * {edges} + 1)\n"
        f"* on ({EDGE}) group_left (color) {colors}\nand on ({HOST}) {_hosts()}",
        mainstat=f"round(100 * max by ({HOST}) ({load}))\nand {_hosts()}",
        secondarystat=_hosts(f"seedance_gpu_nvlinks_active{{{CHOSEN}}}"),
    )
    expr = joined(expr, "source", "/", "cluster", "nvlink_domain", "instance")
    expr = with_label(expr, "target", "$1/", "source", "(.*)/.*")
    return joined(expr, "id", "~", "source", "target")


DOMAINS = _domains()
GRAPH_NODES = _graph_nodes()
GRAPH_EDGES = _graph_edges()
