"""Whether a data link finds, where it is clicked, what it passes on."""

import re
from collections.abc import Iterator
from typing import Any

from tests.dashboards.every_panel import Field, Frame

COLUMN = re.compile(r'\$\{__data\.fields(?:\.(\w+?)|\["([^"]+)"\])(\.numeric)?\}')
LABEL = re.compile(r"\$\{__field\.labels\.(\w+)\}")
MOMENT = re.compile(r"\b(?:from|to)=" + COLUMN.pattern)
MILLISECONDS = (1e12, 1e13)


def unfilled(field: Field, frame: Frame) -> list[str]:
    """What the links of a field refer to in vain, or in the wrong unit."""
    links = (field.get("settings") or {}).get("links") or []
    return [wrong for link in links for wrong in _wrong(link["title"] + link["url"], field, frame)]


def _wrong(text: str, field: Field, frame: Frame) -> Iterator[str]:
    columns = {each["name"]: each for each in frame["fields"]}
    for dotted, quoted, numeric in COLUMN.findall(text):
        column = columns.get(dotted or quoted)
        if column is None or (numeric and column["type"] not in ("number", "time")):
            yield dotted or quoted
    for label in LABEL.findall(text):
        if label not in (field.get("labels") or {}):
            yield label
    for dotted, quoted, _ in MOMENT.findall(text):
        low, high = MILLISECONDS
        values: list[Any] = columns[dotted or quoted]["values"]
        if not all(value is None or low < value < high for value in values):
            yield f"{dotted or quoted} is not in milliseconds"
