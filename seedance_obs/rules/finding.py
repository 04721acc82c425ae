"""One thing that is wrong with a rule, and where."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A sentence about a rule; the rule is empty where it is about the file."""

    file: Path
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        """As compilers print it, so that editors find the place."""
        name = f" {self.rule}:" if self.rule else ""
        return f"{self.file}:{self.line}:{name} {self.sentence}"
