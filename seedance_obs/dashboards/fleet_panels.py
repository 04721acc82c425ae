"""Panels about the whole fleet: how much there is of it, and which node needs attention."""

from seedance_obs.dashboards import queries, theme
from seedance_obs.dashboards.frames import frame_of_rows, gauge, in_order
from seedance_obs.dashboards.panels import Panel, Query, Stat, Table, TimeSeries, column
from seedance_obs.dashboards.theme import JsonObject

TOPOLOGY_UID = "seedance-gpu-topology"
NO_EXPORTER = "no data: is the node exporter scraped?"
SELECT_NODE: JsonObject = {
    "title": "Show the wiring of ${__data.fields.instance}",
    "url": f"/d/{TOPOLOGY_UID}?${{datasource:queryparam}}&${{cluster:queryparam}}"
    "&var-node=${__data.fields.instance}&${__url_time_range}",
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


def fleet_numbers() -> tuple[Panel, ...]:
    """The row of big numbers: what is there, what is missing, and whether the data is fresh."""
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


def nodes() -> Panel:
    """A table of all nodes whose rows lead to their wiring."""
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
            *frame_of_rows("A"),
            in_order(
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
            gauge("utilization", theme.UTILIZATION),
            column("power", unit=theme.POWER.unit),
        ),
    )


def fleet_utilization() -> Panel:
    """One line for each GPU of the fleet, under the names that other dashboards use."""
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
