"""The health of GPUs: what failed and needs somebody, and what is on its way there."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import health as queries
from seedance_obs.dashboards.variables import CLUSTER, NODE

SMALL, HALF, WHOLE = (4, 4), (12, 8), (24, 7)
GPU_LEGEND = "{{instance}} GPU {{gpu}}"
TO_WIRING = overrides.linked(
    "instance", links.to(links.TOPOLOGY, "Where does it sit?", node=links.field("instance"))
)
ON_OFF = overrides.texts({"0": ("no", theme.DARK), "1": ("yes", theme.FIRING)})


def _count(title: str, description: str, query: str, no_value: str = "no data") -> Panel:
    return Panel(
        panels.ALARM,
        title,
        description,
        (Query(query),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_BAD,
        no_value=no_value,
    )


NOW = (
    _count(
        "GPUs missing",
        "Expected by configuration or PCI bus, but not seen by the driver. A job on one has "
        "failed.",
        queries.MISSING,
    ),
    _count(
        "GPUs the driver wants reset",
        "GPUs for which the driver asks for an action: a reset, a drain, a restart. It knows "
        "better than any table of error codes. Drivers before release 565 do not say.",
        queries.GPUS_TO_RECOVER,
    ),
    _count(
        "GPUs with XID errors",
        "GPUs for which the driver reported any error since their exporter started. Many are "
        "faults of programs: the class in the table below says.",
        queries.GPUS_WITH_XID,
    ),
    _count(
        "GPUs with NVLinks down",
        "GPUs that have fewer NVLinks up than they had, or than their product has.",
        queries.GPUS_WITH_LINKS_DOWN,
    ),
    _count(
        "Rows that wait for a reset",
        "GPUs with memory rows that are remapped at the next reset. Drain and reset when it suits.",
        queries.ROWS_PENDING,
        "no GPU tells",
    ),
    _count(
        "GPUs with memory beyond repair",
        "GPUs that could not remap a row. They need replacing: results may be wrong already.",
        queries.ROWS_FAILED,
        "no GPU tells",
    ),
)

FAULTS = (
    Panel(
        panels.table(sort_by="lost", descending=True),
        "Which GPU is ill?",
        "Every GPU of the chosen clusters with a fault that stands now. ECC counts are since the "
        "driver was loaded. An empty cell is no fault, or a fault that this board cannot tell. "
        "Click a node for its wiring.",
        (Query(queries.FAULTS),),
        theme.ERRORS,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance gpu lost ecc_uncorrected remap_failed remap_pending "
                "nvlinks_down fabric_ill pcie_degraded ecc_corrected gpu_uuid",
                hidden="Time",
            ),
        ),
        overrides=(
            TO_WIRING,
            *(
                overrides.column(name, mappings=(*ON_OFF, panels.EMPTY_CELL))
                for name in ("lost", "remap_failed", "remap_pending", "fabric_ill", "pcie_degraded")
            ),
            overrides.column("ecc_corrected", color={"fixedColor": theme.GREY, "mode": "fixed"}),
        ),
        no_value="no GPU has a fault",
    ),
    Panel(
        panels.table(sort_by="errors", descending=True),
        "Which XID errors did the driver report?",
        "Errors of each GPU by code since its exporter started; the class says whose fault it "
        "is. The runbook says what each class asks for.",
        (Query(queries.XIDS),),
        theme.ERRORS,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance gpu xid class errors gpu_uuid", hidden="Time"
            ),
        ),
        overrides=(TO_WIRING,),
        no_value="no XID errors",
    ),
    Panel(
        panels.table(sort_by="instance"),
        "What does the driver ask for?",
        "The recovery action that the driver asks for, by GPU. Until it is done the GPU takes no "
        "work, or takes it at a risk.",
        (Query(queries.ACTIONS),),
        theme.ERRORS,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order("cluster instance gpu action gpu_uuid", hidden="Time asked"),
        ),
        overrides=(TO_WIRING,),
        no_value="the driver asks for nothing",
    ),
    Panel(
        panels.LINES,
        "When did XID errors come?",
        "Errors of all chosen clusters since the exporters started, by class. A step is an error; "
        "a fall is a restart of an exporter.",
        (Query(queries.XIDS_OVER_TIME, "{{class}}"),),
        theme.ERRORS,
        WHOLE,
        no_value="no XID errors",
    ),
)

OVER_TIME = (
    Panel(
        panels.LINES,
        "Where is memory corrected?",
        "ECC errors a second that the board corrected, for GPUs that have any. A board whose "
        "rate grows is on its way to errors that it cannot correct.",
        (Query(queries.CORRECTED_RATE, GPU_LEGEND),),
        theme.Look("cps", theme.VERMILION, 0),
        HALF,
        no_value="no errors are corrected",
    ),
    Panel(
        panels.BANDS,
        "How many of its NVLinks has every GPU?",
        "Share of the NVLinks that a GPU should have, that are up. Less than all slows every "
        "collective over it, and a switch that dies takes some of every GPU.",
        (Query(queries.NVLINKS_UP, "{{band}}"),),
        theme.LINKS_UP,
        HALF,
        theme.ALL_IS_GOOD,
        no_value="no GPU has NVLinks",
    ),
    Panel(
        panels.LINES,
        "Which PCIe links send again?",
        "PCIe transfers sent again, a second, for GPUs that have any. A good link of generation "
        "5 may have one every two seconds.",
        (Query(queries.REPLAY_RATE, GPU_LEGEND),),
        theme.Look("cps", theme.PCIE, 0),
        HALF,
        no_value="no link sends again",
    ),
    Panel(
        panels.CELLS,
        "When did hardware or heat slow a GPU down?",
        "Cells in which the driver named heat, the power brake or another fault of the hardware "
        "as its reason not to clock higher. Look at cooling and power supply.",
        (Query(queries.SLOWED_BY_HARDWARE, "{{band}}"),),
        theme.COUNT,
        HALF,
        theme.steps(theme.DARK, (1, theme.FIRING)),
        mappings=ON_OFF,
        no_value="no GPU tells",
    ),
    Panel(
        panels.CELLS,
        "When was a GPU at its power limit?",
        "Cells in which the power limit kept the clocks down. Normal under full load; all the "
        "time on one board only, its limit is set lower.",
        (Query(queries.CAPPED, "{{band}}"),),
        theme.COUNT,
        HALF,
        theme.steps(theme.DARK, (1, theme.POWER.color)),
        mappings=overrides.texts({"0": ("no", theme.DARK), "1": ("yes", theme.POWER.color)}),
        no_value="no GPU tells",
    ),
    Panel(
        panels.LINES,
        "How hot is every GPU?",
        "The hottest sensor of each board. What is too hot differs by product: where it matters, "
        "the driver slows the GPU down, and the panel above shows it.",
        (Query(queries.TEMPERATURE, GPU_LEGEND),),
        theme.TEMPERATURE,
        WHOLE,
        no_value="no GPU tells",
    ),
)


def health() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.HEALTH,
        title="GPU Health",
        description="XID errors, memory, links, heat: which GPU is ill, and since when.",
        variables=(CLUSTER, NODE),
        panels=(
            Row("Now"),
            *NOW,
            Row("What is wrong?"),
            *FAULTS,
            Row("How did the GPUs of the chosen nodes fare?"),
            *OVER_TIME,
        ),
    )
