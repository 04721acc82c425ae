"""What `nvidia-smi -q` says of topology: identity, PCIe link, MIG mode and the NVLink fabric.

An excerpt will do, the Fabric block alone too. GPUs are named in order of appearance, which is
nvidia-smi's own order; where it printed fewer than it says are attached, their index is not known.
"""

import re
from collections.abc import Mapping

from seedance_obs.identity import canonical_bus_id
from seedance_obs.topology.domains import domains
from seedance_obs.topology.fabric import STATES
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    FabricMembership,
    Kind,
    PcieLink,
    Reading,
    Topology,
)
from seedance_obs.topology.readers.identifiers import cluster_uuid, gpu_uuid
from seedance_obs.topology.readers.lines import bounded, lines_of

FORMAT = "nvidia-smi-q"
Facts = dict[tuple[str, str], str]  # by section and key: ("Fabric", "State")

_GPU = re.compile(r"\s*GPU ((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")
_ATTACHED = re.compile(r"\s*Attached GPUs\s*:\s*([0-9]{1,4})\s*", re.ASCII)
_FACT = re.compile(r"(\s*)(\S[^:]*?)\s*:(?:\s+(.*?))?\s*")
_BANNER = "NVSMI LOG"
_KEYS = {"State", "Status", "CliqueId", "ClusterUUID"}
_STATES = {name.replace("_", " "): number for number, name in enumerate(STATES)}
_STATUSES = {  # nvmlErrorString's words for nvmlReturn_t
    "success": 0,
    "uninitialized": 1,
    "invalid argument": 2,
    "not supported": 3,
    "insufficient permissions": 4,
    "not found": 6,
    "timeout": 10,
    "gpu is lost": 15,
    "gpu requires reset": 16,
    "in use": 19,
    "insufficient memory": 20,
    "no data": 21,
    "insufficient resources": 23,
    "not ready": 27,
    "invalid state": 29,
    "unknown error": 999,
}
_MIG = {"enabled": True, "disabled": False}
_HEALTH = {"healthy": True, "unhealthy": False, "limited capacity": False}
_CONDITIONS = {  # key in the Health block, the condition's name
    "Bandwidth": "degraded_bandwidth",
    "Route Recovery in progress": "route_recovery",
    "Route Unhealthy": "route_unhealthy",
    "Access Timeout Recovery": "access_timeout_recovery",
}
_HOLDS = ("true", "yes", "degraded")


def recognises(text: str) -> bool:
    """Whether the text has a GPU's block of `nvidia-smi -q`, or a Fabric block."""
    if _BANNER in text:
        return True
    return any(_is_block(facts) for facts in _blocks(text)[0])


def read(text: str) -> Reading:
    """One device per GPU; a rack's domain where it has joined a fabric with a UUID."""
    blocks, attached, cut = _blocks(text)
    blocks = [facts for facts in blocks if _is_block(facts)]
    warnings = [] if blocks else ["there is no GPU of nvidia-smi -q in the text"]
    if cut:
        warnings.append(f"the text ends in the middle of {cut!r}")
    is_all = attached == len(blocks)
    if blocks and not is_all:
        said = "it does not say how many" if attached is None else f"of {attached}"
        warnings.append(f"GPUs in the text: {len(blocks)}, {said}; their index is not known")
    devices = []
    for number, facts in enumerate(blocks):
        name = f"GPU{number}"
        devices.append(_device(name, number if is_all else None, facts, warnings))
    topology = Topology(tuple(devices), domains=domains(devices))
    return Reading(topology, bounded(warnings), FORMAT)


def _blocks(text: str) -> tuple[list[Facts], int | None, str]:
    """The facts of each GPU, how many are attached, and the key that the text's end cuts.

    Facts above the first GPU's line are a block of their own: that of an excerpt.
    """
    blocks: list[Facts] = [{}]
    attached = None
    above: list[tuple[int, str]] = []
    *lines, last = lines_of(text)
    for line in lines:
        if found := _GPU.fullmatch(line):
            blocks.append({("GPU", "Bus Id"): found[1]})
            above = []
        elif found := _ATTACHED.fullmatch(line):
            attached = int(found[1])
        elif line.strip():
            _note(blocks[-1], above, line.expandtabs())
    cut = last.partition(":")[0].strip()
    return [block for block in blocks if block], attached, cut


