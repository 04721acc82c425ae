"""The host's own energy by workload: RAPL zones split by CPU time, beside the boards' and apart."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import Any

from seedance_obs.attribution.host import HostAccount, HostTick
from seedance_obs.attribution.state import table, wholes
from seedance_obs.exporter.account_names import tenant_of
from seedance_obs.exporter.roster import Known
from seedance_obs.exporter.view import HostEnergyView
from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes
from seedance_obs.sources.rapl import Rapl

LOG = logging.getLogger(__name__)
_SHARED_CGROUPS = ("process", "vgpu")  # kinds whose cgroup holds others too


class HostEnergy:
    """Keeps the host's account; on a host without readable RAPL there is nothing to keep."""

    def __init__(self, rapl: Rapl, cpu: CpuTimes, *, gap_seconds: float) -> None:
        self._rapl = rapl
        self._cpu = cpu
        self._gap_us = round(gap_seconds * 1e6)
        self._account = HostAccount(gap_us=self._gap_us)
        self._left: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by tenant: kind
        self._first = True
        self._refused = ""
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def advance(
        self, known: Mapping[str, Known], pids: Mapping[str, tuple[int, ...]], now: float
    ) -> None:
        """Book what the host burned since the last reading."""
        first, self._first = self._first, False
        rapl = self._rapl.read()
        if rapl.refused and rapl.refused != self._refused:
            LOG.warning("event=host_energy_refused reason=%r", rapl.refused)
        self._refused = rapl.refused
        if not rapl.zones:
            return
        owners = {
            account: CpuOwner(
                cgroup="" if k.workload.kind in _SHARED_CGROUPS else k.workload.cgroup,
                pids=pids.get(account, ()),
                began=not first and account not in self._seen,
            )
            for account, k in known.items()
        }
        # One that left while the reading before was on its way was booked once more by it.
        gone, self._seen = self._seen - owners.keys(), set(owners)
        tick = HostTick(round(now * 1e6), rapl.zones, self._cpu.read(owners))
        with self._lock:
            self._forget(gone)
            self._account.advance(tick)

    def leave(self, accounts: Iterable[str]) -> None:
        """Take ended workloads' accounts out; what they burned stays their tenants'."""
        with self._lock:
            self._forget(accounts)

    def _forget(self, accounts: Iterable[str]) -> None:
        for account in accounts:
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
        """Take up what a checkpoint kept."""
        self._account = HostAccount.from_state(table(state, "account"), gap_us=self._gap_us)
        left = table(state, "left")
        for tenant in left:
            self._left[tenant] = Counter(wholes(left, tenant))
