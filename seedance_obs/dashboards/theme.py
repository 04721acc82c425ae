"""What every dashboard agrees on: the colour, the unit and the thresholds of each quantity.

Colours are Okabe and Ito's, which people who cannot tell red from green can tell apart. One
colour means one quantity or one state, on every dashboard.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8C8C8C"

BUSY, IDLE, UNKNOWN, MISSING = ORANGE, BLUE, GREY, VERMILION
NVLINK, PCIE = GREEN, GREY
FIRING = VERMILION


@dataclass(frozen=True, slots=True)
class Look:
    """How a quantity is shown: Grafana's unit id, its colour and, where known, its range."""

    unit: str
    color: str
    low: float | None = None
    high: float | None = None


UTILIZATION = Look("percentunit", ORANGE, 0, 1)
UTILIZATION_PERCENT = Look("percent", ORANGE, 0, 100)
POWER = Look("watt", PURPLE, 0)
MEMORY = Look("percentunit", SKY, 0, 1)
COUNT = Look("none", BLUE, 0)
AGE = Look("s", YELLOW, 0)


def steps(base: str, *above: tuple[float, str]) -> JsonObject:
    """Thresholds: the base colour, then each colour from its value upwards, ascending."""
    rows: list[Json] = [{"color": base, "value": None}]
    rows += [{"color": color, "value": value} for value, color in above]
    return {"mode": "absolute", "steps": rows}


ANY_IS_BAD = steps(GREEN, (1, FIRING))
READING_AGE = steps(GREEN, (30, ORANGE), (120, FIRING))
BUSY_SCALE = steps("#2B2F3A", (0.05, "#31507A"), (0.25, SKY), (0.5, YELLOW), (0.8, ORANGE))