def _note(facts: Facts, above: list[tuple[int, str]], line: str) -> None:
    """Keeps a fact under the section that it is indented below."""
    indent = len(line) - len(line.lstrip())
    while above and above[-1][0] >= indent:
        above.pop()
    section = above[-1][1] if above else "GPU"
    found = _FACT.fullmatch(line)
    key = found[2] if found else line.strip()
    if found and found[3]:
        facts.setdefault((section, key), found[3])
    above.append((indent, key))


def _is_block(facts: Mapping[tuple[str, str], str]) -> bool:
    return ("GPU", "Bus Id") in facts or any(("Fabric", key) in facts for key in _KEYS)


def _device(name: str, index: int | None, facts: Facts, warnings: list[str]) -> Device:
    model = facts.get(("GPU", "Product Name"), "")
    address = facts.get(("PCI", "Bus Id"), facts.get(("GPU", "Bus Id"), ""))
    mig = facts.get(("MIG Mode", "Current"), "")
    return Device(
        name,
        Kind.GPU,
        index=index,
        label=model,
        uuid=gpu_uuid(facts.get(("GPU", "GPU UUID"), "")) or UNKNOWN,
        bus_id=canonical_bus_id(address) or UNKNOWN,
        model=model or UNKNOWN,
        pcie=_pcie(facts),
        fabric=_fabric(name, facts, warnings),
        mig=UNSUPPORTED if mig == "N/A" else _MIG.get(mig.lower(), UNKNOWN),
    )


def _pcie(facts: Facts) -> PcieLink:
    """The link; at its best it is as fast as the slower of device and host."""
    generations = [
        _number(facts.get(("PCIe Generation", key), ""))
        for key in ("Max", "Device Max", "Host Max")
    ]
    known = [generation for generation in generations if isinstance(generation, int)]
    return PcieLink(
        generation=_number(facts.get(("PCIe Generation", "Current"), "")),
        width=_number(facts.get(("Link Width", "Current"), "")),
        generation_max=min(known) if known else UNKNOWN,
        width_max=_number(facts.get(("Link Width", "Max"), "")),
    )


def _number(text: str) -> int | Absent:
    """`16x` or `5`; UNKNOWN for anything else."""
    found = re.fullmatch(r"([0-9]{1,3})x?", text)
    return int(found[1]) if found and int(found[1]) else UNKNOWN


def _fabric(name: str, facts: Facts, warnings: list[str]) -> FabricMembership | Absent:
    state = facts.get(("Fabric", "State"), "")
    if state in ("", "N/A"):
        return UNSUPPORTED if state else UNKNOWN
    status = facts.get(("Fabric", "Status"), "N/A")
    for word, table in ((state, _STATES), (status, _STATUSES)):
        if word != "N/A" and word.lower() not in table:
            warnings.append(f"{name}: {word!r} is no state or status of a fabric that is known")
    if state.lower() not in _STATES:
        return UNKNOWN
    clique = facts.get(("Fabric", "CliqueId"), "")
    summary = facts.get(("Health", "Summary"), "")
    return FabricMembership(
        state=_STATES[state.lower()],
        status=_STATUSES.get(status.lower(), UNKNOWN),
        cluster_uuid=cluster_uuid(facts.get(("Fabric", "ClusterUUID"), "")) or UNKNOWN,
        clique_id=int(clique) if re.fullmatch(r"[0-9]{1,10}", clique) else UNKNOWN,
        healthy=_HEALTH.get(summary.lower(), UNKNOWN),
        faults=_faults(facts),
    )


def _faults(facts: Facts) -> tuple[str, ...]:
    """The conditions of the health mask that hold, in NVML's order."""
    found = [
        name
        for key, name in _CONDITIONS.items()
        if facts.get(("Health", key), "").lower() in _HOLDS
    ]
    wrong = facts.get(("Health", "Incorrect Configuration"), "N/A")
    if wrong.lower() not in ("n/a", "none", "not supported"):
        found.append(f"incorrect_configuration_{re.sub('[^a-z0-9]+', '_', wrong.lower())}")
    return tuple(found)
