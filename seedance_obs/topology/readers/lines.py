"""What terminals, shells and web pages do to a tool's output, undone."""

import re
from collections.abc import Iterable, Sequence

_COLOUR = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]"  # escape sequences as printed
    r"|\u241b\[[0-9;]*m|\^\[\[[0-9;]*m|\[[0-9;]*m"  # and what copying leaves of them
    r"|\\(?:x1b|033|e|u001b)\[[0-9;]*m"
)
_UNSEEN = str.maketrans({"\xa0": " ", "\ufeff": "", "\u200b": "", "\x1b": ""})
_ESCAPED = re.compile(r"\\t *(?:GPU|Link) ?[0-9]|GPU[0-9]+ *\\t")
_ESCAPE = re.compile(r"\\+([nt])")
MOST_WARNINGS = 40


def lines_of(text: str) -> list[str]:
    """The lines without colours and CRs; the last one has no end (empty where the text has one).

    A leading `# source:` line says where a sample is from and is not part of it: it comes back
    empty, so that positions stay. Tabs and line ends that stand as `\\t` and `\\n`, as in JSON, are
    tabs and line ends.
    """
    clean = _COLOUR.sub("", text).translate(_UNSEEN)
    if _ESCAPED.search(clean):
        clean = _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else "\t", clean)
    lines = clean.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].startswith("# source:"):
        lines[0] = ""
    return lines


def ranges(names: Sequence[str], positions: Iterable[int]) -> str:
    """The names at some ascending positions: `GPU2, NIC0 to NIC9`."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    return ", ".join(
        names[run[0]] if len(run) == 1 else f"{names[run[0]]} to {names[run[-1]]}" for run in runs
    )


def bounded(warnings: Iterable[str]) -> tuple[str, ...]:
    """The warnings, each once; beyond MOST_WARNINGS only how many more there are."""
    unique = list(dict.fromkeys(warnings))
    if len(unique) <= MOST_WARNINGS:
        return tuple(unique)
    return (*unique[:MOST_WARNINGS], f"and {len(unique) - MOST_WARNINGS} more places")
