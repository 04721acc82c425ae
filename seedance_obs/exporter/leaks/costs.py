"""What GPU suspects cost: the energy and time that the books give to whom they are booked to."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seedance_obs.attribution.tick import UNALLOCATED
from seedance_obs.exporter.view import AttributionView
from seedance_obs.leaks.suspect import GPU_KINDS, Finding

POWER_SECONDS = 120.0  # energy counters may stand still for two minutes
NOBODYS = ("memory_without_process", "busy_without_process")
Place = tuple[str, str]  # a board and an account on it, or what nobody holds of it


@dataclass(frozen=True, slots=True)
class Spent:
    """What an account was booked of a board up to a moment (monotonic seconds)."""

    at: float
    millijoules: int | None  # None: the board's energy is not known
    microseconds: int


class Costs:
    """Adds up, kind by kind, what passed of suspects' boards while they were suspect.

    Attributes:
        gpu_seconds: GPU time, by kind of suspect.
        gpu_energy_mj: Millijoules of boards whose energy is known, by kind.
    """

    def __init__(self) -> None:
        self._meters: dict[Place, deque[Spent]] = {}
        self._suspect: frozenset[tuple[str, Place]] = frozenset()
        self.gpu_seconds = dict.fromkeys(GPU_KINDS, 0.0)
        self.gpu_energy_mj = dict.fromkeys(GPU_KINDS, 0)

    def advance(self, books: AttributionView, findings: Iterable[Finding], now: float) -> None:
        """Book what passed since the last call to the kinds that were suspect then and are now."""
        self._read(books, now)
        suspect = frozenset(
            (finding.kind, place_of(finding)) for finding in findings if finding.kind in GPU_KINDS
        )
        for kind, place in suspect & self._suspect:
            passed = list(self._meters.get(place, ()))[-2:]
            if len(passed) == 2:
                before, after = passed
                self.gpu_seconds[kind] += (after.microseconds - before.microseconds) / 1e6
                if before.millijoules is not None and after.millijoules is not None:
                    self.gpu_energy_mj[kind] += after.millijoules - before.millijoules
        self._suspect = suspect

    def draw(self, place: Place) -> tuple[float | None, float | None]:
        """The watts and the part of the board of an account, on average over two minutes."""
        meter = self._meters.get(place)
        if not meter or len(meter) < 2:
            return None, None
        before, after = meter[0], meter[-1]
        seconds = after.at - before.at
        share = (after.microseconds - before.microseconds) / 1e6 / seconds
        if before.millijoules is None or after.millijoules is None:
            return None, share
        return (after.millijoules - before.millijoules) / 1000 / seconds, share

    def _read(self, books: AttributionView, now: float) -> None:
        read = _spent(books, now)
        for place in self._meters.keys() - read.keys():
            del self._meters[place]
        for place, spent in read.items():
            meter = self._meters.setdefault(place, deque())
            meter.append(spent)
            while len(meter) > 2 and now - meter[1].at >= POWER_SECONDS:
                meter.popleft()


def place_of(finding: Finding) -> Place:
    """Where the books have what a finding's holder spends; nobody's is at no account's place."""
    nobody = UNALLOCATED if finding.kind in NOBODYS else ""
    return finding.gpu_uuid, finding.account or nobody


def _spent(books: AttributionView, now: float) -> Mapping[Place, Spent]:
    found = {}
    for account in books.workload_accounts:
        balance = account.balance
        energy = balance.active_mj + balance.reserved_mj if account.metered else None
        time = balance.active_us + balance.reserved_us
        found[account.gpu_uuid, account.account] = Spent(now, energy, time)
    for tenant in books.tenants:
        if tenant.tenant == UNALLOCATED:
            balance = tenant.balance
            energy = balance.reserved_mj if tenant.metered else None
            found[tenant.gpu_uuid, UNALLOCATED] = Spent(now, energy, balance.reserved_us)
    return found
