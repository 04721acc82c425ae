"""Numbers as people read them: grouped digits, a true minus, columns that add up as shown."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

UNKNOWN = "–"  # noqa: RUF001 - an en dash is what the page shows for an absent value
MINUS = "−"  # noqa: RUF001 - the typographic minus


def decimals_for(total: float) -> int:
    """The decimals that show a total with four significant digits, six at most."""
    if total == 0 or not math.isfinite(total):
        return 1
    return min(6, max(0, 3 - math.floor(math.log10(abs(total)))))


def fixed(value: float | None, decimals: int) -> str:
    """A value with so many decimals; a dash when it is unknown."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def significant(value: float | None, digits: int = 3) -> str:
    """A value with that many significant digits, never in scientific notation."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    return fixed(value, min(6, max(0, digits - 1 - magnitude)))


def percent(share: float | None) -> str:
    """A ratio in percent with one decimal; what is not quite all or nothing never reads so."""
    if share is None or math.isnan(share):
        return UNKNOWN
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{fixed(share * 100, 1)} %"


def addends(values: Sequence[float | None], decimals: int) -> list[str]:
    """Cells that add up, as shown, to their exact sum as shown; unknown cells are dashes.

    Each is rounded down, and the units missing from the rounded sum go to the largest remainders.
    """
    known = [(i, v) for i, v in enumerate(values) if v is not None and not math.isnan(v)]
    scaled = {i: Decimal(v).scaleb(decimals) for i, v in known}
    floors = {i: math.floor(v) for i, v in scaled.items()}
    total = sum(scaled.values(), Decimal()).quantize(Decimal(1), ROUND_HALF_EVEN)
    missing = int(total) - sum(floors.values())
    for i in sorted(scaled, key=lambda i: (floors[i] - scaled[i], i))[:missing]:
        floors[i] += 1
    return [
        fixed(float(Decimal(floors[i]).scaleb(-decimals)), decimals) if i in floors else UNKNOWN
        for i in range(len(values))
    ]


def energy_unit(joules: float) -> tuple[str, float]:
    """The unit an amount of energy is shown in, and the joules in one of it."""
    return _unit(joules, (("Wh", 3.6e3), ("kWh", 3.6e6), ("MWh", 3.6e9)))


def power_unit(watts: float) -> tuple[str, float]:
    """The unit a power is shown in, and the watts in one of it."""
    return _unit(watts, (("W", 1.0), ("kW", 1e3), ("MW", 1e6)))


def _unit(value: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """The largest unit in which a value is 1 or more, for the middle one up to 10,000."""
    small, middle, large = units
    if value < middle[1]:
        return small
    return middle if value < 10_000 * middle[1] else large


def duration(seconds: float) -> str:
    """A stretch of time in its largest fitting unit, such as 15 s, 6 min, 2.8 h."""
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
