"""The cells of a matrix's row: words of a small alphabet, whole, glued together or destroyed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

SELF = "X"
_MOST_NOISE = 12  # words of a shell, a log or srun before a row's name
_TOKEN = re.compile(r"\S+")
_AFFINITY = re.compile(r"[0-9]|N/A")


class Alphabet:
    """The words that cells are made of: plain ones, and a stem that carries a number (`NV12`).

    A line with at least as many of the `foreign` words is of another kind of matrix.
    """

    def __init__(self, *words: str, stem: str = "", foreign: str) -> None:
        self.words = frozenset((SELF, *words))
        longest_first = sorted(self.words, key=len, reverse=True)
        numbered = f"|{stem}[1-9][0-9]{{0,2}}(?=[A-Z]|$)" if stem else ""
        begun = f"|{stem}[1-9]" if stem else ""
        self._cell = re.compile("|".join(longest_first) + numbered)
        self._foreign = re.compile(rf"(?<!\S)(?:{foreign})(?!\S)")
        self._whole = re.compile(rf"(?:{'|'.join(longest_first)}|N/A)$")
        self._start = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(longest_first)}{begun})")

    def may_be_in(self, line: str) -> bool:
        """Whether a cell may start anywhere in a line: a cheap test, for most lines are a log's."""
        return self._start.search(line) is not None

    def foreign_in(self, text: str) -> int:
        """How many foreign words stand alone in the text."""
        return len(self._foreign.findall(text))

    def word(self, text: str) -> str | None:
        """The one word that a text is, or None."""
        cells, rest = self.split(text)
        return text if len(cells) == 1 and not rest else None

    def split(self, token: str) -> tuple[list[str], str]:
        """The cells that a token starts with, and the rest of it that is none."""
        if token in self.words:
            return [token], ""
        cells = []
        at = 0
        while found := self._cell.match(token, at):
            cells.append(found[0])
            at = found.end()
        return cells, token[at:]

    def whole_tokens(self, line: str) -> str:
        """A line that ends with the text, without a last token that may have been longer."""
        start = len(line) - len(line.split()[-1]) if line.strip() else len(line)
        if line[-1:].isspace() or self._whole.search(line):
            return line
        return line[:start]


@dataclass(slots=True)
class Row:
    """A device's line: its cells from the left (None where destroyed) and the text behind them.

    `tail` is None where the last cell is glued to it. `name_end` and `tail_at` are columns with
    tabs of eight; `single_tabs` says that each cell had exactly one tab before it. `open` is a line
    that the text's end cuts.
    """

    name: str
    cells: list[str | None]
    tail: str | None = ""
    name_end: int = 0
    tail_at: int = 0
    single_tabs: bool = False
    open: bool = False


def row_of(
    line: str, alphabet: Alphabet, columns: Sequence[str], *, fields: int = 0, is_open: bool
) -> Row | None:
    """The row that a line is, or None.

    A row is a column's name (a GPU's where `columns` is empty, for want of a header) and cells
    behind it; shells put their noise before the name. At least half of the cells must be readable,
    which keeps prose out. `fields` is how many tabs a whole row of nvidia-smi has here.
    """
    if not alphabet.may_be_in(line):
        return None
    tokens = list(_TOKEN.finditer(line))
    for position, token in enumerate(tokens[:_MOST_NOISE]):
        found = _name_of(token[0], alphabet, columns, first=position == 0)
        if found is None:
            continue
        name, glued = found
        torn = False
        tabbed = None
        if columns and not glued:
            own = columns.index(name)
            tabbed = _tabbed(line[token.end() :], alphabet, own, len(columns), fields)
        if tabbed is not None:
            cells, tail_at = tabbed[0], token.end() + tabbed[1]
        else:
            cells, tail_at, torn = _cells(tokens[position + 1 :], glued, alphabet, len(columns))
        readable = sum(cell is not None for cell in cells)
        foreign = alphabet.foreign_in(line[token.end() :])
        if foreign and foreign >= readable - cells.count(SELF):
            return None
        if not readable or 2 * readable < len(cells):
            continue
        tail_at = max(tail_at, token.end())
        path = line[token.start() : tail_at]
        return Row(
            name=name,
            cells=cells,
            tail=None if torn else line[tail_at:],
            name_end=len(line[: token.end()].expandtabs()),
            tail_at=len(line[:tail_at].expandtabs()),
            single_tabs=path.count("\t") == len(cells),
            open=is_open,
        )
    return None


def _name_of(
    token: str, alphabet: Alphabet, columns: Sequence[str], *, first: bool
) -> tuple[str, list[str]] | None:
    """A row's name and the cells glued to it."""
    if token in columns:
        return token, []
    if columns and not token.startswith(tuple(columns)):
        return None
    names = sorted(columns, key=len, reverse=True) if columns else _leading_gpu(token)
    for name in names:
        if token.startswith(name):
            cells, rest = alphabet.split(token[len(name) :])
            if not rest:
                return name, cells
    return (token, []) if first and not columns and _nic_like(token) else None


def _leading_gpu(token: str) -> list[str]:
    found = re.match(r"GPU[0-9]{1,4}", token)
    return [found[0]] if found else []


def _nic_like(token: str) -> bool:
    """`NIC3`, or what the kernel calls an RDMA device; anything else may be a damaged name."""
    return re.fullmatch(r"NIC[0-9]+|(?=[^0-9_]*[0-9_])[a-z][a-z0-9_.-]*", token) is not None


def _tabbed(
    rest: str, alphabet: Alphabet, own: int, expected: int, fields: int
) -> tuple[list[str | None], int] | None:
    """The cells between tabs and where the text behind them starts, or None where a tab is lost.

    No tab is lost where the row's X is in its own field, and the last one holds a word or the row
    has as many tabs as a whole one.
    """
    lead, *found = rest.split("\t")
    texts = [text.strip() for text in found]
    if lead.strip() or len(texts) < expected or texts[own] != SELF:
        return None
    cells = [None if text == SELF else alphabet.word(text) for text in texts]
    cells[own] = SELF
    if cells[expected - 1] is None and (len(texts) != fields or not texts[expected - 1]):
        return None
    width = expected
    while width < len(cells) and cells[width] is not None:
        width += 1
    return cells[:width], len(lead) + sum(1 + len(text) for text in found[:width])


def _cells(
    tokens: list[re.Match[str]], glued: list[str], alphabet: Alphabet, expected: int
) -> tuple[list[str | None], int, bool]:
    """The cells, where the text behind them starts, and whether a cell is torn into it.

    A word with anything else at its end is one lost cell, not a word: the mark may say why not.
    """
    cells: list[str | None] = [*glued]
    end = 0
    for token, after in zip_longest(tokens, tokens[1:]):
        found, rest = alphabet.split(token[0])
        is_last = after is None or alphabet.word(after[0]) is None
        if not found and (len(cells) >= expected or (is_last and _AFFINITY.match(token[0]))):
            break
        end = token.end()
        if not rest:
            cells += found
        elif len(cells) + len(found) >= expected and (is_last and _AFFINITY.match(rest)):
            return [*cells, *found], end, True
        else:
            cells.append(None)
            if len(cells) >= expected and is_last:
                return cells, end, True
    return cells, end, False
