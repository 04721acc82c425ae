"""The file form of a calibration: JSON, with what was measured, when, on what and by what.

    {"format": "seedance-collectives/1",
     "curves": [{"collective": "all_reduce", "gpus": 8, "nodes": 1, "link_class": "NV18",
                 "tool": "nccl-tests 2.17.6", "library": "2.28.7", "gpu_model": "NVIDIA H200",
                 "measured_at": "2026-01-31T09:30:00Z", "buffers": "out of place",
                 "points": [[8, 0.0000213], [17179869184, 0.0669]]}]}

Points are bytes and seconds. `link_class` and the five that say where a curve comes from are left
out where unknown.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from difflib import get_close_matches
from typing import NoReturn

from seedance_obs.collectives.calibration import LARGEST_BYTES, Calibration, Curve, Origin, Point
from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.errors import UsageError

FORMAT = "seedance-collectives/1"
TEXTS = ("link_class", *(each.name for each in fields(Origin)))
NEEDED = ("collective", "gpus", "nodes", "points")
LONGEST_TEXT = 256


def write_calibration(calibration: Calibration) -> str:
    """The file of a calibration, ending in a newline; reading it gives an equal one."""
    curves = [_written(curve) for curve in calibration.curves]
    return json.dumps({"format": FORMAT, "curves": curves}, indent=1) + "\n"


def read_calibration(text: str, *, name: str = "calibration") -> Calibration:
    """The calibration in a file.

    Args:
        text: JSON.
        name: the file's name, for messages.

    Raises:
        UsageError: says which curve and key are wrong, what is wanted there and what was found.
    """
    try:
        document = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: this is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        _refuse(name, f'an object with "format": "{FORMAT}" is', repr(found))
    _check_keys(name, document, ("format", "curves"))
    curves = document.get("curves")
    if not isinstance(curves, list):
        _refuse(f"{name}: curves", "a list is", repr(curves))
    read = [_curve(f"{name}: curve {number}", each) for number, each in enumerate(curves, 1)]
    try:
        return Calibration(read)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        doubled = next(key for key in table if [name for name, _ in pairs].count(key) > 1)
        raise ValueError(f"the key {doubled!r:.200} is there twice in one object")
    return table


def _written(curve: Curve) -> dict[str, object]:
    texts = {"link_class": curve.link_class, **asdict(curve.origin)}
    return {
        "collective": curve.collective.value,
        "gpus": curve.group.gpus,
        "nodes": curve.group.nodes,
        **{key: text for key, text in texts.items() if text is not None},
        "points": [[point.size_bytes, point.seconds] for point in curve.points],
    }


def _curve(where: str, table: object) -> Curve:
    if not isinstance(table, dict):
        _refuse(where, "an object is", repr(table))
    _check_keys(where, table, (*NEEDED, *TEXTS))
    for key in NEEDED:
        if key not in table:
            _refuse(where, f"{key!r} is", "none")
    texts = {key: _text(f"{where}, {key}", table[key]) for key in TEXTS if key in table}
    if "measured_at" in texts:
        _check_time(f"{where}, measured_at", texts["measured_at"])
    link_class = texts.pop("link_class", None)
    collective = _collective(f"{where}, collective", table["collective"])
    gpus, nodes = (_count(f"{where}, {key}", table[key]) for key in ("gpus", "nodes"))
    points = _points(f"{where}, points", table["points"])
    try:
        return Curve(collective, Group(gpus, nodes), points, link_class, Origin(**texts))
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def _collective(where: str, value: object) -> Collective:
    names = [each.value for each in Collective]
    if not isinstance(value, str) or value not in names:
        _refuse(where, f"one of {', '.join(names)} is", repr(value))
    return Collective(value)


def _points(where: str, value: object) -> tuple[Point, ...]:
    if not isinstance(value, list):
        _refuse(where, "a list of [bytes, seconds] is", repr(value))
    points = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or not _is_number(pair[1]):
            _refuse(where, "[bytes, seconds] is", repr(pair))
        points.append(Point(_count(where, pair[0]), float(pair[1])))
    return tuple(points)


def _count(where: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_BYTES:
        _refuse(where, "a whole number above 0 is", repr(value))
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT:
        wanted = f"a text of 1 to {LONGEST_TEXT} characters (leave out what is unknown) is"
        _refuse(where, wanted, repr(value))
    return value


def _check_time(where: str, text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        _refuse(where, "a time such as 2026-01-31T09:30:00Z is", repr(text))


def _check_keys(where: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            _refuse(where, f"one of {', '.join(known)} is", f"{key!r}{meant}")


def _refuse(where: str, wanted: str, found: str) -> NoReturn:
    raise UsageError(f"{where}: {wanted} wanted, found {found:.200}")
