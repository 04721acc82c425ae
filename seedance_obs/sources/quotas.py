"""What a container may use of a board, in one shape whoever limits it, and when that is reached."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from seedance_obs.sources.readings import MigReadings

_UNITS = " KMGTP"
_BYTES = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s?([KMGTP]?)I?B?", re.ASCII | re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,20})?)\s?%", re.ASCII)
_UNLIMITED = "max"


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that a container, process or MIG instance may use; None where nothing limits it.

    Attributes:
        source: Who limits: `gpu-quota`, `mig`, `mps` or `hami`.
        memory_bytes: Of each board it holds for.
        sm_ratio: Share (0 to 1) of the board's SMs, or of their time.
        changed_at: Unix seconds of the last change, None where nobody noted it.
        gpu: The board it holds for: its UUID or the beginning of that, or an ordinal among the
            boards that the process sees (`0`), where no UUID is told. Empty: each that is held.
    """

    source: str
    memory_bytes: int | None = None
    sm_ratio: float | None = None
    changed_at: float | None = None
    gpu: str = ""

    def holds_on(self, uuid: str, *, only: bool) -> bool:
        """Whether it limits the use of a board; `only`: the process has no other."""
        if self.gpu.isdecimal():
            return only and self.gpu == "0"
        return uuid.startswith(self.gpu)


class AtLimit(NamedTuple):
    """Whether a limit is reached; None where there is no limit or the use is not known."""

    memory: bool | None
    sm: bool | None


def over(
    quota: Quota, memory_bytes: int | None, sm_ratio: float | None, *, slack_ratio: float = 0.0
) -> AtLimit:
    """Whether what is used has reached what may be.

    Memory seldom stands right at its limit, because the allocation that fails is not made, and a
    throttled SM share swings around its own; `slack_ratio` of a limit is how near counts.

    Args:
        quota: The limits.
        memory_bytes: What is used of the board's memory; None: not known.
        sm_ratio: The share of the whole board's SMs that is used, None: not known. With `mps`
            and `mig` it must come from SM activity: utilisation, which counts the time in which
            any kernel ran, reads 1 on the smallest part of a board.
        slack_ratio: 0 to 1.
    """
    nearly = 1 - slack_ratio
    return AtLimit(
        _reached(memory_bytes, quota.memory_bytes, nearly),
        _reached(sm_ratio, quota.sm_ratio, nearly),
    )


def _reached(used: float | None, limit: float | None, nearly: float) -> bool | None:
    return None if used is None or limit is None else used >= limit * nearly


def mig_quota(instance: MigReadings, board_slices: int | None) -> Quota:
    """What a MIG instance is cut to: its memory, and its compute slices of the board's."""
    memory = instance.values.get("memory_total_bytes")
    slices = instance.slices
    return Quota(
        "mig",
        memory_bytes=None if memory is None else int(memory),
        sm_ratio=slices / board_slices if slices is not None and board_slices else None,
    )


def parse_gpu_quota(text: str) -> tuple[int | None, float | None]:
    """Memory in bytes and SM share (0 to 1) of a `cgroup.gpu-quota` file such as `3G:40%`.

    Either half may be missing (`3G`, `3G:`, `:40%`, `40%`) or `max`, which is None: no limit.
    Units are powers of 1024 however they are spelled (`3G`, `3Gi`, `3GiB`, `3GB`), as in other
    cgroup files; a number without one is bytes. A share has a percent sign.

    Raises:
        ValueError: it is no such text.
    """
    memory, colon, share = (part.strip() for part in text.strip().partition(":"))
    if not colon and memory.endswith("%"):
        memory, share = "", memory
    if not memory and not share:
        raise ValueError(f"a quota such as 3G:40% is wanted, found {text[:40]!r}")
    return (
        None if memory in ("", _UNLIMITED) else parse_bytes(memory),
        None if share in ("", _UNLIMITED) else parse_percent(share),
    )


def parse_bytes(text: str) -> int:
    """A size in bytes; units are powers of 1024, and a part of a byte is dropped.

    Raises:
        ValueError: it is no size, or one of 2**63 bytes or more.
    """
    match = _BYTES.fullmatch(text)
    if match is None:
        raise ValueError(f"a size such as 3G is wanted, found {text[:40]!r}")
    whole, _, part = match.group(1).partition(".")
    scale: int = 1 << 10 * _UNITS.index(match.group(2).upper() or " ")
    size: int = int(whole) * scale + int(part or "0") * scale // 10 ** len(part)
    if size >= 2**63:
        raise ValueError(f"a size below 8 EiB is wanted, found {text[:40]!r}")
    return size


def parse_percent(text: str) -> float:
    """A share of 0 to 1, from 0% to 100%.

    Raises:
        ValueError: it is no percentage, or one above 100.
    """
    match = _PERCENT.fullmatch(text)
    if match is None or float(match.group(1)) > 100:
        raise ValueError(f"a share such as 40% is wanted, found {text[:40]!r}")
    return float(match.group(1)) / 100
