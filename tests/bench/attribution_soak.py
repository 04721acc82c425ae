"""A million pods that come and go on one node: what a tick costs then, and what is kept of them.

Eight boards, four of them in seven MIG instances; four hundred pods at a time run a process each,
and all leave after a few seconds for others. Resident memory should end where it stood once the
first of them were let go. The clock is the bench's own; whose a process is, the CPU times and the
host's counters come from memory. Everything else is what an exporter runs.

Run by hand from the root of the repository: `python -m tests.bench.attribution_soak [BIRTHS]`.
"""

import gc
import os
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import process_time

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.attribution import Attribution, Parts
from seedance_obs.exporter.books.board_books import Books
from seedance_obs.exporter.books.checkpoint import Checkpoint
from seedance_obs.exporter.books.host_energy import HostEnergy
from seedance_obs.exporter.books.people import People
from seedance_obs.exporter.books.quota_watch import QuotaWatch
from seedance_obs.exporter.books.roster import Roster
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.merge import merge
from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes, CpuUse
from seedance_obs.sources.podresources.devices import HeldDevice
from seedance_obs.sources.podresources.pods import PodContainer
from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.quota_reader import QuotaReader
from seedance_obs.sources.rapl import Rapl, RaplReading, RaplZone
from seedance_obs.sources.readings import (
    GpuProcess,
    GpuReadings,
    MigReadings,
    ProcessUse,
    SourceSnapshot,
)
from seedance_obs.tenant_file import TenantFile
from seedance_obs.topology.model import Device, Topology
from seedance_obs.workload import Workload

BOARDS, WHOLE, INSTANCES, LIVING = 8, 4, 7, 400
LIFE_SECONDS = 2  # of a pod, in the mean
ENDED_SECONDS = 3.0
GAP_SECONDS = 30.0
REFRESH_SECONDS = 5
REPORTS = 10
MEMORY_BYTES = 2**28
NOWHERE = "/nonexistent"
TOPOLOGY = Topology()
TENANTS = ("chat", "search", "vision", "risk")


def resident_mib() -> float:
    """What this process keeps in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Owners(ProcessOwners):
    """Whose processes and pods are, from memory."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self.by_pid: dict[int, Workload] = {}
        self.by_name: dict[str, Workload] = {}

    def owner(self, pid: int) -> Workload | None:
        """The pod of a process that lives."""
        return self.by_pid.get(pid)

    def pod(self, _namespace: str, pod: str, _container: str = "") -> Workload | None:
        """A pod that lives."""
        return self.by_name.get(pod)

    def pod_alive(self, uid: str) -> bool | None:
        """Whether it lives."""
        return uid in self.by_name


