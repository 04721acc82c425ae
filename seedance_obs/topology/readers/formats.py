"""Which reader reads a text: every format this package knows, in one table."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from seedance_obs.topology.model import Reading, Topology
from seedance_obs.topology.readers import (
    hwloc_xml,
    lspci,
    matrix,
    nccl_xml,
    nvlink_status,
    p2p,
    smi_query,
)


class Format(NamedTuple):
    """A format by the command that people get it from, and its reader."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str], Reading]


FORMATS: Sequence[Format] = (
    Format("hwloc XML (lstopo)", hwloc_xml.recognises, hwloc_xml.read),
    Format("NCCL topology XML", nccl_xml.recognises, nccl_xml.read),
    Format("nvidia-smi topo -m", matrix.recognises, matrix.read),
    Format("nvidia-smi topo -p2p", p2p.recognises, p2p.read),
    Format("nvidia-smi nvlink (-s, -R)", nvlink_status.recognises, nvlink_status.read),
    Format("nvidia-smi -q", smi_query.recognises, smi_query.read),
    Format("lspci (-tv, -nn, -v)", lspci.recognises, lspci.read),
)


def read(text: str, formats: Sequence[Format] = FORMATS) -> Reading:
    """What a text tells, by the first format that recognises it.

    An empty reading with one warning where none does; a warning for each other one that does too.
    `# source:` lines at the top are skipped; line numbers in warnings still count them. No text
    raises.
    """
    text = _without_source_lines(text)
    found = [form for form in formats if form.recognises(text)]
    if not found:
        known = ", ".join(form.name for form in formats)
        return Reading(Topology(), (f"no format recognised; known are: {known}",))
    reading = found[0].read(text)
    others = tuple(f"the text also holds {form.name}: it is not read" for form in found[1:])
    return replace(reading, warnings=reading.warnings + others)


def _without_source_lines(text: str) -> str:
    """The text with its leading comment lines emptied."""
    head = re.match(r"(?:[ \t]*(?:# source:[^\n]*)?\r?\n|# source:[^\n]*$)*", text)
    return "\n" * head[0].count("\n") + text[head.end() :] if head else text
