"""The host's own energy by workload: RAPL zones split by CPU time, beside the boards' and apart."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from seedance_obs.attribution.host import HostAccount, HostTick
from seedance_obs.attribution.state import table, wholes
from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.roster import Known, own_cgroup
from seedance_obs.exporter.view import HostEnergyView
from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes
from seedance_obs.sources.rapl import Rapl

LOG = logging.getLogger(__name__)


class HostEnergy:
    """Keeps the host's account; on a host without readable RAPL there is nothing to keep."""

    def __init__(
        self, rapl: Rapl, cpu: CpuTimes, *, gap_seconds: float, wall: Callable[[], float]
    ) -> None:
        self._rapl = rapl
        self._cpu = cpu
        self._wall = wall
        self._gap_us = round(gap_seconds * 1e6)
        self._account = HostAccount(gap_us=self._gap_us)
        self._left: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by tenant: kind
        self._gone: set[str] = set()  # since the last reading
        self._read_unix: float | None = None
        self._refused = ""
        self._lock = threading.Lock()

    def advance(
        self, known: Mapping[str, Known], pids: Mapping[str, tuple[int, ...]], now: float
    ) -> None:
        """Book what the host burned since the last reading.

        Whose CPU time counts: accounts that are on a GPU now, which are those in `pids`, and those
        that were a moment ago. Two with one cgroup are a workload before and after the rules
        changed: it is the later one's.
        """
        rapl = self._rapl.read()
        if rapl.refused and rapl.refused != self._refused:
            LOG.warning("event=host_energy_refused reason=%r", rapl.refused)
        self._refused = rapl.refused
        use = self._cpu.read(self._owners(known, pids, now)) if rapl.zones else None
        with self._lock:
            if use is not None and self._gone:
                kept = use.by_account.keys() - self._gone
                use = replace(use, by_account={name: use.by_account[name] for name in kept})
            self._gone.clear()
            self._account.advance(HostTick(round(now * 1e6), rapl.zones, use))

    def _owners(
        self, known: Mapping[str, Known], pids: Mapping[str, tuple[int, ...]], now: float
    ) -> dict[str, CpuOwner]:
        since, self._read_unix = self._read_unix, self._wall()
        taken = {own_cgroup(known[account].workload) for account in pids if account in known} - {""}
        owners = {}
        for account, k in known.items():
            cgroup = own_cgroup(k.workload)
            lately = (now - k.seen_at) * 1e6 <= self._gap_us and cgroup not in taken
            if account in pids or lately:
                began = since is not None and since < k.workload.started_at <= self._read_unix
                owners[account] = CpuOwner(cgroup, pids.get(account, ()), began)
        return owners

    def leave(self, accounts: Iterable[str]) -> None:
        """Take ended workloads' accounts out; what they burned stays their tenants'."""
        with self._lock:
            for account in accounts:
                self._gone.add(account)
                self._left[tenant_of(account)].update(self._account.forget(account))

    def view(self, shown: Container[str]) -> HostEnergyView:
        """Microjoules by kind, of tenants (with what nobody's work was) and of shown workloads."""
        with self._lock:
            return self._view(shown)

    def _view(self, shown: Container[str]) -> HostEnergyView:
        tenants: Counter[tuple[str, str]] = Counter()
        workloads: Counter[tuple[str, str]] = Counter()
        for tenant, left in self._left.items():
            tenants.update({(kind, tenant): microjoules for kind, microjoules in left.items()})
        for kind, balances in self._account.balances().items():
            for account, microjoules in balances.items():
                tenants[kind, tenant_of(account)] += microjoules
                if account in shown:
                    workloads[kind, account] += microjoules
        return HostEnergyView(dict(tenants), dict(workloads))

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        with self._lock:
            left = {tenant: dict(counter) for tenant, counter in self._left.items()}
            return {"account": self._account.as_state(), "left": left}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what a checkpoint kept; what burned since then is unobserved.

        Raises:
            SeedanceError: the state is of another form.
        """
        self._account = HostAccount.from_state(table(state, "account"), gap_us=self._gap_us)
        self._account.lose_sight()
        left = table(state, "left")
        for tenant in left:
            self._left[tenant] = Counter(wholes(left, tenant))
