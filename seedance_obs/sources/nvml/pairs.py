"""How each two boards reach each other: asked once, and remembered until boards change."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.asking import number, optional
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary
from seedance_obs.sources.readings import GpuPair

LEVELS = (0, 10, 20, 30, 40, 50)  # nvmlGpuTopologyLevel_t
CAPABILITIES = ("read", "write", "nvlink")  # nvmlGpuP2PCapsIndex_t from 0
_P2P_WORDS = (  # nvmlGpuP2PStatus_t from 0
    "ok",
    "chipset_not_supported",
    "gpu_not_supported",
    "topology_not_supported",
    "disabled_by_regkey",
    "not_supported",
    "unknown",
)


class Pairs:
    """The pairs of a node's boards."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], GpuPair] = {}

    def forget(self, index: int | None = None) -> None:
        """Ask again about one board's pairs, or about all."""
        gone = [pair for pair in self._known if index is None or index in pair]
        for pair in gone:
            del self._known[pair]

    def read(self, library: NvmlLibrary, uuids: Mapping[int, str]) -> tuple[GpuPair, ...]:
        """The pairs of the boards at these indices of which NVML says anything.

        A board that is lost meanwhile costs its own pairs.

        Raises:
            NvmlError: the driver is gone.
        """
        return tuple(self._read(library, uuids))

    def _read(self, library: NvmlLibrary, uuids: Mapping[int, str]) -> Iterator[GpuPair]:
        for pair in combinations(sorted(uuids), 2):
            if pair not in self._known:
                try:
                    self._known[pair] = _pair(library, pair, [uuids[index] for index in pair])
                except NvmlError as error:
                    if error.code != nvml.GPU_IS_LOST:
                        raise
                    continue
            known = self._known[pair]
            if known.level is not None or known.p2p:
                yield known


def _pair(library: NvmlLibrary, pair: tuple[int, int], uuids: Sequence[str]) -> GpuPair:
    name, other = f"gpu{pair[0]}", pair[1]
    level = number(library, "nvmlDeviceGetTopologyCommonAncestor", name, other)
    if level not in LEVELS:
        level = _level_by_nearest(library, name, other)
    p2p = {}
    for index, capability in enumerate(CAPABILITIES):
        status = number(library, "nvmlDeviceGetP2PStatus", name, other, index)
        if status is not None:
            p2p[capability] = _P2P_WORDS[min(status, len(_P2P_WORDS) - 1)]
    return GpuPair(uuids[0], uuids[1], level, p2p)


def _level_by_nearest(library: NvmlLibrary, name: str, other: int) -> int | None:
    """The level at which a board lists the other among its nearest."""
    for level in LEVELS:
        nearest = optional(library, "nvmlDeviceGetTopologyNearestGpus", name, level)
        if isinstance(nearest, list) and other in nearest:
            return level
    return None
