"""The GPU Utilization Topology View: which node is in trouble, and where in its wiring.

Above, the fleet and every node in it; below, for the chosen nodes, each GPU at its place.
"""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.fleet import MISSING, SEEN_AND_EXPECTED
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import topology_view as queries
from seedance_obs.dashboards.topology_graphs import DOMAINS, LINKS, WIRING
from seedance_obs.dashboards.variables import CLUSTER, NODE, ONE_DOMAIN

SMALL, HALF, WHOLE = (4, 4), (12, 9), (24, 10)
GPU_LEGEND = "{{instance}} GPU {{gpu}}"
SHOW_WIRING = links.to(
    links.TOPOLOGY,
    "Show the wiring of ${__data.fields.instance}",
    node=links.field("instance"),
)

FLEET = (
    SEEN_AND_EXPECTED,
    MISSING,
    Panel(
        panels.NUMBER,
        "Mean utilisation",
        "Share of the time in which a kernel ran, over all GPUs that report it. GPUs in MIG mode "
        "do not.",
        (Query(queries.FLEET_UTILIZATION),),
        theme.UTILIZATION,
        SMALL,
        no_value="no GPU tells",
    ),
    Panel(
        panels.NUMBER,
        "Power",
        "Sum of the boards' power draw, without the hosts.",
        (Query(queries.FLEET_POWER),),
        theme.POWER,
        SMALL,
        no_value="no GPU tells",
    ),
    Panel(
        panels.NUMBER,
        "Firing alerts",
        "Alerts of these rules that fire now, in the chosen clusters. Zero is the goal.",
        (Query(queries.FIRING_COUNT),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_BAD,
    ),
    Panel(
        panels.NUMBER,
        "Oldest reading",
        "Age of the oldest snapshot of any source on any node. If it grows, a driver or an "
        "exporter hangs and the numbers of that node are history.",
        (Query(queries.OLDEST_READING),),
        theme.AGE,
        SMALL,
        theme.READING_AGE,
        no_value="no source answers",
    ),
    Panel(
        panels.table(sort_by="alerts", descending=True),
        "Which node needs attention?",
        "All nodes of the cluster, those with alerts first. Click a node for its wiring below.",
        (Query(queries.NODES),),
        theme.COUNT,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance alerts missing seen expected utilization power", hidden="Time"
            ),
        ),
        overrides=(
            overrides.linked("instance", SHOW_WIRING),
            overrides.cells("alerts", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.cells("missing", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.cells("utilization", theme.UTILIZATION, "gauge"),
            overrides.column("power", unit=theme.POWER.unit),
        ),
        no_value="no exporter answers",
    ),
    Panel(
        panels.LINES,
        "How busy is every GPU?",
        "Per cent of the time in which a kernel ran, for every GPU of every node, whichever nodes "
        "are chosen. One kernel on one of a hundred cores also reads as 100.",
        (Query(queries.UTILIZATION_BY_GPU_PERCENT, "{{instance}}-{{gpu_uuid}}"),),
        theme.UTILIZATION_PERCENT,
        HALF,
        no_value="no GPU tells how busy it is, or rules are not loaded",
    ),
)

CHOSEN_NODES = (
    WIRING,
    LINKS,
    Panel(
        panels.BANDS,
        "When was every GPU busy?",
        "One band per GPU. Dark: idle; the lighter and warmer, the busier. A gap is a GPU without "
        "readings for more than two minutes. Of a board in MIG mode, whose utilisation nobody "
        "measures: the share of its slices in which work ran.",
        (Query(queries.UTILIZATION_BANDS, "{{band}}"),),
        theme.UTILIZATION,
        WHOLE,
        theme.BUSY_SCALE,
        no_value="no GPU of these nodes tells how busy it is",
    ),
    Panel(
        panels.LINES,
        "What does every GPU draw?",
        "Power draw of the board. High power at low utilisation, or the reverse, is worth a "
        "question: a job that spins in communication shows 100 % at low power.",
        (Query(queries.POWER, GPU_LEGEND),),
        theme.POWER,
        HALF,
        no_value="no GPU of these nodes tells what it draws",
    ),
    Panel(
        panels.LINES,
        "How full is the memory of every GPU?",
        "Used share of the framebuffer. Memory in use without utilisation means that somebody "
        "holds the GPU and does not use it.",
        (Query(queries.MEMORY_USED, GPU_LEGEND),),
        theme.MEMORY,
        HALF,
        no_value="no GPU of these nodes tells of its memory",
    ),
    Panel(
        panels.table(sort_by="node_name"),
        "What is every GPU, and what is it wired to?",
        "All GPUs, lost ones included, with their fixed facts. An empty cell is unknown: the "
        "driver or the kernel does not say.",
        (Query(queries.GPUS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "node_name gpu gpu_model state utilization memory power device numa_node pcie_root "
                "pcie_switch nvlink_domain topo_mask bandwidth_class gpu_uuid serial vbios_version "
                "compute_capability",
                hidden="Time cluster instance job kind known pci_bus_id minor_number "
                "root_complex_id pcie_generation_board",
            ),
        ),
        overrides=(
            overrides.cells("utilization", theme.UTILIZATION, "gauge"),
            overrides.cells("memory", theme.MEMORY, "gauge"),
            overrides.column("power", unit=theme.POWER.unit),
        ),
        no_value="no GPU on these nodes, or their exporters are down",
    ),
)


def topology_view() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.TOPOLOGY,
        title="GPU Utilization Topology View",
        description="Every GPU of a cluster, how busy it is and what it is wired to.",
        tags=("topology",),
        variables=(CLUSTER, NODE, ONE_DOMAIN),
        panels=(
            Row("Fleet"),
            *FLEET,
            Row("Wiring of the chosen nodes"),
            *CHOSEN_NODES,
            Row("NVLink domains"),
            *DOMAINS,
        ),
    )
