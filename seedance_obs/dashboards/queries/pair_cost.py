"""What talking costs each pair of GPUs of one workload, in seconds a second:

    (B_i + B_j) / 2 / (n - 1) / bandwidth of the pair

for B the bytes a second over the links of each of its n GPUs, both directions. Each GPU is taken
to talk to all others alike, so B / (n - 1) are for each of them; both ends count the same bytes,
hence the mean of the two. The bandwidth is one way, as if one direction waited for the other, so
this is an upper bound.
"""

from seedance_obs.dashboards.queries.scope import CHOSEN
from seedance_obs.dashboards.queries.shape import columns, gpu_name, with_label

WORKLOAD = "cluster, instance, tenant, workload"
ONE, OTHER = "GPU", "peer"
GPUS = f'seedance_topology_device_info{{{CHOSEN},kind="gpu"}}'
PATHS = f"seedance_topology_path_bandwidth_bytes_per_second{{{CHOSEN}}}"
# Processes that nobody could look up go by one name, and are no workload for all that.
OF_WORKLOADS = f'{CHOSEN},tenant=~"$tenant",workload!="process-unknown-0"'
BYTES = f"seedance_workload_link_bytes_total{{{OF_WORKLOADS}}}"
# Of workloads that share a GPU the one that moves most: its pairs can be told of one only.
MOVED = f"""topk by (cluster, instance, gpu_uuid) (1,
sum by ({WORKLOAD}, gpu_uuid) (rate({BYTES}[$__rate_interval])))"""
TO_EACH_OTHER = f"""{MOVED}
/ on ({WORKLOAD}) group_left () (count by ({WORKLOAD}) ({MOVED}) - 1 > 0)"""


def _device(label: str) -> str:
    return f"{label}_device"


def _paths() -> str:
    """Every pair of GPUs twice, once from either end."""
    ways = []
    for one, other in (("source", "target"), ("target", "source")):
        way = with_label(PATHS, _device(ONE), "$1", one, "(.+)")
        way = with_label(way, _device(OTHER), "$1", other, "(.+)")
        ways.append(f"max by (cluster, instance, {_device(ONE)}, {_device(OTHER)}) ({way})")
    return " or ".join(ways)


def _by(end: str) -> str:
    """What each pair of a workload costs by what the GPU at one end moves."""
    device = _device(end)
    gpus = gpu_name(with_label(GPUS, device, "$1", "device", "(.+)"), end)
    return f"""1 / ({_paths()})
* on (cluster, instance, {device}) group_left (tenant, workload, {end})
sum by ({WORKLOAD}, {device}, {end}) (
{TO_EACH_OTHER}
* on (cluster, instance, gpu_uuid) group_left ({device}, {end})
max by (cluster, instance, gpu_uuid, {device}, {end}) ({gpus}))"""


def _cost() -> str:
    both = f"{WORKLOAD}, {_device(ONE)}, {_device(OTHER)}"
    return f"(({_by(ONE)})\n+ on ({both}) group_left ({OTHER})\n({_by(OTHER)})) / 2"


PAIR_COST = columns(cost=_cost())
