"""Whose bytes passed the network adapters of a simulated machine, found by adding up small steps.

As in `truth`, nothing here uses the closed forms.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from seedance_obs.sources.sim.adapters import nearest_adapter
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import activity_at, boards
from seedance_obs.sources.sim.truth import STEP_S, steps


class NetworkUse(NamedTuple):
    """A tenant's use of an adapter, by its PCI address."""

    adapter: str
    tenant: str


def network_truth(
    machine: Machine, t0: float, t1: float, *, step_s: float = STEP_S
) -> Mapping[NetworkUse, float]:
    """Bytes from t0 to t1 each way, in seconds since the machine's epoch; unused is absent.

    The error is at most one step at each change of activity.
    """
    moved: defaultdict[NetworkUse, float] = defaultdict(float)
    for board in boards(machine):
        nic = nearest_adapter(machine, board.gpu)
        users = [held for held in board.holdings if held.kind.network]
        if nic is None or not users:
            continue
        for middle, width in steps(board, t0, t1, step_s):
            for held in users:
                active = activity_at(held.workload, held.rank, middle) or 0.0
                use = NetworkUse(nic.device.pci, held.workload.tenant)
                moved[use] += held.kind.network * held.weight * active * width
    return {use: amount for use, amount in moved.items() if amount}
