"""The NVLink ports of a board, active or not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seedance_obs.identity import canonical_bus_id
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.asking import DRIVER_GONE, NEVER_AGAIN, fields, number, optional
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary
from seedance_obs.sources.readings import NvLink

MAX_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
MAX_REMOTE_LINK = 1023  # what is above has been a sentinel, no port
BOARD_SPEED, LINK_COUNT, REMOTE_LINK = 90, 91, 146  # NVML_FI_DEV_NVLINK_*, as the next two
SPEED, STATE = 164, 165
ACTIVE, ASLEEP = 1, 2  # NVML_NVLINK_STATE_*; 3 is up and carries nothing
P2P_SUPPORTED = 0  # NVML_NVLINK_CAP_P2P_SUPPORTED
_ENABLED = 1  # NVML_FEATURE_ENABLED
_REMOTE_KINDS = {0: "gpu", 1: "ibm_npu", 2: "switch"}
_VERSIONS = ("1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0", "6.0")  # nvmlNvlinkVersion_t from 1


def read_nvlinks(library: NvmlLibrary, name: str) -> tuple[NvLink, ...] | None:
    """Every port; None where NVML tells nothing of any.

    A board that supports no NVLink has none, and so says every board in MIG mode.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    of_board = fields(library, name, (BOARD_SPEED, 0), (LINK_COUNT, 0))
    speed = of_board.get((BOARD_SPEED, 0))
    ports = tuple(_ports(library, name, of_board.get((LINK_COUNT, 0), 0), speed))
    if not ports:
        return () if _supports_none(library, name) else None
    if all(port.active is None for port in ports):
        return None
    active = next((port.link for port in ports if port.active), None)
    if active is None:
        return ports
    version = _version(library, name, active)
    return tuple(replace(port, version=version) if port.active else port for port in ports)


def links_changed(library: NvmlLibrary, name: str, known: Sequence[NvLink]) -> bool:
    """Whether a port that is known came up or went down since; no answer is no change.

    One call on Hopper and newer, one for each port before.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    states = fields(library, name, *((STATE, port.link) for port in known))
    return any(
        _is_up(library, name, port.link, states.get((STATE, port.link))) not in (None, port.active)
        for port in known
    )


def _is_up(library: NvmlLibrary, name: str, link: int, state: int | None) -> bool | None:
    try:
        return _is_active(library, name, link, state)
    except NvmlError as error:
        if error.code in (nvml.GPU_IS_LOST, *DRIVER_GONE):
            raise
        return None


def _supports_none(library: NvmlLibrary, name: str) -> bool:
    try:
        library.call("nvmlDeviceGetNvLinkState", name, 0)
    except NvmlError as error:
        if error.code in (nvml.GPU_IS_LOST, *DRIVER_GONE):
            raise
        return error.code == nvml.NOT_SUPPORTED
    return False


def _ports(
    library: NvmlLibrary, name: str, count: int, board_speed: int | None
) -> Iterator[NvLink]:
    """Each port; `count` of them are there, if it is not 0."""
    found = 0
    for link in range(MAX_NVLINKS):
        asked = ((STATE, link), (SPEED, link), (REMOTE_LINK, link))
        values = fields(library, name, *asked)
        state, speed, remote_link = (values.get(field) for field in asked)
        active: bool | None
        try:
            active = _is_active(library, name, link, state)
        except NvmlError as error:
            if error.code in (nvml.GPU_IS_LOST, *DRIVER_GONE):
                raise
            if error.code == nvml.INVALID_ARGUMENT or (error.code in NEVER_AGAIN and not count):
                return  # past the last port
            if error.code in NEVER_AGAIN:
                continue  # a number without a port
            active = None
        if active:
            yield _active_port(library, name, link, speed or board_speed, remote_link)
        else:
            yield NvLink(link, "unknown", active=active)
        found += 1
        if found == count:
            return


def _is_active(library: NvmlLibrary, name: str, link: int, state: int | None) -> bool:
    """By the field where the driver has it, which alone tells sleep from failure."""
    if state is not None:
        return state in (ACTIVE, ASLEEP)
    return library.call("nvmlDeviceGetNvLinkState", name, link) == _ENABLED


def _active_port(
    library: NvmlLibrary, name: str, link: int, speed: int | None, remote_link: int | None
) -> NvLink:
    kind = number(library, "nvmlDeviceGetNvLinkRemoteDeviceType", name, link)
    remote = optional(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", name, link)
    p2p = number(library, "nvmlDeviceGetNvLinkCapability", name, link, P2P_SUPPORTED)
    known = remote_link is not None and 0 <= remote_link <= MAX_REMOTE_LINK
    return NvLink(
        link=link,
        remote_kind="unknown" if kind is None else _REMOTE_KINDS.get(kind, "unknown"),
        remote_bus_id=(
            canonical_bus_id(str(remote["busId"])) if isinstance(remote, dict) else None
        ),
        mb_per_second=float(speed) if speed is not None and speed > 0 else None,
        remote_link=remote_link if known else None,
        p2p=None if p2p is None else bool(p2p),
    )


def _version(library: NvmlLibrary, name: str, link: int) -> str | None:
    """The generation, which every port of a board has in common."""
    version = number(library, "nvmlDeviceGetNvLinkVersion", name, link)
    return _VERSIONS[version - 1] if version and version <= len(_VERSIONS) else None
