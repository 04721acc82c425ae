"""Finds machine descriptions by name or path, and opens one as an NVML library."""

import time
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path

from seedance_obs.errors import UsageError
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.loading import read_machine
from seedance_obs.sources.sim.machine import Machine

DEMO_FLEET = ("h100-nvswitch", "a100-pcie", "v100-cubemesh")


def _folder() -> Path:
    return Path(str(files("seedance_obs.sources.sim"))) / "machines"


def machine_names() -> tuple[str, ...]:
    """The machines that come with this package, in alphabetical order."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def load_machine(name_or_path: str | Path) -> Machine:
    """A machine by the name it is shipped under, or from a YAML file.

    Raises:
        UsageError: there is no such machine or file, or it describes no possible machine.
    """
    if name_or_path in machine_names():
        return _shipped(str(name_or_path))
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        known = ", ".join(machine_names())
        raise UsageError(f"no simulated machine {name_or_path}: known are {known}, or a YAML file")
    return read_machine(path)


@cache
def _shipped(name: str) -> Machine:
    return read_machine(_folder() / f"{name}.yaml")


def open_sim(spec: str) -> SimNvml:
    """The NVML library of a simulated machine whose epoch is a Unix time.

    `spec` is `NAME_OR_PATH@EPOCH_UNIX_SECONDS`, so that processes which share nothing agree;
    without an epoch the machine's time begins now.

    Raises:
        UsageError: the spec or the machine cannot be used.
    """
    name, at, epoch_text = spec.partition("@")
    try:
        epoch = float(epoch_text) if at else time.time()
    except ValueError:
        epoch = float("nan")
    if not name or not isfinite(epoch):
        raise UsageError(
            "a simulation is written NAME_OR_PATH or NAME_OR_PATH@UNIX_SECONDS, found " + repr(spec)
        )
    return SimNvml(load_machine(name), lambda: time.time() - epoch)
