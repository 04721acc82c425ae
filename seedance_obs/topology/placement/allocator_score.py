"""The scores that NVIDIA's device plugin and HAMi give to pairs and sets of GPUs.

Both add up, for every pair of a set, points for the PCIe level (10 across sockets to 60 on one
board) and 100 for each NVLink. They part ways behind NVSwitches: go-gpuallocator looks for the
peer GPU at the far end of a link and finds a switch, so it counts none there, while HAMi counts
the links that the two GPUs have to switches, the smaller number of the two.

Sources: go-gpuallocator gpuallocator/besteffort_policy.go and internal/links/device.go; HAMi
pkg/device/nvidia/calculate_score.go and links.go.
"""

from collections.abc import Sequence
from enum import StrEnum
from itertools import combinations

from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    NvLinkKind,
    Path,
    PcieLevel,
    Topology,
    all_known,
)
from seedance_obs.topology.nvlinks import SWITCHES

PCIE_POINTS = {
    PcieLevel.SYS: 10,
    PcieLevel.NODE: 20,
    PcieLevel.PHB: 30,
    PcieLevel.PXB: 40,
    PcieLevel.PIX: 50,
    PcieLevel.INTERNAL: 60,
}
NVLINK_POINTS = 100
MOST_LINKS = 18


class Allocator(StrEnum):
    """Whose score it is."""

    GO_GPUALLOCATOR = "go-gpuallocator"
    HAMI = "hami"


def set_score(topology: Topology, gpus: Sequence[str], allocator: Allocator) -> int | Absent:
    """The sum over all pairs of a set, 0 for a single GPU; UNKNOWN if any pair's score is."""
    scores = all_known(pair_score(topology, *pair, allocator) for pair in combinations(gpus, 2))
    return scores if isinstance(scores, Absent) else sum(scores)


def pair_score(topology: Topology, one: str, other: str, allocator: Allocator) -> int | Absent:
    """The points of two GPUs by name, the same either way round.

    UNKNOWN where the PCIe level or the NVLinks are: a matrix of `nvidia-smi topo -m` hides the
    level of a pair with NVLinks, so it does not tell the score.
    """
    path = topology.path(one, other)
    links = counted_links(topology, path, allocator)
    if isinstance(path.pcie, Absent) or isinstance(links, Absent):
        return UNKNOWN
    return PCIE_POINTS[path.pcie] + NVLINK_POINTS * links


def counted_links(topology: Topology, path: Path, allocator: Allocator) -> int | Absent:
    """The NVLinks of a pair that an allocator sees.

    Beyond 18, the most that either has a name for, go-gpuallocator goes on with 18 and HAMi
    counts none.
    """
    links = path.nvlinks
    if links is UNSUPPORTED or links == 0 or path.nvlink_kind is NvLinkKind.C2C:
        return 0
    hami = allocator is Allocator.HAMI
    if links is UNKNOWN and hami:
        links = _switch_links(topology, path)
    if isinstance(links, Absent):
        return links
    if hami:
        return links if links <= MOST_LINKS else 0
    if path.nvlink_kind is UNKNOWN:
        return UNKNOWN
    return min(links, MOST_LINKS) if path.nvlink_kind is NvLinkKind.DIRECT else 0


def _switch_links(topology: Topology, path: Path) -> int | Absent:
    """The smaller number of active links to switches; UNKNOWN unless both GPUs have any."""
    counts = [
        _links_to_switches(topology.by_name[end])
        for end in (path.source, path.target)
        if end in topology.by_name
    ]
    return min(counts) if len(counts) == 2 and all(counts) else UNKNOWN


def _links_to_switches(gpu: Device) -> int:
    if isinstance(gpu.nvlinks, Absent):
        return 0
    return sum(port.active is True and port.remote_kind in SWITCHES for port in gpu.nvlinks)
