"""What PCI functions say of themselves: the numbers of their model, the speed of their link."""

import re
from typing import NamedTuple

GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}
"""Transfers per second and lane, in 10**9, by generation."""

_GENERATIONS = {speed: generation for generation, speed in GIGATRANSFERS.items()}
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_SPEED = re.compile(r"(\d{1,3}(?:\.\d+)?) ?GT/s", re.ASCII)


class PciId(NamedTuple):
    """The four numbers that name a model of PCI function."""

    vendor: int
    device: int
    subsystem_vendor: int
    subsystem_device: int


def generation(speed: str) -> int | None:
    """The generation of `16GT/s`, `8 GT/s` or `32.0 GT/s PCIe`; None for other text."""
    match = _SPEED.match(speed)
    return _GENERATIONS.get(float(match[1])) if match else None


def width(lanes: str) -> int | None:
    """The lanes of `x16` or `16`; None unless PCIe has such a width.

    0 is a link that is down and 255 one that the kernel cannot tell.
    """
    known = {str(number): number for number in _WIDTHS}
    return known.get(lanes.removeprefix("x"))
