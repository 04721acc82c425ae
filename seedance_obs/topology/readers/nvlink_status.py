"""`nvidia-smi nvlink -s` and `-R`: the NVLinks of each GPU, their speed or their far ends.

Speeds are of one direction. nvidia-smi prints one line instead of the links where it cannot tell:
no NVLink at all, MIG on, or every link inactive (it does not say how many there are).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeVar

from seedance_obs.identity import canonical_bus_id
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Kind,
    NvLinkPort,
    Reading,
    Topology,
)
from seedance_obs.topology.readers.identifiers import gpu_uuid
from seedance_obs.topology.readers.lines import bounded, lines_of, ranges

T = TypeVar("T")
STATUS, REMOTE = "nvlink-s", "nvlink-R"
_GPU = re.compile(r"\bGPU ([0-9]{1,4}):\s*(.*)", re.ASCII)
_IDENTITY = re.compile(r"(.*\S)\s*\(UUID:\s*([^)]*)\)|([^(]*[^\s(])\s*$")
_LINK = re.compile(r"\bLink ([0-9]{1,3}):\s*(.*\S)", re.ASCII)
_SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ([GM])B/s", re.ASCII)
_REMOTE = re.compile(r"Remote Device (\S+):\s+Link ([0-9]{1,4})", re.ASCII)
_LEFT_OUT = re.compile(r"\s*\[?(?:\.{2,}|…|snip)\]?\s*")
_INACTIVE = "<inactive>"
_WHOLE_END = re.compile(r"(?:[GM]B/s|>|\)|[a-z]{4})\s*$")  # a number may have been longer
_NO_LINKS = re.compile(
    r"(?P<none>Device does not have or support Nvlink)"
    r"|(?P<mig>Nvlink queries are not supported for Devices in MIG mode)"
    r"|(?P<inactive>all links are inActive)",
    re.IGNORECASE,
)
_WHY = {
    "mig": "nvidia-smi answers no NVLink queries while MIG is on",
    "inactive": "all its NVLinks are inactive; how many there are is not told",
}


@dataclass(slots=True)
class _Gpu:
    """A GPU's lines so far."""

    device: Device
    ports: dict[int, NvLinkPort] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)
    instead: str = ""


def recognises(text: str) -> bool:
    """Whether a line tells an NVLink's speed, state or far end, or why there is none to tell."""
    for line in lines_of(text):
        link = _LINK.search(line)
        if _NO_LINKS.search(line) or (link and _port(int(link[1]), link[2])):
            return True
    return False


def read(text: str) -> Reading:
    """The GPUs with their NVLink ports; links above the first GPU's line are nobody's."""
    warnings: list[str] = []
    gpus = _gpus(text, warnings)
    devices = tuple(_finished(gpu, warnings) for gpu in gpus.values())
    if not devices:
        warnings.append("there is no GPU of nvidia-smi nvlink in the text")
    far_ends = any("Remote Device" in line for line in text.split("\n"))
    return Reading(Topology(devices), bounded(warnings), REMOTE if far_ends else STATUS)


def _gpus(text: str, warnings: list[str]) -> dict[int, _Gpu]:
    gpus: dict[int, _Gpu] = {}
    current: _Gpu | None = None
    orphans: set[int] = set()
    lines = lines_of(text)
    for number, line in enumerate(lines):
        if found := _GPU.search(line):
            is_whole = number < len(lines) - 1
            current = _opened(gpus, int(found[1]), found[2], warnings, is_whole=is_whole)
        elif current is None:
            orphans.update(int(link[1]) for link in _LINK.finditer(line))
        elif why := _NO_LINKS.search(line):
            current.instead = why.lastgroup or ""
        elif link := _LINK.search(line):
            _add(current, int(link[1]), link[2], is_whole=number < len(lines) - 1)
        elif current.ports and _LEFT_OUT.fullmatch(line):
            warnings.append(f"{current.device.name}: lines are left out behind its links")
    if orphans:
        warnings.append(f"{_links(orphans)}: the line of their GPU is missing")
    if current is not None and lines[-1].strip() and not _WHOLE_END.search(lines[-1]):
        warnings.append(f"{current.device.name}: the text ends in the middle of a line")
    return gpus


def _opened(
    gpus: dict[int, _Gpu], index: int, identity: str, warnings: list[str], *, is_whole: bool
) -> _Gpu:
    """The GPU whose line this is: a new one, or one whose other listing stands above."""
    device = Device(f"GPU{index}", Kind.GPU, index=index)
    told = _IDENTITY.match(identity)
    if told and (told[1] or is_whole):
        name, uuid = told[1] or told[3], gpu_uuid(told[2] or "") or UNKNOWN
        device = replace(device, label=name, model=name, uuid=uuid)
    elif identity:
        warnings.append(f"{device.name}: its name and UUID cannot be read")
    known = gpus.setdefault(index, _Gpu(device))
    uuids = {gpu.uuid for gpu in (known.device, device)} - {UNKNOWN}
    if len(uuids) > 1:
        warnings.append(f"{device.name}: two GPUs of this number, of two hosts; the first is read")
        return _Gpu(device)
    return known


def _add(gpu: _Gpu, number: int, told: str, *, is_whole: bool) -> None:
    port = _port(number, told, is_whole=is_whole)
    if port is None:
        gpu.unreadable.add(number)
    known = gpu.ports.get(number, NvLinkPort(number))
    gpu.ports[number] = _joined(known, port) if port else known


def _port(number: int, told: str, *, is_whole: bool = True) -> NvLinkPort | None:
    """What a link's line tells, None where it tells nothing; a last number may be longer."""
    if told.startswith(_INACTIVE):
        return NvLinkPort(number, active=False)
    if speed := _SPEED.match(told):
        factor = 1000 if speed[2] == "G" else 1
        return NvLinkPort(number, active=True, mb_per_second=float(Decimal(speed[1]) * factor))
    if remote := _REMOTE.match(told):
        remote_port = int(remote[2]) if is_whole else UNKNOWN
        return NvLinkPort(
            number, remote=canonical_bus_id(remote[1]) or UNKNOWN, remote_port=remote_port
        )
    return None


def _joined(one: NvLinkPort, other: NvLinkPort) -> NvLinkPort:
    """One port out of its lines in `-s` and in `-R`; what they disagree about is UNKNOWN."""
    return NvLinkPort(
        one.port,
        active=_either(one.active, other.active),
        mb_per_second=_either(one.mb_per_second, other.mb_per_second),
        remote=_either(one.remote, other.remote),
        remote_port=_either(one.remote_port, other.remote_port),
    )


def _either(one: T | Absent, other: T | Absent) -> T | Absent:
    if isinstance(one, Absent):
        return other
    return one if isinstance(other, Absent) or one == other else UNKNOWN


def _finished(gpu: _Gpu, warnings: list[str]) -> Device:
    name = gpu.device.name
    if gpu.unreadable:
        warnings.append(f"{name}: {_links(gpu.unreadable)}: unreadable")
    if gpu.ports:
        return replace(gpu.device, nvlinks=tuple(gpu.ports[port] for port in sorted(gpu.ports)))
    if gpu.instead == "none":
        return replace(gpu.device, nvlinks=UNSUPPORTED)
    warnings.append(f"{name}: {_WHY.get(gpu.instead, 'nothing is told of its NVLinks')}")
    return gpu.device


def _links(numbers: Iterable[int]) -> str:
    """`link 3`, `links 1 to 3`."""
    ascending = sorted(set(numbers))
    names = [str(number) for number in range(ascending[-1] + 1)]
    return f"link{'s' * (len(ascending) > 1)} {ranges(names, ascending)}"
