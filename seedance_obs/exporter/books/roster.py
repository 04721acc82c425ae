"""The workloads of this node by account: living ones, and ended ones until their end is scraped."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from seedance_obs.attribution.state import number, text, whole
from seedance_obs.attribution.tenants import TenantRules
from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.workload import Workload

_SHARED_CGROUPS = ("process", "vgpu")  # kinds whose cgroup holds others too
_FACTS = tuple(field.name for field in fields(Workload) if field.init)
_TEXTS = tuple(name for name in _FACTS if name not in ("started_at", "pod_labels"))
_facts_of = attrgetter(*_FACTS)


@dataclass(slots=True)
class Known:
    """A workload, who pays for it, and when (monotonic seconds) it was last on a GPU."""

    workload: Workload
    tenant: str
    seen_at: float


class Roster:
    """Gives each workload the account it is booked under, and says which have ended.

    An account is a workload and its tenant: when the rules change, what was burned before stays
    where it was booked, and another account begins.
    """

    def __init__(self, *, ended_seconds: float) -> None:
        self._ended_seconds = ended_seconds
        self._known: dict[str, Known] = {}

    def account(self, workload: Workload, tenant: str, now: float) -> str:
        """The account of a workload that is on a GPU now."""
        name = account_name(tenant, workload.key)
        known = self._known.get(name)
        if known is None:
            self._known[name] = Known(workload, tenant, now)
        else:
            known.workload, known.seen_at = workload, now
        return name

    def known(self) -> Mapping[str, Known]:
        """Every workload that is shown, by account."""
        return self._known

    def leave(self, now: float) -> list[str]:
        """Take out the accounts of what ended so long ago that every scraper has seen its end."""
        gone = [n for n, k in self._known.items() if now - k.seen_at > self._ended_seconds]
        for name in gone:
            del self._known[name]
        return gone

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps: rows, since names in each would make it twice as long."""
        rows = [
            (known.tenant, known.seen_at, *_facts_of(known.workload))
            for known in self._known.values()
        ]
        return {"facts": _FACTS, "rows": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what a checkpoint kept; facts that this exporter does not know are left out.

        Raises:
            SeedanceError, KeyError, TypeError, ValueError: the state is of another form.
        """
        names = ("tenant", "seen_at", *state["facts"])
        for row in state["rows"]:
            kept = dict(zip(names, row, strict=True))
            self.account(_workload_from(kept), text(kept, "tenant"), number(kept, "seen_at"))


class TickAccounts:
    """The accounts of one tick: each workload is looked up once."""

    def __init__(
        self,
        roster: Roster,
        rules: TenantRules,
        now: float,
        *,
        links: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._roster = roster
        self._rules = rules
        self._now = now
        self._links = links
        self._names: dict[str, str] = {}

    def account(self, workload: Workload) -> str:
        """The account that a workload is booked under now."""
        name = self._names.get(workload.key)
        if name is None:
            tenant = self._rules.tenant_of(workload)
            name = self._names[workload.key] = self._roster.account(workload, tenant, self._now)
        return name

    def links(self, workload: Workload) -> Mapping[str, str]:
        """The link classes of its traffic."""
        return self._links.get(workload.key, {})


def own_cgroup(workload: Workload) -> str:
    """The cgroup that holds this workload and no other; empty where there is none."""
    return "" if workload.kind in _SHARED_CGROUPS else workload.cgroup


def _workload_from(kept: Mapping[str, Any]) -> Workload:
    facts = {name: text(kept, name) for name in _TEXTS}
    labels = tuple((str(key), str(value)) for key, value in kept["pod_labels"])
    return Workload(**facts, started_at=whole(kept, "started_at"), pod_labels=labels)
