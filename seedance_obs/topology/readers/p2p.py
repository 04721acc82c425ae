"""`nvidia-smi topo -p2p r|w|rw|n|a|p`: which GPUs may use which way of peer-to-peer.

The matrix itself does not say which way: the prompt above it does. Without one the words stand
under `p2p`. `rw` asks for both at once, so its words stand for both.
"""

import re

from seedance_obs.topology.model import Device, Kind, Path, Reading, Topology
from seedance_obs.topology.readers.cells import SELF, Alphabet
from seedance_obs.topology.readers.grid import Grid, gpus_of, grid_of, is_peer_to_peer
from seedance_obs.topology.readers.lines import bounded

FORMAT = "topo-p2p"
UNNAMED = "p2p"
_STATUS = {
    "OK": "ok",
    "CNS": "chipset_not_supported",
    "GNS": "gpu_not_supported",
    "TNS": "topology_not_supported",
    "DR": "disabled_by_regkey",
    "NS": "not_supported",
    "U": "unknown",
}
_CAPABILITY = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "pcie"}
_ALPHABET = Alphabet(*_STATUS, foreign="NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC")
_ASKED = re.compile(r"(?:-p2p|--p2p_capabilities)[ =]+([rwnap]+)\b")


def recognises(text: str) -> bool:
    """Whether the text holds a matrix of `topo -p2p`."""
    return _grid(text) is not None


def read(text: str) -> Reading:
    """The GPUs and the status between every two of them; a cell that is lost leaves no entry."""
    grid = _grid(text)
    if grid is None:
        missing = "there is no matrix of nvidia-smi topo -p2p in the text"
        return Reading(Topology(), (missing,), FORMAT)
    capabilities = _capabilities(grid.command)
    words = grid.pairs()
    paths = tuple(
        Path(*pair, p2p=dict.fromkeys(capabilities, _STATUS[words[pair]]) if pair in words else {})
        for pair in grid.named_pairs()
    )
    devices = tuple(Device(name, Kind.GPU, index=int(name[3:])) for name in gpus_of(grid))
    return Reading(Topology(devices, paths), bounded(grid.warnings), FORMAT)


def _grid(text: str) -> Grid | None:
    grid = grid_of(text, _ALPHABET)
    if grid is None or set(gpus_of(grid)) != set(filter(None, grid.columns)):
        return None
    told = any(cell not in (None, SELF) for row in grid.rows for cell in row.cells)
    return grid if told or is_peer_to_peer(grid) else None


def _capabilities(command: str) -> tuple[str, ...]:
    asked = _ASKED.search(command)
    return tuple(_CAPABILITY[letter] for letter in asked[1]) if asked else (UNNAMED,)
