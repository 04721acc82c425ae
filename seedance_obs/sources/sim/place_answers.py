"""What NVML says of where a board is: near which CPUs, how far from the others, in which rack."""

from collections.abc import Iterable, Iterator, Mapping

from seedance_obs.sources.nvml.library import GPU_IS_LOST, NOT_SUPPORTED, NvmlError, Plain
from seedance_obs.sources.sim.board_answers import Answer, argument
from seedance_obs.sources.sim.machine import digest
from seedance_obs.sources.sim.physics import Board
from seedance_obs.sources.sim.reach import CAPABILITIES, SYSTEM, level, p2p_status

WORD_BITS = 64
WORDS = range(1, 1 << 16)
SCOPES = range(2)  # NUMA node, socket: one and the same in these machines
ADDRESSING_HMM, ADDRESSING_ATS = 1, 2
COMPUTE_TRAYS = 18
PEERS_OVER_SWITCHES = 1


def _other(board: Board, t: float, args: tuple[int, ...]) -> int:
    """The other board of a pair.

    Raises:
        NvmlError: there is no such board, or it is lost.
    """
    other = argument(args, 0, range(len(board.machine.gpus)))
    if t >= board.machine.lost_at(other):
        raise NvmlError(GPU_IS_LOST)
    return other


def _common_ancestor(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    return level(board.machine, board.gpu.index, _other(board, t, args))


def _nearest(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    wanted = argument(args, 0, range(SYSTEM + 1))
    machine = board.machine
    return [
        other.index
        for other in machine.gpus
        if other.index != board.gpu.index
        and t < machine.lost_at(other.index)
        and level(machine, board.gpu.index, other.index) == wanted
    ]


def _p2p_status(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    capability = argument(args, 1, CAPABILITIES)
    return p2p_status(board.machine, board.gpu.index, _other(board, t, args), capability, t)


def _nodes(board: Board) -> Iterable[int]:
    """The nearest NUMA nodes; all of them where the kernel does not know."""
    numa = board.gpu.device.numa
    return range(len(board.machine.numa_cpus)) if numa is None else (numa,)


def _cpus(board: Board) -> Iterator[int]:
    for node in _nodes(board):
        for part in board.machine.numa_cpus[node].split(","):
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)


def _mask(numbers: Iterable[int], words: int) -> Plain:
    """A bitmask in as many 64-bit words as were asked for, without the zero words at its end."""
    rest = sum(1 << number for number in numbers) % (1 << WORD_BITS * words)
    found = []
    while rest:
        rest, word = divmod(rest, 1 << WORD_BITS)
        found.append(word)
    return found


def _memory_affinity(board: Board, _t: float, args: tuple[int, ...]) -> Plain:
    argument(args, 1, SCOPES)
    return _mask(_nodes(board), argument(args, 0, WORDS))


def _cpu_affinity(board: Board, _t: float, args: tuple[int, ...]) -> Plain:
    return _mask(_cpus(board), argument(args, 0, WORDS))


def _cpu_affinity_within(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    argument(args, 1, SCOPES)
    return _cpu_affinity(board, t, args)


def _memory_node(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    if not board.machine.numa_memory_nodes:
        raise NvmlError(NOT_SUPPORTED)
    return board.machine.numa_memory_nodes[board.gpu.index]


def _addressing_mode(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    return ADDRESSING_ATS if board.model.c2c_links else ADDRESSING_HMM


def _fabric(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    fabric = board.machine.fabric
    if fabric is None:
        raise NvmlError(NOT_SUPPORTED)
    return {
        "clusterUuid": fabric.cluster_uuid,
        "cliqueId": fabric.clique_id,
        "state": fabric.state,
        "status": fabric.status,
        "healthMask": fabric.health_mask,
        "healthSummary": fabric.health_summary,
    }


def _platform(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    machine, fabric = board.machine, board.machine.fabric
    rack = machine.name if fabric is None else fabric.cluster_uuid
    tray = digest(machine.name, "tray")[0] % COMPUTE_TRAYS
    return {
        "chassisSerialNumber": str(int.from_bytes(digest(rack, "chassis")[:5], "big")).zfill(13),
        "slotNumber": tray + 1,
        "trayIndex": tray,
        "hostId": 1,
        "peerType": PEERS_OVER_SWITCHES,
        "moduleId": board.gpu.index + 1,
    }


PLACE_ANSWERS: Mapping[str, Answer] = {
    "nvmlDeviceGetTopologyCommonAncestor": _common_ancestor,
    "nvmlDeviceGetTopologyNearestGpus": _nearest,
    "nvmlDeviceGetP2PStatus": _p2p_status,
    "nvmlDeviceGetMemoryAffinity": _memory_affinity,
    "nvmlDeviceGetCpuAffinity": _cpu_affinity,
    "nvmlDeviceGetCpuAffinityWithinScope": _cpu_affinity_within,
    "nvmlDeviceGetNumaNodeId": _memory_node,
    "nvmlDeviceGetAddressingMode": _addressing_mode,
    "nvmlDeviceGetGpuFabricInfoV": _fabric,
    "nvmlDeviceGetPlatformInfo": _platform,
}
