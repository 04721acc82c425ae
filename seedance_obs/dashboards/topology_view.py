"""The GPU Utilization Topology View: which node is in trouble, and where in its wiring.

Above, the fleet and every node in it; below, for the chosen nodes, each GPU at its place.
"""

from seedance_obs.dashboards import queries, theme
from seedance_obs.dashboards.grafana import Annotation, Dashboard, Variable
from seedance_obs.dashboards.panels import (
    FULL_WIDTH,
    NodeGraph,
    Panel,
    Query,
    Row,
    Stat,
    StateTimeline,
    Table,
    TimeSeries,
    column,
)
from seedance_obs.dashboards.theme import JsonObject

UID = "seedance-gpu-topology"
GPU_LEGEND = "{{instance}} GPU {{gpu}}"
NO_EXPORTER = "no data: is the node exporter scraped?"
SELECT_NODE: JsonObject = {
    "title": "Show the wiring of ${__data.fields.instance}",
    "url": f"/d/{UID}?${{datasource:queryparam}}&${{cluster:queryparam}}"
    "&var-node=${__data.fields.instance}&${__url_time_range}",
}


def topology_view() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=UID,
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
            *_fleet_numbers(),
            _nodes(),
            _fleet_utilization(),
            Row("Wiring of the chosen nodes"),
            _wiring(),
            _timeline(),
            _power(),
            _memory(),
            _gpus(),
        ),
    )


def _frame_of_rows(ref_id: str) -> tuple[JsonObject, JsonObject]:
    """Turns series that carry their column in `stat` into one frame, under real field names."""
    only: JsonObject = {"id": "byRefId", "options": ref_id}
    return (
        {
            "id": "labelsToFields",
            "filter": only,
            "options": {"mode": "columns", "valueLabel": "stat"},
        },
        {"id": "merge", "filter": only, "options": {}},
    )


def _in_order(*names: str, hidden: tuple[str, ...]) -> JsonObject:
    return {
        "id": "organize",
        "options": {
            "excludeByName": dict.fromkeys(hidden, True),
            "indexByName": {name: place for place, name in enumerate(names)},
            "renameByName": {},
        },
    }


def _number(
    title: str, description: str, look: theme.Look, *questions: Query, alarm: JsonObject | None
) -> Panel:
    return Stat(
        title=title,
        description=description,
        queries=questions,
        look=look,
        thresholds=alarm,
        no_value="no data",
        width=4,
        height=4,
    )


def _fleet_numbers() -> tuple[Panel, ...]:
    return (
        _number(
            "GPUs seen and expected",
            "GPUs that answer their driver, and GPUs that the nodes have on the PCI bus or in "
            "their configuration. They should be equal.",
            theme.COUNT,
            Query(queries.FLEET_GPUS_SEEN, "seen", instant=True),
            Query(queries.FLEET_GPUS_EXPECTED, "expected", instant=True, ref_id="B"),
            alarm=None,
        ),
        _number(
            "GPUs missing",
            "Expected but not seen. The node is in the table below; see SeedanceGpuMissing in "
            "the runbook.",
            theme.COUNT,
            Query(queries.FLEET_GPUS_MISSING, instant=True),
            alarm=theme.ANY_IS_BAD,
        ),
        _number(
            "Mean utilisation",
            "Share of the time in which a kernel ran, over all GPUs that report it. GPUs in MIG "
            "mode do not.",
            theme.UTILIZATION,
            Query(queries.FLEET_UTILIZATION, instant=True),
            alarm=None,
        ),
        _number(
            "Power",
            "Sum of the boards' power draw, without the hosts.",
            theme.POWER,
            Query(queries.FLEET_POWER, instant=True),
            alarm=None,
        ),
        _number(
            "Firing alerts",
            "Alerts of these rules that fire now, in the chosen clusters. Zero is the goal.",
            theme.COUNT,
            Query(queries.FIRING_COUNT, instant=True),
            alarm=theme.ANY_IS_BAD,
        ),
        _number(
            "Oldest reading",
            "Age of the oldest snapshot of any source on any node. If it grows, a driver or an "
            "exporter hangs and the numbers of that node are history.",
            theme.AGE,
            Query(queries.OLDEST_READING, instant=True),
            alarm=theme.READING_AGE,
        ),
    )


def _nodes() -> Panel:
    return Table(
        title="Which node needs attention?",
        description="All nodes of the cluster, those with alerts first. Click a node for its "
        "wiring below.",
        queries=(Query(queries.nodes_table(), instant=True),),
        look=theme.COUNT,
        no_value="unknown",
        width=12,
        height=8,
        sort_by="alerts",
        descending=True,
        transformations=(
            *_frame_of_rows("A"),
            _in_order(
                "cluster",
                "instance",
                "alerts",
                "missing",
                "seen",
                "expected",
                "utilization",
                "power",
                hidden=("Time",),
            ),
        ),
        overrides=(
            column("instance", links=[SELECT_NODE]),
            *(
                column(
                    name,
                    thresholds=theme.ANY_IS_BAD,
                    custom__cellOptions={"type": "color-text"},
                )
                for name in ("alerts", "missing")
            ),
            _gauge("utilization", theme.UTILIZATION),
            column("power", unit=theme.POWER.unit),
        ),
    )


def _gauge(name: str, look: theme.Look) -> JsonObject:
    return column(
        name,
        unit=look.unit,
        min=look.low,
        max=look.high,
        color={"mode": "fixed", "fixedColor": look.color},
        custom__cellOptions={"type": "gauge", "mode": "basic"},
    )


def _fleet_utilization() -> Panel:
    return TimeSeries(
        title="How busy is every GPU?",
        description="Per cent of the time in which a kernel ran, for every GPU of every node, "
        "whichever nodes are chosen. One kernel on one of a hundred cores also reads as 100.",
        queries=(Query(queries.UTILIZATION_BY_GPU_PERCENT, "{{instance}}-{{gpu_uuid}}"),),
        look=theme.UTILIZATION_PERCENT,
        no_value=NO_EXPORTER,
        width=12,
        height=8,
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
        transformations=(*_frame_of_rows("nodes"), *_frame_of_rows("edges")),
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
            *_frame_of_rows("A"),
            _in_order(
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
            _gauge("utilization", theme.UTILIZATION),
            _gauge("memory", theme.MEMORY),
            column("power", unit=theme.POWER.unit),
        ),
    )
