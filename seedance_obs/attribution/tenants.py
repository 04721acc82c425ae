"""Whose a workload is, by an ordered list of rules; the first that matches decides.

A condition holds for a fact that is known and fits. A rule matches if all its conditions hold and
every fact that its tenant names is known.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seedance_obs.attribution.host import SYSTEM
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED
from seedance_obs.workload import Workload

UNKNOWN = "unknown"
RESERVED = (UNALLOCATED, UNOBSERVED, SYSTEM)
LONGEST_TENANT = 128  # characters
NAMED_FACTS = ("namespace", "pod", "image", "kind", "slurm_account", "user")
CGROUP = "cgroup"
LABEL = "pod_label."  # and the label's key
IN_BRACES = re.compile(r"\{([^{}]*)\}")
_REMEMBERED = 4096  # workloads


@dataclass(frozen=True, slots=True)
class Condition:
    """What a fact of the workload must be.

    `match` gives the named parts it found in the fact, None where the fact does not fit.
    """

    fact: str
    match: Callable[[str], Mapping[str, str] | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions that must all hold, and the tenant: text in which `{fact}` stands for a fact."""

    conditions: tuple[Condition, ...]
    tenant: str


@dataclass(frozen=True, slots=True)
class TenantRules:
    """The rules in their order, and who pays for a workload that none matches.

    Without a default that is its namespace, else its Slurm account, else its user, else `unknown`.
    """

    rules: tuple[Rule, ...] = ()
    default: str | None = None
    _known: dict[Workload, str] = field(default_factory=dict, compare=False, repr=False)

    def tenant_of(self, workload: Workload) -> str:
        """The tenant of a workload: 1 to 128 printable characters, but no reserved name.

        A rule that would lead to another text does not match.
        """
        tenant = self._known.get(workload)
        if tenant is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            tenant = self._known[workload] = self._decide(workload)
        return tenant

    def _decide(self, workload: Workload) -> str:
        facts = _facts(workload)
        for rule in self.rules:
            tenant = _apply(rule, facts)
            if _may_be(tenant):
                return tenant
        if self.default is not None:
            return self.default
        names = (workload.namespace, workload.slurm_account, workload.user)
        return next((name for name in names if _may_be(name)), UNKNOWN)


def fits_name(value: str, name: str) -> bool:
    """Whether a value is a name, each `*` of which stands for any text."""
    first, *inner = name.split("*")
    if not inner:
        return value == first
    last = inner.pop()
    if not value.startswith(first):
        return False
    place = len(first)
    for part in inner:
        found = value.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return value.endswith(last) and place + len(last) <= len(value)


def _facts(workload: Workload) -> dict[str, str]:
    facts = {name: str(getattr(workload, name)) for name in (*NAMED_FACTS, CGROUP)}
    return facts | {f"{LABEL}{key}": value for key, value in workload.pod_labels}


def _apply(rule: Rule, facts: Mapping[str, str]) -> str:
    """The rule's tenant, empty where it does not match."""
    known = dict(facts)
    for condition in rule.conditions:
        value = facts.get(condition.fact)
        found = condition.match(value) if value else None
        if found is None:
            return ""
        known |= found
    if not all(known.get(fact) for fact in IN_BRACES.findall(rule.tenant)):
        return ""
    return IN_BRACES.sub(lambda braces: known[braces.group(1)], rule.tenant)


def _may_be(tenant: str) -> bool:
    said = bool(tenant.strip()) and tenant.isprintable()
    return said and len(tenant) <= LONGEST_TENANT and tenant not in RESERVED
