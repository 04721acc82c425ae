"""Topology sensitivity: who is slowed down by whose neighbourhood, and what distance would cost.

Above, tenants in each other's way and the segments on which they are; then what links between
GPUs are worth to whom; below, for the chosen nodes, what each pair of GPUs costs.
"""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import sensitivity as queries
from seedance_obs.dashboards.queries.pair_cost import ONE, OTHER, PAIR_COST
from seedance_obs.dashboards.variables import CLUSTER, NODE, TENANT

THIRD, NARROW, WIDE, HALF, WHOLE = (8, 4), (9, 10), (15, 10), (12, 10), (24, 12)
NVLINKS = 36  # the most that a class has counted so far, and room for more
CLASSES = " ".join([*(f"NV{links}" for links in range(NVLINKS, 0, -1)), "C2C PIX PXB PHB NODE SYS"])
EVIDENCE = "tenant cluster instance segment_kind segment direction verdict score p_value proxy"

SHOW_NODE = links.to(
    links.TOPOLOGY, "Show the wiring of ${__data.fields.instance}", node=links.field("instance")
)
SHOW_TENANT = links.to(
    links.TENANTS, "Show what ${__data.fields.tenant} uses", tenant=links.field("tenant")
)
SHOW_WORKLOAD = links.since(
    links.WORKLOAD,
    "Show the workload since it began",
    "start",
    tenant=links.field("tenant"),
    workload=links.field("workload"),
)
VERDICTS = overrides.texts(
    {
        "significant": ("slowed down", theme.FIRING),
        "association": ("may follow the tenant", theme.WARNING),
        "none": ("not slowed down", theme.GOOD),
        "undecided": ("undecided", theme.UNKNOWN),
    }
)


def _first(name: str, *to: theme.JsonObject) -> theme.JsonObject:
    """The first column of a matrix, which holds names."""
    return overrides.column(name, links=to, **{"custom.cellOptions": {"type": "auto"}})


NEIGHBOURS = (
    Panel(
        panels.NUMBER,
        "Tenants slowed down by neighbours",
        "Tenants of whom it is measured, against chance, that they do less the more others load a "
        "segment that they share. Who and where is in the tables below. Zero is the goal.",
        (Query(queries.TENANTS_SLOWED),),
        theme.COUNT,
        THIRD,
        theme.ANY_IS_A_WARNING,
        no_value="no tenant was watched yet, or fast loops are off",
    ),
    Panel(
        panels.NUMBER,
        "Segments contended now",
        "Segments on which, for more of the last five minutes than contention_share of the "
        "thresholds allows, the load was 80 % or more and two tenants or more each had over a "
        "tenth. See SeedanceSegmentContended in the runbook.",
        (Query(queries.SEGMENTS_CONTENDED),),
        theme.COUNT,
        THIRD,
        theme.ANY_IS_A_WARNING,
        no_value="no segments are watched: fast loops are off, or rules not loaded",
    ),
    Panel(
        panels.NUMBER,
        "Workloads placed badly",
        "Workloads whose mean pair of GPUs carries over a tenth less than that of the best set of "
        "as many GPUs on their node, held or free. They are in the table of placements below.",
        (Query(queries.WORKLOADS_APART),),
        theme.COUNT,
        THIRD,
        theme.ANY_IS_A_WARNING,
        no_value="no workload holds two whole GPUs of a node",
    ),
    Panel(
        panels.worst_first("worst"),
        "Who is slowed down on what?",
        "By what share a tenant slows down for each unit of its neighbours' load, the worst of its "
        "segments of a kind. Only what holds against chance; the table beside has the evidence. "
        "Give such a tenant segments of its own. Where nobody shares, nothing can be measured. "
        f"The {queries.MOST_TENANTS} worst.",
        (Query(queries.TENANTS_BY_SEGMENT_KIND),),
        theme.SENSITIVITY,
        NARROW,
        theme.HARM_SCALE,
        transformations=(
            *transformations.matrix("tenant", "segment_kind", "score"),
            transformations.in_order("tenant\\segment_kind worst", hidden=""),
        ),
        overrides=(_first("tenant\\segment_kind"),),
        no_value="no tenant is known to be slowed down by its neighbours",
    ),
    Panel(
        panels.table(sort_by="score", descending=True),
        "What is the evidence?",
        "The score, and p: the share of circular shifts of the neighbours' load that explain the "
        "tenant's pace as well. Windows with quiet and with loaded neighbours, and what the pace "
        f"was taken from. Of each kind the {queries.MOST_ROWS} highest scores. A pace by SM "
        "activity cannot tell waiting from useful work.",
        (Query(queries.EVIDENCE),),
        theme.COUNT,
        WIDE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(f"{EVIDENCE} loaded quiet", hidden="Time told"),
        ),
        overrides=(
            overrides.linked("tenant", SHOW_TENANT),
            overrides.linked("instance", SHOW_NODE),
            overrides.cells("score", theme.SENSITIVITY, "gauge", theme.HARM_SCALE),
            overrides.column("p_value", decimals=3),
            overrides.column(
                "verdict", mappings=VERDICTS, **{"custom.cellOptions": {"type": "color-text"}}
            ),
        ),
        no_value="no tenant had ten windows with quiet and ten with loaded neighbours yet",
    ),
    Panel(
        panels.LINES,
        "When were tenants in each other's way?",
        "Seconds a second in which a tenant was one of those that contended for segments of a "
        "kind, all of them and both directions added up: 1 is one segment all the time. Tenants "
        "that contend for none have no line. Who suffers from it the evidence above tells. "
        f"The {queries.MOST_LINES} with most of it over the whole time.",
        (Query(queries.CONTENTION_BY_TENANT, "{{tenant}}: {{segment_kind}}"),),
        theme.CONTENTION_SECONDS,
        HALF,
        no_value="no tenant contended for a segment in this time",
    ),
    Panel(
        panels.table(sort_by="load", descending=True),
        "Which segments are the fullest?",
        "Peak of the last window over what a segment carries, in its worse direction, the share of "
        "the last five minutes in which it was contended, and how many tenants send over it. "
        f"The {queries.MOST_ROWS} fullest. A peak is one tick: without contention it hurts nobody.",
        (Query(queries.SEGMENTS),),
        theme.COUNT,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance segment_kind segment load contended tenants capacity",
                hidden="Time",
            ),
        ),
        overrides=(
            overrides.linked("instance", SHOW_NODE),
            overrides.cells("load", theme.LINK_LOAD, "gauge", theme.LOAD_SCALE),
            overrides.cells("contended", theme.CONTENTION, "color-text", theme.HARM_SCALE),
            overrides.column("capacity", unit=theme.BANDWIDTH.unit),
        ),
        no_value="no loads are measured: fast loops are off, or nothing is shared",
    ),
)

