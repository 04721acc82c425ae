"""The panels of the Topology View that show what is wired to what: of a node, and of a domain."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.panels import Panel, Query
from seedance_obs.dashboards.queries import domains, wiring, wiring_links
from seedance_obs.dashboards.queries.link_matrix import LINK_CLASSES
from seedance_obs.dashboards.queries.node_graph import HEIGHT
from seedance_obs.dashboards.queries.pair_cost import ONE, OTHER
from seedance_obs.dashboards.variables import ONE_DOMAIN

WIDE, TALL, WHOLE = (24, 12), (24, 22), (24, 9)
ARCS = {
    "arc__busy": ("busy", theme.BUSY),
    "arc__held_idle": ("held, not used", theme.HELD_IDLE),
    "arc__idle": ("free", theme.IDLE),
    "arc__unknown": ("unknown", theme.UNKNOWN),
    "arc__missing": ("missing", theme.MISSING),
    "arc__plain": ("no GPU", theme.PLAIN),
}
CALLED: theme.JsonObject = {
    **{arc: name for arc, (name, _) in ARCS.items()},
    "mainstat": "utilisation or load",
    "secondarystat": "power",
}
EDGES = (
    "Lines: dark blue hardly loaded, light blue some, yellow from 30 %, orange from 80 %; red: "
    "links are down, or slower than they should be under load."
)
GRAPH = panels.node_graph(
    unit="%",
    second_unit="W",
    edge_unit="%",
    second_edge_unit="links",
    arcs={arc: color for arc, (_, color) in ARCS.items()},
)
TO_HEALTH = links.to(
    links.HEALTH, "Is ${__data.fields.instance} healthy?", node=links.field("instance")
)
TO_WIRING = links.to(
    links.TOPOLOGY, "Show the wiring of ${__data.fields.instance}", node=links.field("instance")
)
TO_DOMAIN = links.to(
    links.TOPOLOGY,
    "Show the nodes of ${__data.fields.nvlink_domain}",
    domain=links.field("nvlink_domain"),
)
PLACED = (
    *transformations.rows("nodes"),
    *transformations.rows("edges"),
    *transformations.spread("nodes", HEIGHT),
    transformations.called(CALLED, hidden="row shift place slot down square bend aside left"),
    transformations.ANSWERED,
)

WIRING = Panel(
    GRAPH,
    "Where does every GPU sit on $node?",
    "From left to right: host, PCI roots, PCIe switches, network adapters, GPUs, NVSwitches. The "
    "ring of a GPU: what its time of the last minutes went to, slices of MIG boards too; inside, "
    "utilisation and power. A lost GPU keeps its place, with a warning sign. In others: load of "
    f"what leads to them. {EDGES} Grey, green, teal: PCIe, NVLink, C2C of unknown load. Dashed: "
    "PCIe. The thicker, the more it carries. Of NVLinks only a GPU's total is known: at each of "
    "its links, the total of the less loaded end.",
    (Query(wiring.DEVICES, ref_id="nodes"), Query(wiring_links.EDGES, ref_id="edges")),
    theme.UTILIZATION_PERCENT,
    TALL,
    transformations=PLACED,
    overrides=(overrides.linked("title", TO_HEALTH),),
    repeat="node",
    no_value="no GPU on this node, or its exporter is down",
)

LINKS = Panel(
    panels.MATRIX,
    "How do the GPUs of $node reach each other?",
    "NV: that many NVLinks. C2C: chip to chip. Then over PCIe, ever further: PIX one switch, PXB "
    "several, PHB the root complex, NODE the same NUMA node, SYS across sockets. A job on several "
    "GPUs is as slow as its furthest pair. Empty: not known, or the GPU is lost. GPUs of other "
    "nodes of a rack are reached over the fabric and not shown.",
    (Query(LINK_CLASSES),),
    theme.COUNT,
    WIDE,
    transformations=transformations.matrix(ONE, OTHER, "link_class"),
    overrides=(overrides.column(f"{ONE}\\{OTHER}", **{"custom.cellOptions": {"type": "auto"}}),),
    mappings=overrides.patterns(theme.LINK_CLASSES),
    repeat="node",
    no_value="no GPU on this node, or its exporter is down",
)

DOMAINS = (
    Panel(
        panels.table(sort_by="alerts", descending=True),
        "Which NVLink domain needs attention?",
        "GPUs that reach each other over NVLink: of a node, or of a rack. Busy: GPUs' worth of "
        "work; held by somebody; free. Alerts of its nodes. Links_up: the part of its NVLinks that "
        "its worst GPU has; below 1 every collective over it is slower. Of the worst "
        f"{domains.MOST_ROWS}, those with alerts first.",
        (Query(domains.DOMAINS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster nvlink_domain alerts links_up nodes gpus busy held free power",
                hidden="Time",
            ),
        ),
        overrides=(
            overrides.linked("nvlink_domain", TO_DOMAIN),
            overrides.cells("alerts", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.cells("links_up", theme.LINKS_UP, "color-text", theme.ALL_IS_GOOD),
            overrides.column("busy", decimals=1),
            overrides.column("held", decimals=1),
            overrides.column("free", decimals=1),
            overrides.column("power", unit=theme.POWER.unit),
        ),
        no_value="no GPU has NVLinks",
    ),
    Panel(
        GRAPH,
        "How busy are the nodes of $domain?",
        "The nodes of a domain that spans several, and their fabric. The ring of a node: what its "
        "GPUs' time of the last minutes went to, lost ones in red; inside, mean utilisation and "
        f"power of its GPUs in the domain. Click a node for its wiring. {EDGES} The load is that "
        "of the node's most loaded GPU; links are counted over all of them.",
        (Query(domains.GRAPH_NODES, ref_id="nodes"), Query(domains.GRAPH_EDGES, ref_id="edges")),
        theme.UTILIZATION_PERCENT,
        TALL,
        transformations=PLACED,
        overrides=(overrides.linked("title", TO_WIRING),),
        repeat=ONE_DOMAIN.name,
        no_value="no such domain spans nodes: for the wiring of one node see above",
    ),
)
