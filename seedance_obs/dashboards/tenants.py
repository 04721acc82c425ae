"""Tenants and workloads: who holds how much, what is made of it, and what it takes in energy."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import tenants as queries
from seedance_obs.dashboards.queries.sensitivity import CONTENTION_BY_TENANT, MOST_LINES
from seedance_obs.dashboards.variables import CLUSTER, TENANT

THIRD, HALF, WHOLE = (8, 9), (12, 8), (24, 10)
NO_TENANT = "no tenant holds a GPU"
NO_GPU_TIME = "no GPU time is counted: no GPUs, or rules are not loaded"
TO_TENANT = links.to(
    links.TENANTS, "Show ${__data.fields.tenant} alone", tenant=links.field("tenant")
)
TO_NODE = links.to(
    links.TOPOLOGY, "Show the wiring of ${__data.fields.instance}", node=links.field("instance")
)
CHOSEN_WORKLOAD = {"tenant": links.field("tenant"), "workload": links.field("workload")}
TO_WORKLOAD = links.since(
    links.WORKLOAD, "Show the workload from its start until now", "start", **CHOSEN_WORKLOAD
)
TO_ITS_TIME = links.between(
    links.WORKLOAD,
    "Show the workload from its start to its end",
    "start",
    "seen",
    **CHOSEN_WORKLOAD,
)
RUNNING: tuple[theme.JsonObject, ...] = (
    *overrides.texts({"1": ("running", theme.GOOD)}),
    {
        "options": {
            "match": "null",
            "result": {"color": theme.UNKNOWN, "index": 1, "text": "ended"},
        },
        "type": "special",
    },
)


NOW = (
    panels.number(
        "GPUs held",
        "GPUs' worth of what the chosen tenants hold, parts of shared ones by their size, over the "
        "last five minutes.",
        Query(queries.HELD_NOW),
        theme.Look("none", theme.BLUE, 0, decimals=1),
        no_value=NO_TENANT,
    ),
    panels.number(
        "GPUs held and not used",
        "Of these, what is held while nothing runs on it, over the last five minutes: what giving "
        "back would cost nobody.",
        Query(queries.WASTED_NOW),
        theme.WASTED_GPUS,
        no_value=NO_TENANT,
    ),
    panels.number(
        "Share of it that is used",
        "Of the GPU time that they hold, the share in which their work ran, over the last five "
        "minutes. One kernel on one of a hundred cores counts as work.",
        Query(queries.USED_SHARE),
        theme.UTILIZATION,
        no_value=NO_TENANT,
        thresholds=theme.USE_SCALE,
    ),
    panels.number(
        "GPU-hours held",
        "GPU time that they held in the time range, used or not, from recorded rates: the last "
        "five minutes are not in full, and minutes without records are missing. The ledger has the "
        "exact sums.",
        Query(queries.HELD_HOURS),
        theme.GPU_HOURS,
        no_value=NO_TENANT,
    ),
    panels.number(
        "GPU-hours wasted",
        "Of the GPU time that they held in the time range, what they did not use.",
        Query(queries.WASTED_HOURS),
        theme.Look("none", theme.HELD_IDLE, 0, decimals=1),
        no_value=NO_TENANT,
    ),
    panels.number(
        "Energy",
        "What the chosen tenants' boards and hosts took in the time range, idle parts included; "
        "with all tenants, what nobody holds as well. Hosts whose energy cannot be read are not in "
        "it.",
        Query(queries.ENERGY_KWH),
        theme.ENERGY_KWH,
        no_value=NO_TENANT,
    ),
)

USE = (
    Panel(
        panels.STACKED,
        "Who holds the GPUs?",
        f"GPUs by who holds them: the {queries.MOST_LINES} tenants with most of the time range, "
        "and all others. Unallocated: nobody holds them. Unobserved: passed while no exporter "
        "looked. With all tenants chosen it adds up to all GPUs.",
        (
            Query(queries.GPUS_BY_TENANT, "{{tenant}}"),
            Query(queries.GPUS_OF_NOBODY, "{{tenant}}", ref_id="B"),
        ),
        theme.GPUS,
        HALF,
        overrides=overrides.STATES[2:],
        links=(links.to(links.TENANTS, "Show this tenant alone", tenant=links.label("tenant")),),
        no_value=NO_GPU_TIME,
    ),
    Panel(
        panels.STACKED,
        "What are their GPUs doing?",
        "GPUs of the chosen tenants by state. Active: work runs. Reserved: held and not used. "
        "What nobody holds is there when all tenants are chosen.",
        (Query(queries.GPUS_BY_STATE, "{{state}}"),),
        theme.GPUS,
        HALF,
        overrides=overrides.STATES,
        no_value=NO_GPU_TIME,
    ),
    Panel(
        panels.BARS,
        "Who uses least of what they hold?",
        "Of the GPU time that a tenant held in the time range, the share in which its work ran, "
        f"the {queries.MOST_LINES} worst. Who held less than a hundredth of a GPU on average is "
        "left out. It says nothing of how well the work itself runs.",
        (Query(queries.USE_BY_TENANT, "{{tenant}}"),),
        theme.UTILIZATION,
        HALF,
        theme.USE_SCALE,
        links=(links.to(links.TENANTS, "What does it run?", tenant=links.label("tenant")),),
        no_value="no tenant holds a GPU",
    ),
    Panel(
        panels.LINES,
        "When did they hold GPUs without using them?",
        "GPUs' worth of what was held and not used, by tenant: those with most of it over the time "
        "range. A base that never falls is a reservation nobody needs; an idle window in every "
        "night, work that could give its GPUs back.",
        (Query(queries.WASTED_BY_TENANT, "{{tenant}}"),),
        theme.WASTED_GPUS,
        HALF,
        no_value="nothing was wasted",
    ),
)

COST = (
    Panel(
        panels.STACKED,
        "What is their power spent on?",
        "Watts of the chosen tenants: active is what their work burns, reserved_idle what the "
        "boards that they hold draw anyway, hosts their part of CPUs and memory. The boards' parts "
        "add up to their energy counters.",
        (
            Query(queries.WATTS_BY_COMPONENT, "{{component}}"),
            Query(queries.WATTS_OF_HOSTS, "hosts", ref_id="B"),
        ),
        theme.POWER,
        THIRD,
        overrides=overrides.COMPONENTS,
        no_value="no energy is counted: no GPUs, or rules are not loaded",
    ),
    Panel(
        panels.STACKED,
        "Which links does their traffic take?",
        "Bytes a second of the chosen tenants' workloads, both directions, by the class of link "
        "that they take where the workloads are placed. Much over PHB, NODE or SYS is work that "
        "would sit better below one switch; what that costs the sensitivity dashboard says.",
        (Query(queries.BYTES_BY_CLASS, "{{link_class}}"),),
        theme.BANDWIDTH,
        THIRD,
        no_value="no traffic of a workload is counted",
    ),
    Panel(
        panels.LINES,
        "When were they in each other's way?",
        "Seconds a second in which a tenant was one of those that contended for segments of a "
        f"kind, all of them added up: the {MOST_LINES} with most of it. Click for who suffers.",
        (Query(CONTENTION_BY_TENANT, "{{tenant}}: {{segment_kind}}"),),
        theme.CONTENTION_SECONDS,
        THIRD,
        links=(links.to(links.SENSITIVITY, "Who suffers?", tenant=links.label("tenant")),),
        no_value="no tenant contended for a segment in this time",
    ),
)

TABLES = (
    Panel(
        panels.table(sort_by="wasted", descending=True),
        "What did every tenant hold, use and waste?",
        "Sums of the time range: GPU-hours held, the share of them that was used, GPU-hours held "
        "and not used, and kWh of boards and hosts. Unallocated and unobserved are nobody's: time "
        "and energy of boards that nobody held, or that nobody watched. The ledger has the exact "
        f"sums. The {queries.MOST_ROWS} largest.",
        (Query(queries.TENANTS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster tenant gpu_hours used wasted gpu_energy host_energy", hidden="Time"
            ),
        ),
        overrides=(
            overrides.linked("tenant", TO_TENANT),
            overrides.column("gpu_hours", decimals=1),
            overrides.column("wasted", decimals=1),
            overrides.cells("used", theme.UTILIZATION, "gauge", theme.USE_SCALE),
            overrides.column("gpu_energy", unit=theme.ENERGY_KWH.unit, decimals=1),
            overrides.column("host_energy", unit=theme.ENERGY_KWH.unit, decimals=1),
        ),
        no_value=NO_GPU_TIME,
    ),
    Panel(
        panels.table(sort_by="wasted", descending=True),
        "Which workloads waste most?",
        "Workloads of the time range by node, those first that held most GPU-hours without using "
        "them. Gpus and memory: held now; energy: of the boards; link_class: what most of its "
        "bytes take now. Click a workload for all of it, `seen` for the same up to its end, a node "
        f"for its wiring. The {queries.MOST_ROWS} worst.",
        (Query(queries.WORKLOADS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.calculated("gpu_hours", "used_hours + wasted"),
            transformations.calculated("used", "used_hours / gpu_hours"),
            transformations.in_order(
                "tenant name kind state cluster instance gpus gpu_hours wasted used energy memory "
                "link_class start seen workload",
                hidden="Time links used_hours",
            ),
        ),
        overrides=(
            overrides.linked("name", TO_WORKLOAD),
            overrides.linked("workload", TO_WORKLOAD),
            overrides.linked("instance", TO_NODE),
            overrides.column(
                "state",
                mappings=RUNNING,
                **{"custom.cellOptions": {"type": "color-text"}},
            ),
            *(overrides.column(name, decimals=1) for name in ("gpus", "gpu_hours", "wasted")),
            overrides.cells("used", theme.UTILIZATION, "gauge", theme.USE_SCALE),
            overrides.column("energy", unit=theme.ENERGY_KWH.unit, decimals=1),
            overrides.column("memory", unit=theme.MEMORY_BYTES.unit),
            overrides.column("start", unit="dateTimeAsIso"),
            overrides.column("seen", unit="dateTimeAsIso", links=(TO_ITS_TIME,)),
        ),
        no_value="no workload held a GPU in this time",
    ),
)


def tenants() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.TENANTS,
        title="Tenants and workloads",
        description="What tenants hold, use and waste, in GPU-hours and kWh, and by which work.",
        variables=(CLUSTER, TENANT),
        panels=(
            Row("The chosen tenants"),
            *NOW,
            Row("What do they hold, and what do they use?"),
            *USE,
            Row("What does it take?"),
            *COST,
            Row("One by one"),
            *TABLES,
        ),
        since="now-3h",
    )
