"""The affinity rules of a topology policy: each says in 0 to 1 how good a set of GPUs is.

1 is perfect. A value depends on the set alone, not on the order of its GPUs, and is Absent where
what it rests on is not known.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from math import fsum

from seedance_obs.topology.model import Absent, all_known
from seedance_obs.topology.placement.pair_matrix import Placement
from seedance_obs.topology.placement.policy import Check, Contribution, PolicyScore, TopologyPolicy
from seedance_obs.topology.placement.policy_facts import FACTS
from seedance_obs.topology.placement.policy_host import HostView

Rule = Callable[[HostView, Placement], float | Absent]


def nvlink_proximity(host: HostView, placement: Placement) -> float | Absent:
    """The mean over all pairs of their NVLinks, as a share of the most that any pair has here.

    0 on a host without NVLinks, 1 for a single GPU. Unknown if the NVLinks of a pair are.
    """
    if len(placement.gpus) == 1:
        return 1.0
    links = all_known(host.nvlinks(*pair) for pair in combinations(placement.gpus, 2))
    if isinstance(links, Absent) or not host.most_nvlinks:
        return links if isinstance(links, Absent) else 0.0
    return sum(links) / (len(links) * host.most_nvlinks)


def numa_locality(_host: HostView, placement: Placement) -> float | Absent:
    """1 divided by the number of NUMA nodes that the set needs; unknown if that is."""
    spread = placement.numa_spread
    return spread if isinstance(spread, Absent) else 1 / spread


def pcie_proximity(host: HostView, placement: Placement) -> float | Absent:
    """The mean over all pairs of how near they are on PCIe, NVLinks left aside.

    A pair is 1 at PIX (one switch or one board), 0.75 at PXB, 0.5 at PHB, 0.25 at NODE and 0 at
    SYS; a single GPU is 1. Unknown if the level of a pair is.
    """
    if len(placement.gpus) == 1:
        return 1.0
    return _mean(host.nearness(*pair) for pair in combinations(placement.gpus, 2))


def nic_locality(host: HostView, placement: Placement) -> float | Absent:
    """The mean over all GPUs of how near their nearest NIC is, on the scale of pcie-proximity.

    Unsupported on a host without NICs; unknown if a GPU's level is known to none of them.
    """
    return _mean(host.nics[gpu] for gpu in placement.gpus)


def domain_packing(host: HostView, placement: Placement) -> float | Absent:
    """1 minus the share of the NVLink domains in the set that were wholly free and are broken up.

    A domain is broken up when all its GPUs were free and the set takes some but not all; to fill
    a whole one, or to use one that is already in use, costs nothing. Unknown if NVLinks are.
    """
    if isinstance(host.groups, Absent):
        return host.groups
    taken = frozenset(placement.gpus)
    touched = {host.groups[gpu] for gpu in placement.gpus}
    broken = sum(group <= host.free | taken and not group <= taken for group in touched)
    return 1 - broken / len(touched)


RULES: Mapping[str, Rule] = {
    "nvlink-proximity": nvlink_proximity,
    "numa-locality": numa_locality,
    "pcie-proximity": pcie_proximity,
    "nic-locality": nic_locality,
    "domain-packing": domain_packing,
}


def score(policy: TopologyPolicy, host: HostView, placement: Placement) -> PolicyScore:
    """What a policy says of a set, every rule and every constraint by itself."""
    contributions = []
    for rule in policy.rules:
        value = RULES[rule.type](host, placement)
        points = 0.0 if isinstance(value, Absent) else rule.weight * value
        contributions.append(Contribution(rule, value, points))
    checks = []
    for constraint in policy.constraints:
        found = FACTS[constraint.key](host, placement)
        shown = found if isinstance(found, Absent) else tuple(sorted(found))
        checks.append(Check(constraint, shown, constraint.met(found)))
    return PolicyScore(policy, tuple(contributions), tuple(checks))


def _mean(values: Iterable[float | Absent]) -> float | Absent:
    found = all_known(values)
    return found if isinstance(found, Absent) else fsum(found) / len(found)
