"""Takes out of a capture what identifies a machine and its owner, and keeps what explains it.

UUIDs of GPUs, MIG devices, vGPUs, VMs and NVLink fabrics, serial numbers, board ids and host
names become numbered stand-ins of the same form. One name has one stand-in in all texts given to
the same anonymiser. PCI addresses, models, versions and measurements stay.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from seedance_obs.sources.nvml.library import Plain
from seedance_obs.sources.nvml.recording import settled

_UUID = r"\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
_SERIAL_FUNCTIONS = ("nvmlDeviceGetSerial", "nvmlDeviceGetBoardId")
_VGPU_FUNCTIONS = ("nvmlVgpuInstanceGetUUID", "nvmlVgpuInstanceGetVmID")
_OWN_NAMES = ("nvmlDeviceGetMigDeviceHandleByIndex", "nvmlEventSetWait")  # gpu0, gpu0/mig2
_SHORTEST_NAME = 6  # boards without a serial number say "0", which is no name


class Anonymiser:
    """Replaces names one by one, numbering each kind in the order in which it turns up."""

    def __init__(self, host_names: Iterable[str] = ()) -> None:
        self._aliases: dict[str, str] = {}  # by lower-case name
        self._counts: dict[str, int] = {}
        self._literals: set[str] = set()
        for name in host_names:
            if name:
                self._literals.add(name.lower())
                self._alias("host", name, lambda count: f"node{count}")

    def recording(self, lines: Iterable[str]) -> Iterator[str]:
        """An NVML recording without its names, one line a call.

        What it says of serial numbers and fabrics is known to `text` from then on.
        """
        for line in settled(lines):
            entry = json.loads(line)
            if "answer" in entry:
                entry["answer"] = self._answer(entry["function"], entry["answer"])
            yield json.dumps(entry)

    def text(self, text: str) -> str:
        """Any other text of the capture: a DCGM page, a path, a label value."""
        literals = sorted(self._literals, key=lambda name: (-len(name), name))
        names = "".join(rf"|(?<![\w-]){re.escape(name)}(?![\w-])" for name in literals)
        return re.sub(_UUID + names, lambda match: self._known(match[0]), text, flags=re.IGNORECASE)

    def _known(self, name: str) -> str:
        if name.lower() in self._literals:
            return self._aliases[name.lower()]
        prefix = name[:4]
        return self._alias(
            "uuid", name, lambda count: f"{prefix}00000000-0000-0000-0000-{count:012x}"
        )

    def _answer(self, function: str, answer: Plain) -> Plain:
        if function in _OWN_NAMES:
            return answer
        if function in _SERIAL_FUNCTIONS:
            return self._number(answer)
        if function in _VGPU_FUNCTIONS:
            return self._machine(str(answer))
        if function == "nvmlDeviceGetGpuFabricInfoV" and isinstance(answer, dict):
            return {**answer, "clusterUuid": self._cluster(str(answer["clusterUuid"]))}
        if function == "nvmlDeviceGetPlatformInfo" and isinstance(answer, dict):
            serial = answer["chassisSerialNumber"]
            return {**answer, "chassisSerialNumber": serial and self._number(serial)}
        return self._walk(answer)

    def _walk(self, answer: Plain) -> Plain:
        if isinstance(answer, str):
            return self.text(answer)
        if isinstance(answer, list):
            return [self._walk(item) for item in answer]
        if isinstance(answer, dict):
            return {key: self._walk(item) for key, item in answer.items()}
        return answer

    def _number(self, answer: Plain) -> Plain:
        name = str(answer)
        if len(name) >= _SHORTEST_NAME:
            self._literals.add(name.lower())
        alias = self._alias("serial", name, lambda count: f"{count:0{len(name)}d}")
        return alias if isinstance(answer, str) else int(alias)

    def _machine(self, name: str) -> str:
        """A virtual machine or a vGPU of one, by its UUID or its domain's number."""
        if len(name) >= _SHORTEST_NAME:
            self._literals.add(name.lower())
        return self._alias("vm", name, lambda count: f"00000000-0000-0000-0001-{count:012x}")

    def _cluster(self, uuid: str) -> str:
        if not uuid.strip("0"):
            return uuid  # no fabric: a fact worth keeping
        self._literals.add(uuid.lower())
        return self._alias("cluster", uuid, lambda count: f"{count:032x}")

    def _alias(self, kind: str, name: str, stand_in: Callable[[int], str]) -> str:
        key = name.lower()
        if key not in self._aliases:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._aliases[key] = stand_in(self._counts[kind])
        return self._aliases[key]


def anonymise(lines: Iterable[str], *, host_names: Iterable[str] = ()) -> Iterator[str]:
    """One NVML recording without its names; see `Anonymiser` for a capture of several files."""
    return Anonymiser(host_names).recording(lines)
