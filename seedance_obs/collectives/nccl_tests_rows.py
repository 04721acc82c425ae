"""Rows of results as nccl-tests print them: a size, and the times of one or two ways to do it.

A row is printed piece by piece while the test runs, so what NCCL logs meanwhile lands in the middle
of it, glued to the piece before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

LEFT_COLUMNS = ("size", "count", "type")
BLOCK = ("time", "algbw", "busbw", "#wrong")
WRONG = BLOCK[3]
NUMBERS = (*BLOCK, "error")  # columns that hold no words; others may
BANDWIDTHS = 2  # behind a time
TYPES = r"u?int\d+|half|float|double|bfloat16|fp?8\w*"
ROW = re.compile(rf"(?<![\w.#-])(\d+)[ \t]+(\d+)[ \t]+(?:{TYPES})[ \t](.*)$")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.I)
NOT_CHECKED = "N/A"


@dataclass(frozen=True, slots=True)
class Sample:
    """What one row says.

    Attributes:
        size_bytes: The S of `collective`; 0 where the size asked for was too small to share out.
        out_of_place_seconds: The mean time of one operation from one buffer to another; None where
            not printed.
        in_place_seconds: The same within one buffer; None where not printed.
        wrong: How many elements of the results were wrong, both ways together; None where nobody
            looked. Old versions print the largest error instead, which does not tell.
    """

    size_bytes: int
    out_of_place_seconds: float | None
    in_place_seconds: float | None
    wrong: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands where behind the column `type`.

    Attributes:
        columns: The names of these columns.
        times: The places of `time` among them: none to two, out of place first.
    """

    columns: tuple[str, ...]
    times: tuple[int, ...]


def layout_of(heading: Sequence[str]) -> Layout | None:
    """The layout under a heading, which is a line's words behind the `#`; None if it is none.

    Times that the heading calls `cputime` are those of the launch alone, and no times here.
    """
    if tuple(heading[: len(LEFT_COLUMNS)]) != LEFT_COLUMNS:
        return None
    columns = tuple(word for word in heading[len(LEFT_COLUMNS) :] if word != "timestamp")
    places = [place for place, word in enumerate(columns) if word == BLOCK[0]]
    return Layout(columns, tuple(places[:2]))


USUAL = Layout(("redop", "root", *BLOCK, *BLOCK), (2, 6))


class RowReader:
    """Puts the rows under one heading together from lines."""

    def __init__(self, layout: Layout = USUAL) -> None:
        self._layout = layout
        self._ends = {*layout.times, len(layout.columns)}  # of pieces printed in one go
        self._size: int | None = None
        self._values: list[float | None] = []
        self.samples: list[Sample] = []

    def read(self, line: str) -> None:
        """Takes in one line."""
        found = ROW.search(line)
        if found:
            self.finish()
            self._size = int(found[1])
        if self._size is not None:
            self._add((found[3] if found else line).split())

    def finish(self) -> None:
        """Keeps what there is of the latest row, if it has a time."""
        times = [self._time(place) for place in self._layout.times]
        if self._size is not None and any(time is not None for time in times):
            out, within = (*times, None)[:2]
            self.samples.append(Sample(self._size, out, within, self._wrong()))
        self._size = None
        self._values = []

    def _add(self, words: Sequence[str]) -> None:
        for word in words[: len(self._layout.columns) - len(self._values)]:
            plain = word.rstrip("*")
            number = NUMBER.match(plain)
            if number is not None and number[0] == plain:
                self._values.append(float(plain))
            elif word == NOT_CHECKED or self._layout.columns[len(self._values)] not in NUMBERS:
                self._values.append(None)
            else:
                if number is not None and len(self._values) + 1 in self._ends:
                    self._values.append(None)  # the piece's last number, and a log line behind it
                break
        if len(self._values) == len(self._layout.columns):
            self.finish()

    def _time(self, place: int) -> float | None:
        """A time in seconds, once both bandwidths behind it show that it was not cut short."""
        if len(self._values) <= place + BANDWIDTHS:
            return None
        time_us = self._values[place]
        return None if time_us is None else time_us / 1e6

    def _wrong(self) -> int | None:
        named = zip(self._layout.columns, self._values, strict=False)
        counts = [value for name, value in named if name == WRONG and value is not None]
        return int(sum(counts)) if counts else None
