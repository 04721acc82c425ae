"""The books of a node: one account per board, and what ended workloads leave to their tenants."""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from typing import Any, TypedDict

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.intensity import Intensities
from seedance_obs.attribution.shapley import ShapleySplit
from seedance_obs.attribution.sharing import ACTIVITY, INTENSITY, RESIDENCY
from seedance_obs.attribution.state import balance_as_state, balance_from, table, text
from seedance_obs.attribution.tick import Balance, Tick
from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.traffic_meter import TrafficMeter
from seedance_obs.exporter.memory import COUNTER_PATIENCE_SECONDS
from seedance_obs.exporter.view import BoardEvidence, TenantAccount, WorkloadAccount


class _Terms(TypedDict):
    gap_us: int
    counter_gap_us: int
    floor_watts: float | None
    weigh: Intensities
    shapley: ShapleySplit | None


class Books:
    """Accounts that only grow, board by board; `floor_watts` is what an idle model draws.

    Attributes:
        traffic: Tells what passed over a board's links since its last tick.
    """

    def __init__(
        self, *, gap_seconds: float, floor_watts: Mapping[str, float], shapley: bool
    ) -> None:
        self.traffic = TrafficMeter()
        self._gap_us = round(gap_seconds * 1e6)
        self._floor_watts = floor_watts
        self._shapley = shapley
        self._boards: dict[str, BoardAccount] = {}
        self._models: dict[str, str] = {}
        self._intensities: dict[str, Intensities] = {}
        self._left: defaultdict[str, dict[str, Balance]] = defaultdict(dict)  # by board: tenant

    def advance(self, uuid: str, model: str | None, tick: Tick) -> None:
        """Book what passed on a board since its last tick."""
        board = self._boards.get(uuid)
        if board is None:
            self._models[uuid] = model or ""
            board = self._boards[uuid] = BoardAccount(**self._terms(uuid, model or ""))
        if board.floor_source in (None, "same_model"):
            board.lend_floor(self._floor_of_model(self._models[uuid]))
        board.advance(tick)

    def _floor_of_model(self, model: str) -> float | None:
        """The mean of what boards of a model draw when idle, where any was measured."""
        measured = [
            board.floor_watts
            for uuid, board in self._boards.items()
            if board.floor_source == "measured" and self._models[uuid] == model
        ]
        known = [watts for watts in measured if watts is not None]
        return sum(known) / len(known) if model and known else None

    def leave(self, account: str) -> None:
        """Take an ended workload's account out; what it burned stays its tenant's."""
        for uuid, board in self._boards.items():
            if board.holds(account):
                left = self._left[uuid].setdefault(tenant_of(account), Balance())
                left.add(board.forget(account))
                self._intensities[uuid].forget(account)

    def accounts(
        self, shown: Container[str], memory_bytes: Mapping[tuple[str, str], int]
    ) -> tuple[list[TenantAccount], list[WorkloadAccount]]:
        """What each tenant and each shown workload has used of each board, in a stable order.

        `memory_bytes` is what workloads hold now, by board and account.
        """
        tenants, workloads = [], []
        for uuid, board in self._boards.items():
            metered = board.energy_source is not None
            intensity_of = self._intensities[uuid].of
            sums = {tenant: left.copy() for tenant, left in self._left[uuid].items()}
            balances = {str(account): balance for account, balance in board.balances().items()}
            for name, balance in sorted(balances.items()):
                sums.setdefault(tenant_of(name), Balance()).add(balance)
                if name in shown:
                    held = memory_bytes.get((uuid, name))
                    workloads.append(
                        WorkloadAccount(uuid, name, balance, metered, intensity_of(name), held)
                    )
            tenants += [
                TenantAccount(uuid, tenant, sums[tenant], metered) for tenant in sorted(sums)
            ]
        return tenants, workloads

    def evidence(self) -> Iterator[BoardEvidence]:
        """What the split of each board rests on."""
        for uuid, board in self._boards.items():
            yield BoardEvidence(
                gpu_uuid=uuid,
                energy_source=board.energy_source,
                floor_watts=board.floor_watts,
                floor_source=board.floor_source,
                base_watts=self._intensities[uuid].base_watts,
                estimators=dict(board.estimators()),
                counter_restarts=board.counter_restarts,
                implausible=board.implausible,
                intensity=self._intensities[uuid].evidence if _was_shared(board) else None,
            )

    def _terms(self, uuid: str, model: str) -> _Terms:
        intensities = self._intensities[uuid] = Intensities()
        return {
            "gap_us": self._gap_us,
            "counter_gap_us": round(COUNTER_PATIENCE_SECONDS * 1e6),
            "floor_watts": self._floor_watts.get(model),
            "weigh": intensities,
            "shapley": ShapleySplit() if self._shapley else None,
        }

    def as_state(self) -> Mapping[str, Any]:
        """What a checkpoint keeps."""
        return {
            "models": self._models,
            "boards": {uuid: board.as_state() for uuid, board in self._boards.items()},
            "left": {
                uuid: {tenant: balance_as_state(balance) for tenant, balance in tenants.items()}
                for uuid, tenants in self._left.items()
            },
            "traffic": self.traffic.as_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> set[str]:
        """Take up what a checkpoint kept; the UUIDs of its boards.

        Raises:
            SeedanceError: the state is of another form.
        """
        boards, models, left = (table(state, name) for name in ("boards", "models", "left"))
        for uuid in boards:
            model = self._models[uuid] = text(models, uuid)
            kept = table(boards, uuid)
            self._boards[uuid] = BoardAccount.from_state(kept, **self._terms(uuid, model))
        for uuid in left:
            kept = table(left, uuid)
            self._left[uuid] = {tenant: balance_from(kept, tenant) for tenant in kept}
        self.traffic.restore(state["traffic"])
        return set(self._boards)


def _was_shared(board: BoardAccount) -> bool:
    booked = board.estimators()
    return any(booked.get(how) for how in (ACTIVITY, INTENSITY, RESIDENCY))
