"""What GPU suspects cost: the part of what the books say of a board that is theirs.

Idle use costs what its account merely reserved, never the work of whoever is busy beside it; what
spins costs all that its account is booked. Nothing is told twice: findings that together ask for
more than there is share it in proportion.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED
from seedance_obs.exporter.view import AttributionView
from seedance_obs.leaks.suspect import GPU_KINDS, Finding

POWER_SECONDS = 120.0  # energy counters may stand still for two minutes
NOBODYS = ("memory_without_process", "busy_without_process")


class Column(NamedTuple):
    """One column of an account on a board in the books: `active` or `reserved`."""

    gpu_uuid: str
    account: str
    name: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What was booked in a column up to a probe at `at` (monotonic seconds).

    Attributes:
        observed_us: Of its board, up to the same moment: the clock of what is booked, which stands
            while nobody looks.
        millijoules: None where the energy is not known.
    """

    at: float
    observed_us: int
    microseconds: int
    millijoules: int | None

    def goes_on_from(self, before: "Spent") -> bool:
        """Whether nothing has begun anew since."""
        if self.observed_us < before.observed_us or self.microseconds < before.microseconds:
            return False
        energies = (before.millijoules, self.millijoules)
        return energies[0] is None or energies[1] is None or energies[0] <= energies[1]


class Costs:
    """Adds up, kind by kind, what passed of suspects' boards while they were suspect.

    Attributes:
        gpu_energy_mj: Millijoules of boards whose energy is known, by kind of suspect.
    """

    def __init__(self) -> None:
        self._meters: dict[Column, deque[Spent]] = {}
        self._wanted: Mapping[Column, float] = {}  # the parts that all findings ask for
        self._given: Mapping[tuple[str, Column], float] = {}  # what each kind has of it
        self._gpu_us = dict.fromkeys(GPU_KINDS, 0)
        self.gpu_energy_mj = dict.fromkeys(GPU_KINDS, 0)

    @property
    def gpu_seconds(self) -> dict[str, float]:
        """GPU time, by kind of suspect."""
        return {kind: passed / 1e6 for kind, passed in self._gpu_us.items()}

    def advance(self, books: AttributionView, findings: Iterable[Finding], now: float) -> None:
        """Book what passed since the last call to the kinds that were suspect then and are now."""
        self._read(books, now)
        asked = [(finding, column) for finding in findings for column in columns_of(finding)]
        wanted: defaultdict[Column, float] = defaultdict(float)
        for finding, column in asked:
            wanted[column] += finding.part
        self._wanted = wanted
        given: defaultdict[tuple[str, Column], float] = defaultdict(float)
        for finding, column in asked:
            given[finding.kind, column] += self._part(finding, column)
        for (kind, column), part in given.items():
            self._book(kind, column, min(part, self._given.get((kind, column), 0.0)))
        self._given = given

    def draw(self, finding: Finding) -> tuple[float | None, float | None]:
        """The watts that a finding costs and its part of the board, on average over two minutes.

        None where it is not known, or was not told anew for as long.
        """
        rates = [self._rates(column, self._part(finding, column)) for column in columns_of(finding)]
        return sum_known([watts for watts, _ in rates]), sum_known([share for _, share in rates])

    def _part(self, finding: Finding, column: Column) -> float:
        """The part of a column that is a finding's; those of all findings make 1 at most."""
        return finding.part / max(1.0, self._wanted.get(column, 0.0))

    def _book(self, kind: str, column: Column, part: float) -> None:
        """Rounded down, so that kinds never exceed the books."""
        passed = list(self._meters.get(column, ()))[-2:]
        if len(passed) < 2:
            return
        before, after = passed
        self._gpu_us[kind] += int((after.microseconds - before.microseconds) * part)
        if before.millijoules is not None and after.millijoules is not None:
            self.gpu_energy_mj[kind] += int((after.millijoules - before.millijoules) * part)

    def _rates(self, column: Column, part: float) -> tuple[float | None, float | None]:
        meter = self._meters.get(column)
        observed_us = meter[-1].observed_us - meter[0].observed_us if meter else 0
        if not meter or not observed_us:
            return None, None
        before, after = meter[0], meter[-1]
        share = part * (after.microseconds - before.microseconds) / observed_us
        if before.millijoules is None or after.millijoules is None:
            return None, share
        return part * (after.millijoules - before.millijoules) * 1000 / observed_us, share

    def _read(self, books: AttributionView, now: float) -> None:
        read = dict(_spent(books, now))
        for column in self._meters.keys() - read.keys():
            del self._meters[column]
        for column, spent in read.items():
            meter = self._meters.setdefault(column, deque())
            if meter and not spent.goes_on_from(meter[-1]):
                meter.clear()
            meter.append(spent)
            while len(meter) > 2 and now - meter[1].at >= POWER_SECONDS:
                meter.popleft()


def columns_of(finding: Finding) -> Iterator[Column]:
    """Where the books have what a finding costs; nowhere for kinds that cost no GPU."""
    if finding.kind not in GPU_KINDS:
        return
    account = UNALLOCATED if finding.kind in NOBODYS else finding.account
    yield Column(finding.gpu_uuid, account, "reserved")
    if finding.kind == "spinning":
        yield Column(finding.gpu_uuid, account, "active")


def sum_known(values: Sequence[float | None]) -> float | None:
    """The sum; None if there is nothing to add up, or any of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _spent(books: AttributionView, now: float) -> Iterator[tuple[Column, Spent]]:
    """What nobody holds is reserved; of others that can be told apart where the floor is known."""
    observed: Counter[str] = Counter()
    for tenant in books.tenants:
        if tenant.tenant != UNOBSERVED:
            observed[tenant.gpu_uuid] += tenant.balance.active_us + tenant.balance.reserved_us
    with_floor = {board.gpu_uuid for board in books.evidence if board.floor_watts is not None}
    for account in books.workload_accounts:
        uuid, name, balance = account.gpu_uuid, account.account, account.balance
        active_mj = balance.active_mj if account.metered else None
        reserved_mj = balance.reserved_mj if account.metered and uuid in with_floor else None
        yield (
            Column(uuid, name, "active"),
            Spent(now, observed[uuid], balance.active_us, active_mj),
        )
        yield (
            Column(uuid, name, "reserved"),
            Spent(now, observed[uuid], balance.reserved_us, reserved_mj),
        )
    for tenant in books.tenants:
        if tenant.tenant == UNALLOCATED:
            uuid, balance = tenant.gpu_uuid, tenant.balance
            energy_mj = balance.reserved_mj if tenant.metered else None
            yield (
                Column(uuid, UNALLOCATED, "reserved"),
                Spent(now, observed[uuid], balance.reserved_us, energy_mj),
            )
