"""What NVML says of a board's NVLink ports, and of whatever is asked of it as a field value."""

from collections.abc import Callable, Mapping

from seedance_obs.sources.nvml.library import NOT_SUPPORTED, NvmlError, Plain
from seedance_obs.sources.sim.board_answers import Answer, argument, padded_bus_id
from seedance_obs.sources.sim.links import LinkEnd, active_end
from seedance_obs.sources.sim.physics import Board

Field = Callable[[Board, float, int], int | None]  # the scope is a link's number

HOPPER = (9, 0)
SCOPE_SHIFT = 32
NVLINK_CAPABILITIES = range(6)
MEMORY_TEMPERATURE, NVLINK_SPEED_COMMON, NVLINK_COUNT, NVLINK_REMOTE_ID = 82, 90, 91, 146
NVLINK_SPEED, NVLINK_STATE, NVLINK_VERSION = 164, 165, 166
NVLINK_SENT, NVLINK_RECEIVED, ALL_LINKS = 138, 139, 2**32 - 1
PCIE_SENT, PCIE_RECEIVED, POWER_NOW = 197, 198, 186
RECOVERY_ACTION = 230
AMPERE = (8, 0)
C2C_COUNT, C2C_STATUS, C2C_SPEED = 170, 171, 172


def _end(board: Board, t: float, args: tuple[int, ...]) -> LinkEnd | None:
    """The far end of the link that is asked of, None where it is down at t."""
    if not board.model.nvlinks:
        raise NvmlError(NOT_SUPPORTED)
    link = argument(args, 0, range(board.model.nvlinks))
    return active_end(board.machine, board.gpu.index, link, t)


def _active_end(board: Board, t: float, args: tuple[int, ...]) -> LinkEnd:
    end = _end(board, t, args)
    if end is None:
        raise NvmlError(NOT_SUPPORTED)
    return end


def _state(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    return int(_end(board, t, args) is not None)


def _type(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    return _active_end(board, t, args).remote_type


def _pci(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    bus_id = _active_end(board, t, args).bus_id
    return {"busId": "" if bus_id is None else padded_bus_id(bus_id)}


def _version(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    _end(board, t, args)
    return board.model.nvlink_version


def _capability(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    argument(args, 1, NVLINK_CAPABILITIES)
    return int(_end(board, t, args) is not None)


def _fields(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    return [_field(board, t, field) for field in args]


def _field(board: Board, t: float, code: int) -> Plain:
    scope, field = divmod(code, 1 << SCOPE_SHIFT)
    value, status = None, NOT_SUPPORTED
    try:
        value = _FIELDS[field](board, t, scope) if field in _FIELDS else None
    except NvmlError as error:
        status = error.code
    code = status if value is None else 0
    return {"fieldId": field, "scopeId": scope, "nvmlReturn": code, "value": value}


def _memory_celsius(board: Board, t: float, _scope: int) -> int | None:
    return round(board.memory_celsius(t)) if board.model.memory_sensor else None


def _common_speed(board: Board, _t: float, _scope: int) -> int | None:
    return board.model.nvlink_mbps if _links_visible(board) else None


def _count(board: Board, _t: float, _scope: int) -> int | None:
    return board.model.nvlinks if _links_visible(board) else None


def _links_visible(board: Board) -> bool:
    return board.model.nvlinks > 0 and not board.gpu.mig


def _of_link(value: Callable[[Board, LinkEnd | None], int | None]) -> Field:
    """A field of a single link, which Hopper's driver has and those of older boards lack."""

    def answer(board: Board, t: float, scope: int) -> int | None:
        if not _links_visible(board) or board.model.compute_capability < HOPPER:
            return None
        return value(board, _end(board, t, (scope,)))

    return answer


def _remote_id(board: Board, t: float, scope: int) -> int | None:
    return _active_end(board, t, (scope,)).port if _links_visible(board) else None


def _nvlink_kib(board: Board, t: float, scope: int) -> int | None:
    """Half of what moves over all links, which is as much in either direction."""
    links = range(board.model.nvlinks) if _links_visible(board) else ()
    up = sum(active_end(board.machine, board.gpu.index, link, t) is not None for link in links)
    if not up or scope != ALL_LINKS:
        return None
    return int(board.moved_bytes(t, "nvlink") / 2 / 1024)


def _pcie_bytes(kind: str) -> Field:
    def answer(board: Board, t: float, _scope: int) -> int | None:
        known = board.model.compute_capability >= AMPERE and not board.gpu.mig
        return int(board.moved_bytes(t, kind)) if known else None

    return answer


def _of_c2c(value: Callable[[Board], int]) -> Field:
    def answer(board: Board, _t: float, scope: int) -> int | None:
        if not board.model.c2c_links:
            return None
        argument((scope,), 0, range(board.model.c2c_links))
        return value(board)

    return answer


_FIELDS: Mapping[int, Field] = {
    MEMORY_TEMPERATURE: _memory_celsius,
    NVLINK_SPEED_COMMON: _common_speed,
    NVLINK_COUNT: _count,
    NVLINK_SENT: _nvlink_kib,
    NVLINK_RECEIVED: _nvlink_kib,
    PCIE_SENT: _pcie_bytes("pcie_transmit"),
    PCIE_RECEIVED: _pcie_bytes("pcie_receive"),
    POWER_NOW: lambda board, t, _scope: round(1000 * board.power_watts(t)),
    RECOVERY_ACTION: lambda board, t, _scope: board.recovery_action(t),
    NVLINK_REMOTE_ID: _remote_id,
    NVLINK_SPEED: _of_link(lambda board, end: board.model.nvlink_mbps if end else 0),
    NVLINK_STATE: _of_link(lambda _board, end: int(end is not None)),
    NVLINK_VERSION: _of_link(lambda board, _end: board.model.nvlink_version),
    C2C_COUNT: _of_c2c(lambda board: board.model.c2c_links),
    C2C_STATUS: _of_c2c(lambda _board: 1),
    C2C_SPEED: _of_c2c(lambda board: board.model.c2c_mbps),
}

LINK_ANSWERS: Mapping[str, Answer] = {
    "nvmlDeviceGetFieldValues": _fields,
    "nvmlDeviceGetNvLinkState": _state,
    "nvmlDeviceGetNvLinkRemoteDeviceType": _type,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _pci,
    "nvmlDeviceGetNvLinkVersion": _version,
    "nvmlDeviceGetNvLinkCapability": _capability,
}
LINKS_UNSUPPORTED_IN_MIG_MODE = LINK_ANSWERS.keys() - {"nvmlDeviceGetFieldValues"}
