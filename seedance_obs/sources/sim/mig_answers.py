"""What NVML says of a MIG device; every other call on one is not supported."""

from collections.abc import Callable, Mapping

from seedance_obs.sources.nvml.library import NOT_SUPPORTED, NvmlError, Plain
from seedance_obs.sources.sim.board_answers import Answer, argument, process_list
from seedance_obs.sources.sim.models import MIB
from seedance_obs.sources.sim.physics import Board

MigAnswer = Callable[[Board, int, float], Plain]

# The slices of NVML_GPU_INSTANCE_PROFILE_*; the other numbers are variants of these.
PROFILE_SLICES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 5: 8, 6: 6}
PROFILE_NUMBERS = 18


def _name(board: Board, instance: int, _t: float) -> Plain:
    return f"{board.model.product} MIG {board.gpu.mig[instance].profile}"


def _memory_v1(board: Board, instance: int, t: float) -> Plain:
    total = board.gpu.profile(instance).memory_mib
    used = board.memory_used_mib(t, mig=instance)
    return {"total": total * MIB, "free": (total - used) * MIB, "used": used * MIB}


def _memory_v2(board: Board, instance: int, t: float) -> Plain:
    total = board.gpu.profile(instance).memory_mib
    used = board.memory_used_mib(t, mig=instance)
    return {
        "total": total * MIB,
        "reserved": 0,
        "free": (total - used) * MIB,
        "used": used * MIB,
    }


def _attributes(board: Board, instance: int, _t: float) -> Plain:
    profile = board.gpu.profile(instance)
    return {
        "multiprocessorCount": profile.multiprocessors,
        "sharedCopyEngineCount": profile.copy_engines,
        "sharedDecoderCount": profile.decoders,
        "sharedEncoderCount": 0,
        "sharedJpegCount": profile.decoders,
        "sharedOfaCount": 0,
        "gpuInstanceSliceCount": profile.slices,
        "computeInstanceSliceCount": profile.slices,
        "memorySizeMB": profile.memory_mib,
    }


def _profile_info(board: Board, _t: float, args: tuple[int, ...]) -> Plain:
    number = argument(args, 0, range(PROFILE_NUMBERS))
    if not board.gpu.mig:
        raise NvmlError(NOT_SUPPORTED)
    slices = PROFILE_SLICES.get(number)
    profiles = board.model.mig_profiles.values()
    profile = next((one for one in profiles if one.slices == slices), None)
    if profile is None:
        raise NvmlError(NOT_SUPPORTED)
    return {
        "id": number,
        "sliceCount": profile.slices,
        "instanceCount": board.model.mig_slices // profile.slices,
        "multiprocessorCount": profile.multiprocessors,
        "memorySizeMB": profile.memory_mib,
    }


PROFILE_ANSWERS: Mapping[str, Answer] = {"nvmlDeviceGetGpuInstanceProfileInfo": _profile_info}

MIG_ANSWERS: Mapping[str, MigAnswer] = {
    "nvmlDeviceGetUUID": lambda b, i, _t: b.machine.mig_uuid(b.gpu.index, i),
    "nvmlDeviceGetName": _name,
    "nvmlDeviceGetGpuInstanceId": lambda b, i, _t: b.gpu.mig[i].gpu_instance,
    "nvmlDeviceGetComputeInstanceId": lambda _b, _i, _t: 0,
    "nvmlDeviceGetMemoryInfo": _memory_v1,
    "nvmlDeviceGetMemoryInfo_v2": _memory_v2,
    "nvmlDeviceGetAttributes_v2": _attributes,
    "nvmlDeviceGetComputeRunningProcesses": lambda b, i, t: process_list(b.listed(t, mig=i)),
    "nvmlDeviceGetGraphicsRunningProcesses": lambda _b, _i, _t: [],
}
