"""The page of shared segments, for people's terminals: loads, tenants, and whom they slow down.

Texts are expected to be printable. Colour repeats what the words say.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from seedance_obs.bandwidth.loads import NOBODY
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.leaks.report.in_words import duration, number, percent
from seedance_obs.leaks.report.terminal_lines import cut, flow, words

KINDS = {
    "pcie_switch": "PCIe switch",
    "pcie_root": "PCIe root complex",
    "nvlink_domain": "NVLink domain",
    "hbm": "memory of",
    "nic": "network adapter",
}
MEGA, GIGA = 1e6, 1e9
IDLE_RATIO = 0.01  # of capacity
LEAST_MEGABYTES = 0.05  # a second; less is shown as 0.0
TENANT_CELLS = 17
MOST_NAME_CELLS = 40


@dataclass(frozen=True, slots=True)
class ToldTenant:
    """A tenant on a segment, its sensitivity in words; levels in bytes per second, None unknown."""

    name: str
    mean: float | None
    jitter: float | None
    share: float | None
    peak: float | None
    sensitivity: str


@dataclass(frozen=True, slots=True)
class ToldSegment:
    """A segment; levels in bytes per second, None unknown."""

    title: str
    capacity: float | None
    mean: float | None
    peak: float | None
    contention_seconds: float
    tenants: tuple[ToldTenant, ...]

    @property
    def observed(self) -> bool:
        """Whether anybody knows what passes there now."""
        return self.mean is not None

    @property
    def idle(self) -> bool:
        """Whether all together come to less than 1 % of its capacity, or nobody knows."""
        levels = [self.mean, self.peak, *(each.mean for each in self.tenants)]
        return max(level or 0.0 for level in levels) < IDLE_RATIO * (self.capacity or 0.0) or (
            not self.observed
        )


@dataclass(frozen=True, slots=True)
class BandwidthPage:
    """The page as it is told; `stuck` has a sentence for each source that is not believed."""

    node: str
    window_seconds: float
    segments: tuple[ToldSegment, ...]
    stuck: tuple[str, ...]


def read_page(data: Any) -> BandwidthPage:
    """The page, given what its JSON holds.

    Raises:
        SourceUnavailableError: it is no page of bandwidth.
    """
    try:
        return BandwidthPage(
            node=_text(data, "node"),
            window_seconds=_number(data, "window_seconds") or 0.0,
            segments=tuple(map(_segment, data["segments"])),
            stuck=tuple(_stuck(one) for one in data["channels"] if one["stuck_source"]),
        )
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise SourceUnavailableError(
            "this is no page of bandwidth, or one of another version of seedance-obs "
            f"({error!r:.200})"
        ) from error


def _segment(data: Mapping[str, Any]) -> ToldSegment:
    kind, name = _text(data, "kind"), _text(data, "device") or _text(data, "segment")
    direction = _text(data, "direction")
    tenants = [_text(one, "tenant") for one in data["tenants"]]
    alone = sum(name not in NOBODY for name in tenants) < 2
    title = f"{KINDS.get(kind, cut(kind, MOST_NAME_CELLS))} {cut(name, MOST_NAME_CELLS)}"
    return ToldSegment(
        title=f"{title}, {cut(direction, 10)}" if direction else title,
        capacity=_number(data, "capacity"),
        mean=_number(data, "mean"),
        peak=_number(data, "peak"),
        contention_seconds=_number(data, "contention_seconds") or 0.0,
        tenants=tuple(_tenant(one, alone=alone) for one in data["tenants"]),
    )


def _tenant(data: Mapping[str, Any], *, alone: bool) -> ToldTenant:
    """One tenant; who is alone on a segment has no neighbour to be sensitive to."""
    name = _text(data, "tenant")
    return ToldTenant(
        name=name or "tenant not known",
        mean=_number(data, "mean"),
        jitter=_number(data, "jitter"),
        share=_number(data, "share"),
        peak=_number(data, "peak"),
        sensitivity="-" if name in NOBODY else _in_words(data["sensitivity"], alone=alone),
    )


def _in_words(found: Mapping[str, Any] | None, *, alone: bool) -> str:
    """A sensitivity and what it rests on; what is not decided is no number yet."""
    if found is None:
        return "-" if alone else "needs more windows"
    score, p_value = _number(found, "score"), _number(found, "p_value")
    windows, verdict = _number(found, "windows") or 0, _text(found, "verdict")
    if verdict == "undecided" or score is None or p_value is None:
        return f"needs more windows ({windows:,.0f})"
    said = {"none": "none", "significant": f"{score:.2f}"}
    start = said.get(verdict, f"{score:.2f}, {cut(verdict, 12)} only")
    return f"{start} (p {p_value:.2g}, {windows:,.0f} windows)"


def _stuck(data: Mapping[str, Any]) -> str:
    device = _text(data, "device") or _text(data, "id")
    words_of = (device, _text(data, "medium"), _text(data, "direction"))
    link = " ".join(cut(word, MOST_NAME_CELLS) for word in words_of if word)
    source = cut(_text(data, "stuck_source"), 20)
    return f"{link}: {source} stands at 0 while another source moves, and is not believed"


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data[name]
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{value!r:.50} is no text")
    return value or ""


def _number(data: Mapping[str, Any], name: str) -> float | None:
    value = data[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.50} is no number")
    return float(value)


@dataclass(frozen=True, slots=True)
class BandwidthReport:
    """The page for a terminal; `whole` with the segments that are idle."""

    page: BandwidthPage
    whole: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The segments that somebody uses, the others counted, and who is not believed."""
        width = options.max_width
        yield from _heading(self.page, width)
        folded = [one for one in self.page.segments if one.idle and not self.whole]
        shown = [one for one in self.page.segments if self.whole or not one.idle]
        for segment in shown:
            yield Text()
            yield from _drawn(segment, width)
        if folded:
            yield Text()
            yield from words(_folded(folded, more=bool(shown)), width)
        for said in self.page.stuck:
            yield from words(said, width, indent="  ", style="yellow")


