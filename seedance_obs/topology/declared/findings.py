"""What is wrong with a declared topology: rules, places, and how many of each to keep."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

WARNINGS = frozenset({"duplicate-edge", "unknown-field", "foreign-document"})
LONGEST_NAME = 80

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: at `file` and `line` (from 1), under the name of its rule.

    `names` are the nodes it is about, of a long cycle the first hundred; `related` the other places
    that belong to it.
    """

    file: str
    line: int
    rule: str
    message: str
    names: tuple[str, ...] = ()
    related: tuple[Place, ...] = ()

    @property
    def severity(self) -> str:
        """`error`, or `warning` for what does not make a topology invalid."""
        return "warning" if self.rule in WARNINGS else "error"


class Findings:
    """Counts every finding and keeps the first `limit` of each rule; a limit of 0 keeps all."""

    def __init__(self, limit: int) -> None:
        self.counts: Counter[str] = Counter()
        self._limit = limit
        self._kept: list[Finding] = []

    def add(
        self,
        rule: str,
        place: Place,
        message: str,
        *,
        names: tuple[str, ...] = (),
        related: tuple[Place, ...] = (),
    ) -> None:
        """Count a finding, and keep it if there is room."""
        self.counts[rule] += 1
        if not self._limit or self.counts[rule] <= self._limit:
            self._kept.append(Finding(*place, rule, message, names, related))

    def in_order(self, files: Iterable[str]) -> tuple[Finding, ...]:
        """What was kept, by the order of the files and by line."""
        rank = {file: index for index, file in enumerate(dict.fromkeys(files))}
        return tuple(sorted(self._kept, key=lambda found: (rank[found.file], found.line)))

    @property
    def omitted(self) -> dict[str, int]:
        """How many findings of a rule were counted but not kept."""
        if not self._limit:
            return {}
        return {rule: n - self._limit for rule, n in self.counts.items() if n > self._limit}

    def total(self, *, warnings: bool) -> int:
        """The number of warnings, or of errors."""
        return sum(n for rule, n in self.counts.items() if (rule in WARNINGS) is warnings)


def shown(text: str) -> str:
    """A name as it may stand in a sentence: without what a terminal would obey, and not long."""
    safe = text if text.isprintable() and text else ascii(text)
    return safe if len(safe) <= LONGEST_NAME else f"{safe[: LONGEST_NAME - 3]}..."
