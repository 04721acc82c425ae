"""Leaks and idleness: what is taken and serves nobody, whose it is, and what it costs."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import leaks as queries
from seedance_obs.dashboards.queries.tenants import MOST_LINES, MOST_ROWS
from seedance_obs.dashboards.variables import ANY_NODE, CLUSTER, TENANT

THIRD, WHOLE = (8, 8), (24, 8)
KIND = "{{kind}}"
NO_SUSPECTS = "nothing is suspected"
NO_RULES = "leak probes are off, or rules are not loaded"
TO_NODE = overrides.linked(
    "instance",
    links.to(
        links.TOPOLOGY, "Show the wiring of ${__data.fields.instance}", node=links.field("instance")
    ),
)
TO_TENANT = overrides.linked(
    "tenant",
    links.to(links.TENANTS, "Show what ${__data.fields.tenant} uses", tenant=links.field("tenant")),
)
# Half-way to the limit of files, and where the exporter names a process for that alone.
FILES_SCALE = theme.steps(theme.GOOD, (0.5, theme.YELLOW), (0.8, theme.FIRING))
# A day, an hour, and the ten minutes at which an alert tells.
TIME_LEFT = theme.steps(
    theme.FIRING, (600, theme.WARNING), (3600, theme.YELLOW), (86400, theme.GOOD)
)


def _to_workload(start: str) -> theme.JsonObject:
    return overrides.linked(
        "workload",
        links.since(
            links.WORKLOAD,
            "Show the workload since then",
            start,
            tenant=links.field("tenant"),
            workload=links.field("workload"),
        ),
    )


NOW = (
    panels.number(
        "Suspects",
        "Leaks and idle holders that the probes suspect, of all kinds, hidden ones included.",
        Query(queries.SUSPECTS_NOW),
        theme.COUNT,
        no_value=NO_RULES,
        thresholds=theme.ANY_IS_A_WARNING,
    ),
    panels.number(
        "GPUs that suspects take",
        "GPUs' worth of what suspects held or kept busy for nothing over the last five minutes.",
        Query(queries.TAKEN_GPUS_NOW),
        theme.WASTED_GPUS,
        no_value=NO_RULES,
    ),
    panels.number(
        "Power that suspects draw",
        "Watts of the GPUs for suspects, over the last five minutes.",
        Query(queries.TAKEN_WATTS_NOW),
        theme.POWER,
        no_value=NO_RULES,
    ),
    Panel(
        panels.NAMED_NUMBER,
        "What suspects cost an hour",
        "Their power and their part of GPUs at the prices of the exporters' configuration, by "
        "currency. Without [prices] there is none.",
        (Query(queries.COST_NOW, "{{currency}}"),),
        theme.MONEY_PER_HOUR,
        (4, 4),
        no_value="nothing costs anything, or exporters have no [prices]",
    ),
    panels.number(
        "GPUs held and not used",
        "GPUs' worth of what tenants hold while nothing runs on it, suspected or not.",
        Query(queries.WASTED_NOW),
        theme.WASTED_GPUS,
        no_value="no tenant holds a GPU",
    ),
    panels.number(
        "Power for nobody's work",
        "Watts of boards that are idle, held or free, or that nobody watched.",
        Query(queries.WASTED_WATTS_NOW),
        theme.POWER,
        no_value="no energy is counted: no GPUs, or rules are not loaded",
    ),
)

OVER_TIME = (
    Panel(
        panels.STACKED,
        "Since when are there suspects?",
        "Suspects by kind, hidden ones included. The runbook says what each kind is and what to "
        "do. A kind that the last probe could not judge is missing, not zero.",
        (Query(queries.SUSPECTS_BY_KIND, KIND),),
        theme.COUNT,
        THIRD,
        no_value=NO_SUSPECTS,
    ),
    Panel(
        panels.STACKED,
        "How many GPUs do they take?",
        "GPUs' worth of what suspects hold or keep busy for nothing, by kind.",
        (Query(queries.TAKEN_GPUS_BY_KIND, KIND),),
        theme.GPUS,
        THIRD,
        no_value=NO_SUSPECTS,
    ),
    Panel(
        panels.STACKED,
        "What do they cost an hour?",
        "Power and parts of GPUs at the prices of the exporters' configuration, by kind. Suspects "
        "of files and host memory cost nothing here.",
        (Query(queries.COST_BY_KIND, "{{kind}} {{currency}}"),),
        theme.MONEY_PER_HOUR,
        THIRD,
        no_value="nothing costs anything, or exporters have no [prices]",
    ),
    Panel(
        panels.LINES,
        "Who holds GPUs without using them?",
        "GPUs' worth of what is held and not used, by tenant: those with most of it over the time "
        "range. Short gaps between jobs are normal; a base that never falls is not.",
        (Query(queries.WASTED_BY_TENANT, "{{tenant}}"),),
        theme.WASTED_GPUS,
        THIRD,
        links=(links.to(links.TENANTS, "What does it run?", tenant=links.label("tenant")),),
        no_value="nothing was wasted",
    ),
    Panel(
        panels.STACKED,
        "Which power serves no work?",
        "Watts of the boards apart from what work burns. Reserved_idle: boards that are held; "
        "unallocated: boards that are free, which could sleep or be given away; unobserved: "
        "burned while no exporter looked.",
        (Query(queries.WASTED_WATTS, "{{component}}"),),
        theme.POWER,
        THIRD,
        overrides=overrides.COMPONENTS[1:4],
        no_value="no energy is counted: no GPUs, or rules are not loaded",
    ),
    Panel(
        panels.STACKED,
        "How much GPU memory is held by idle work?",
        "Bytes of GPU memory in use, by whether the GPU was busy meanwhile. Idle memory keeps a "
        "GPU from others and from sleep. Time of unknown activity is left out.",
        (Query(queries.HELD_MEMORY_BY_STATE, "{{state}}"),),
        theme.MEMORY_BYTES,
        THIRD,
        overrides=(
            overrides.colored("active", theme.BUSY),
            overrides.colored("idle", theme.HELD_IDLE),
        ),
        no_value="no GPU memory is counted: no GPUs, or rules are not loaded",
    ),
)

SUSPECTS = (
    Panel(
        panels.table(sort_by="power", descending=True),
        "Which GPUs are held, lost or kept busy for nothing?",
        "Suspects of the chosen nodes and tenants, those first that draw most. "
        "allocated_without_process: given, and nothing runs; pseudo_idle_context: a process that "
        "does nothing; spinning: busy, and only waiting; dead_pid_memory, memory_without_process "
        "and busy_without_process: taken by nobody alive, until a reset. An empty tenant is not "
        f"known. The {MOST_ROWS} worst.",
        (Query(queries.GPU_SUSPECTS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "kind power gpu_memory since tenant workload comm pid cluster instance gpu "
                "gpu_instance gpu_uuid",
                hidden="Time known job suspect rule",
            ),
        ),
        overrides=(
            TO_TENANT,
            _to_workload("since"),
            TO_NODE,
            overrides.column("power", unit=theme.POWER.unit),
            overrides.column("gpu_memory", unit=theme.MEMORY_BYTES.unit),
            overrides.column("since", unit="dateTimeFromNow"),
        ),
        no_value="no GPU is held, lost or kept busy for nothing",
    ),
    Panel(
        panels.table(sort_by="files_taken", descending=True),
        "Whose open files and memory grow?",
        "Suspects of the chosen nodes and tenants, those first that are nearest to their limit of "
        "open files. Full_in: time until then, if they go on so; below ten minutes an alert tells. "
        "Growth of memory is measured in idle windows only. sparse_residency: much is allocated "
        f"and little of it used. The {MOST_ROWS} worst.",
        (Query(queries.HOST_SUSPECTS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "kind files_taken full_in open_files limit file_growth memory memory_growth since "
                "tenant workload comm pid cluster instance rule",
                hidden="Time known job suspect gpu_uuid gpu_instance gpu",
            ),
        ),
        overrides=(
            TO_TENANT,
            _to_workload("since"),
            TO_NODE,
            overrides.cells("files_taken", theme.UTILIZATION, "gauge", FILES_SCALE),
            overrides.cells("full_in", theme.DURATION, "color-text", TIME_LEFT),
            overrides.column("file_growth", unit=theme.FILE_GROWTH.unit),
            overrides.column("memory", unit=theme.MEMORY_BYTES.unit),
            overrides.column("memory_growth", unit=theme.MEMORY_GROWTH.unit),
            overrides.column("since", unit="dateTimeFromNow"),
        ),
        no_value="no files and no memory of the hosts are suspected to leak",
    ),
    Panel(
        panels.table(sort_by="gpus", descending=True),
        "Which workloads do nothing at all?",
        "Workloads whose idle window is open: their CPU use and their GPUs have been quiet for "
        "long. Idle: how long in all since it was first seen; power: of the boards, for them. "
        f"Those that hold most GPUs first, the {MOST_ROWS} largest.",
        (Query(queries.IDLE_WORKLOADS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "tenant name kind gpus idle power memory cluster instance start workload",
                hidden="Time known",
            ),
        ),
        overrides=(
            TO_TENANT,
            _to_workload("start"),
            TO_NODE,
            overrides.column("gpus", decimals=1),
            overrides.column("idle", unit=theme.DURATION.unit),
            overrides.column("power", unit=theme.POWER.unit),
            overrides.column("memory", unit=theme.MEMORY_BYTES.unit),
            overrides.column("start", unit="dateTimeAsIso"),
        ),
        no_value="no workload has been idle for long",
    ),
)

PROBES = (
    panels.number(
        "Idle nodes",
        "Nodes whose idle window is open: CPU, memory and GPUs are quiet. Only then is memory of "
        "what belongs to no workload judged.",
        Query(queries.IDLE_NODES),
        theme.COUNT,
        no_value="leak probes are off",
    ),
    panels.number(
        "Suspects not shown",
        "Suspects beyond leaks.shown of a kind and node: they are counted above, and not listed.",
        Query(queries.HIDDEN),
        theme.COUNT,
        no_value="leak probes are off",
    ),
    Panel(
        panels.BARS,
        "Which probes are late?",
        f"Time since the last leak probe of which no part broke: the {MOST_LINES} oldest. At ten "
        "minutes an alert tells; what stands above of such a node is old.",
        (Query(queries.PROBE_AGE, "{{instance}}"),),
        theme.AGE,
        THIRD,
        theme.steps(theme.GOOD, (120, theme.WARNING), (600, theme.FIRING)),
        links=(links.to(links.EXPORTER, "How is its exporter?", node=links.label("instance")),),
        no_value="leak probes are off",
    ),
    Panel(
        panels.BARS,
        "Why is memory not judged?",
        "Nodes whose last probes found the idle window closed, by reason. Busy nodes are no fault; "
        "if one is never quiet for a day, an alert tells.",
        (Query(queries.SKIPPED, "{{reason}}"),),
        theme.COUNT,
        THIRD,
        no_value="every probe found its node idle",
    ),
)


def leaks() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.LEAKS,
        title="Leaks and idle",
        description="What is taken and serves nobody: leaks, idle holders, lost memory, and cost.",
        variables=(CLUSTER, ANY_NODE, TENANT),
        panels=(
            Row("The chosen clusters"),
            *NOW,
            *OVER_TIME,
            Row("Suspects on the chosen nodes, of the chosen tenants"),
            *SUSPECTS,
            Row("What do the probes of the chosen nodes see?"),
            *PROBES,
        ),
        since="now-6h",
    )
