"""`kind: TopologyPolicy`: what a good placement is, in rules with weights and in constraints.

    apiVersion: topology.seedance.io/v1
    kind: TopologyPolicy
    metadata: {name: training}
    spec:
      affinityRules:
        - {type: nvlink-proximity, weight: 120}
        - {type: numa-locality, weight: 80}
      constraints:
        - {key: gpu-count, operator: Gt, value: 1}

The rule types are those of `policy_rules`, the keys those of `policy_facts`. A constraint has a
`value`, or a list of `values` for In and NotIn. Operators mean what they do in Kubernetes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seedance_obs.topology.model import Absent

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
COMPARISONS = ("Gt", "Lt")
WITHOUT_VALUES = ("Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class AffinityRule:
    """A rule by its type, and the points that a perfect set gets for it (0 or more)."""

    type: str
    weight: float


@dataclass(frozen=True, slots=True)
class Constraint:
    """What must hold of a fact of a set; `values` is empty for Exists and DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.key, self.operator, ", ".join(self.values))).strip()

    def met(self, found: frozenset[str] | Absent) -> bool:
        """Whether a fact meets it; a fact may have several values, such as GPU models.

        In: every value is listed. NotIn: none is. Gt and Lt: the one value is a number greater,
        or less. A fact that is not known meets only NotIn and DoesNotExist, as a label that is
        not there does in Kubernetes; add Exists to demand that it is known.
        """
        if isinstance(found, Absent):
            return self.operator in ("NotIn", "DoesNotExist")
        if self.operator in WITHOUT_VALUES:
            return self.operator == "Exists"
        if self.operator in COMPARISONS:
            return all(self._compares(value) for value in found)
        listed = {comparable(value) for value in self.values}
        inside = [comparable(value) in listed for value in found]
        return all(inside) if self.operator == "In" else not any(inside)

    def _compares(self, value: str) -> bool:
        found, wanted = comparable(value), comparable(self.values[0])
        if isinstance(found, str) or isinstance(wanted, str):
            return False
        return found > wanted if self.operator == "Gt" else found < wanted


def comparable(value: str) -> float | str:
    """A number where the text is one, so that `4` and `4.0` are the same; else the text."""
    try:
        return float(value)
    except ValueError:
        return value


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """A policy by name."""

    name: str
    rules: tuple[AffinityRule, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def most(self) -> float:
        """The points of a set that is perfect by every rule."""
        return sum(rule.weight for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Contribution:
    """A rule's part of a score: `value` in 0 to 1, or why there is none; `points` = weight x value.

    A rule whose value is not known contributes 0 points.
    """

    rule: AffinityRule
    value: float | Absent
    points: float


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint, what was found of its key, and whether that meets it."""

    constraint: Constraint
    found: tuple[str, ...] | Absent
    met: bool


@dataclass(frozen=True, slots=True)
class PolicyScore:
    """What a policy says of a set: every rule's part, every constraint, and the sum."""

    policy: TopologyPolicy
    contributions: Sequence[Contribution]
    checks: Sequence[Check]

    @property
    def total(self) -> float:
        """The sum of the contributions."""
        return sum(part.points for part in self.contributions)

    @property
    def eligible(self) -> bool:
        """Whether no constraint is broken."""
        return all(check.met for check in self.checks)
