"""XML as it is pasted: with noise around it, or cut anywhere. What was read so far is kept.

Nothing outside the text is ever opened, and a document that declares entities is not read: no
topology needs them, and they can blow a few lines up to gigabytes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from seedance_obs.topology.model import UNKNOWN, Absent

_DEEPEST = 200  # hwloc nests some twenty elements
_MOST_WORDS = 1024  # 32768 logical CPUs
_WORD = re.compile(r"(0x)?[0-9a-fA-F]{0,8}")


@dataclass(slots=True)
class Element:
    """An element; `closed` is False where the text ends inside it."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    closed: bool = False

    def get(self, name: str) -> str:
        """The value of an attribute, empty where it is missing."""
        return self.attributes.get(name, "")

    def all(self, tag: str) -> list["Element"]:
        """The children with a tag, in order."""
        return [child for child in self.children if child.tag == tag]

    def everything(self) -> Iterator["Element"]:
        """This element and all below it, from the top of the text to its end."""
        yield self
        for child in self.children:
            yield from child.everything()


def read_xml(text: str, root: str) -> tuple[Element | None, tuple[str, ...]]:
    """The root element of the first document with such a root in a text, and what broke it off.

    None where no such element begins. A warning names the line of the text, the innermost element
    that was open there, and the reason.
    """
    # Prose that names the element has no other tag right behind it.
    start = re.search(rf"<\?xml|<!DOCTYPE|<{root}\b[^<>]*(?:>\s*(?:<|\Z)|\Z)", text)
    if start is None:
        return None, (f"no <{root}> element",)
    skipped = text[: start.start()].count("\n")
    tree = _Tree(skipped)
    try:
        tree.parser.Parse(text[start.start() :].encode("utf-8", "replace"), True)  # noqa: FBT003 - expat takes it by position
    except (expat.ExpatError, _RefusedError) as broken:
        if tree.root is None or not tree.root.closed:
            return tree.root, (tree.complaint(broken),)
    return tree.root, ()


def bits(mask: str) -> frozenset[int] | Absent:
    """The set of a CPU or node mask: hexadecimal words of 32 bits, the highest first.

    `00000000,00ffffff` of NCCL or `0x00000303,,0x0` of hwloc; UNKNOWN for other text and for
    hwloc's endless sets (`0xf...f`).
    """
    words = mask.split(",")
    if not mask or len(words) > _MOST_WORDS or not all(map(_WORD.fullmatch, words)):
        return UNKNOWN
    found = []
    for place, word in enumerate(reversed(words)):
        number = int(word.removeprefix("0x") or "0", 16)
        found += [32 * place + bit for bit in range(32) if number >> bit & 1]
    return frozenset(found)


class _RefusedError(Exception):
    """The document asks for something that no topology needs."""


class _Tree:
    """Builds elements from expat's events."""

    def __init__(self, skipped: int) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._skipped = skipped
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity

    def complaint(self, broken: Exception) -> str:
        """What an operator is told about the place where reading ended."""
        line = self.parser.CurrentLineNumber + self._skipped
        inside = f"inside <{self._open[-1].tag}>" if self._open else "outside any element"
        reason = str(broken).partition(":")[0]
        return f"line {line}, {inside}: {reason}; what stands before it was read"

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEEPEST:
            raise _RefusedError(f"more than {_DEEPEST} elements inside each other")
        element = Element(tag, attributes, self.parser.CurrentLineNumber + self._skipped)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        self._open.pop().closed = True

    def _text(self, data: str) -> None:
        self._open[-1].text += data

    def _entity(self, *_declaration: object) -> None:
        raise _RefusedError("the document declares entities")
