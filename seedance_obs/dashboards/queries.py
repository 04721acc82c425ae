"""The PromQL of the dashboards, each under the name of what it answers.

Units are those of the metrics (ratios, watts, bytes) unless a name says otherwise. Every selector
names the scrape job, and the cluster only by a pattern that also matches where there is none.
"""

from collections.abc import Mapping

from seedance_obs.dashboards import theme

FLEET = 'job="gpu",cluster=~"$cluster"'
NODES = f'{FLEET},instance=~"$node"'
RECORDED = 'cluster=~"$cluster",instance=~"$node"'
BY_GPU = "on (cluster, instance, gpu_uuid) group_left ()"

FIRING = 'ALERTS{alertname=~"Seedance.+",alertstate="firing",cluster=~"$cluster"}'

CLUSTERS = 'label_values(seedance_exporter_info{job="gpu"}, cluster)'
NODE_NAMES = f"label_values(seedance_exporter_info{{{FLEET}}}, instance)"

FLEET_GPUS_SEEN = f"sum(seedance_gpus_seen{{{FLEET}}})"
FLEET_GPUS_EXPECTED = f"sum(seedance_gpus_expected{{{FLEET}}})"
FLEET_GPUS_MISSING = f"sum(seedance_gpus_expected{{{FLEET}}} - seedance_gpus_seen{{{FLEET}}})"
FLEET_UTILIZATION = f"avg(seedance_gpu_utilization_ratio{{{FLEET}}})"
FLEET_POWER = f"sum(seedance_gpu_power_watts{{{FLEET}}})"
FIRING_COUNT = f"count({FIRING}) or vector(0)"
OLDEST_READING = f"max(seedance_source_age_seconds{{{FLEET}}})"

UTILIZATION_BY_GPU_PERCENT = 'avg by (instance, gpu_uuid) (dcgm_gpu_utilization{job="gpu"})'
UTILIZATION_BANDS = (  # Prometheus sorts series by labels, so band, the first, decides their order
    f'label_join(seedance_gpu_utilization_ratio{{{NODES}}}, "band", " GPU ", "instance", "gpu")'
)
UTILIZATION = f"seedance_gpu_utilization_ratio{{{NODES}}}"
POWER = f"seedance_gpu_power_watts{{{NODES}}}"
MEMORY_USED = (
    f"seedance_gpu_memory_used_bytes{{{NODES}}} / seedance_gpu_memory_total_bytes{{{NODES}}}"
)


def labelled(expr: str, **labels: str) -> str:
    """The query with labels set to fixed values."""
    for name, value in labels.items():
        expr = f'label_replace({expr}, "{name}", "{value}", "", "")'
    return expr


def columns(**exprs: str) -> str:
    """One query that answers with a table: a series for each cell, its column in the label `stat`.

    In this shape a column keeps its name and its type whatever else is missing, which the answers
    of several queries, joined in Grafana, do not.
    """
    return "\nor\n".join(labelled(expr, stat=name) for name, expr in exprs.items())


def _per_node(by_name: Mapping[str, str]) -> str:
    return columns(**{name: f"sum by (cluster, instance) ({e})" for name, e in by_name.items()})


def nodes_table() -> str:
    """A row for each node: GPUs seen, expected and missing, mean utilisation, watts, alerts."""
    seen, expected = f"seedance_gpus_seen{{{FLEET}}}", f"seedance_gpus_expected{{{FLEET}}}"
    sums = {
        "seen": seen,
        "expected": expected,
        "missing": f"{expected} - {seen}",
        "power": f"seedance_gpu_power_watts{{{FLEET}}}",
        "alerts": f"{FIRING} or 0 * {expected}",
    }
    mean = f"avg by (cluster, instance) (seedance_gpu_utilization_ratio{{{FLEET}}})"
    return f"{_per_node(sums)}\nor\n{columns(utilization=mean)}"


def gpu_table() -> str:
    """A row for each GPU of the last hour: what it is, where it sits, and how it does now."""
    gpu = f"gpu:seedance_topology:info{{{RECORDED}}}"
    return columns(
        known=gpu,
        utilization=f"{gpu} * {BY_GPU} {UTILIZATION}",
        memory=f"{gpu} * {BY_GPU} ({MEMORY_USED})",
        power=f"{gpu} * {BY_GPU} {POWER}",
    )


def topology_nodes() -> str:
    """The node frame of the graph: positions, utilisation in per cent, watts, and the arcs.

    A device's arcs always add up to 1: busy and idle where utilisation is known, else unknown.
    """
    device = f'device:seedance_topology:pixels{{{RECORDED},stat="fixedx"}}'
    known = f"0 * {device} + {BY_GPU} {UTILIZATION}"
    return columns(
        fixedx=device,
        fixedy=f'device:seedance_topology:pixels{{{RECORDED},stat="fixedy"}}',
        mainstat=f"100 * ({known})",
        secondarystat=f"0 * {device} + {BY_GPU} {POWER}",
        arc__busy=f"({known}) or 0 * {device}",
        arc__idle=f"1 - ({known}) or 0 * {device}",
        arc__unknown=f"0 * ({known}) or 1 + 0 * {device}",
    )


def topology_edges() -> str:
    """The edge frame: NVLinks solid, thicker the more there are; the PCIe tree thin and dashed."""
    edge = f"edge:seedance_topology:nvlinks{{{RECORDED},link="
    nvlink = labelled(f'{edge}"nvlink"}}', color=theme.NVLINK)
    pcie = labelled(f'{edge}"pcie"}}', color=theme.PCIE, strokedasharray="6 4")
    return columns(mainstat=nvlink, thickness=f"(1 + {nvlink} / 2 or 1 + {pcie})")
