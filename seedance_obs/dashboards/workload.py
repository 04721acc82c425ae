"""One workload: what it is, what it makes of its GPUs, what it costs, and what is in its way."""

from seedance_obs.dashboards import links, overrides, panels, theme, transformations
from seedance_obs.dashboards.grafana import Dashboard
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import workload as queries
from seedance_obs.dashboards.variables import CLUSTER, ITS_NODES, TENANT, WORKLOAD

HALF, WHOLE = (12, 8), (24, 8)
GPU_LEGEND = "{{instance}} GPU {{gpu}}"
NOT_THERE = "no such workload in this time range: choose one, or go back to its start"
TO_NODE = overrides.linked(
    "instance",
    links.to(
        links.TOPOLOGY, "Show the wiring of ${__data.fields.instance}", node=links.field("instance")
    ),
)
TO_TENANT = links.to(
    links.TENANTS, "Show what ${__data.fields.tenant} uses", tenant=links.field("tenant")
)


WHAT = (
    panels.number(
        "Runs for",
        "From its start until it was last seen in the time range.",
        Query(queries.RUNS_FOR),
        theme.DURATION,
        no_value=NOT_THERE,
    ),
    panels.number(
        "GPUs held now",
        "GPUs' worth of what it holds on all of its nodes, parts of shared ones by their size.",
        Query(queries.GPUS_HELD),
        theme.Look("none", theme.BLUE, 0, decimals=1),
        no_value=NOT_THERE,
    ),
    panels.number(
        "GPU-hours held",
        "GPU time that it held in the time range, used or not.",
        Query(queries.GPU_HOURS),
        theme.Look("none", theme.BLUE, 0, decimals=2),
        no_value=NOT_THERE,
    ),
    panels.number(
        "Share of it that is used",
        "Of the GPU time that it held in the time range, the share in which its kernels ran. The "
        "rest is paid for nothing.",
        Query(queries.USED),
        theme.UTILIZATION,
        no_value=NOT_THERE,
        thresholds=theme.USE_SCALE,
    ),
    panels.number(
        "Energy",
        "What its parts of boards took in the time range, and of hosts whose energy can be read.",
        Query(queries.ENERGY_KWH),
        theme.ENERGY_KWH,
        no_value=NOT_THERE,
    ),
    panels.number(
        "Leak suspects",
        "Suspects among its processes now; they are in the table at the end.",
        Query(queries.SUSPECTS),
        theme.COUNT,
        no_value=NOT_THERE,
        thresholds=theme.ANY_IS_A_WARNING,
    ),
    Panel(
        panels.table(sort_by="instance"),
        "What is it?",
        "Its facts, as the scheduler and the container runtime tell them, a row for each of its "
        "nodes, with its start and when it was last seen. An empty cell is not known, or is none.",
        (Query(queries.FACTS),),
        theme.COUNT,
        (24, 5),
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "tenant kind namespace pod container slurm_job slurm_account user cluster instance "
                "start seen uid workload",
                hidden="Time known job",
            ),
        ),
        overrides=(
            overrides.linked("tenant", TO_TENANT),
            TO_NODE,
            overrides.column("start", unit="dateTimeAsIso"),
            overrides.column("seen", unit="dateTimeAsIso"),
        ),
        no_value=NOT_THERE,
    ),
)

WORKS = (
    Panel(
        panels.BANDS,
        "When did every GPU of it work?",
        "One band per GPU: the share of the time it held it in which its kernels ran. One dark "
        "band among bright ones is a rank that the others wait for. A gap is a GPU that was not "
        "held, or not watched.",
        (Query(queries.USE_BY_GPU, "{{band}}"),),
        theme.UTILIZATION,
        HALF,
        theme.BUSY_SCALE,
        no_value=NOT_THERE,
    ),
    Panel(
        panels.STACKED,
        "How much of what it holds does it use?",
        "GPUs' worth of what it holds, active or reserved: held and not used. They add up to what "
        "it is billed for.",
        (Query(queries.HELD_BY_STATE, "{{state}}"),),
        theme.GPUS,
        HALF,
        overrides=overrides.STATES[:2],
        no_value=NOT_THERE,
    ),
    Panel(
        panels.LINES,
        "How much of its GPUs does its work fill?",
        "SM activity of the boards that it is on, whoever else is on them: the share of their "
        "multiprocessors with work. A GPU that is active all the time at 5 % of its SMs runs small "
        "kernels, or spins. Boards in MIG mode may not tell, and DCGM has to.",
        (Query(queries.SM_ACTIVE, GPU_LEGEND),),
        theme.UTILIZATION,
        HALF,
        no_value="nothing tells the SM activity of its GPUs: it takes DCGM, or GPM",
    ),
    Panel(
        panels.LINES,
        "How much GPU memory does it hold?",
        "Memory of its processes on each GPU. A line that climbs until the job ends is a leak, or "
        "a batch that is too large.",
        (Query(queries.MEMORY_BY_GPU, GPU_LEGEND),),
        theme.MEMORY_BYTES,
        HALF,
        no_value="it holds no GPU memory in this time, or its processes are not told",
    ),
)

