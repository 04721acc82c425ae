"""By which class of link each GPU of a node reaches each other one."""

from seedance_obs.dashboards.queries.pair_cost import ONE, OTHER
from seedance_obs.dashboards.queries.scope import CHOSEN
from seedance_obs.dashboards.queries.shape import columns, gpu_name, with_label

GPUS = f'seedance_topology_device_info{{{CHOSEN},kind="gpu"}}'
PATHS = f'seedance_topology_path_info{{{CHOSEN},target_kind="gpu",link_class!=""}}'
ITSELF = "X"


def _named(pairs: str, end: str) -> str:
    """The pairs with the name of the GPU at one end, whose address is in a label of that name."""
    gpus = gpu_name(with_label(GPUS, "address", "$1", "device", "(.+)"), end)
    return (
        f"{with_label(pairs, 'address', '$1', end, '(.+)')}\n"
        f"* on (cluster, instance, address) group_left ({end})\n"
        f"max by (cluster, instance, address, {end}) ({gpus})"
    )


def _ways() -> str:
    """Every pair from either end, and each GPU with itself, lost ones too."""
    ways = []
    for one, other in (("source", "target"), ("target", "source")):
        way = with_label(with_label(PATHS, ONE, "$1", one, "(.+)"), OTHER, "$1", other, "(.+)")
        ways.append(f"max by (cluster, instance, {ONE}, {OTHER}, link_class) ({way})")
    itself = with_label(
        with_label(GPUS, ONE, "$1", "device", "(.+)"), OTHER, "$1", "device", "(.+)"
    )
    itself = f"max by (cluster, instance, {ONE}, {OTHER}) ({itself})"
    return " or ".join([*ways, with_label(itself, "link_class", ITSELF)])


LINK_CLASSES = columns(paths=_named(f"({_named(f'({_ways()})', ONE)})", OTHER))
