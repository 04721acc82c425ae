"""What every dashboard agrees on: the colour, the unit and the thresholds of each quantity.

Colours are Okabe and Ito's, then Tol's muted ones: people who cannot tell red from green can tell
them apart. One colour means one quantity or one state, on every dashboard.
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
TEAL = "#44AA99"
WINE = "#882255"
SAND = "#DDCC77"
ROSE = "#CC6677"
OLIVE = "#999933"
DARK = "#2B2F3A"

# States of a GPU. Held and idle: somebody has it and does not use it.
BUSY, HELD_IDLE, IDLE, UNKNOWN, MISSING = ORANGE, YELLOW, BLUE, GREY, VERMILION
NVLINK, PCIE, C2C = GREEN, GREY, TEAL
FIRING = VERMILION
WARNING = ORANGE
GOOD = GREEN
INFO = SKY


@dataclass(frozen=True, slots=True)
class Look:
    """How a quantity is shown: Grafana's unit id, its colour and, where known, its range."""

    unit: str
    color: str
    low: float | None = None
    high: float | None = None
    decimals: int | None = None


UTILIZATION = Look("percentunit", ORANGE, 0, 1)
UTILIZATION_PERCENT = Look("percent", ORANGE, 0, 100)
POWER = Look("watt", PURPLE, 0)
ENERGY = Look("joule", PURPLE, 0)
MEMORY = Look("percentunit", SKY, 0, 1)
MEMORY_BYTES = Look("bytes", SKY, 0)
COUNT = Look("none", BLUE, 0, decimals=0)
GPUS = Look("none", BLUE, 0)
GPU_SECONDS = Look("s", BLUE, 0)
AGE = Look("s", SAND, 0)
TEMPERATURE = Look("celsius", ROSE)
BANDWIDTH = Look("Bps", TEAL, 0)
LINK_LOAD = Look("percentunit", TEAL, 0, 1)
FRAGMENTATION = Look("percentunit", WINE, 0, 1)
CONTENTION = Look("percentunit", ROSE, 0, 1)
CONTENTION_SECONDS = Look("s", ROSE, 0)
SENSITIVITY = Look("percentunit", WINE, 0, 1)
REGRET = Look("percentunit", WINE, 0, 1)
ERRORS = Look("none", VERMILION, 0)
FILES = Look("none", SAND, 0)
ENERGY_KWH = Look("kwatth", PURPLE, 0)
GPU_HOURS = Look("none", BLUE, 0, decimals=1)
DURATION = Look("s", SAND, 0)
WASTED_GPUS = Look("none", HELD_IDLE, 0, decimals=1)
MEMORY_GROWTH = Look("Bps", SKY)
FILE_GROWTH = Look("cps", SAND)
MONEY_PER_HOUR = Look("none", OLIVE, 0, decimals=2)


def steps(base: str, *above: tuple[float, str]) -> JsonObject:
    """Thresholds: the base colour, then each colour from its value upwards, ascending."""
    rows: list[Json] = [{"color": base, "value": None}]
    rows += [{"color": color, "value": value} for value, color in above]
    return {"mode": "absolute", "steps": rows}


ANY_IS_BAD = steps(GOOD, (1, FIRING))
ANY_IS_A_WARNING = steps(GOOD, (1, WARNING))
READING_AGE = steps(GOOD, (30, WARNING), (120, FIRING))
BUSY_SCALE = steps(DARK, (0.05, "#31507A"), (0.25, SKY), (0.5, YELLOW), (0.8, ORANGE))
# The more the worse: from nothing to the point at which an alert would tell.
HARM_SCALE = steps(DARK, (0.02, "#31507A"), (0.1, SKY), (0.3, YELLOW), (0.6, VERMILION))
LOAD_SCALE = steps(DARK, (0.05, "#31507A"), (0.3, SKY), (0.6, YELLOW), (0.8, VERMILION))
# GPU time an hour that is or would be lost: a hundredth, a tenth, half of a GPU, a whole one.
LOST_SCALE = steps(DARK, (36, "#31507A"), (360, SKY), (1800, YELLOW), (3600, VERMILION))

# A link by its load in whole per cent, as patterns; the colours are those of BUSY_SCALE.
LINK_LOADS = {
    "#31507A": "[0-4]",
    SKY: "[5-9]|[12][0-9]",
    YELLOW: "[3-7][0-9]",
    ORANGE: "[89][0-9]|[1-9][0-9][0-9]+",
}
LINK_WRONG = VERMILION
# From close to far, and what is no pair or not known.
LINK_CLASSES = {
    "NV[0-9]+": NVLINK,
    "C2C": C2C,
    "PIX": SKY,
    "PXB": BLUE,
    "PHB": YELLOW,
    "NODE": ORANGE,
    "SYS": VERMILION,
    "X": DARK,
}
PLAIN = "#565A64"  # a device of which nothing is told
LINKS_UP = Look("percentunit", NVLINK, 0, 1)
ALL_IS_GOOD = steps(FIRING, (0.5, WARNING), (1, GOOD))
# Of what is held, the share that is used: a tenth, a third, two thirds.
USE_SCALE = steps(FIRING, (0.1, WARNING), (0.33, YELLOW), (0.66, GOOD))
