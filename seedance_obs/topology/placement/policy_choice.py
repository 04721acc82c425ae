"""The set of GPUs that a policy would choose."""

from dataclasses import dataclass

from seedance_obs.topology.placement.pair_matrix import PairMatrix, Placement
from seedance_obs.topology.placement.policy import PolicyScore, TopologyPolicy
from seedance_obs.topology.placement.policy_host import HostView
from seedance_obs.topology.placement.policy_rules import score
from seedance_obs.topology.placement.set_search import Places, best_first, every, exhaustible, grow


@dataclass(frozen=True, slots=True)
class Choice:
    """The eligible set with the most points; among equals the one that a collective likes best.

    `exact` says that every set was looked at, as `set_search` does.
    """

    placement: Placement
    score: PolicyScore
    exact: bool


def choose(
    policy: TopologyPolicy,
    host: HostView,
    matrix: PairMatrix,
    *,
    size: int,
) -> Choice | None:
    """A policy's choice among the host's free GPUs.

    None where every set that was looked at breaks a constraint, or there are too few GPUs.
    """
    places = [matrix.position[name] for name in matrix.facts.gpus if name in host.free]
    if not 1 <= size <= len(places):
        return None

    def worth(members: Places) -> tuple[float, ...]:
        placement = matrix.placement(members)
        found = score(policy, host, placement)
        broken = sum(not check.met for check in found.checks)
        return -broken, found.total, *best_first(matrix.rank(members))

    exact = exhaustible(len(places), size)
    members = (every if exact else grow)(places, size, worth)
    placement = matrix.placement(members)
    found = score(policy, host, placement)
    return Choice(placement, found, exact) if found.eligible else None
