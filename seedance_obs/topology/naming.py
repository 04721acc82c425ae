"""How devices are ordered, numbered and called where people read them."""

import re
from collections.abc import Iterable, Sequence

from seedance_obs.topology.model import Absent, Device, Kind

_NUMBERED = re.compile(r"([^:]*?)(\d+)")


def natural_key(text: str) -> tuple[str, int]:
    """A sort key that puts `GPU9` before `GPU10`, and leaves PCI addresses as they are."""
    match = _NUMBERED.fullmatch(text)
    return (match[1], int(match[2])) if match else (text, -1)


def in_order(devices: Iterable[Device]) -> list[Device]:
    """The devices by index, those without one last, then by name: a reader's order is no matter."""

    def key(device: Device) -> tuple[bool, int, tuple[str, int]]:
        return device.index is None, device.index or 0, natural_key(device.name)

    return sorted(devices, key=key)


def short_names(devices: Sequence[Device]) -> dict[str, str]:
    """`GPU3`, `NIC0`, by device name: the index where every device of the kind has its own.

    Otherwise the devices of that kind are numbered in the order given.
    """
    names = {}
    for kind in Kind:
        alike = [device for device in devices if device.kind is kind]
        indices = {device.index for device in alike} - {None}
        for position, device in enumerate(alike):
            number = device.index if len(indices) == len(alike) else position
            names[device.name] = f"{kind.upper()}{number}"
    return names


def number_list(numbers: frozenset[int] | Absent) -> str | None:
    """`0-47,96`, as the kernel writes sets of CPUs or nodes; None where the set is not known."""
    if isinstance(numbers, Absent) or not numbers:
        return None
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
