"""The exporters' own health: whether what every other dashboard shows can be believed."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import exporter_health as queries
from seedance_obs.dashboards.variables import ANY_NODE, CLUSTER

SMALL, HALF, WHOLE = (4, 4), (12, 9), (24, 10)
UP_OR_DOWN = overrides.texts({"0": ("down", theme.FIRING), "1": ("up", theme.GOOD)})

NOW = (
    Panel(
        panels.NUMBER,
        "Exporters up and known",
        "Targets of the job that answered their last scrape, and all of them.",
        (Query(queries.TARGETS_UP, "up"), Query(queries.TARGETS, "known", ref_id="B")),
        theme.COUNT,
        (8, 4),
        no_value="no target under job=gpu",
    ),
    Panel(
        panels.ALARM,
        "Sources down",
        "Drivers, DCGM pages and other sources whose last reading failed. What only they tell is "
        "missing from every dashboard.",
        (Query(queries.SOURCES_DOWN),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_BAD,
    ),
    Panel(
        panels.ALARM,
        "Oldest reading",
        "Age of the oldest snapshot of any source. If it grows, a driver hangs and its numbers "
        "are history.",
        (Query(queries.OLDEST),),
        theme.AGE,
        SMALL,
        theme.READING_AGE,
    ),
    Panel(
        panels.ALARM,
        "Collectors broken",
        "Collectors that failed in the last scrape; their series are missing, the rest is there.",
        (Query(queries.BROKEN_COLLECTORS),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_BAD,
    ),
    Panel(
        panels.ALARM,
        "Hidden by a cap",
        "Workloads and leak suspects that are counted but not shown one by one, because a node "
        "has more than its configuration lets it show.",
        (Query(queries.HIDDEN),),
        theme.COUNT,
        SMALL,
        theme.ANY_IS_A_WARNING,
    ),
)

NODES = (
    Panel(
        panels.table(sort_by="oldest", descending=True),
        "Which exporter is in trouble?",
        "Every node: up, sources down, age of its oldest reading, how long a scrape takes and how "
        "many samples it has, collectors broken, age of its last leak probe, version.",
        (Query(queries.NODES),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance up sources_down oldest scrape samples collectors_broken "
                "probe_age version",
                hidden="Time",
            ),
        ),
        overrides=(
            overrides.linked(
                "instance",
                links.to(links.TOPOLOGY, "Show its GPUs", node=links.field("instance")),
            ),
            overrides.column(
                "up", mappings=UP_OR_DOWN, **{"custom.cellOptions": {"type": "color-text"}}
            ),
            overrides.cells("sources_down", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.cells("collectors_broken", theme.COUNT, "color-text", theme.ANY_IS_BAD),
            overrides.cells("oldest", theme.AGE, "color-text", theme.READING_AGE),
            overrides.column("scrape", unit="s"),
            overrides.column("probe_age", unit="s"),
        ),
        no_value="no target under job=gpu",
    ),
    Panel(
        panels.BANDS,
        "When was every source up?",
        "A band for each source of each node. A gap is a node whose exporter was not scraped.",
        (Query(queries.SOURCES_UP, "{{band}}"),),
        theme.COUNT,
        HALF,
        theme.steps(theme.FIRING, (1, theme.GOOD)),
        mappings=UP_OR_DOWN,
    ),
    Panel(
        panels.LINES,
        "How old are readings?",
        "Age of each source's last good reading at the moment of the scrape. A line that climbs "
        "steadily is a driver or a page that hangs.",
        (Query(queries.AGES, "{{instance}} {{source}}"),),
        theme.AGE,
        HALF,
    ),
    Panel(
        panels.LINES,
        "How long does a reading take?",
        "Time of each source's last reading. A driver that needs seconds is in trouble, or the "
        "node's CPUs are.",
        (Query(queries.READ_SECONDS, "{{instance}} {{source}}"),),
        theme.AGE,
        HALF,
    ),
    Panel(
        panels.LINES,
        "How late is the fast loop?",
        "Seconds a second that ticks come late. Above a few per cent, peaks and busy seconds are "
        "seen too rarely to be trusted.",
        (Query(queries.LATE_SHARE, "{{instance}} {{loop}}"),),
        theme.Look("percentunit", theme.SAND, 0),
        HALF,
        no_value="no fast loop runs",
    ),
)

TRUTH = (
    Panel(
        panels.LINES,
        "Which readings are refused?",
        "Readings a second that a source delivered and the exporter did not believe, by reason: "
        "blanks, impossible values, counters that step back.",
        (Query(queries.DROPPED_RATE, "{{source}} {{reason}}"),),
        theme.Look("cps", theme.SAND, 0),
        HALF,
        no_value="none is refused",
    ),
    Panel(
        panels.LINES,
        "Which collectors take longest?",
        "Time in a scrape of the ten slowest collectors, on the slowest node.",
        (Query(queries.COLLECTOR_SECONDS, "{{collector}}"),),
        theme.AGE,
        HALF,
    ),
    Panel(
        panels.table(sort_by="apart", descending=True),
        "Where do two sources disagree?",
        "How far apart two sources of one quantity are, as a share of the larger; the thirty "
        "worst. They sample at different moments: look at what lasts.",
        (Query(queries.DISAGREEMENTS),),
        theme.Look("percentunit", theme.SAND, 0, 1),
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order("cluster instance gpu quantity apart", hidden="Time"),
        ),
        overrides=(overrides.cells("apart", theme.Look("percentunit", theme.SAND, 0, 1), "gauge"),),
        no_value="no two sources disagree",
    ),
    Panel(
        panels.table(sort_by="quantity"),
        "Where does each number come from?",
        "GPUs by the source whose value of a quantity is shown. A quantity with two sources here "
        "comes from one on some nodes and from the other elsewhere.",
        (Query(queries.WON),),
        theme.COUNT,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order("quantity source gpus", hidden="Time"),
        ),
    ),
)


def exporter_health() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.EXPORTER,
        title="GPU Exporter Health",
        description="Whether the exporters and their sources can be believed.",
        variables=(CLUSTER, ANY_NODE),
        panels=(
            Row("Now"),
            *NOW,
            Row("Which exporter?"),
            *NODES,
            Row("Are its numbers true?"),
            *TRUTH,
        ),
    )
