"""The field values that the fast loop reads: byte counters and power, one call for a board."""

from collections.abc import Callable
from dataclasses import dataclass

from seedance_obs.flow import Channel, Window
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml.asking import NEVER_AGAIN
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.flow_store import FlowStore
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.reads import ALL_LINKS
from seedance_obs.sources.nvml.wrapping import BEYOND_PCIE, Unwrapped

_KIBI = 1024
_MILLI = 1e-3
# A driver that writes a counter every 20 ms shows in 1 ms nothing, or twenty times what passed.
_SHORTEST = 0.5  # of an interval: what is read sooner than that is left to the next tick
_BEYOND_ANY = {"pcie": BEYOND_PCIE, "nvlink": 4e12}  # bytes per second; no link reaches it


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    code: int  # as the library boundary wants it
    medium: str
    direction: str = ""
    unit: float = 1  # of what is read, in bytes or watts
    wraps: str = ""  # the name of a counter that wraps, as the pass knows it


PCIE_FIELDS = (  # NVML_FI_DEV_PCIE_COUNT_TX_BYTES, ..._RX_BYTES
    _Field(197, "pcie", "transmit", wraps="pcie_transmit_bytes"),
    _Field(198, "pcie", "receive", wraps="pcie_receive_bytes"),
)
POWER = _Field(186, "power", unit=_MILLI)  # NVML_FI_DEV_POWER_INSTANT
FIELDS = (
    *PCIE_FIELDS,
    _Field(138 | ALL_LINKS, "nvlink", "transmit", _KIBI),  # ..._NVLINK_THROUGHPUT_DATA_TX
    _Field(139 | ALL_LINKS, "nvlink", "receive", _KIBI),
    POWER,
)


class FastFields:
    """The counters and the power of one board, in windows from one reading to the next.

    What the driver refuses is not asked for until the board is described anew. A counter that went
    back, or on by more than can pass, gives no window, and the next one begins anew: readings of 0
    and of all ones happen, of counters that go on as if nothing had been. Power counts as what it
    now is since the reading before; where a driver does not know it of this moment, that is a mean
    over up to a second.
    """

    name = "field_values"

    def __init__(
        self,
        board: Board,
        library: NvmlLibrary,
        *,
        store: FlowStore,
        unwrapped: Unwrapped,
        interval_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._library = library
        self._store = store
        self._unwrapped = unwrapped
        self._shortest = _SHORTEST * interval_seconds
        self._monotonic = monotonic
        self._read_at: float | None = None
        self._channels = {
            field: Channel(board.uuid, field.medium, field.direction) for field in FIELDS
        }
        self._last: dict[_Field, tuple[float, float]] = {}  # when, and what it showed
        self.renew(board)

    def renew(self, board: Board) -> None:
        """Go on with the same board described anew, and ask for what was refused as well."""
        self._board = board
        self._asked: tuple[_Field, ...] = FIELDS
        self._power_usage = False

    def forget(self) -> None:
        """Let no window begin before the next reading."""
        self._last.clear()
        self._read_at = None

    @property
    def has_pcie(self) -> bool:
        """Whether the board counts what passes over PCIe."""
        return any(field in self._asked for field in PCIE_FIELDS)

    def read(self) -> None:
        """Ask if it is time to, and store what has passed since the time before.

        Raises:
            NvmlError: the driver failed.
        """
        now = self._monotonic()
        if self._read_at is not None and now - self._read_at < self._shortest:
            return
        if self._asked:
            with self._unwrapped.lock:
                values = self._ask()
                now = self._monotonic()
                for field, value in values:
                    self._take(field, self._unwrap(field, value, now), now)
        if self._power_usage:
            self._read_power_usage()
        self._read_at = now

    def _unwrap(self, field: _Field, value: float, at: float) -> float | None:
        if not field.wraps:
            return value
        return self._unwrapped.total(self._board.uuid, field.wraps, int(value), at)

    def _ask(self) -> list[tuple[_Field, float]]:
        codes = [field.code for field in self._asked]
        try:
            answer = self._library.call("nvmlDeviceGetFieldValues", self._board.name, *codes)
        except NvmlError as error:
            if error.code not in NEVER_AGAIN:
                raise
            self._asked = ()
            return []
        return self._known(answer)

    def _known(self, answer: Plain) -> list[tuple[_Field, float]]:
        found, refused = [], []
        for field, entry in zip(
            self._asked, answer if isinstance(answer, list) else (), strict=False
        ):
            value = entry["value"] if isinstance(entry, dict) else None
            if isinstance(value, int | float):
                found.append((field, value))
                continue
            self._last.pop(field, None)
            if isinstance(entry, dict) and entry["nvmlReturn"] in NEVER_AGAIN:
                refused.append(field)
        if refused:
            self._power_usage = self._power_usage or POWER in refused
            self._asked = tuple(field for field in self._asked if field not in refused)
        return found

    def _read_power_usage(self) -> None:
        try:
            answer = self._library.call("nvmlDeviceGetPowerUsage", self._board.name)
        except NvmlError as error:
            if error.code not in NEVER_AGAIN:
                raise
            self._power_usage = False
            return
        if isinstance(answer, int | float):
            self._take(POWER, answer, self._monotonic())

    def _take(self, field: _Field, value: float | None, at: float) -> None:
        before = self._last.pop(field, None)
        if value is None:
            return
        self._last[field] = at, value
        if before is None or at <= before[0]:
            return
        start, earlier = before
        if field is POWER:
            watts = value * field.unit
            if QUANTITIES["power_watts"].admits(watts):
                self._keep(field, "sensor", Window(start, at, watts * (at - start)))
            return
        window = Window(start, at, (value - earlier) * field.unit)
        if window.amount < 0:
            if not value:
                del self._last[field]
        elif window.amount <= _BEYOND_ANY[field.medium] * (at - start):
            self._keep(field, "counter", window)
        else:
            del self._last[field]

    def _keep(self, field: _Field, source: str, window: Window) -> None:
        self._store.add(self._channels[field], source, window)
