"""The MIG devices of a board: which there are, how large, and how much of the board each is."""

import re
from collections import Counter
from dataclasses import replace

from seedance_obs.identity import canonical_uuid
from seedance_obs.sources.nvml.asking import optional
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.calls import Calls
from seedance_obs.sources.nvml.library import NvmlLibrary
from seedance_obs.sources.nvml.reads import ACTIVITY_READS, MEMORY_READS
from seedance_obs.sources.readings import MigReadings

MAX_SLICES = 8
# NVML_GPU_INSTANCE_PROFILE_8_SLICE and so on: the largest first, numbered as they came to be.
PROFILES_BY_SIZE = (5, 4, 6, 3, 2, 1, 0)
_CAPACITY = "nvmlDeviceGetMaxMigDeviceCount"
_PROFILE = re.compile(r"MIG (\S+)$")
_PROFILE_SLICES = re.compile(r"(?:(\d)c\.)?(\d)g\.")


def read_mig_devices(calls: Calls, board: Board) -> list[tuple[str, MigReadings]]:
    """Each MIG device under the name by which the library knows it.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    slots = calls.ask(board, _CAPACITY)
    found = []
    for slot in range(slots if isinstance(slots, int) else 0):
        function = "nvmlDeviceGetMigDeviceHandleByIndex"
        device = optional(calls.library, function, board.name, slot)
        if not isinstance(device, str):
            continue
        instance = optional(calls.library, "nvmlDeviceGetGpuInstanceId", device)
        if isinstance(instance, int):
            found.append((device, _read_mig_device(calls, board, device, instance)))
    return _with_activity(calls, board, found)


def _with_activity(
    calls: Calls, board: Board, found: list[tuple[str, MigReadings]]
) -> list[tuple[str, MigReadings]]:
    """Each with what GPM says of its GPU instance, if it does not share that with another."""
    sharing = Counter(readings.gpu_instance for _, readings in found)
    return [
        (device, replace(readings, values={**readings.values, **_activity(calls, board, device)}))
        if sharing[readings.gpu_instance] == 1
        else (device, readings)
        for device, readings in found
    ]


def _activity(calls: Calls, board: Board, device: str) -> dict[str, float]:
    return dict(calls.values(board, ACTIVITY_READS, device=device))


def _read_mig_device(calls: Calls, board: Board, device: str, instance: int) -> MigReadings:
    library = calls.library
    compute = optional(library, "nvmlDeviceGetComputeInstanceId", device)
    uuid = optional(library, "nvmlDeviceGetUUID", device)
    name = _PROFILE.search(str(optional(library, "nvmlDeviceGetName", device)))
    profile = name.group(1) if name else None
    return MigReadings(
        gpu_instance=instance,
        compute_instance=compute if isinstance(compute, int) else None,
        uuid=canonical_uuid(uuid) if isinstance(uuid, str) else None,
        profile=profile,
        values=dict(calls.values(board, MEMORY_READS, device=device)),
        slices=_slices(library, board, device, str(uuid), profile),
    )


def _slices(
    library: NvmlLibrary, board: Board, device: str, uuid: str, profile: str | None
) -> int | None:
    """The compute slices of a device, which it keeps as long as its UUID."""
    key = (uuid, profile)
    if key not in board.slices:
        answer = optional(library, "nvmlDeviceGetAttributes_v2", device)
        attributes = answer if isinstance(answer, dict) else {}
        board.slices[key] = (
            _known(attributes.get("computeInstanceSliceCount"))
            or _known(attributes.get("gpuInstanceSliceCount"))
            or profile_slices(profile or "")
        )
    return board.slices[key]


def profile_slices(profile: str) -> int | None:
    """The compute slices that a profile's name says: 3 of `3g.40gb`, 1 of `1c.3g.40gb`."""
    match = _PROFILE_SLICES.match(profile)
    return int(match.group(1) or match.group(2)) if match else None


def read_board_slices(calls: Calls, board: Board) -> int | None:
    """The compute slices of a whole board in MIG mode, None where the driver tells nothing of it.

    They are those of its largest profile. Where profiles are kept from us, they are as many as
    there can be MIG devices, since the smallest has one slice.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    if board.mig_slices is None:
        board.mig_slices = _largest_profile(calls.library, board.name) or _known(
            calls.ask(board, _CAPACITY)
        )
    return board.mig_slices


def _largest_profile(library: NvmlLibrary, name: str) -> int | None:
    for profile in PROFILES_BY_SIZE:
        info = optional(library, "nvmlDeviceGetGpuInstanceProfileInfo", name, profile)
        if isinstance(info, dict) and (slices := _known(info.get("sliceCount"))):
            return slices
    return None


def _known(count: object) -> int | None:
    return count if isinstance(count, int) and 0 < count <= MAX_SLICES else None
