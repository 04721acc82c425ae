"""Regular expressions over cgroup paths, of a kind that no path can make slow.

Python's matcher tries every way in which the repeats of a pattern can share a text, and it cannot
be stopped once it has begun. So a pattern is plain: no repeat or choice inside a repeat, no
look-around or back-reference, few repeats, and of those that can run over a `/` still fewer.
"""

import re
import warnings
from dataclasses import dataclass, field

LONGEST_PATTERN = 200
LONGEST_PATH = 512  # of a path, the patterns see this much
MOST_REPEATS = 3  # `{64}` is none
MOST_WIDE_REPEATS = 2  # of `.` or another thing that matches a `/`
MOST_FORKS = 8  # a repeat counts as two, an optional part and a `|` as one

_TOKEN = re.compile(
    r"""(?P<escape>\\.)
      | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
      | (?P<open>\((?:\?(?:P<\w+>|:))?)
      | (?P<close>\))
      | (?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[?+]?)
      | (?P<choice>\|)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_EXACTLY = re.compile(r"\{\d+\}.?")
_ONCE_AT_MOST = re.compile(r"\?.?|\{(?:0,|,)?1\}.?")


def cgroup_pattern(text: str) -> re.Pattern[str]:
    """The pattern that a text is.

    Raises:
        ValueError: it is no regular expression, or one that some path could make slow; the message
            completes "a regular expression is wanted".
    """
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"of {LONGEST_PATTERN} characters at most, found {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what looks like a set inside a set: [[:alpha:]]
            pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise ValueError(f"that compiles, found {text!r}: {error}") from error
    problem = _Scan().problem(text)
    if problem:
        raise ValueError(f"{problem}, found {text!r}")
    return pattern


@dataclass(slots=True)
class _Scan:
    """One reading of a pattern that compiles, from left to right.

    `groups` has an entry for each group that is open: whether it can match in more than one way.
    """

    groups: list[bool] = field(default_factory=lambda: [False])
    forks: int = 0
    repeats: int = 0
    wide_repeats: int = 0

    def problem(self, text: str) -> str:
        """Why the pattern could be slow, empty where it cannot."""
        wide = forked = False  # the thing before: can it match a "/", and in more than one way
        for token in _TOKEN.finditer(text):
            kind, found = str(token.lastgroup), token.group()
            if kind == "repeat":
                problem = self._repeat(found, wide=wide, forked=forked)
            else:
                problem = self._plain(kind, found, text[token.end() :])
                forked = kind == "close" and self.groups.pop()
                wide = kind == "close" or _is_wide(kind, found)
            if problem:
                return problem
        return self._too_many()

    def _repeat(self, found: str, *, wide: bool, forked: bool) -> str:
        once = _ONCE_AT_MOST.fullmatch(found) is not None
        if forked and not once:
            return "without a repeat or choice inside a repeat"
        if _EXACTLY.fullmatch(found):
            return ""
        self.groups[-1] = True
        self.forks += 1 if once else 2
        self.repeats += not once
        self.wide_repeats += wide and not once
        return ""

    def _plain(self, kind: str, found: str, rest: str) -> str:
        if (found == "(" and rest.startswith("?")) or re.fullmatch(r"\\[1-9]", found):
            return "without look-around, back-references and flags"
        if kind == "open":
            self.groups.append(False)
        elif kind == "choice":
            self.forks += 1
            self.groups[-1] = True
        elif kind == "close":
            self.groups[-2] |= self.groups[-1]
        return ""

    def _too_many(self) -> str:
        if self.repeats > MOST_REPEATS:
            return f"with {MOST_REPEATS} repeats at most"
        if self.wide_repeats > MOST_WIDE_REPEATS:
            return f"with {MOST_WIDE_REPEATS} repeats of what matches a '/' at most"
        if self.forks > MOST_FORKS:
            return "with fewer repeats, optional parts and choices"
        return ""


def _is_wide(kind: str, found: str) -> bool:
    if kind == "set":
        return re.fullmatch(found, "/") is not None
    return found in (".", "/", r"\/", r"\S", r"\D", r"\W")
