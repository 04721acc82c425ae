"""The presets that say how fast something must grow, and for how long, to be called a leak."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from seedance_obs.errors import UsageError

Unit = Literal["fds", "bytes"]

_ENTRY = re.compile(
    r"(?P<name>[A-Za-z0-9_-]{1,40})\s*=\s*"
    r"(?P<amount>\d{1,15}(\.\d{1,15})?)\s*(?P<size>[A-Za-z]*)\s*/\s*(?P<per>[a-z]+)\s*,\s*"
    r"(?P<window>\d{1,9}(\.\d{1,9})?)\s*(?P<span>[a-z]+)",
    re.ASCII,
)
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_WINDOW_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES: dict[Unit, dict[str, int]] = {
    "fds": {"": 1},
    "bytes": {
        "kB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "KiB": 2**10,
        "MiB": 2**20,
        "GiB": 2**30,
    },
}
_LEAST: dict[Unit, int] = {"fds": 1000, "bytes": 0}
_WANTED: dict[Unit, str] = {
    "fds": (
        "leaks.fd_growth entry {!r}: wanted NAME=RATE,WINDOW, the rate per s, min, h or d, the "
        "window in s, m, h or d, for example fast=8/s,3m"
    ),
    "bytes": (
        "leaks.memory_growth entry {!r}: wanted NAME=RATE,WINDOW, the rate in kB, "
        "MB, GB, KiB, MiB or GiB per s, min, h or d, the window in s, m, h or d, for example "
        "fast=32MiB/h,20m"
    ),
}


@dataclass(frozen=True, slots=True)
class GrowthRule:
    """How fast something must grow to be called a leak.

    Attributes:
        name: What an operator calls the rule, such as `fast`; of letters, digits, `_` and `-`.
        per_second: The rate from which growth is a leak, in descriptors or bytes per second.
        window_seconds: The length of one window; growth must last for three in a row.
        least: A level below which growth is not worth a word, however fast it is.
    """

    name: str
    per_second: float
    window_seconds: float
    least: int = 0


def read_growth_rules(entries: Iterable[str], unit: Unit) -> tuple[GrowthRule, ...]:
    """The rules that entries `NAME=RATE,WINDOW` stand for, in their order.

    Args:
        entries: Such as `fast=8/s,3m`, or `fast=32MiB/h,20m` where the unit is bytes.
        unit: What grows: `fds` (growth below 1000 of them is not worth a word) or `bytes`.

    Raises:
        UsageError: an entry is not of that form, or two have the same name.
    """
    rules: dict[str, GrowthRule] = {}
    for entry in entries:
        rule = _read(entry, unit)
        if rule is None:
            raise UsageError(_WANTED[unit].format(entry))
        if rule.name in rules:
            option = _WANTED[unit].partition(" ")[0]
            raise UsageError(
                f"{option} has two rules of the name {rule.name!r}: each needs its own"
            )
        rules[rule.name] = rule
    return tuple(rules.values())


def _read(entry: str, unit: Unit) -> GrowthRule | None:
    found = _ENTRY.fullmatch(entry.strip())
    if found is None:
        return None
    size = _SIZES[unit].get(found["size"])
    per = _SECONDS.get(found["per"])
    span = _WINDOW_SECONDS.get(found["span"])
    if size is None or per is None or span is None:
        return None
    rate, window = float(found["amount"]) * size / per, float(found["window"]) * span
    if rate <= 0 or window <= 0:
        return None
    return GrowthRule(found["name"], rate, window, _LEAST[unit])
