"""The limits that a process was started with, from its environment: NVIDIA MPS and HAMi.

CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT are described in NVIDIA's
MPS documentation (appendix of environment variables). A limit that the MPS control daemon was
told on its own command line is in no file and no environment, and is not known here.
CUDA_DEVICE_MEMORY_LIMIT[_i] and CUDA_DEVICE_SM_LIMIT[_i] are read as HAMi-core does
(`get_limit_from_env`): units of 1024, an ordinal's own variable before the common one, and a
share of 0 or 100 limits nothing.
"""

import re
from collections.abc import Mapping

from seedance_obs.sources.quotas import Quota, parse_bytes

_NAMES = re.compile(
    r"CUDA_MPS_(?:ACTIVE_THREAD_PERCENTAGE|PINNED_DEVICE_MEM_LIMIT)"
    r"|CUDA_DEVICE_(?:MEMORY|SM)_LIMIT(?:_\d{1,3})?"
    r"|CUDA_VISIBLE_DEVICES|CUDA_DISABLE_CONTROL|GPU_CORE_UTILIZATION_POLICY",
    re.ASCII,
)
_HAMI_MEMORY, _HAMI_SM = "CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT"
_UUIDS = ("GPU-", "MIG-")

# A limit of memory and of SM share, and for which board: see `Quota.gpu`.
_Limits = Mapping[str, tuple[int | None, float | None]]


def limiting_variables(environ: bytes) -> dict[str, str]:
    """The variables that limit, out of `/proc/<pid>/environ`; all others are let go at once."""
    found: dict[str, str] = {}
    for entry in environ.split(b"\0"):
        if not entry.startswith((b"CUDA_", b"GPU_CORE_")):
            continue
        name, equals, value = entry.decode("utf-8", errors="replace").partition("=")
        if equals and _NAMES.fullmatch(name):
            found.setdefault(name, value)  # getenv(3) gives the first
    return found


def mps_quotas(variables: Mapping[str, str]) -> tuple[Quota, ...]:
    """What MPS limits the process to; a value that is none limits nothing."""
    share = _percentage(variables.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", ""))
    seen = variables.get("CUDA_VISIBLE_DEVICES", "").split(",")
    limits: dict[str, tuple[int | None, float | None]] = {}
    for entry in variables.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "").split(","):
        device, _, size = (part.strip() for part in entry.partition("="))
        memory = _size(size)
        if memory is not None and (device.isdecimal() or device.startswith(_UUIDS)):
            limits[_board(device, seen)] = (memory, share)
    return _quotas("mps", limits or {"": (None, share)})


def hami_quotas(variables: Mapping[str, str]) -> tuple[Quota, ...]:
    """What HAMi limits the process to; nothing where it is told to keep out."""
    if variables.get("CUDA_DISABLE_CONTROL") == "true":
        return ()
    loose = variables.get("GPU_CORE_UTILIZATION_POLICY", "").lower() == "disable"
    ordinals = sorted(
        {
            name.rpartition("_")[2]
            for name in variables
            if name.startswith((f"{_HAMI_MEMORY}_", f"{_HAMI_SM}_"))
        }
    )

    def limits(suffix: str) -> tuple[int | None, float | None]:
        memory = _size(variables.get(f"{_HAMI_MEMORY}{suffix}", ""))
        return memory, _percentage(variables.get(f"{_HAMI_SM}{suffix}", ""))

    common_memory, common_share = limits("")
    both = {"": (common_memory, common_share)}
    if ordinals:
        own = {ordinal: limits(f"_{ordinal}") for ordinal in ordinals}
        both = {each: (own[each][0] or common_memory, own[each][1] or common_share) for each in own}
    enforced = {
        board: (memory, None if loose or share == 1 else share)
        for board, (memory, share) in both.items()
    }
    return _quotas("hami", enforced)


def _quotas(source: str, limits: _Limits) -> tuple[Quota, ...]:
    """A quota for each board; one for all of several ordinals whose limits are the same."""
    known = {board: limit for board, limit in limits.items() if limit != (None, None)}
    if len(known) > 1 and len(set(known.values())) == 1 and all(map(str.isdecimal, known)):
        known = {"": next(iter(known.values()))}
    return tuple(
        Quota(source, memory, share, gpu=board) for board, (memory, share) in known.items()
    )


def _board(device: str, seen: list[str]) -> str:
    """The UUID of an ordinal where the process names what it sees by UUIDs; else as it is."""
    if device.isdecimal() and int(device) < len(seen):
        named = seen[int(device)].strip()
        return named if named.startswith(_UUIDS) else device
    return device


def _size(text: str) -> int | None:
    try:
        return parse_bytes(text.strip()) or None
    except ValueError:
        return None


def _percentage(text: str) -> float | None:
    """A share (above 0, to 1) from a number of percent without a sign."""
    if re.fullmatch(r"\s*\d{1,3}(\.\d{1,20})?\s*", text, re.ASCII) is None:
        return None
    share = float(text) / 100
    return share if 0 < share <= 1 else None