def _heading(page: BandwidthPage, width: int) -> Iterator[Text]:
    said = f"mean and peak over the last {page.window_seconds:g} s" if page.segments else ""
    pieces = [cut(page.node or "node", MOST_NAME_CELLS), said or "no shared segment is known here"]
    yield from flow(pieces, width, joint=": ", indent="  ", lead="bold")


def _folded(idle: Sequence[ToldSegment], *, more: bool) -> str:
    """`7 more segments carry less than 1 %, 2 are not observed now: --all shows them`."""
    known = sum(one.observed for one in idle)
    unknown = len(idle) - known
    contended = sum(one.contention_seconds > 0 for one in idle)
    noun = "more shared segment" if more else "shared segment"
    said = []
    if known:
        said.append(f"{_counted(known, noun)} {'carries' if known == 1 else 'carry'} less than 1 %")
    if unknown:
        who = f"{unknown:,}" if known else _counted(unknown, noun)
        said.append(f"{who} {'is' if unknown == 1 else 'are'} not observed now")
    if contended:
        said.append(f"{contended:,} of them {'was' if contended == 1 else 'were'} contended before")
    return f"{', '.join(said)}: --all shows {'it' if len(idle) == 1 else 'them'}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _drawn(segment: ToldSegment, width: int) -> Iterator[Text]:
    contended = segment.contention_seconds > 0
    yield from words(segment.title, width, indent="  ", style="bold red" if contended else "bold")
    yield from flow(_load(segment), width, joint=", ", start="  ", indent="  ")
    if segment.tenants:
        yield from flow(_HEAD, width, joint=" ", start="  ", indent=_UNDER, style="dim")
    for tenant in segment.tenants:
        pieces = [_row(tenant), tenant.sensitivity]
        yield from flow(pieces, width, joint="  ", start="  ", indent=_UNDER)


def _load(segment: ToldSegment) -> Iterator[str]:
    """`18.2 of 31.5 GB/s (58 %)`, `peak 29.9 GB/s`, `contended for 2 min`."""
    full = segment.capacity
    if segment.mean is not None:
        of = f" of {_gigabytes(full)} GB/s" if full else " GB/s"
        share = f" ({percent(segment.mean / full)})" if full else ""
        yield f"{_gigabytes(segment.mean)}{of}{share}"
    elif full:
        yield f"load not known of {_gigabytes(full)} GB/s"
    if segment.peak is not None:
        yield f"peak {_gigabytes(segment.peak)} GB/s"
    if segment.contention_seconds > 0:
        yield f"contended for {duration(segment.contention_seconds)}"


def _row(tenant: ToldTenant) -> str:
    cells = (
        *(_megabytes(level) for level in (tenant.mean, tenant.jitter)),
        "-" if tenant.share is None else percent(tenant.share),
        _megabytes(tenant.peak),
    )
    name = set_cell_size(cut(tenant.name, TENANT_CELLS), TENANT_CELLS)
    return _columns(name, *cells)


def _columns(name: str, mean: str, jitter: str, share: str, peak: str) -> str:
    return f"{name:<{TENANT_CELLS}} {mean:>9} {jitter:>7} {share:>5} {peak:>7}"


_HEAD = (_columns("TENANT", "MEAN MB/s", "JITTER", "SHARE", "PEAK"), " SENSITIVITY")
_UNDER = " " * 6


def _gigabytes(level: float) -> str:
    gigabytes = level / GIGA
    return f"{gigabytes:,.0f}" if gigabytes >= 100 else f"{gigabytes:.3g}"


def _megabytes(level: float | None) -> str:
    if level is None:
        return "-"
    megabytes = level / MEGA
    return number(megabytes if megabytes >= LEAST_MEGABYTES else 0.0)
