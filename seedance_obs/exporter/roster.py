"""The workloads of this node by account: living ones, and ended ones until their end is scraped."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from seedance_obs.workload import Workload


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
        name = f"{tenant}/{workload.key}"
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

    def as_state(self) -> list[dict[str, Any]]:
        """What a checkpoint keeps."""
        return [
            {**asdict(known.workload), "tenant": known.tenant, "seen_at": known.seen_at}
            for known in self._known.values()
        ]

    def restore(self, state: Iterable[Mapping[str, Any]]) -> None:
        """Take up what a checkpoint kept."""
        for entry in state:
            fields = dict(entry)
            tenant, seen_at = fields.pop("tenant"), fields.pop("seen_at")
            labels = tuple((key, value) for key, value in fields.pop("pod_labels"))
            workload = Workload(**fields, pod_labels=labels)
            self.account(workload, tenant, seen_at)
