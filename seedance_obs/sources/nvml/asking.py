"""How a lasting fact is asked for: a refusal costs that fact, a board that is lost still raises."""

from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain

NEVER_AGAIN = (nvml.NOT_SUPPORTED, nvml.FUNCTION_NOT_FOUND)
DRIVER_GONE = (nvml.UNINITIALIZED, nvml.DRIVER_NOT_LOADED, nvml.LIB_RM_VERSION_MISMATCH)
_SCOPE_SHIFT = 32


def optional(library: NvmlLibrary, function: str, device: str | None = None, *args: int) -> Plain:
    """A call's answer, or None where NVML refuses; a lost board or driver still raises."""
    try:
        return library.call(function, device, *args)
    except NvmlError as error:
        if error.code in (nvml.GPU_IS_LOST, *DRIVER_GONE):
            raise
        return None


def number(
    library: NvmlLibrary, function: str, device: str | None = None, *args: int
) -> int | None:
    """A call's answer where it is a whole number from 0 on, else None; raises as `optional`."""
    answer = optional(library, function, device, *args)
    return answer if isinstance(answer, int) and answer >= 0 else None


def integer(answer: Plain) -> int:
    """An answer that must be an integer.

    Raises:
        NvmlError: it is not.
    """
    if not isinstance(answer, int):
        raise NvmlError(nvml.UNKNOWN)
    return answer


def fields(
    library: NvmlLibrary, device: str, *asked: tuple[int, int]
) -> dict[tuple[int, int], int]:
    """Whole-number field values by (field id, scope), without those that the driver refuses.

    Raises:
        NvmlError: as `optional`.
    """
    codes = [field | scope << _SCOPE_SHIFT for field, scope in asked]
    answer = optional(library, "nvmlDeviceGetFieldValues", device, *codes)
    if not isinstance(answer, list):
        return {}
    return {
        key: value
        for key, entry in zip(asked, answer, strict=False)
        if isinstance(entry, dict) and isinstance(value := entry.get("value"), int)
    }
