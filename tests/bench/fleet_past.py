"""What a fleet's Prometheus remembers of the days before: the long windows of rules, in blocks."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random

from seedance_obs.rules.expression import Aggregation, Node, Selector, selectors
from seedance_obs.rules.promtool import PATIENCE_SECONDS
from seedance_obs.rules.rule_file import Rule
from tests.bench.fleet_page import Fleet, PageSeries, labels_of_node

BLOCK_SECONDS = 7200
# There only once something has happened, or the same at all times.
WITHOUT_PAST = frozenset(
    {
        "gpu:seedance_gpu_lost_time_seconds:max",
        "gpu:seedance_gpu_xid_time_seconds:max",
        "seedance:threshold",
    }
)


@dataclass(frozen=True, slots=True)
class Past:
    """Series that are known for longer than the last hour, or that only a rule writes."""

    series: tuple[PageSeries, ...]
    seconds: float
    step_seconds: int
    recorded: bool  # not on the page


def past_of_rules(
    rules: Sequence[Rule], fleet: Fleet, *, rule_seconds: int, hour_seconds: int
) -> list[Past]:
    """What the rules look back at and an hour of scrapes does not hold."""
    recorded = {rule.name: rule.tree for rule in rules if not rule.alert}
    reach: dict[str, float] = {}
    for each in (each for rule in rules for each in selectors(rule.tree)):
        seconds = each.offset + (each.range or 0)
        if each.name in WITHOUT_PAST:
            continue
        if seconds > (0 if each.name in recorded else hour_seconds):
            reach[each.name] = max(seconds, reach.get(each.name, 0))
    return [
        Past(
            tuple(_fleet_series(name, recorded, fleet)),
            seconds,
            rule_seconds if name in recorded else fleet.scrape_seconds,
            recorded=name in recorded,
        )
        for name, seconds in sorted(reach.items())
    ]


def write_blocks(past: Iterable[Past], folder: Path, end_seconds: int, hour_seconds: int) -> None:
    """The past up to a moment, the hour after which is held in memory, as blocks of two hours.

    Raises:
        CalledProcessError: promtool refuses it.
    """
    kept = [each for each in past if each.seconds > hour_seconds]
    longest = max((each.seconds for each in kept), default=hour_seconds) - hour_seconds
    random = Random(1)
    begin = end_seconds - longest
    while begin < end_seconds:
        end = min(end_seconds, (begin // BLOCK_SECONDS + 1) * BLOCK_SECONDS)
        text = folder / "past.txt"
        with text.open("w") as stream:
            for each in kept:
                first = max(begin, end_seconds + hour_seconds - each.seconds)
                stream.writelines(_lines(each, first, end, random))
            stream.write("# EOF\n")
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", text, folder / "tsdb"],
            check=True,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        text.unlink()
        begin = end


def _lines(past: Past, begin: float, end: float, random: Random) -> Iterator[str]:
    step = past.step_seconds
    stamps = range(ceil(begin / step) * step, ceil(end), step)
    if not stamps:
        return
    yield f"# TYPE {past.series[0].name} gauge\n"
    for each in past.series:
        labels = ",".join(f'{name}="{value}"' for name, value in each.labels.items())
        head = f"{each.name}{{{labels}}} "
        values = each.values(stamps, random)
        yield "".join(f"{head}{value:.6g} {at}\n" for at, value in zip(stamps, values, strict=True))


def _fleet_series(name: str, recorded: dict[str, Node], fleet: Fleet) -> Iterator[PageSeries]:
    """A series of each label set that a name has in the fleet, for what rules record from it."""
    source, kept = name, None
    chosen: list[Selector] = []
    while source in recorded:
        if kept is None and isinstance(tree := recorded[source], Aggregation):
            kept = tree.labels
        chosen.append(next(selectors(recorded[source])))
        source = chosen[-1].name
    found = [
        each for each in fleet.page if each.name == source and all(map(each.chosen_by, chosen))
    ]
    seen = set()
    for number in range(fleet.nodes):
        for each in (each for each in found if each.on_node(number)):
            labels = labels_of_node(each.labels, number)
            shown = {n: v for n, v in labels.items() if v and (kept is None or n in kept)}
            if (key := frozenset(shown.items())) not in seen:
                seen.add(key)
                value = 1.0 if name in recorded else each.value
                yield PageSeries(name, shown, value, moves=name in recorded)
