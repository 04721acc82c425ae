"""What `topology placements` tells: the best and the worst sets of a size, and how one compares."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from seedance_obs.errors import UsageError
from seedance_obs.topology.encoding.as_json import plain
from seedance_obs.topology.model import Absent, Topology
from seedance_obs.topology.placement.allocator_score import Allocator, set_score
from seedance_obs.topology.placement.pair_matrix import Pair, Placement
from seedance_obs.topology.placement.placements import Placements, Standing
from seedance_obs.topology.placement.policy import PolicyScore, TopologyPolicy
from seedance_obs.topology.placement.policy_choice import choose
from seedance_obs.topology.placement.policy_host import HostView
from seedance_obs.topology.placement.policy_rules import score


@dataclass(frozen=True, slots=True)
class ReportedSet:
    """A set, what it is ("best of all", "actual"), and its scores.

    `exact` is False where it is only the best or worst of the sets that a greedy search met.
    """

    roles: tuple[str, ...]
    placement: Placement
    scores: tuple[tuple[Allocator, int | Absent], ...]
    policy: PolicyScore | None
    exact: bool

    def as_json(self) -> dict[str, Any]:
        """The set as plain data."""
        return {
            "roles": list(self.roles),
            "exact": self.exact,
            **_placement(self.placement),
            "allocator_scores": {name.value: plain(value) for name, value in self.scores},
            "policy": _policy(self.policy) if self.policy else None,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Sets of one size on a host; equal sets with several roles are there once.

    `free` is None where nobody said which GPUs are free, so all count as free. `choiceless` says
    that a policy was given and every set of free GPUs breaks one of its constraints.
    """

    topology: Topology
    size: int
    gpus: tuple[str, ...]
    free: tuple[str, ...] | None
    policy: TopologyPolicy | None
    sets: tuple[ReportedSet, ...]
    standings: tuple[tuple[str, Standing], ...]
    choiceless: bool

    @property
    def feasible(self) -> bool:
        """Whether there is a set to choose.

        False where a policy has no choice, and where too few GPUs are free; a set that is
        compared is there in any case, so for that alone few free GPUs do no harm.
        """
        return not self.choiceless and (self.enough_free or bool(self.standings))

    @property
    def enough_free(self) -> bool:
        """Whether the free GPUs suffice for a set of the size."""
        return self.free is None or len(self.free) >= self.size

    def as_json(self) -> dict[str, Any]:
        """The report as plain data; values that are absent as in `as_json`.

        `feasible` is as above; the extremes of all GPUs are there even where it is false.
        """
        return {
            "host": self.topology.host or None,
            "size": self.size,
            "feasible": self.feasible,
            "gpus": list(self.gpus),
            "free": None if self.free is None else list(self.free),
            "sets": [found.as_json() for found in self.sets],
            "standings": {among: _standing(found) for among, found in self.standings},
        }


def report(
    topology: Topology,
    *,
    size: int | None = None,
    free: Iterable[str] | None = None,
    policy: TopologyPolicy | None = None,
    actual: Iterable[str] | None = None,
    placements: Placements | None = None,
) -> Report:
    """The best and worst sets of a size among all GPUs and among the free ones.

    Args:
        topology: the host.
        size: GPUs in a set; by default as many as `actual` has.
        free: names of the free GPUs; those of `actual` count as free when it is compared.
        policy: scored for every set; its own choice among the free GPUs is one of them.
        actual: names of a set to compare.
        placements: the engine, where one is at hand that knows the topology.

    Raises:
        UsageError: a GPU is not known, the size does not fit, or neither size nor actual is given.
    """
    engine = placements or Placements()
    names = engine.gpus(topology)
    held = None if actual is None else engine.placement(topology, actual)
    wanted = _size(size, held)
    pool = None if free is None else engine.placement(topology, free).gpus
    found = [*_extremes(engine, topology, wanted, pool)]
    host = HostView(topology, pool)
    choice = None
    if policy:
        choice = choose(policy, host, engine.matrix(topology), size=wanted)
        if choice:
            found.append(("policy's choice", choice.placement, choice.exact))
    standings: list[tuple[str, Standing]] = []
    if held:
        found.append(("actual", held, True))
        standings.append(("all", engine.standing(topology, held.gpus)))
        if pool is not None:
            standings.append(("free", engine.standing(topology, held.gpus, among=pool)))
    return Report(
        topology,
        wanted,
        names,
        pool,
        policy,
        tuple(_merged(topology, found, policy, host)),
        tuple(standings),
        choiceless=policy is not None and choice is None,
    )


