"""The header of a matrix of `nvidia-smi topo`: device columns, then affinity columns."""

import re
from dataclasses import dataclass

CPU, NUMA, GPU_NUMA = "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
_AFFINITY = re.compile(
    r"(?P<cpu>CPU +Affinity)|(?P<own>GPU +NUMA +ID)|(?P<numa>NUMA +Affinity|(?<!\S)NUMA(?!\S))"
)
_COLUMN = {"cpu": CPU, "numa": NUMA, "own": GPU_NUMA}
_NUMBERED = re.compile(r"(?:GPU|NIC)[0-9]{1,4}")
_MELLANOX = re.compile(r"mlx[0-9]{1,2}_(?:bond_?)?[0-9]{1,3}")
_GLUED_MELLANOX = re.compile(f"(?:{_MELLANOX.pattern})+")
_NAME = re.compile(r"(?=[^0-9_]*[0-9_])[A-Za-z][A-Za-z0-9_.-]{0,40}")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_FREE_CELLS = {3: 1}  # nvidia-smi leaves a cell free before the last of three
# A row that has lost its X looks like a header but for these.
_A_CELL = re.compile(r"(?:NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC)+")


@dataclass(frozen=True, slots=True)
class Header:
    """The names of the columns, and where two of them start (tabs of eight).

    `cpu_at` is None where there is no such column, or where its two words stand apart as columns
    of their own.
    """

    devices: tuple[str, ...]
    affinity: tuple[str, ...] = ()
    first_at: int = 0
    cpu_at: int | None = None

    @property
    def tabs(self) -> int:
        """How many tabs a row of a GPU has where none is lost."""
        affinity = len(self.affinity)
        return len(self.devices) + affinity + _FREE_CELLS.get(affinity, 0)


def is_gpu(name: str) -> bool:
    """Whether a column's name is a GPU's."""
    return _GPU.fullmatch(name) is not None


def header_of(line: str) -> Header | None:
    """The header that a line is, or None; whatever precedes the first GPU is a shell's noise."""
    if "GPU" not in line:
        return None
    affinity = list(_AFFINITY.finditer(line)) if "NUMA" in line or "Affinity" in line else []
    names = _names(line[: affinity[0].start()] if affinity else line)
    if not names or len(set(names)) < len(names):
        return None
    at = line.find(CPU)
    return Header(
        devices=tuple(names),
        affinity=tuple(dict.fromkeys(_COLUMN[found.lastgroup or ""] for found in affinity)),
        first_at=len(line[: line.index(names[0])].expandtabs()),
        cpu_at=len(line[:at].expandtabs()) if at >= 0 else None,
    )


def _names(text: str) -> list[str]:
    names: list[str] = []
    for token in text.split():
        if not names and not token.startswith("GPU"):
            continue
        found = split_names(token)
        if names and not found:
            return []
        if names or (found and is_gpu(found[0])):
            names += found
    is_row = any(_A_CELL.fullmatch(token) for token in text.partition("GPU")[0].split())
    return [] if is_row else names


def split_names(token: str) -> list[str]:
    """The device names glued together in a token; empty where it is anything else."""
    names = []
    at = 0
    while found := _NUMBERED.match(token, at):
        names.append(found[0])
        at = found.end()
    rest = token[at:]
    if _GLUED_MELLANOX.fullmatch(rest):
        return names + _MELLANOX.findall(rest)
    if rest and (_A_CELL.fullmatch(rest) or not _NAME.fullmatch(rest)):
        return []
    return [*names, rest] if rest else names
