"""nvitop as an independent reader of the same NVML library, in the words of our quantities.

    nvitop_readings(environment(library, state))["GPU-..."]["values"]["power_watts"]

Runs nvitop in a child process, since the library is found when a process starts.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

PERCENT, KILO, MEGA = 0.01, 1e-3, 1e6

# Our quantity, nvitop's method, and what turns its unit into ours.
QUANTITIES: tuple[tuple[str, str, float], ...] = (
    ("utilization_ratio", "gpu_utilization", PERCENT),
    ("memory_busy_ratio", "memory_utilization", PERCENT),
    ("encoder_utilization_ratio", "encoder_utilization", PERCENT),
    ("decoder_utilization_ratio", "decoder_utilization", PERCENT),
    ("fan_speed_ratio", "fan_speed", PERCENT),
    ("memory_total_bytes", "memory_total", 1),
    ("memory_used_bytes", "memory_used", 1),
    ("memory_free_bytes", "memory_free", 1),
    ("power_watts", "power_usage", KILO),
    ("power_limit_watts", "power_limit", KILO),
    ("temperature_gpu_celsius", "temperature", 1),
    ("clock_sm_hertz", "sm_clock", MEGA),
    ("clock_memory_hertz", "memory_clock", MEGA),
    ("clock_graphics_hertz", "graphics_clock", MEGA),
    ("clock_video_hertz", "video_clock", MEGA),
    ("ecc_uncorrected_volatile", "total_volatile_uncorrected_ecc_errors", 1),
)
MIG_QUANTITIES = tuple(row for row in QUANTITIES if row[0].startswith("memory_") and row[2] == 1)
FACTS = {"model": "name", "pci_bus_id": "bus_id", "serial": "serial"}


def nvitop_readings(env: Mapping[str, str]) -> dict[str, Any]:
    """What nvitop reads from the NVML library that a process with this environment finds.

    One entry for each board, by its UUID: `index`, `facts` (model, pci_bus_id as NVML spells it,
    serial), `values` (our quantities in base units), `processes` (pid to bytes, or null where
    unknown) and `mig` (instances, each with uuid, gpu_instance, compute_instance and values).
    What nvitop does not know is absent, as is a board that has lost even its UUID.
    """
    done = subprocess.run(
        [sys.executable, __file__], env=dict(env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    readings: dict[str, Any] = json.loads(done.stdout)
    return readings


def _read_boards() -> dict[str, Any]:
    from nvitop import Device

    named = {_known(board.uuid): board for board in Device.all()}
    return {uuid: _board(board) for uuid, board in named.items() if uuid is not None}


def _board(board: Any) -> dict[str, Any]:
    facts = {name: _known(getattr(board, method)) for name, method in FACTS.items()}
    values = _values(board, QUANTITIES)
    state, mig_enabled = _known(board.performance_state), _known(board.is_mig_mode_enabled)
    if state is not None:
        values["performance_state"] = int(state.removeprefix("P"))
    return {
        "index": board.index,
        "facts": {name: value for name, value in facts.items() if value is not None},
        "values": values,
        "processes": {
            process.pid: _known(process.gpu_memory) for process in board.processes().values()
        },
        "mig": [_instance(instance) for instance in board.mig_devices()] if mig_enabled else [],
    }


def _instance(instance: Any) -> dict[str, Any]:
    return {
        "uuid": instance.uuid(),
        "gpu_instance": _known(instance.gpu_instance_id),
        "compute_instance": _known(instance.compute_instance_id),
        "values": _values(instance, MIG_QUANTITIES),
    }


def _values(device: Any, quantities: tuple[tuple[str, str, float], ...]) -> dict[str, float]:
    read = {name: (_known(getattr(device, method)), factor) for name, method, factor in quantities}
    return {name: value * factor for name, (value, factor) in read.items() if value is not None}


def _known(method: Callable[[], Any]) -> Any:
    value = method()
    return None if value == "N/A" else value


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # it reports each symbol a driver lacks
    sys.stdout.write(json.dumps(_read_boards()))