COSTS = (
    Panel(
        panels.STACKED,
        "What is its power spent on?",
        "Watts of its parts of the boards: active is what its work burns, reserved_idle what they "
        "draw anyway while it holds them. Hosts: CPUs and memory, by its CPU time.",
        (
            Query(queries.WATTS_BY_COMPONENT, "{{component}}"),
            Query(queries.WATTS_OF_HOSTS, "hosts", ref_id="B"),
        ),
        theme.POWER,
        HALF,
        overrides=(*overrides.COMPONENTS[:2], overrides.COMPONENTS[-1]),
        no_value=NOT_THERE,
    ),
    Panel(
        panels.STACKED,
        "Which links does its traffic take?",
        "Bytes a second, both directions, by the class of link that they take where it is placed: "
        "NV over NVLink, PIX below one PCIe switch, up to SYS between sockets. Bytes to its hosts "
        "are in it; those between nodes are not.",
        (Query(queries.BYTES_BY_CLASS, "{{link_class}}"),),
        theme.BANDWIDTH,
        HALF,
        no_value="no traffic of it is counted: fast loops are off, or its boards are in MIG mode",
    ),
    Panel(
        panels.table(sort_by="instance"),
        "Which GPUs did it hold?",
        "Every GPU of the time range with what it did there and where it sits. Hours and kWh are "
        "of its part of the board; memory is held now. A GPU without its number is lost.",
        (Query(queries.GPUS),),
        theme.COUNT,
        WHOLE,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance gpu gpu_model gpu_hours used energy memory numa_node pcie_switch "
                "nvlink_domain gpu_uuid",
                hidden="Time known",
            ),
        ),
        overrides=(
            TO_NODE,
            overrides.column("gpu_hours", decimals=2),
            overrides.cells("used", theme.UTILIZATION, "gauge", theme.USE_SCALE),
            overrides.column("energy", unit=theme.ENERGY_KWH.unit, decimals=1),
            overrides.column("memory", unit=theme.MEMORY_BYTES.unit),
        ),
        no_value=NOT_THERE,
    ),
)

SURROUNDINGS = (
    Panel(
        panels.table(sort_by="regret", descending=True),
        "Could it sit better?",
        "Of each node: its GPUs there, how many of them share an NVLink domain and on how many "
        "NUMA nodes they are; what their mean pair carries and what the best set of as many would, "
        "held or free. Regret is the difference as a share: placed anew it could win that.",
        (Query(queries.PLACEMENT),),
        theme.COUNT,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance gpus in_one_domain numa_nodes actual best regret",
                hidden="Time tenant workload",
            ),
        ),
        overrides=(
            TO_NODE,
            overrides.column("actual", unit=theme.BANDWIDTH.unit),
            overrides.column("best", unit=theme.BANDWIDTH.unit),
            overrides.cells("regret", theme.REGRET, "gauge", theme.HARM_SCALE),
        ),
        no_value="it holds no whole GPU now",
    ),
    Panel(
        panels.table(sort_by="share", descending=True),
        "Who shares its links and memories?",
        "Other tenants of its nodes on the switches, roots, NVLink domains and memories of its "
        "GPUs, with their share of what passed there, and the share of the last five minutes in "
        "which the segment was contended. Network adapters are left out.",
        (Query(queries.NEIGHBOURS),),
        theme.LINK_LOAD,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "tenant segment_kind share contended segment cluster instance", hidden="Time"
            ),
        ),
        overrides=(
            overrides.linked("tenant", TO_TENANT),
            TO_NODE,
            overrides.cells("share", theme.LINK_LOAD, "gauge"),
            overrides.cells("contended", theme.CONTENTION, "gauge", theme.HARM_SCALE),
        ),
        no_value="it has its segments for itself",
    ),
    Panel(
        panels.table(sort_by="instance"),
        "What may it use?",
        "Its limits on each GPU by what sets them: a quota file, the size of a MIG instance, MPS "
        "or HAMi; and how long it stood at them in the time range, which is time that it waited "
        "or failed to allocate.",
        (Query(queries.QUOTAS),),
        theme.DURATION,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "cluster instance gpu_uuid source memory_limit sm_limit at_memory_limit "
                "at_sm_limit",
                hidden="Time",
            ),
        ),
        overrides=(
            TO_NODE,
            overrides.column("memory_limit", unit=theme.MEMORY_BYTES.unit),
            overrides.column("sm_limit", unit=theme.UTILIZATION.unit),
        ),
        no_value="nothing limits it: no quota file, MIG instance, MPS or HAMi",
    ),
    Panel(
        panels.table(sort_by="since", descending=True),
        "What in it may leak?",
        "Suspects among its processes: kind, process (pid as the exporter sees it), since when. "
        "The leaks dashboard has their numbers; the runbook says what to do about a kind.",
        (Query(queries.ITS_SUSPECTS),),
        theme.COUNT,
        HALF,
        transformations=(
            *transformations.rows("A"),
            transformations.in_order(
                "kind comm pid since cluster instance gpu_uuid", hidden="Time suspect"
            ),
        ),
        overrides=(
            overrides.linked(
                "kind",
                links.to(links.LEAKS, "Show its numbers", node=links.field("instance")),
            ),
            TO_NODE,
            overrides.column("since", unit="dateTimeFromNow"),
        ),
        no_value="nothing in it is suspected",
    ),
)


def workload() -> Dashboard:
    """The dashboard as a value."""
    return Dashboard(
        uid=links.WORKLOAD,
        title="Workload",
        description="One workload: what it does with its GPUs, what it takes, what is in its way.",
        variables=(CLUSTER, TENANT, WORKLOAD, ITS_NODES),
        panels=(
            Row("$workload"),
            *WHAT,
            Row("Does it work?"),
            *WORKS,
            Row("What does it take?"),
            *COSTS,
            Row("What is around it?"),
            *SURROUNDINGS,
        ),
    )