DISTANCE = (
    Panel(
        panels.worst_first("total"),
        "What would tenants lose one link class further?",
        "GPU time an hour, of which one hour is a GPU: by the class of link that a tenant's bytes "
        "take now, if its work sat at the next further class of its node. The most that it could "
        "be: as many bytes, none hidden behind computing. Keep those at the top close together. "
        f"The {queries.MOST_TENANTS} tenants with most to lose. Other nodes are no class here.",
        (Query(queries.LOST_BY_CLASS),),
        theme.GPU_SECONDS,
        HALF,
        theme.LOST_SCALE,
        transformations=(
            *transformations.matrix("tenant", "link_class", "lost"),
            transformations.in_order(f"tenant\\link_class total {CLASSES}", hidden=""),
        ),
        overrides=(_first("tenant\\link_class"),),
        no_value="no traffic of a tenant at a class that has a further one",
    ),
    Panel(
        panels.table(sort_by="regret", descending=True),
        "Which workloads could sit better?",
        "Regret: the share that the mean pair of a workload's GPUs carries less than that of the "
        "best set of as many GPUs of its node, by the path model, held or free. Placed anew it "
        f"could win that, if it talks; see the matrix beside. The {queries.MOST_ROWS} worst.",
        (Query(queries.PLACEMENTS),),
        theme.COUNT,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance tenant workload regret gpus actual best start", hidden="Time"
            ),
        ),
        overrides=(
            overrides.linked("instance", SHOW_NODE),
            overrides.linked("tenant", SHOW_TENANT),
            overrides.linked("workload", SHOW_WORKLOAD),
            overrides.cells("regret", theme.REGRET, "gauge", theme.HARM_SCALE),
            overrides.column("actual", unit=theme.BANDWIDTH.unit),
            overrides.column("best", unit=theme.BANDWIDTH.unit),
            overrides.column("start", unit="dateTimeAsIso"),
        ),
        no_value="every workload on two GPUs or more sits as well as its node allows",
    ),
)

PAIRS = Panel(
    panels.MATRIX,
    "How long do pairs of GPUs of $node talk?",
    "Share of the time in which the path between two GPUs of one workload is taken by what they "
    "send each other. Bytes of a GPU, both directions and those to its host too, are spread evenly "
    "over the other GPUs of its workload and divided by what the path carries one way: an upper "
    "bound. A pair that is bright beside dark ones is what to place closer.",
    (Query(PAIR_COST),),
    theme.LINK_LOAD,
    WHOLE,
    theme.LOAD_SCALE,
    transformations=transformations.matrix(ONE, OTHER, "cost"),
    overrides=(_first(f"{ONE}\\{OTHER}"),),
    repeat="node",
    no_value="no workload with known traffic holds two GPUs of this node",
)


def sensitivity() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.SENSITIVITY,
        title="Topology sensitivity",
        description="Which tenants suffer from their neighbours, and what distance costs them.",
        tags=("topology",),
        variables=(CLUSTER, NODE, TENANT),
        panels=(
            Row("Who is slowed down by neighbours?"),
            *NEIGHBOURS,
            Row("What is distance worth?"),
            *DISTANCE,
            Row("Pairs of GPUs of the chosen nodes"),
            PAIRS,
        ),
    )
