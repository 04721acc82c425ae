"""Simulated machines for the dashboards' fleets, made from those that are shipped."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from seedance_obs.sources.sim import fleet
from seedance_obs.sources.sim.loading import parse_machine
from seedance_obs.sources.sim.machine import Machine

SHIPPED = Path(fleet.__file__).parent / "machines"
TENANTS = {"vision": 2001, "speech": 2002, "risk": 2003, "research": 2004}

Described = dict[str, Any]


@cache
def _shipped(name: str) -> Mapping[str, Any]:
    return yaml.safe_load((SHIPPED / f"{name}.yaml").read_text())


def like(
    base: str,
    name: str,
    work: Sequence[Described],
    *,
    boards: Sequence[Described] | None = None,
    **changes: Any,
) -> Machine:
    """A shipped machine under another name, with other work and perhaps with other boards.

    What a fleet needs once and each pass would pay for is off: DCGM's page, RAPL's files.
    """
    shipped = _shipped(base)
    described = {
        **shipped,
        "name": name,
        "gpus": shipped["gpus"] if boards is None else list(boards),
        "kubernetes": True,
        "dcgm_interval_s": None,
        "rapl_packages": 0,
        "tenants": TENANTS,
        "workloads": list(work),
        "faults": [],
        **changes,
    }
    return parse_machine(described, file=name)


def job(
    name: str,
    tenant: str,
    gpus: Sequence[int],
    phases: Sequence[Sequence[float]] | None,
    **changes: Any,
) -> Described:
    """A pod that trains, if nothing else is said; phases are of seconds and an activity.

    None takes a key away.
    """
    described: Described = {
        "name": name,
        "tenant": tenant,
        "kind": "training",
        "gpus": list(gpus),
        "phases": phases,
        "memory_mib": 24000,
        "intensity": 0.8,
        "pod": {"namespace": tenant, "name": f"{name}-0", "container": "main"},
        **changes,
    }
    return {key: value for key, value in described.items() if value is not None}


def shipped_boards(name: str) -> list[Described]:
    """The boards of a shipped machine."""
    return list(_shipped(name)["gpus"])


def with_siblings(boards: Sequence[Described], of: Iterable[int]) -> list[Described]:
    """These boards, and beside some of them another one below the same PCIe switch."""
    added = [
        {**boards[each], "pci": _later(boards[each]["pci"], 4), "path": [*above, _later(port, 7)]}
        for each in of
        for *above, port in [boards[each]["path"]]
    ]
    return sorted([*boards, *added], key=lambda board: str(board["pci"]))


def _later(pci: str, at: int) -> str:
    """The address four buses on (its colon is at 4), or four devices (at 7)."""
    return f"{pci[: at + 1]}{int(pci[at + 1 : at + 3], 16) + 4:02x}{pci[at + 3 :]}"
