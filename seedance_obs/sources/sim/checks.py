"""What a description must satisfy as a whole: references, order, links, room on each device."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from seedance_obs.sources.sim.description import Section
from seedance_obs.sources.sim.links import links_of
from seedance_obs.sources.sim.machine import HOLDER, ZOMBIE, Held, Machine, Workload


def check_machine(machine: Machine, top: Section) -> None:
    """Refuse a machine that cannot exist.

    Raises:
        UsageError: names what does not fit.
    """
    _check_order(machine, top)
    _check_references(machine, top)
    _check_links(machine, top)
    for workload in machine.workloads:
        for held in workload.devices:
            _check_room(machine, top, workload, held)


def _check_order(machine: Machine, top: Section) -> None:
    addresses = [_sort_key(gpu.device.pci) for gpu in machine.gpus]
    if any(first >= second for first, second in pairwise(addresses)):
        top.reject("gpus", "GPUs in the order of their PCI addresses are wanted, each once")
    if machine.gpus and machine.driver_version is None:
        top.reject("driver_version", "a driver is wanted on a machine with GPUs")


def _sort_key(pci: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in pci.replace(".", ":").split(":"))


def _check_references(machine: Machine, top: Section) -> None:
    for device in machine.pci_devices():
        if device.numa is not None and device.numa >= len(machine.numa_cpus):
            top.reject("numa_cpus", f"{device.pci} is on NUMA node {device.numa}, not listed here")
    if machine.numa_memory_nodes and len(machine.numa_memory_nodes) != len(machine.gpus):
        top.reject("numa_memory_nodes", f"{len(machine.gpus)} nodes, one a GPU, are wanted")
    for fault in machine.faults:
        if fault.gpu is not None and fault.gpu >= len(machine.gpus):
            top.reject("faults", f"there is no GPU {fault.gpu}")
        if fault.nvswitch is not None and fault.nvswitch >= len(machine.nvswitches):
            top.reject("faults", f"there is no NVSwitch {fault.nvswitch}")
    for switch in machine.nvswitches:
        if any(gpu >= len(machine.gpus) for gpu in switch.gpus):
            top.reject("nvswitches", f"{switch.device.pci} is wired to a GPU that is not there")
    names = Counter(workload.name for workload in machine.workloads)
    for workload in machine.workloads:
        _check_workload(machine, top, workload)
        if names[workload.name] > 1:
            top.reject("workloads", f"{workload.name} is there twice")


def _check_workload(machine: Machine, top: Section, workload: Workload) -> None:
    if workload.tenant not in machine.tenants:
        top.reject("workloads", f"{workload.name}: {workload.tenant} is not under tenants")
    if workload.guise == HOLDER and not (workload.pod and machine.kubernetes):
        top.reject("workloads", f"{workload.name}: a {HOLDER} wants a pod, and kubernetes: true")
    for held in workload.devices:
        if held.gpu >= len(machine.gpus):
            top.reject("workloads", f"{workload.name}: there is no GPU {held.gpu}")
        mig = machine.gpus[held.gpu].mig
        if (held.mig is None) == bool(mig) or (held.mig is not None and held.mig >= len(mig)):
            found = "the whole board" if held.mig is None else f"MIG instance {held.mig}"
            top.reject(
                "workloads",
                f"{workload.name}: GPU {held.gpu} has {len(mig)} MIG instances, found {found}",
            )


def _check_links(machine: Machine, top: Section) -> None:
    for bundle in machine.nvlinks:
        if max(bundle.gpus) >= len(machine.gpus):
            top.reject("nvlinks", f"there is no GPU {max(bundle.gpus)}")
    for gpu in machine.gpus:
        wired = len(links_of(machine, gpu.index))
        if wired > gpu.model.nvlinks:
            top.reject(
                "nvlinks", f"GPU {gpu.index} has {gpu.model.nvlinks} links, {wired} are wired"
            )
        if max(gpu.inactive_links, default=-1) >= wired:
            top.reject("gpus", f"GPU {gpu.index} has {wired} wired links that can be inactive")


def _check_room(machine: Machine, top: Section, workload: Workload, held: Held) -> None:
    """Shares and memory must fit at once; a pair whose overlap is unclear counts as overlapping."""
    there = [other for other in machine.workloads if held in other.devices]
    together = [other for other in there if other is workload or _may_overlap(workload, other)]
    if sum(other.share for other in together) > 1.0 + 1e-9:
        names = " and ".join(other.name for other in together)
        top.reject("workloads", f"shares on GPU {held.gpu} exceed 1 when {names} run together")
    gpu = machine.gpus[held.gpu]
    room = gpu.model.memory_mib - gpu.model.reserved_mib
    if held.mig is not None:
        room = gpu.profile(held.mig).memory_mib
    mine = _in_memory(workload)
    together = [
        other for other in there if other is workload or _may_overlap(mine, _in_memory(other))
    ]
    if sum(other.memory_mib for other in together) > room:
        names = " and ".join(other.name for other in together)
        top.reject("workloads", f"memory of {names} exceeds {room} MiB on GPU {held.gpu}")


def _in_memory(workload: Workload) -> Workload:
    """A workload as long as it holds GPU memory, which a zombie does for good."""
    return replace(workload, duration_s=None) if workload.guise == ZOMBIE else workload


def _may_overlap(one: Workload, other: Workload) -> bool:
    if one.repeat_every_s != other.repeat_every_s:
        return True
    first, second = sorted((one, other), key=lambda workload: workload.start_s)
    if first.duration_s is None:
        return True
    apart = second.start_s - first.start_s
    if first.repeat_every_s is None:
        return apart < first.duration_s
    apart %= first.repeat_every_s
    wraps = apart + (second.duration_s or 0.0) > first.repeat_every_s
    return apart < first.duration_s or wraps
