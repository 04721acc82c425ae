"""How values look at the thresholds and the mappings of every field of a panel."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.dashboards.grafana_engine import run_grafana

BELOW = 1e-9
SCALED = ("color", "decimals", "mappings", "max", "min", "noValue", "thresholds", "unit")


@dataclass(frozen=True)
class Probe:
    """Settings of a field, and for values the colour, or the text and the colour, expected."""

    title: str
    config: Mapping[str, Any]
    expected: Mapping[Any, tuple[str | None, str | None]]


def probes_of(panel: Mapping[str, Any]) -> Iterator[Probe]:
    """The panel's own settings, and those with each of its overrides."""
    defaults = panel["fieldConfig"]["defaults"]
    overridden = [
        {**defaults, **{each["id"]: each.get("value") for each in override["properties"]}}
        for override in panel["fieldConfig"]["overrides"]
    ]
    for settings in [defaults, *overridden]:
        config = {name: settings[name] for name in SCALED if settings.get(name) is not None}
        yield Probe(panel["title"], config, _expected(config))


def _expected(config: Mapping[str, Any]) -> dict[Any, tuple[str | None, str | None]]:
    expected: dict[Any, tuple[str | None, str | None]] = {}
    if config["color"]["mode"] == "thresholds":
        steps = config["thresholds"]["steps"]
        for below, step in pairwise(steps):
            expected[step["value"] * (1 - BELOW)] = (None, below["color"])
            expected[step["value"]] = (None, step["color"])
    for mapping in config.get("mappings", ()):
        if mapping["type"] == "value":
            for value, look in mapping["options"].items():
                expected[value] = (look.get("text"), look.get("color"))
    return expected


def wrong(probes: list[Probe]) -> list[tuple[str, Any, Any, Any]]:
    """Where Grafana shows another text or colour than the settings ask for, or no text at all."""
    asked = [{"config": dict(each.config), "values": list(each.expected)} for each in probes]
    shown = run_grafana([], asked)["probes"]
    return [
        (probe.title, value, expected, look)
        for probe, looks in zip(probes, shown, strict=True)
        for (value, expected), look in zip(probe.expected.items(), looks, strict=True)
        if not _as_expected(expected, look)
    ]


def _as_expected(expected: tuple[str | None, str | None], look: Mapping[str, str]) -> bool:
    text, color = expected
    same_color = color is None or look["color"].lower() == color.lower()
    return same_color and bool(look["text"]) and text in (None, look["text"])