class Zones(Rapl):
    """A package of 300 W."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self._microjoules = 0

    def read(self) -> RaplReading:
        """Its counter at the next reading."""
        self._microjoules += REFRESH_SECONDS * 300_000_000
        return RaplReading((RaplZone("package", "package-0", self._microjoules, None),))


class Cpus(CpuTimes):
    """128 CPUs, of which 40 are busy and 32 of these for workloads."""

    def read(self, owners: Mapping[str, CpuOwner]) -> CpuUse | None:
        """The time of all since the reading before."""
        second_us = REFRESH_SECONDS * 1_000_000
        share_us = 32 * second_us // max(1, len(owners))
        return CpuUse(40 * second_us, 128 * second_us, dict.fromkeys(owners, share_us))


class Crowd:
    """The pods of the node second by second, and what its driver and its kubelet say of them."""

    def __init__(self, owners: Owners) -> None:
        self.births = 0
        self.second = 0
        self.burned_mj = [0] * BOARDS
        self._owners = owners
        self._chance = random.Random(4)
        self._ended: list[int] = []
        self._living = [self._born(place) for place in range(LIVING)]

    def step(self) -> None:
        """Go on by a second: some leave, as many come in their places."""
        self.second += 1
        self._ended = []
        for place, pid in enumerate(self._living):
            if self._chance.random() < 1 / LIFE_SECONDS:
                workload = self._owners.by_pid.pop(pid)
                del self._owners.by_name[workload.pod]
                self._ended.append(pid)
                self._living[place] = self._born(place)
        for board in range(BOARDS):
            self.burned_mj[board] += self._chance.randrange(60_000, 700_000)

    def driver(self) -> SourceSnapshot:
        """What the driver says now."""
        gpus = tuple(map(self._board, range(BOARDS)))
        return SourceSnapshot("nvml", float(self.second), gpus=gpus)

    def kubelet(self) -> SourceSnapshot:
        """What the kubelet says now."""
        containers = tuple(
            PodContainer(pod.namespace, pod.pod, pod.container, (_device(place),))
            for place, pid in enumerate(self._living)
            for pod in (self._owners.by_pid[pid],)
        )
        return SourceSnapshot("podresources", float(self.second), containers=containers)

    def _born(self, place: int) -> int:
        self.births += 1
        pid, name = self.births, f"{self.births:08x}-0000-4000-8000-000000000000"
        tenant = TENANTS[place // BOARDS % len(TENANTS)]
        workload = Workload("pod", name, 1_700_000_000 + self.second, tenant, name, "main")
        self._owners.by_pid[pid] = self._owners.by_name[name] = workload
        return pid

    def _board(self, board: int) -> GpuReadings:
        pids = list(enumerate(self._living))[board::BOARDS]
        cut = board >= WHOLE
        use = [pid for _, pid in pids] + [pid for pid in self._ended if pid % BOARDS == board]
        return GpuReadings(
            uuid=f"GPU-{board}",
            index=board,
            pci_bus_id=f"0000:{board:02x}:00.0",
            values={"energy_mj": self.burned_mj[board], "pcie_transmit_bytes": self.second * 10**9},
            mig=tuple(map(self._instance, [board] * INSTANCES, range(INSTANCES))) if cut else (),
            mig_slices=INSTANCES if cut else None,
            processes=tuple(
                GpuProcess(pid, MEMORY_BYTES, place // BOARDS % INSTANCES if cut else None)
                for place, pid in pids
            ),
            process_use=None if cut else tuple(map(self._use, use)),
        )

    def _instance(self, board: int, number: int) -> MigReadings:
        busy = {"engine_active_ratio": self._chance.random()}
        return MigReadings(number, 0, f"MIG-{board}-{number}", "1g.10gb", busy, slices=1)

    def _use(self, pid: int) -> ProcessUse:
        return ProcessUse(pid, self._chance.random() * BOARDS / LIVING)


def _device(place: int) -> HeldDevice:
    board, number = place % BOARDS, place // BOARDS
    if board < WHOLE:
        return HeldDevice(gpu_uuid=f"GPU-{board}", replica=number)
    return HeldDevice(mig_uuid=f"MIG-{board}-{number % INSTANCES}", replica=number)


def opened(crowd: Crowd, owners: Owners) -> Attribution:
    """The attribution of an exporter, less what reads files."""

    def clock() -> float:
        return float(crowd.second)

    parts = Parts(
        books=Books(gap_seconds=GAP_SECONDS, floor_watts={}, shapley=False),
        roster=Roster(ended_seconds=ENDED_SECONDS),
        people=People(owners),
        tenants=TenantFile(None, clock=clock),
        host=HostEnergy(Zones(), Cpus(NOWHERE), gap_seconds=GAP_SECONDS),
        quotas=QuotaWatch(QuotaReader(NOWHERE, clock=clock), NOWHERE),
        checkpoint=Checkpoint(None, boot_id=""),
    )
    return Attribution(parts, workload_limit=1000, shapley=False)


class Tick:
    """Lets an attribution see the crowd."""

    def __init__(self, crowd: Crowd, attribution: Attribution) -> None:
        self._crowd = crowd
        self._attribution = attribution
        self._orders = NodeSettings().source_orders()
        self._kubelet = crowd.kubelet()

    def __call__(self) -> float:
        """See it once; the CPU seconds that this took."""
        crowd, attribution = self._crowd, self._attribution
        read, now = crowd.driver(), float(crowd.second)
        if crowd.second % REFRESH_SECONDS == 0:
            self._kubelet = crowd.kubelet()
        gpus = tuple(self._located(read))
        begin = process_time()
        attribution.observe(read)
        if crowd.second % REFRESH_SECONDS == 0:
            attribution.refresh(now)
        attribution.advance(gpus, TOPOLOGY, now, pods=self._kubelet)
        attribution.view()
        return process_time() - begin

    def _located(self, read: SourceSnapshot) -> Iterator[LocatedGpu]:
        for gpu in merge([read], self._orders):
            yield LocatedGpu(gpu, Device(gpu.uuid, "gpu"), ())


def unbooked_mj(attribution: Attribution, crowd: Crowd, first_mj: Iterable[int]) -> int:
    """What the counters advanced, less all that was booked: 0."""
    balances = [account.balance for account in attribution.view().tenants]
    booked = sum(balance.active_mj + balance.reserved_mj for balance in balances)
    return sum(crowd.burned_mj) - sum(first_mj) - booked


def main(births: int) -> None:
    """Print memory and CPU at intervals, and what is missing in the sums."""
    owners = Owners()
    crowd = Crowd(owners)
    attribution = opened(crowd, owners)
    tick, first_mj = Tick(crowd, attribution), list(crowd.burned_mj)
    tick()
    for report in range(1, REPORTS + 1):
        spent, since = 0.0, crowd.second
        while crowd.births < births * report // REPORTS:
            crowd.step()
            spent += tick()
        gc.collect()
        view = attribution.view()
        known = len(view.workloads) + view.hidden_workloads
        line = f"{crowd.births:>9,} births, {crowd.second:>6,} ticks: {resident_mib():6.1f} MiB"
        cost = spent / (crowd.second - since) * 1e3
        sys.stdout.write(f"{line}, {known:,} workloads known, {cost:.1f} ms a tick\n")
        sys.stdout.flush()
    sys.stdout.write(f"energy not booked: {unbooked_mj(attribution, crowd, first_mj)} mJ\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
