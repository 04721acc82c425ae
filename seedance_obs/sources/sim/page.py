"""The page that dcgm-exporter (tag 4.5.x) would serve on a simulated machine."""

from collections.abc import Iterator
from math import floor

from seedance_obs.errors import UsageError
from seedance_obs.sources.sim.board_answers import padded_bus_id
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.page_fields import FIELDS, PageField
from seedance_obs.sources.sim.physics import Board, Process, boards


def render_page(machine: Machine, t: float, *, hostname: str | None = None) -> str:
    """The page at t, in seconds since the machine's epoch; `hostname` is by default its name.

    DCGM samples on its own clock, so every value is that of the last whole multiple of the
    machine's `dcgm_interval_s`. A lost board, and a field that a board lacks, has no row.

    Raises:
        UsageError: there is no dcgm-exporter on this machine.
    """
    interval = machine.dcgm_interval_s
    if interval is None:
        raise UsageError(f"{machine.name} has no dcgm-exporter: set dcgm_interval_s")
    sampled = floor(t / interval) * interval
    present = [board for board in boards(machine) if sampled < board.lost_at]
    lines: list[str] = []
    for field in FIELDS:
        rows = list(_rows(field, present, sampled, hostname or machine.name))
        if rows:
            lines += [f"# HELP {field.name} {field.help}", f"# TYPE {field.name} {field.kind}"]
            lines += rows
    return "".join(f"{line}\n" for line in lines)


def _rows(field: PageField, present: list[Board], t: float, hostname: str) -> Iterator[str]:
    for board in present:
        instances = range(len(board.gpu.mig)) if board.gpu.mig else (None,)
        for mig in instances:
            value = field.read(board, t, mig)
            if value is not None:
                labels = _labels(board, t, mig, hostname) + _extra_labels(field, int(value))
                yield f"{field.name}{{{labels}}} {_number(value)}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"


def _labels(board: Board, t: float, mig: int | None, hostname: str) -> str:
    machine, gpu = board.machine, board.gpu
    labels = {
        "gpu": str(gpu.index),
        "UUID": machine.gpu_uuid(gpu.index),
        "pci_bus_id": padded_bus_id(gpu.device.pci),
        "device": f"nvidia{gpu.index}",
        "modelName": board.model.product,
    }
    if mig is not None:
        labels["GPU_I_PROFILE"] = gpu.mig[mig].profile
        labels["GPU_I_ID"] = str(gpu.mig[mig].gpu_instance)
    labels["Hostname"] = hostname
    labels["DCGM_FI_DRIVER_VERSION"] = machine.driver_version or ""
    if machine.kubernetes:
        labels |= _pod_labels(board.processes(t, mig=mig))
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def _pod_labels(processes: list[Process]) -> dict[str, str]:
    """The first pod on the device, as dcgm-exporter maps it without virtual GPUs."""
    for process in processes:
        pod = process.workload.pod
        if pod is not None:
            return {"container": pod.container, "namespace": pod.namespace, "pod": pod.pod}
    return {}


def _extra_labels(field: PageField, value: int) -> str:
    if not field.is_xid:
        return ""
    message = "No Error" if value == 0 else "Unknown Error"
    return f',err_code="{value}",err_msg="{message}"'
