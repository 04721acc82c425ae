"""A million workloads that come and go on one node: what an account costs, and what it keeps.

Eight boards of seven MIG instances are each held by fifty accounts, four hundred on the node, and
every holder leaves after a few ticks for another. Resident memory should end where it stood once
the first accounts were forgotten.

Run by hand from the root of the repository: `python -m tests.bench.attribution_soak [BIRTHS]`.
"""

import os
import random
import sys
from collections import deque
from pathlib import Path
from time import process_time

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.host import HostAccount, HostTick
from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from seedance_obs.sources.cpu_times import CpuUse
from seedance_obs.sources.rapl import RaplZone

BOARDS, PARTS, HOLDERS = 8, 7, 50
LIFE_TICKS = 8  # of a holder, in the mean
VISIBLE_TICKS = 20  # of an account after its holder has left
SECOND_US = 1_000_000
GAP_US = 30 * SECOND_US
REPORTS = 10


def resident_mib() -> float:
    """What this process keeps in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Board:
    """One board, its account, and the holders that come and go on it."""

    def __init__(self, name: str) -> None:
        self.account = BoardAccount(gap_us=GAP_US)
        self.births = 0
        self.burned_mj = 0
        self.forgotten_mj = 0
        self._name = name
        self._chance = random.Random(name)
        self._ended: deque[tuple[int, str]] = deque()
        self._living = [self._born() for _ in range(HOLDERS)]

    def tick(self, number: int) -> Tick:
        """The board a second later: some holders have left, as many have come."""
        chance, holders = self._chance, []
        for place, account in enumerate(self._living):
            activity = chance.random() / HOLDERS
            leaves = chance.random() < 1 / LIFE_TICKS
            # Instances are shared: the first on each holds it.
            parts = 1 if place < PARTS and not leaves else 0
            holders.append(Holder(account, parts, activity, 2**28))
            if leaves:
                self._ended.append((number, account))
                self._living[place] = self._born()
        self.burned_mj += chance.randrange(60_000, 700_000)
        at_us = number * SECOND_US
        energy = EnergyReading(self.burned_mj, at_us, "nvml")
        return Tick(at_us, tuple(holders), PARTS, energy, power_limit_watts=700.0)

    def forget(self, number: int) -> list[str]:
        """Let go of the accounts that ended long ago."""
        gone = []
        while self._ended and self._ended[0][0] <= number - VISIBLE_TICKS:
            _, account = self._ended.popleft()
            balance = self.account.forget(account)
            self.forgotten_mj += balance.active_mj + balance.reserved_mj
            gone.append(account)
        return gone

    def residual_mj(self, first_mj: int) -> int:
        """What the counter advanced, less all that was booked: 0."""
        balances = self.account.balances().values()
        kept = sum(balance.active_mj + balance.reserved_mj for balance in balances)
        return self.burned_mj - first_mj - kept - self.forgotten_mj

    @property
    def living(self) -> list[str]:
        """The accounts that hold it now."""
        return self._living

    def _born(self) -> str:
        self.births += 1
        return f"pod-{self._name}-{self.births:012d}-1732961000"


def host_tick(number: int, accounts: list[str]) -> HostTick:
    """Two packages of 300 W on 128 CPUs, a quarter of them busy for the holders."""
    energy = number * 300 * SECOND_US
    zones = tuple(RaplZone("package", f"package-{n}", energy, None) for n in range(2))
    share_us = 32 * SECOND_US // len(accounts)
    use = CpuUse(40 * SECOND_US, 128 * SECOND_US, dict.fromkeys(accounts, share_us))
    return HostTick(number * SECOND_US, zones, use)


def main(births: int) -> None:
    """Print memory and CPU at intervals, and what is missing in the sums."""
    boards = [Board(f"{number:08x}") for number in range(BOARDS)]
    host = HostAccount(gap_us=GAP_US)
    first: list[int] = []
    number, spent, since, reported = 0, 0.0, 0, 0
    while sum(board.births for board in boards) < births:
        accounts = [account for board in boards for account in board.living]
        ticks = [board.tick(number) for board in boards]
        whole_host = host_tick(number, accounts)
        first = first or [board.burned_mj for board in boards]
        begin = process_time()
        for board, tick in zip(boards, ticks, strict=True):
            board.account.advance(tick)
        host.advance(whole_host)
        for board in boards:
            for account in board.forget(number):
                host.forget(account)
        spent += process_time() - begin
        number += 1
        done = sum(board.births for board in boards)
        if done * REPORTS // births > reported:
            reported = done * REPORTS // births
            milliseconds = spent / (number - since) * 1e3
            line = f"{done:>9,} births, {number:>7,} ticks: {resident_mib():6.1f} MiB"
            sys.stdout.write(f"{line}, {milliseconds:.2f} ms a tick\n")
            spent, since = 0.0, number
    residuals = [board.residual_mj(mj) for board, mj in zip(boards, first, strict=True)]
    sys.stdout.write(f"energy not booked: {residuals} mJ\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
