"""What passes over a link or through a part of a device, as the fast loops tell it: plain values.

A source turns whatever it reads (a counter, a mean rate, a gauge) into windows of time with the
amount that passed in each, so that everything after it adds, divides and compares alike.
"""

from dataclasses import dataclass
from typing import NamedTuple

MEDIA = ("pcie", "nvlink", "hbm", "network", "power")
DIRECTIONS = ("transmit", "receive")  # as the device sees it: transmit leaves it


class Channel(NamedTuple):
    """One medium of one device in one direction.

    Attributes:
        device: A GPU's UUID, or a network adapter's canonical PCI address.
        medium: One of `MEDIA`.
        direction: One of `DIRECTIONS`; empty for `hbm` and `power`, which have none.
    """

    device: str
    medium: str
    direction: str = ""


class Window(NamedTuple):
    """A stretch of observed time and what passed in it.

    Attributes:
        start, end: Monotonic seconds, `end` after `start`.
        amount: Bytes; of `hbm` seconds of full activity; of `power` joules.
    """

    start: float
    end: float
    amount: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

    @property
    def level(self) -> float:
        """The mean in it: bytes per second, activity from 0 to 1, or watts."""
        return self.amount / (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Flow:
    """The windows of one channel that a source has seen since it was last asked, in order.

    They do not overlap, and need not touch: what lies between two was not observed.

    Attributes:
        source: How it is known: `counter`, `gpm`, `dcgm`, `throughput` or `sensor`, of which one is
            to be believed. Of network adapters `rdma`, whose bytes may go to and from a GPU without
            passing memory (GPUDirect), and `ethernet`, whose bytes may not: no byte is in both, so
            the two add up.
        pace: How long its windows are meant to be at most, in seconds, where that is longer than a
            tick of the loop; None where it is not, and where nobody knows (`dcgm`, `throughput`).
    """

    channel: Channel
    source: str
    windows: tuple[Window, ...]
    pace: float | None = None
