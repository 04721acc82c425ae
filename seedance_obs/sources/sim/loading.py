"""Turns a YAML description into a `Machine`, or says what is wrong with it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import yaml

from seedance_obs.errors import UsageError
from seedance_obs.sources.recovery import ACTIONS
from seedance_obs.sources.sim.adapters import read_adapter
from seedance_obs.sources.sim.checks import check_machine
from seedance_obs.sources.sim.description import Section
from seedance_obs.sources.sim.hardware import (
    read_direct_links,
    read_fabric,
    read_gpus,
    read_hidden_switches,
    read_named,
    read_nvswitch,
    read_p2p,
)
from seedance_obs.sources.sim.machine import Fault, Machine
from seedance_obs.sources.sim.occupants import read_workload

Part = TypeVar("Part")


def read_machine(file: Path) -> Machine:
    """The machine that a YAML file describes.

    Raises:
        UsageError: the file cannot be read, is not YAML, or describes no possible machine; the
            message names the file, the key and what was wanted there.
    """
    return parse_machine(_read_yaml(file), file=str(file), folder=file.parent)


def parse_machine(value: object, *, file: str, folder: Path | None = None) -> Machine:
    """The machine that a parsed description describes; `file` is for messages.

    `based_on: NAME` takes every key that is missing here from `NAME.yaml` in `folder`.

    Raises:
        UsageError: see `read_machine`.
    """
    if isinstance(value, Mapping) and "based_on" in value:
        value = _with_base(value, file, folder)
    top = Section(value, file=file)
    machine = _machine(top)
    top.close()
    check_machine(machine, top)
    return machine


def _read_yaml(file: Path) -> object:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: is not YAML: {error}") from error


def _with_base(value: Mapping[object, object], file: str, folder: Path | None) -> object:
    base = value["based_on"]
    source = folder / f"{base}.yaml" if folder and isinstance(base, str) else None
    if source is None or not source.is_file():
        raise UsageError(f"{file}: based_on: the name of a description beside it is wanted")
    inherited = _read_yaml(source)
    if not isinstance(inherited, Mapping) or "based_on" in inherited:
        raise UsageError(f"{file}: based_on: {base} is not a description that stands alone")
    return {key: item for key, item in {**inherited, **value}.items() if key != "based_on"}


def _each(top: Section, key: str, read: Callable[[int, Section], Part]) -> tuple[Part, ...]:
    parts = []
    for index, section in enumerate(top.sections(key)):
        parts.append(read(index, section))
        section.close()
    return tuple(parts)


def _machine(top: Section) -> Machine:
    return Machine(
        name=top.text("name"),
        driver_version=top.optional_text("driver_version"),
        cuda_version=top.integer("cuda_version", 0),
        uptime_s=top.number("uptime_s", 86_400.0, low=60.0),
        memory_gib=top.integer("memory_gib", low=1),
        numa_cpus=top.texts("numa_cpus"),
        dcgm_interval_s=top.optional_number("dcgm_interval_s", low=0.1),
        kubernetes=top.flag("kubernetes"),
        rapl_packages=top.integer("rapl_packages", 0),
        tenants=_tenants(top),
        gpus=read_gpus(top),
        nvswitches=_each(top, "nvswitches", read_nvswitch),
        nics=_each(top, "nics", read_adapter),
        nvme=_each(top, "nvme", read_named),
        nvlinks=_each(top, "nvlinks", read_direct_links),
        hidden_switches=read_hidden_switches(top),
        fabric=read_fabric(top),
        p2p=read_p2p(top),
        numa_memory_nodes=top.integers("numa_memory_nodes"),
        workloads=_each(top, "workloads", read_workload),
        faults=_each(top, "faults", _fault),
    )


def _tenants(top: Section) -> dict[str, int]:
    section = top.section("tenants")
    if section is None:
        return {}
    return {name: section.integer(name, low=1) for name in section.names()}


def _fault(_index: int, section: Section) -> Fault:
    gpu = section.optional_integer("gpu")
    fault = Fault(
        at_s=section.number("at_s"),
        gpu=gpu,
        nvswitch=section.optional_integer("nvswitch"),
        until_s=section.optional_number("until_s"),
        xid=section.optional_integer("xid"),
        lost=section.flag("lost"),
        hang_s=section.optional_number("hang_s"),
        ecc_uncorrected=section.integer("ecc_uncorrected", 0),
        ecc_corrected=section.integer("ecc_corrected", 0),
        pcie_replays=section.integer("pcie_replays", 0),
        recovery_action=section.optional_text("recovery_action"),
    )
    if fault.recovery_action not in (None, *ACTIONS):
        section.reject("recovery_action", f"one of {', '.join(ACTIONS)} is wanted")
    if fault.nvswitch is not None:
        if fault != Fault(at_s=fault.at_s, nvswitch=fault.nvswitch, until_s=fault.until_s):
            section.reject("nvswitch", "an NVSwitch is down from at_s to until_s, and no more")
    elif fault.until_s is not None:
        section.reject("until_s", "only an NVSwitch comes back")
    elif gpu is None and fault != Fault(at_s=fault.at_s, hang_s=fault.hang_s or 0.0):
        section.reject("gpu", "a GPU is wanted for every fault but hang_s and nvswitch")
    return fault