def _size(size: int | None, held: Placement | None) -> int:
    if size is None:
        if held is None:
            raise UsageError("a size, or a set of GPUs to compare, is wanted")
        return len(held.gpus)
    if held is not None and len(held.gpus) != size:
        raise UsageError(
            f"the actual set has {len(held.gpus)} GPUs, and sets of {size} were asked for"
        )
    return size


def _extremes(
    engine: Placements, topology: Topology, size: int, pool: tuple[str, ...] | None
) -> Iterable[tuple[str, Placement, bool]]:
    everywhere = engine.extremes(topology, size)
    yield "best of all", everywhere.best, everywhere.exact
    yield "worst of all", everywhere.worst, everywhere.exact
    if pool is not None and len(pool) >= size:
        free = engine.extremes(topology, size, among=pool)
        yield "best of free", free.best, free.exact
        yield "worst of free", free.worst, free.exact


def _merged(
    topology: Topology,
    found: Sequence[tuple[str, Placement, bool]],
    policy: TopologyPolicy | None,
    host: HostView,
) -> Iterable[ReportedSet]:
    roles: dict[tuple[str, ...], list[str]] = {}
    for role, placement, _ in found:
        roles.setdefault(placement.gpus, []).append(role)
    for gpus, names in roles.items():
        placement = next(one for _, one, _ in found if one.gpus == gpus)
        yield ReportedSet(
            tuple(names),
            placement,
            tuple((which, set_score(topology, gpus, which)) for which in Allocator),
            score(policy, host, placement) if policy else None,
            all(exact for _, one, exact in found if one.gpus == gpus),
        )


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        "gpus": list(placement.gpus),
        "bottleneck_bytes_per_second": plain(placement.bottleneck),
        "mean_bytes_per_second": plain(placement.mean),
        "worst_link_class": plain(placement.worst_class),
        "numa_nodes": plain(placement.numa_spread),
        "pairs": [_pair(pair) for pair in placement.pairs],
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "gpus": [pair.one, pair.other],
        "bytes_per_second": plain(pair.bytes_per_second),
        "basis": plain(pair.basis),
        "link_class": plain(pair.link_class),
    }


def _policy(found: PolicyScore) -> dict[str, Any]:
    return {
        "name": found.policy.name,
        "total": found.total,
        "most": found.policy.most,
        "eligible": found.eligible,
        "contributions": [
            {
                "type": part.rule.type,
                "weight": part.rule.weight,
                "value": plain(part.value),
                "points": part.points,
            }
            for part in found.contributions
        ],
        "constraints": [
            {
                "key": check.constraint.key,
                "operator": check.constraint.operator,
                "values": list(check.constraint.values),
                "found": plain(check.found),
                "met": check.met,
            }
            for check in found.checks
        ],
    }


def _standing(found: Standing) -> dict[str, Any]:
    return {
        "best_bytes_per_second": plain(found.extremes.best.bottleneck),
        "actual_bytes_per_second": plain(found.actual.bottleneck),
        "worst_bytes_per_second": plain(found.extremes.worst.bottleneck),
        "regret_ratio": plain(found.regret),
        "percentile_ratio": plain(found.percentile),
        "exact": found.extremes.exact,
    }
