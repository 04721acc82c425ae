"""The virtual GPUs on a board whose host lends it to VMs."""

from collections.abc import Iterator, Mapping

from seedance_obs.sources.nvml.asking import number, optional
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.calls import Calls
from seedance_obs.sources.nvml.samples import SampleReader, Shares
from seedance_obs.sources.readings import VgpuInstance

HIGHEST_INSTANCE = 2**32 - 2


def vgpu_samples() -> SampleReader:
    """A reader of what the vGPUs of boards use."""
    return SampleReader("nvmlDeviceGetVgpuUtilization", "vgpuInstance", HIGHEST_INSTANCE)


def read_vgpus(
    calls: Calls, board: Board, samples: SampleReader, at: float
) -> tuple[VgpuInstance, ...] | None:
    """The vGPUs in the order of their UUIDs; None on a board that hosts none, or cannot tell.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    if not board.hosts_vgpus:
        return None
    numbers = calls.ask(board, "nvmlDeviceGetActiveVgpus")
    if not isinstance(numbers, list):
        return None
    shares = samples.read(calls, board, at)
    instances = [number for number in numbers if isinstance(number, int)]
    found = _vgpus(calls, instances, shares)
    return tuple(sorted(found, key=lambda vgpu: vgpu.vgpu_uuid))


def _vgpus(
    calls: Calls, instances: list[int], shares: Mapping[int, Shares] | None
) -> Iterator[VgpuInstance]:
    for instance in instances:
        uuid = optional(calls.library, "nvmlVgpuInstanceGetUUID", None, instance)
        if not isinstance(uuid, str) or not uuid:
            continue  # its VM has gone since the list was made
        vm = optional(calls.library, "nvmlVgpuInstanceGetVmID", None, instance)
        yield VgpuInstance(
            vgpu_uuid=uuid.lower(),
            vm_id=vm if isinstance(vm, str) and vm else None,
            memory_bytes=number(calls.library, "nvmlVgpuInstanceGetFbUsage", None, instance),
            sm_ratio=None if shares is None else shares.get(instance, (0.0,))[0],
        )
