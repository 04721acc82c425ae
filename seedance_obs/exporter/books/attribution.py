"""Who used what on this node: joins processes, pods and boards into accounts, tick by tick.

`observe` runs on the thread that reads the driver, `refresh` on one that may block, `advance` and
`view` on the one that assembles.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from seedance_obs.exporter.books.board_books import Books
from seedance_obs.exporter.books.checkpoint import Checkpoint
from seedance_obs.exporter.books.claims import Claims, given_to_jobs, given_to_pods
from seedance_obs.exporter.books.holders import holders_of
from seedance_obs.exporter.books.host_energy import HostEnergy
from seedance_obs.exporter.books.link_classes import links_by_workload
from seedance_obs.exporter.books.people import People
from seedance_obs.exporter.books.quota_watch import QuotaWatch
from seedance_obs.exporter.books.residency import Occupancy, occupancy
from seedance_obs.exporter.books.roster import Known, Roster, TickAccounts
from seedance_obs.exporter.books.seats import Seat, seats_of
from seedance_obs.exporter.books.use_meter import UseMeter
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.view import (
    AttributionView,
    HostEnergyView,
    LocatedGpu,
    QuotaRow,
    ShownWorkload,
    SourceState,
)
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.slurm import MappedGpu, read_job_map
from seedance_obs.tenant_file import TenantFile
from seedance_obs.topology.model import Topology
from seedance_obs.workload import Workload

LOG = logging.getLogger(__name__)
CLAIMS_SECONDS = 5.0  # how long it is believed that a pod has not ended
KUBELET_PATIENCE_SECONDS = 1800.0  # its pods outlive a kubelet that is down for a while


@dataclass(frozen=True, slots=True)
class Parts:
    """What an attribution is made of."""

    books: Books
    roster: Roster
    people: People
    tenants: TenantFile
    host: HostEnergy
    quotas: QuotaWatch
    checkpoint: Checkpoint
    job_map: Path | None = None


class Attribution:
    """The books of a node, and what is needed to keep them; they go on from what was `kept`.

    Attributes:
        seats: Who sat where at the last tick.

    Raises:
        Exception: what was kept cannot be taken up as a whole.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        workload_limit: int,
        shapley: bool,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self._parts = parts
        self._workload_limit = workload_limit
        self._shapley = shapley
        self._use = UseMeter()
        self._claims = Claims([], parts.people.pod, pods_told=False)
        self._claimed: object = None  # what they were made of
        self.seats: Sequence[Seat] = ()  # of the last tick
        self._jobs: Mapping[MappedGpu, tuple[str, ...]] = {}
        self._job_map_up: bool | None = None  # None until it was read
        self._ticked_at: float | None = None
        self._dropped_claims = 0
        self._host = HostEnergyView()
        self._faults = Faults()
        self._pids: Mapping[str, tuple[int, ...]] = {}
        self._memory: Mapping[tuple[str, str], int] = {}  # held now, by board and account
        self._links: dict[str, Mapping[str, str]] = {}  # those who have just left had them
        self._before: dict[str, Occupancy | None] = {}
        self._unwatched: set[str] = set()  # boards as they were kept, until they are seen again
        if kept is not None:
            self._restore(kept)

    def observe(self, snapshot: SourceSnapshot) -> None:
        """Look up the processes of a pass while they live, and add up what they used."""
        with self._faults.kept_to("processes"):
            self._parts.people.observe(snapshot)
        with self._faults.kept_to("process use"):
            self._use.add(snapshot)

    def refresh(self, now: float) -> None:
        """Read what may block or changes slowly: Slurm's job map, quotas, the host's energy."""
        parts = self._parts
        if parts.job_map is not None:
            with self._faults.kept_to("job map"):
                jobs = read_job_map(parts.job_map)
                self._note_job_map(up=jobs is not None)
                self._jobs = jobs or {}
        with self._faults.kept_to("quotas"):
            parts.quotas.refresh()
        with self._faults.kept_to("host energy"):
            parts.host.advance(dict(parts.roster.known()), self._pids, now)

    def advance(
        self,
        gpus: Sequence[LocatedGpu],
        topology: Topology,
        now: float,
        *,
        pods: SourceSnapshot | None = None,
    ) -> None:
        """Book what passed on every board since its last tick, and keep the books.

        `pods` is what the kubelet told last: of its devices, living processes know better. A fault
        of one board costs the sight of its holders.
        """
        owned = self._parts.people.owned()
        claims = self._claims_of(pods, now)
        found = [(gpu, self._occupancy(gpu.merged, owned, claims)) for gpu in gpus]
        links: dict[str, Mapping[str, str]] = {}
        with self._faults.kept_to("link classes"):
            links = links_by_workload(found, topology)
        accounts = TickAccounts(
            self._parts.roster, self._parts.tenants.rules(), now, links={**self._links, **links}
        )
        seats: list[Seat] = []
        for gpu, occupied in found:
            seats += self._advance(gpu.merged, occupied, owned, accounts)
        self._links = links
        self._before = {gpu.merged.uuid: occupied for gpu, occupied in found}
        self._dropped_claims = sum(each.dropped_claims for _, each in found if each is not None)
        self._note_seats(seats, now)
        if any(occupied is not None for _, occupied in found):
            self._let_go(now)  # else those who live on cannot be told from those who ended
        # Before the state is kept, since refreshing goes on: nothing is shown that is not kept.
        self._host = self._parts.host.view(self._shown())
        if self._parts.checkpoint.kept:
            self._parts.checkpoint.save(self._as_state())

    def view(self) -> AttributionView:
        """The books as they are now; of too many workloads the newest are hidden."""
        shown = self._shown()
        books = self._parts.books
        tenants, workload_accounts = books.accounts(shown, self._memory)
        return AttributionView(
            tenants=tuple(tenants),
            workloads=tuple(ShownWorkload(k.workload, k.tenant) for k in shown.values()),
            workload_accounts=tuple(workload_accounts),
            hidden_workloads=len(self._parts.roster.known()) - len(shown),
            evidence=tuple(books.evidence()),
            dropped_claims=self._dropped_claims,
            shapley=self._shapley,
            host=self._host,
            quotas=self._parts.quotas.view(shown),
        )

    @property
    def host_pids(self) -> bool | None:
        """Whether the host's processes can be looked up; None where that cannot be told."""
        return self._parts.people.host_pids

    @property
    def quotas(self) -> tuple[QuotaRow, ...]:
        """What each workload may use of each board, be it shown or not."""
        return self._parts.quotas.view()

    @property
    def occupancies(self) -> Mapping[str, Occupancy | None]:
        """Who was on each board at the last tick, by UUID; None where that cannot be told."""
        return self._before

    def states(self) -> dict[str, SourceState]:
        """How fare the things that the books are kept by, besides the sources that are polled."""
        parts = self._parts
        states = {}
        if parts.people.host_pids is not None:
            states["host_pids"] = SourceState(up=parts.people.host_pids)
        if parts.tenants.loaded_at is not None:
            states["tenants_file"] = SourceState(up=not parts.tenants.fault)
        if parts.checkpoint.kept:
            states["checkpoint"] = SourceState(up=not parts.checkpoint.fault)
        if self._job_map_up is not None:
            states["slurm_job_map"] = SourceState(up=self._job_map_up)
        return states

    def _note_job_map(self, *, up: bool) -> None:
        if not up and self._job_map_up is not False:
            LOG.warning("event=source_down source=slurm_job_map reason='no such directory'")
        elif up and self._job_map_up is False:
            LOG.warning("event=source_up source=slurm_job_map")
        self._job_map_up = up

    def _shown(self) -> Mapping[str, Known]:
        return dict(islice(self._parts.roster.known().items(), self._workload_limit))

    def _claims_of(self, pods: SourceSnapshot | None, now: float) -> Claims:
        if pods is not None and now - pods.taken_at > KUBELET_PATIENCE_SECONDS:
            pods = None
        jobs, told = self._jobs, pods is not None
        due = (pods.taken_at if pods is not None else None, now // CLAIMS_SECONDS, jobs)
        with self._faults.kept_to("claims"):
            if due != self._claimed:
                find = self._parts.people.pod
                given = [] if pods is None else given_to_pods(pods.containers, find)
                given += given_to_jobs(jobs)
                self._claims = Claims(given, find, pods_told=told, before=self._claims)
                self._claimed = due
        return self._claims

    def _occupancy(
        self, gpu: MergedGpu, owned: Mapping[int, Workload], claims: Claims
    ) -> Occupancy | None:
        has_ended = self._parts.people.has_ended
        with self._faults.kept_to(f"occupancy of {gpu.uuid}"):
            return occupancy(gpu, owned.get, claims.on(gpu), has_ended=has_ended)
        return None

    def _advance(
        self,
        gpu: MergedGpu,
        occupied: Occupancy | None,
        owned: Mapping[int, Workload],
        accounts: TickAccounts,
    ) -> Sequence[Seat]:
        """Book one board's tick, and who sat there; nobody is seen where telling them fails."""
        holders, parts, seats = None, 1, list[Seat]()
        used = self._use.take(gpu.uuid)  # also while nobody can be told: it is of this tick alone
        if occupied is not None:
            with self._faults.kept_to(f"holders of {gpu.uuid}"):
                told = holders_of(
                    gpu,
                    occupied,
                    self._before.get(gpu.uuid),
                    used,
                    owner_of=owned.get,
                    account_of=accounts.account,
                    links_of=accounts.links,
                )
                seats = [*seats_of(gpu, occupied, told[0], accounts.account)]
                holders, parts = told
        with self._faults.kept_to(f"books of {gpu.uuid}"):
            self._book(gpu, holders, parts)
        return seats

    def _book(self, gpu: MergedGpu, holders: tuple[Holder, ...] | None, parts: int) -> None:
        if gpu.uuid in self._unwatched:
            self._unwatched.discard(gpu.uuid)
            holders = None  # who held it while this exporter was down nobody saw
        tick = Tick(
            at_us=round(gpu.listed_at * 1e6),
            holders=holders,
            parts=parts,
            energy=_energy(gpu),
            power_watts=gpu.value("power_watts"),
            power_limit_watts=gpu.value("power_limit_watts"),
            traffic=self._parts.books.traffic.take(gpu),
        )
        self._parts.books.advance(gpu.uuid, gpu.model, tick)

    def _note_seats(self, seats: Sequence[Seat], now: float) -> None:
        pids: defaultdict[str, list[int]] = defaultdict(list)
        memory: Counter[tuple[str, str]] = Counter()
        for seat in seats:
            pids[seat.account] += seat.pids
            memory[seat.gpu.uuid, seat.account] += seat.memory_bytes
        self.seats = seats
        self._memory = memory
        self._pids = {account: tuple(dict.fromkeys(found)) for account, found in pids.items()}
        elapsed = 0.0 if self._ticked_at is None else now - self._ticked_at
        self._ticked_at = now
        self._parts.quotas.note(seats, elapsed)

    def _let_go(self, now: float) -> None:
        gone = self._parts.roster.leave(now)
        for account in gone:
            self._parts.books.leave(account)
        if gone:
            self._parts.host.leave(gone)
            self._parts.quotas.leave(gone)

    def _as_state(self) -> dict[str, Any]:
        return {
            "books": self._parts.books.as_state(),
            "roster": self._parts.roster.as_state(),
            "host": self._parts.host.as_state(),
            "quotas": self._parts.quotas.as_state(),
            "boot_unix": self._parts.people.boot_unix,
        }

    def _restore(self, kept: Mapping[str, Any]) -> None:
        self._unwatched = self._parts.books.restore(kept["books"])
        self._parts.roster.restore(kept["roster"])
        self._parts.host.restore(kept["host"])
        self._parts.quotas.restore(kept["quotas"])


def _energy(gpu: MergedGpu) -> EnergyReading | None:
    read = gpu.readings.get("energy_mj")
    if read is None:
        return None
    return EnergyReading(int(read.value), round(read.taken_at * 1e6), read.source)
