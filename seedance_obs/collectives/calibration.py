"""What collectives took where somebody measured them, and what that says of other sizes.

A calibration keeps the measured times and goes straight between them over the logarithms of size
and time, so that an error of a tenth is a tenth from 8 bytes to 16 GiB. It is no line with a
latency and a bandwidth: NCCL changes protocol and algorithm on the way, and the best such line
misses the sizes in the middle of real measurements by a third.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from itertools import pairwise
from math import exp, log

from seedance_obs.collectives.collective import Collective, Group, checked_size

LEAST_SECONDS = 1e-7  # no kernel starts faster
MOST_SECONDS = 1e4
LARGEST_BYTES = 1 << 60
SETTLED = 1.1  # as far apart may latencies or bandwidths be at sizes twice as large
TWICE = 2


@dataclass(frozen=True, slots=True)
class Point:
    """A size in bytes, at least 1, and the seconds that it took."""

    size_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a measurement comes from; what is not known is None.

    Attributes:
        tool: What measured, with its version.
        library: The version of NCCL or RCCL.
        gpu_model: On which GPUs.
        measured_at: When, in ISO 8601.
        buffers: `in place` or `out of place`.

    Raises:
        ValueError: a text holds what no terminal shows.
    """

    tool: str | None = None
    library: str | None = None
    gpu_model: str | None = None
    measured_at: str | None = None
    buffers: str | None = None

    def __post_init__(self) -> None:
        _check_printable(*astuple(self))


@dataclass(frozen=True, slots=True)
class Time:
    """A time that a curve tells, and whether its size lies beyond those that were measured."""

    seconds: float
    extrapolated: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of one collective on one kind of placement, from the smallest size to the largest.

    Attributes:
        link_class: The worst link class within a node, such as `NV18`; None where unknown.

    Raises:
        ValueError: says in a phrase what is wrong with the points or the link class.
    """

    collective: Collective
    group: Group
    points: tuple[Point, ...]
    link_class: str | None = None
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        _check_printable(self.link_class)
        if len(self.points) < 2:
            raise ValueError(f"2 sizes or more are wanted, found {len(self.points)}")
        for point in self.points:
            if not 1 <= point.size_bytes <= LARGEST_BYTES:
                wanted = f"sizes of 1 to {LARGEST_BYTES} bytes are wanted"
                raise ValueError(f"{wanted}, found {point.size_bytes}")
            if not LEAST_SECONDS <= point.seconds <= MOST_SECONDS:
                wanted = f"{LEAST_SECONDS:g} s to {MOST_SECONDS:g} s are wanted"
                raise ValueError(f"{wanted}, found {point.seconds:g} for {point.size_bytes} bytes")
        for one, other in pairwise(self.points):
            if other.size_bytes <= one.size_bytes:
                wanted = "sizes are wanted in rising order, each once"
                raise ValueError(f"{wanted}, found {other.size_bytes} behind {one.size_bytes}")

    def time(self, size_bytes: float) -> Time | None:
        """The time of a size: between the two measured sizes next to it, or beyond all of them.

        Beyond the smallest the time stays as it is, beyond the largest it grows with the size, in
        either case only where a measured size that is twice as far in agrees within a tenth. Else
        None.

        Raises:
            ValueError: the size is negative, infinite or no number.
        """
        checked_size(size_bytes)
        if size_bytes < self.points[0].size_bytes:
            return self._below()
        if size_bytes > self.points[-1].size_bytes:
            return self._above(size_bytes)
        return Time(self._between(size_bytes))

    def _below(self) -> Time | None:
        first = self.points[0]
        inner = [each for each in self.points if each.size_bytes >= TWICE * first.size_bytes]
        if not inner or not _near(first.seconds, inner[0].seconds):
            return None
        return Time(first.seconds, extrapolated=True)

    def _above(self, size_bytes: float) -> Time | None:
        last = self.points[-1]
        inner = [each for each in self.points if TWICE * each.size_bytes <= last.size_bytes]
        pace = last.seconds / last.size_bytes
        if not inner or not _near(pace, inner[-1].seconds / inner[-1].size_bytes):
            return None
        return Time(pace * size_bytes, extrapolated=True)

    def _between(self, size_bytes: float) -> float:
        place = bisect_left(self.points, size_bytes, key=lambda point: point.size_bytes)
        high = self.points[place]
        if high.size_bytes == size_bytes:
            return high.seconds
        low = self.points[place - 1]
        share = log(size_bytes / low.size_bytes) / log(high.size_bytes / low.size_bytes)
        return low.seconds * exp(share * log(high.seconds / low.seconds))


class Calibration:
    """The curves of one kind of machine, of which no two are for the same case.

    Raises:
        ValueError: two curves are for the same collective, GPUs, nodes and link class.
    """

    def __init__(self, curves: Sequence[Curve]) -> None:
        self._curves: dict[tuple[Collective, Group, str | None], Curve] = {}
        for curve in curves:
            key = (curve.collective, curve.group, curve.link_class)
            if key in self._curves:
                raise ValueError(f"two curves are for {said(curve)}: keep one of them")
            self._curves[key] = curve

    @property
    def curves(self) -> tuple[Curve, ...]:
        """All curves, in the order in which they were given."""
        return tuple(self._curves.values())

    def curve(
        self, collective: Collective, group: Group, *, link_class: str | None = None
    ) -> Curve | None:
        """The curve of just this case, or None.

        A placement over another link class is another case, even where one of both is unknown:
        else the best and the worst placement of a group would cost the same.
        """
        return self._curves.get((collective, group, link_class))


def said(curve: Curve) -> str:
    """What a curve is for, as a person would say it."""
    over = f" over {curve.link_class}" if curve.link_class else ""
    return f"{curve.collective} of {curve.group.gpus} GPUs on {curve.group.nodes} nodes{over}"


def _check_printable(*texts: str | None) -> None:
    for text in texts:
        if text is not None and not text.isprintable():
            raise ValueError(f"a text without control characters is wanted, found {text!r:.200}")


def _near(one: float, other: float) -> bool:
    return max(one, other) <= SETTLED * min(one, other)
