"""A host with one H100, to which a test adds the workloads and faults it is about."""

import copy
from typing import Any

from seedance_obs.sources.sim.loading import parse_machine
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import Board, boards

ONE_GPU: dict[str, Any] = {
    "name": "one",
    "driver_version": "580.105.08",
    "memory_gib": 64,
    "numa_cpus": ["0-7"],
    "tenants": {"vision": 2001, "risk": 2003},
    "gpus": [
        {
            "model": "h100-sxm5-80gb",
            "pci": "0000:18:00.0",
            "numa": 0,
            "path": ["pci0000:15", "0000:15:01.0"],
        }
    ],
}
WORKLOAD: dict[str, Any] = {
    "name": "job",
    "tenant": "vision",
    "kind": "training",
    "gpus": [0],
    "phases": [[1, 0.5]],
    "memory_mib": 1000,
}


def machine_with(*workloads: dict[str, Any], **changes: Any) -> Machine:
    value = (
        copy.deepcopy(ONE_GPU) | {"workloads": [WORKLOAD | each for each in workloads]} | changes
    )
    return parse_machine(value, file="test")


def board_with(*workloads: dict[str, Any], **changes: Any) -> Board:
    return boards(machine_with(*workloads, **changes))[0]
