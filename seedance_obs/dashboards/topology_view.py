"""The GPU Utilization Topology View: which node is in trouble, and where in its wiring.

Above, the fleet and every node in it; below, for the chosen nodes, each GPU at its place.
"""

from seedance_obs.dashboards import queries, theme
from seedance_obs.dashboards.fleet_panels import (
    TOPOLOGY_UID,
    fleet_numbers,
    fleet_utilization,
    nodes,
)
from seedance_obs.dashboards.frames import frame_of_rows, gauge, in_order
from seedance_obs.dashboards.grafana import Annotation, Dashboard, Variable
from seedance_obs.dashboards.panels import (
    FULL_WIDTH,
    NodeGraph,
    Panel,
    Query,
    Row,
    StateTimeline,
    Table,
    TimeSeries,
    column,
)

GPU_LEGEND = "{{instance}} GPU {{gpu}}"


def topology_view() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=TOPOLOGY_UID,
        title="GPU Utilization Topology View",
        description="Every GPU of a cluster, how busy it is and what it is wired to.",
        tags=("gpu", "seedance", "topology"),
        variables=(
            Variable("cluster", "Cluster", queries.CLUSTERS, include_all=True),
            Variable("node", "Node", queries.NODE_NAMES, multi=True),
        ),
        annotations=(Annotation("Firing alerts", queries.FIRING, "{{alertname}}", "{{instance}}"),),
        panels=(
            Row("Fleet"),
            *fleet_numbers(),
            nodes(),
            fleet_utilization(),
            Row("Wiring of the chosen nodes"),
            _wiring(),
            _timeline(),
            _power(),
            _memory(),
            _gpus(),
        ),
    )


def _wiring() -> Panel:
    return NodeGraph(
        title="Where does every GPU sit on $node?",
        description="From top to bottom: host, PCI roots, PCIe switches, GPUs, NVSwitches. "
        "The ring of a GPU is busy (orange) or idle (blue), grey where nothing is known; inside, "
        "utilisation and power. Solid green: NVLinks, thicker the more; dashed grey: PCIe. A GPU "
        "that was lost in the last hour keeps its place, marked missing.",
        queries=(
            Query(queries.topology_nodes(), instant=True, ref_id="nodes"),
            Query(queries.topology_edges(), instant=True, ref_id="edges"),
        ),
        look=theme.UTILIZATION_PERCENT,
        no_value="no GPU on this node in the last hour",
        width=FULL_WIDTH,
        height=20,
        repeat="node",
        main_unit="%",
        secondary_unit="W",
        edge_unit="NVLinks",
        arcs=(
            ("arc__busy", theme.BUSY),
            ("arc__idle", theme.IDLE),
            ("arc__unknown", theme.UNKNOWN),
        ),
        transformations=(*frame_of_rows("nodes"), *frame_of_rows("edges")),
    )


def _timeline() -> Panel:
    return StateTimeline(
        title="When was every GPU busy?",
        description="One band per GPU. Dark: idle; the lighter and warmer, the busier. A gap is a "
        "GPU without readings for more than two minutes.",
        queries=(Query(queries.UTILIZATION_BANDS, "{{band}}"),),
        look=theme.UTILIZATION,
        thresholds=theme.BUSY_SCALE,
        no_value="no utilisation reported by these nodes",
        width=FULL_WIDTH,
        height=12,
    )


def _power() -> Panel:
    return TimeSeries(
        title="What does every GPU draw?",
        description="Power draw of the board. High power at low utilisation, or the reverse, is "
        "worth a question: a job that spins in communication shows 100 % at low power.",
        queries=(Query(queries.POWER, GPU_LEGEND),),
        look=theme.POWER,
        no_value="no power reported by these nodes",
        width=12,
        height=9,
    )


def _memory() -> Panel:
    return TimeSeries(
        title="How full is the memory of every GPU?",
        description="Used share of the framebuffer. Memory in use without utilisation means that "
        "somebody holds the GPU and does not use it.",
        queries=(Query(queries.MEMORY_USED, GPU_LEGEND),),
        look=theme.MEMORY,
        no_value="no memory reported by these nodes",
        width=12,
        height=9,
    )


def _gpus() -> Panel:
    return Table(
        title="What is every GPU, and what is it wired to?",
        description="All GPUs seen in the last hour with their fixed facts. An empty cell is "
        "unknown: the driver or the kernel does not say.",
        queries=(Query(queries.gpu_table(), instant=True),),
        look=theme.COUNT,
        no_value="unknown",
        width=FULL_WIDTH,
        height=10,
        sort_by="instance",
        transformations=(
            *frame_of_rows("A"),
            in_order(
                "instance",
                "gpu",
                "state",
                "gpu_model",
                "utilization",
                "memory",
                "power",
                "pci_bus_id",
                "numa_node",
                "pcie_root",
                "pcie_switch",
                "nvlink_domain",
                "gpu_uuid",
                hidden=("Time", "cluster", "job", "id", "parent", "known"),
            ),
        ),
        overrides=(
            gauge("utilization", theme.UTILIZATION),
            gauge("memory", theme.MEMORY),
            column("power", unit=theme.POWER.unit),
        ),
    )
