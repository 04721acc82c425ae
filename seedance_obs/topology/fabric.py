"""What NVML's numbers about an NVLink fabric mean: the probe's state and status, the health."""

from collections.abc import Iterator, Mapping

STATES = ("not_supported", "not_started", "in_progress", "completed")
_STATUSES: Mapping[int, str] = {  # nvmlReturn_t, as far as a probe can end so
    0: "success",
    1: "uninitialized",
    2: "invalid_argument",
    3: "not_supported",
    4: "no_permission",
    6: "not_found",
    9: "driver_not_loaded",
    10: "timeout",
    15: "gpu_is_lost",
    16: "reset_required",
    17: "operating_system",
    19: "in_use",
    20: "memory",
    21: "no_data",
    23: "insufficient_resources",
    27: "not_ready",
    29: "invalid_state",
    999: "unknown",
}
# Conditions of the health mask by their lowest bit: two bits, of which 1 says that it holds.
_CONDITIONS: Mapping[int, str] = {
    0: "degraded_bandwidth",
    2: "route_recovery",
    4: "route_unhealthy",
    6: "access_timeout_recovery",
}
_CONDITION_BITS, _HOLDS, _HOLDS_NOT = 0x3, 1, 2
_CONFIGURATION_SHIFT, _CONFIGURATION_BITS, _CONFIGURATION_CORRECT = 8, 0xF, 1
_MISCONFIGURATIONS: Mapping[int, str] = {
    2: "system_guid",
    3: "chassis_serial",
    4: "no_partition",
    5: "insufficient_nvlinks",
    6: "incompatible_gpu_firmware",
    7: "invalid_location",
    8: "gpu_state_invalid",
}
_NO_SUMMARY, _HEALTHY = 0, 1


def state_name(state: int) -> str:
    """The name of a probe state, `state_<n>` for one that is not known."""
    return STATES[state] if 0 <= state < len(STATES) else f"state_{state}"


def status_name(status: int) -> str:
    """The name of a status, `code_<n>` for one that is not known; it counts once completed."""
    return _STATUSES.get(status, f"code_{status}")


def faults(mask: int) -> tuple[str, ...]:
    """The conditions of a health mask that hold and should not.

    Whether a partition is assigned and a fabric manager connected are states, not faults.
    """
    return tuple(_faults(mask))


def _faults(mask: int) -> Iterator[str]:
    for shift, name in _CONDITIONS.items():
        if mask >> shift & _CONDITION_BITS == _HOLDS:
            yield name
    configuration = mask >> _CONFIGURATION_SHIFT & _CONFIGURATION_BITS
    if configuration > _CONFIGURATION_CORRECT:
        yield f"incorrect_configuration_{_MISCONFIGURATIONS.get(configuration, configuration)}"


def healthy(mask: int | None, summary: int | None) -> bool | None:
    """Whether a GPU's fabric is in order, by the driver's summary or else by the mask.

    A summary of limited capacity is not in order. None where neither says anything: an old
    driver, or hardware that supports none of the conditions.
    """
    if summary is not None and summary != _NO_SUMMARY:
        return summary == _HEALTHY
    if mask is None:
        return None
    if faults(mask):
        return False
    return True if _says_anything(mask) else None


def _says_anything(mask: int) -> bool:
    denied = any(mask >> shift & _CONDITION_BITS == _HOLDS_NOT for shift in _CONDITIONS)
    correct = mask >> _CONFIGURATION_SHIFT & _CONFIGURATION_BITS == _CONFIGURATION_CORRECT
    return denied or correct
