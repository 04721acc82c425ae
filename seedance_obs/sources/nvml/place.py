"""Where a board sits: near which NUMA nodes and CPUs, and over what it reaches their memory."""

from collections.abc import Iterable

from seedance_obs.sources.nvml.asking import fields, number, optional
from seedance_obs.sources.nvml.library import NvmlLibrary, Plain
from seedance_obs.sources.readings import GpuPlace

NODE_WORDS = 16  # 1024 NUMA nodes, as many as Linux can have
CPU_WORDS = 128  # 8192 CPUs, as many as Linux can have
SCOPE_NODE = 0  # NVML_AFFINITY_SCOPE_NODE
C2C_COUNT, C2C_STATUS, C2C_SPEED = 170, 171, 172  # NVML_FI_DEV_C2C_LINK_*
MAX_C2C_LINKS = 64
WORD_BITS = 64
_UP = 1
_ADDRESSING_MODES = {0: "none", 1: "hmm", 2: "ats"}


def read_place(library: NvmlLibrary, name: str) -> GpuPlace | None:
    """What NVML says of a board's place, None where it says nothing.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    links, speed = _c2c(library, name)
    mode = number(library, "nvmlDeviceGetAddressingMode", name)
    place = GpuPlace(
        memory_node=number(library, "nvmlDeviceGetNumaNodeId", name),
        numa=_numbers(
            optional(library, "nvmlDeviceGetMemoryAffinity", name, NODE_WORDS, SCOPE_NODE)
        ),
        cpus=_cpus(library, name),
        c2c_links=links,
        c2c_mb_per_second=speed,
        addressing_mode=None if mode is None else _ADDRESSING_MODES.get(mode),
    )
    return None if place == GpuPlace() else place


def _cpus(library: NvmlLibrary, name: str) -> frozenset[int] | None:
    function = "nvmlDeviceGetCpuAffinityWithinScope"
    cpus = _numbers(optional(library, function, name, CPU_WORDS, SCOPE_NODE))
    if cpus is None:
        cpus = _numbers(optional(library, "nvmlDeviceGetCpuAffinity", name, CPU_WORDS))
    return cpus


def _numbers(mask: Plain) -> frozenset[int] | None:
    """The bits that are set in a list of words; a mask without any says nothing."""
    if not isinstance(mask, list) or not all(isinstance(word, int) for word in mask):
        return None
    return frozenset(_bits(mask)) or None


def _bits(words: Iterable[int]) -> Iterable[int]:
    for position, word in enumerate(words):
        for bit in range(WORD_BITS):
            if word >> bit & 1:
                yield position * WORD_BITS + bit


def _c2c(library: NvmlLibrary, name: str) -> tuple[int | None, float | None]:
    """The chip-to-chip links that are up, and their speed together."""
    count = fields(library, name, (C2C_COUNT, 0)).get((C2C_COUNT, 0))
    if count is None or not 0 <= count <= MAX_C2C_LINKS:
        return None, None
    asked = [(field, link) for link in range(count) for field in (C2C_STATUS, C2C_SPEED)]
    values = fields(library, name, *asked) if asked else {}
    up = [link for link in range(count) if values.get((C2C_STATUS, link)) == _UP]
    speeds = [values[C2C_SPEED, link] for link in up if (C2C_SPEED, link) in values]
    complete = bool(up) and len(speeds) == len(up)
    return len(up), float(sum(speeds)) if complete else None
