"""The dashboards in files and folders, and on standard input."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from seedance_obs.dashboards.check.json_values import JsonObject
from seedance_obs.dashboards.check.model import Dashboard, Site, classic
from seedance_obs.errors import UsageError
from seedance_obs.rules.series import KnownSeries

STANDARD_INPUT = "-"


def read_dashboards(
    paths: Iterable[str], *, known: KnownSeries | None = None, all_names: bool = False
) -> list[Dashboard]:
    """All dashboards of files, folders and `-`, each of which knows of the others.

    Raises:
        UsageError: one cannot be read, or is no dashboard of the classic model.
    """
    read = [(name, read_dashboard(name)) for name in _names(paths)]
    alone = [Dashboard(name, raw) for name, raw in read]
    site = Site(
        variables={each.uid: frozenset(v.name for v in each.variables) for each in alone},
        uses=Counter(each.uid for each in alone),
        known=known,
        all_names=all_names,
    )
    return [Dashboard(name, raw, site) for name, raw in read]


def read_dashboard(name: str) -> JsonObject:
    """The dashboard of a file.

    Raises:
        UsageError: it cannot be read, or is no dashboard of the classic model.
    """
    try:
        raw = json.loads(_text(name))
        if not isinstance(raw, dict):
            raise ValueError("a dashboard in Grafana's JSON is wanted, and this is no object")
        return classic(raw)
    except (OSError, RecursionError) as error:
        raise UsageError(f"{name}: cannot be read: {error}") from error
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


def _text(name: str) -> str:
    return sys.stdin.read() if name == STANDARD_INPUT else Path(name).read_text(encoding="utf-8")


def _names(paths: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        if not Path(path).is_dir():
            yield path
            continue
        found = sorted(Path(path).rglob("*.json"))
        if not found:
            raise UsageError(f"{path}: no *.json is in this folder")
        yield from map(str, found)
