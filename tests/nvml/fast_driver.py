"""A driver whose counters a test moves, and a fast loop over it that is driven by hand."""

from seedance_obs.flow import Flow
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.library import NOT_SUPPORTED, TIMEOUT, NvmlError
from seedance_obs.sources.nvml.wrapping import Unwrapped

FIELDS = "nvmlDeviceGetFieldValues"
GPM = "nvmlGpmMetricsGet"
POWER = "nvmlDeviceGetPowerUsage"
THROUGHPUT = "nvmlDeviceGetPcieThroughput"
UUID = "GPU-00000000-0000-0000-0000-00000000000"
PCIE_TX, PCIE_RX, WATTS = 197, 198, 186
NVLINK_TX, NVLINK_RX = (field | 0xFFFFFFFF << 32 for field in (138, 139))


class FastDriver:
    """`fields` by code and `metrics` by number; what is missing is not supported."""

    def __init__(self, boards: int = 1) -> None:
        self.count = boards
        self.fields: dict[int, float] = {}
        self.metrics: dict[int, float] = {}
        self.answers: dict[tuple[str, str | None], object] = {}
        self.calls: list[tuple[str, str | None, tuple[int, ...]]] = []
        self._sampled: set[tuple[str | None, tuple[int, ...]]] = set()

    def call(self, function, device=None, *args):
        self.calls.append((function, device, args))
        answer = self.answers.get((function, device), self.answers.get(("*", device)))
        if answer is None:
            answer = self._answer(function, device, args)
        if isinstance(answer, NvmlError):
            raise answer
        return answer

    def _answer(self, function, device, args):
        if function in ("nvmlInit", "nvmlShutdown"):
            return ()
        if function == "nvmlDeviceGetCount":
            return self.count
        if function == "nvmlDeviceGetUUID":
            return UUID + device[-1]
        if function == "nvmlEventSetWait":
            return NvmlError(TIMEOUT)
        if function == FIELDS and self.fields:
            return [self._field(code) for code in args]
        if function == GPM and self.metrics:
            first = (device, args) not in self._sampled
            self._sampled.add((device, args))
            return [None if first else self.metrics.get(metric) for metric in args]
        return NvmlError(NOT_SUPPORTED)

    def _field(self, code):
        scope, field = divmod(code, 1 << 32)
        value = self.fields.get(code)
        status = NOT_SUPPORTED if value is None else 0
        return {"fieldId": field, "scopeId": scope, "nvmlReturn": status, "value": value}

    def asked(self, function: str) -> list[tuple[int, ...]]:
        return [args for name, _, args in self.calls if name == function]


def board(index: int = 0) -> Board:
    return Board(f"gpu{index}", f"{UUID}{index}", None, None, {}, {})


def fast_reader(driver, clock, *, boards: int = 1) -> FastReader:
    fast = FastReader(driver, interval_seconds=0.1, monotonic=clock, unwrapped=Unwrapped())
    fast.watch([board(index) for index in range(boards)])
    return fast


def told(flows: tuple[Flow, ...]) -> dict[tuple[str, str, str], list[tuple[float, float]]]:
    """The windows' lengths and amounts by medium, direction and source."""
    return {
        (flow.channel.medium, flow.channel.direction, flow.source): [
            (round(window.seconds, 6), round(window.amount, 3)) for window in flow.windows
        ]
        for flow in flows
    }
