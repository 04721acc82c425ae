"""The fleet overview: where capacity is lost, what fires, and which node to look at first."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import fleet as queries
from seedance_obs.dashboards.variables import CLUSTER

SMALL, HALF, THIRD, WHOLE = (4, 4), (12, 9), (8, 9), (24, 11)
SEVERITIES = overrides.texts(
    {
        "critical": ("critical", theme.FIRING),
        "warning": ("warning", theme.WARNING),
        "info": ("info", theme.INFO),
    }
)

SEEN_AND_EXPECTED = Panel(
    panels.NUMBER,
    "GPUs seen and expected",
    "GPUs that answer their driver, and GPUs that the nodes have on the PCI bus or in their "
    "configuration. They should be equal; the nodes that miss one are in the table below.",
    (
        Query(queries.FLEET_SEEN, "seen"),
        Query(queries.FLEET_EXPECTED, "expected", ref_id="B"),
    ),
    theme.COUNT,
    SMALL,
)
MISSING = Panel(
    panels.ALARM,
    "GPUs missing",
    "Expected but not seen. Every one is lost capacity and, with a job on it, a failed job: "
    "see SeedanceGpuMissing in the runbook.",
    (Query(queries.FLEET_MISSING),),
    theme.COUNT,
    SMALL,
    theme.ANY_IS_BAD,
)

NOW = (
    SEEN_AND_EXPECTED,
    MISSING,
    Panel(
        panels.ALARM,
        "Critical alerts",
        "Alerts of these rules that page somebody now. The table below says which.",
        (Query(queries.CRITICAL_COUNT),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_BAD,
    ),
    Panel(
        panels.ALARM,
        "Warnings",
        "Alerts of these rules that are a ticket for working hours.",
        (Query(queries.WARNING_COUNT),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_A_WARNING,
    ),
    Panel(
        panels.NUMBER,
        "GPU time that is used",
        "Of all GPUs' time in the last five minutes, the share in which somebody's work ran. "
        "Time that nobody could observe counts as not used.",
        (Query(queries.ACTIVE_SHARE),),
        theme.UTILIZATION,
        SMALL,
        no_value="no GPU time is counted yet",
    ),
    Panel(
        panels.NUMBER,
        "Power",
        "What boards and hosts draw, from their energy counters over the last five minutes. "
        "Hosts whose energy cannot be read are not in it.",
        (Query(queries.FLEET_POWER),),
        theme.POWER,
        SMALL,
        no_value="no energy is counted yet",
    ),
)

LOST_CAPACITY = (
    Panel(
        panels.STACKED,
        "What are the GPUs doing?",
        "GPUs by what their time goes to, adding up to all of them. Active: work runs. Reserved: "
        "somebody holds it and does not use it, which is what to go after first. Unallocated: "
        "free. Unobserved: passed while no exporter looked.",
        (Query(queries.GPUS_BY_STATE, "{{state}}"),),
        theme.GPUS,
        HALF,
        overrides=overrides.STATES,
        no_value="no GPU time is counted: no GPUs, or rules are not loaded",
    ),
    Panel(
        panels.STACKED,
        "Where does the power go?",
        "Watts of the boards by what they are spent on, and of the hosts' CPUs and memory. "
        "Reserved_idle: what boards draw while their holders do nothing with them; unallocated: "
        "for nobody. The boards' parts add up to their energy counters.",
        (
            Query(queries.WATTS_BY_COMPONENT, "{{component}}"),
            Query(queries.WATTS_OF_HOSTS, "hosts", ref_id="B"),
        ),
        theme.POWER,
        HALF,
        overrides=overrides.COMPONENTS,
        no_value="no energy is counted: no GPUs, or rules are not loaded",
    ),
    Panel(
        panels.BARS,
        "Who holds GPUs without using them?",
        "GPUs' worth of time that tenants hold and do not use, the ten who waste most. Click for "
        "the tenant's workloads.",
        (Query(queries.WASTED_BY_TENANT, "{{tenant}}"),),
        theme.Look("none", theme.HELD_IDLE, 0, decimals=1),
        THIRD,
        links=(links.to(links.TENANTS, "What does it run?", tenant=links.label("tenant")),),
        no_value="nobody",
    ),
    Panel(
        panels.LINES,
        "How much of what is free cannot be used?",
        "Shares of the free GPUs of each cluster. Stranded: on nodes with too few for what is "
        "asked for, which moving work would win back (above 65 % an alert asks for a new plan). "
        "FGD: as its authors define it, by each node's own requests. Unusable: in pieces too "
        "small. Gang: not to be had for a job of eight on one node. Island: outside the largest "
        "island of their node. A full cluster has none.",
        (
            Query(queries.STRANDED, "stranded {{cluster}}"),
            Query(queries.FGD, "FGD {{cluster}}", ref_id="B"),
            Query(queries.UNUSABLE, "unusable {{cluster}}", ref_id="C"),
            Query(queries.GANG_OF_EIGHT, "gang of 8 {{cluster}}", ref_id="D"),
            Query(queries.ISLAND, "island {{level}} {{cluster}}", ref_id="E"),
        ),
        theme.FRAGMENTATION,
        THIRD,
        no_value="nothing is free, or nobody knows who holds what",
    ),
    Panel(
        panels.BARS,
        "How many GPUs can a job of each size still get?",
        "Free GPUs that jobs of so many GPUs on one node can be given, over all nodes. Where the "
        "bar of 8 is short and that of 1 is long, free GPUs lie scattered.",
        (Query(queries.FREE_BY_JOB_SIZE, "jobs of {{gpus}}"),),
        theme.GPUS,
        THIRD,
        no_value="nobody knows who holds what",
    ),
    Panel(
        panels.LINES,
        "How much of the time is a shared link contended?",
        "Of each kind of segment, the worst one: share of the last five minutes in which it was "
        "above 80 % with two tenants or more each taking a tenth of it.",
        (Query(queries.CONTENDED_BY_KIND, "{{segment_kind}}"),),
        theme.CONTENTION,
        HALF,
        no_value="no segment is watched: the fast loop is off, or there are no GPUs",
    ),
    Panel(
        panels.table(sort_by="contended", descending=True),
        "Which shared links are contended?",
        "The twenty worst segments, by the share of the last five minutes in which two tenants "
        "or more were in each other's way. Click a node to see who.",
        (Query(queries.CONTENDED_SEGMENTS),),
        theme.CONTENTION,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance segment_kind segment contended", hidden="Time"
            ),
        ),
        overrides=(
            overrides.linked(
                "instance",
                links.to(links.SENSITIVITY, "Who is slowed down?", node=links.field("instance")),
            ),
            overrides.cells("contended", theme.CONTENTION, "gauge"),
        ),
        no_value="none is contended",
    ),
)

ALERTS_AND_NODES = (
    Panel(
        panels.table(sort_by="since", descending=True),
        "What is firing?",
        "Alerts of these rules, the newest first. Click an alert for the health of its node.",
        (Query(queries.FIRING_ALERTS),),
        theme.COUNT,
        (24, 8),
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "since severity alertname cluster instance tenant topic", hidden="Time"
            ),
        ),
        overrides=(
            overrides.column("since", unit="dateTimeFromNow"),
            overrides.column(
                "severity", mappings=SEVERITIES, **{"custom.cellOptions": {"type": "color-text"}}
            ),
            overrides.linked(
                "alertname",
                links.to(links.HEALTH, "How is its node?", node=links.field("instance")),
            ),
        ),
        no_value="nothing fires",
    ),
    Panel(
        panels.table(sort_by="alerts", descending=True),
        "Which nodes need attention?",
        "The fifty worst: most alerts, then most GPUs that are held and not used. Free and "
        "stranded count GPUs; contended is the worst segment's share of time. Click a node for "
        "its wiring.",
        (Query(queries.NODES),),
        theme.Look("none", theme.BLUE, 0, decimals=1),
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance alerts missing expected held wasted free stranded contended",
                hidden="Time",
            ),
        ),
        overrides=(
            overrides.linked(
                "instance",
                links.to(links.TOPOLOGY, "Where is it busy?", node=links.field("instance")),
            ),
            overrides.cells("alerts", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.cells("missing", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.column("expected", decimals=0),
            overrides.cells("contended", theme.CONTENTION, "gauge"),
        ),
        no_value="no node is scraped under job=gpu",
    ),
)


def fleet() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.FLEET,
        title="GPU Fleet Overview",
        description="Where a fleet's GPUs, watts and time go, what fires, and where to look first.",
        variables=(CLUSTER,),
        panels=(
            Row("Now"),
            *NOW,
            Row("Where is capacity lost?"),
            *LOST_CAPACITY,
            Row("What needs attention?"),
            *ALERTS_AND_NODES,
        ),
    )
