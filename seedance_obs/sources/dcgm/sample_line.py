"""One line of Prometheus' text format, taken apart and nothing more.

Why not prometheus-client's parser: it gives a float, and whether a DCGM number is printed with a
point says what it is; it stops at a bad line; and it costs ten times as much a sample, because here
the labels, which every family of a GPU repeats word for word, stay text until someone asks.
"""

import re

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\}|(?<=[ \t]))[ \t]*"
    r"([^ \t{}]+)(?:[ \t]+-?\d+)?[ \t]*",
    re.ASCII,
)
_LABEL = re.compile(
    r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"([^"\\]*(?:\\.[^"\\]*)*)"[ \t]*(?:,[ \t]*|$)'
)
_ESCAPE = re.compile(r"\\(.)")
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?[iI]nf|[nN]a[nN]", re.ASCII)


def metric_name(line: str) -> str | None:
    """The name a line begins with; None where it begins with no name."""
    match = _NAME.match(line)
    return match.group() if match else None


def split_sample(line: str) -> tuple[str, str, str] | None:
    """Name, text between the braces and text of the value; None where it is not a sample."""
    match = _SAMPLE.fullmatch(line)
    if match is None:
        return None
    name, labels, value = match.groups()
    return name, labels or "", value


def read_labels(text: str) -> dict[str, str] | None:
    """The labels between the braces; None where a quote is missing or a name comes twice."""
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LABEL.match(text, place)
        if match is None or match.group(1) in labels:
            return None
        labels[match.group(1)] = _ESCAPE.sub(_unescaped, match.group(2))
        place = match.end()
    return labels


def read_number(text: str) -> float | None:
    """A value, an `int` exactly where it has no point and no exponent; None for other text."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else None


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match.group(1) == "n" else match.group(1)
