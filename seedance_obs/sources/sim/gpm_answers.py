"""What GPM says of a board or a MIG instance, and what the driver sees of its PCIe in 20 ms."""

from collections.abc import Mapping

from seedance_obs.sources.nvml.gpm import ACTIVITY_METRICS, MIB, TRAFFIC_METRICS
from seedance_obs.sources.nvml.library import NOT_SUPPORTED, NvmlError, Plain
from seedance_obs.sources.sim.board_answers import Answer, argument
from seedance_obs.sources.sim.link_answers import HOPPER
from seedance_obs.sources.sim.physics import Board

GPM = "nvmlGpmMetricsGet"
LOOK_S = 0.02
_PCIE_COUNTERS = ("pcie_transmit", "pcie_receive")  # by nvmlPcieUtilCounter_t

# As fields of `Kind`; the engine is busy whenever anything is.
_PARTS = {
    "engine_active_ratio": None,
    "sm_active_ratio": "sm",
    "sm_occupancy_ratio": "occupancy",
    "tensor_active_ratio": "tensor",
    "dram_active_ratio": "dram",
    "fp64_active_ratio": "fp64",
    "fp32_active_ratio": "fp32",
    "fp16_active_ratio": "fp16",
}


class GpmAnswers:
    """Remembers when it was asked what, as the samples of a real caller do."""

    def __init__(self) -> None:
        self._asked_at: dict[tuple[int, int | None, tuple[int, ...]], float] = {}

    def means(
        self, board: Board, instance: int | None, t: float, metrics: tuple[int, ...]
    ) -> Plain:
        """The metrics' means since they were asked for before; null where there are none.

        Raises:
            NvmlError: NOT_SUPPORTED before Hopper.
        """
        if board.model.compute_capability < HOPPER:
            raise NvmlError(NOT_SUPPORTED)
        question = board.gpu.index, instance, metrics
        before = self._asked_at.get(question)
        self._asked_at[question] = t
        if before is None or t <= before:
            return [None] * len(metrics)
        return [_mean(board, instance, before, t, metric) for metric in metrics]


def _mean(
    board: Board, instance: int | None, start: float, end: float, metric: int
) -> float | None:
    if metric in ACTIVITY_METRICS:
        part = _PARTS[ACTIVITY_METRICS[metric]]
        return 100.0 * min(1.0, board.mean_ratio(start, end, mig=instance, of=part))
    medium, direction = TRAFFIC_METRICS.get(metric, ("", ""))
    if not medium or instance is not None:
        return None  # links belong to the whole board
    if medium == "nvlink":
        linked = board.model.nvlinks > 0 and not board.gpu.mig
        return board.mean_ratio(start, end, of="nvlink") / 2 / MIB if linked else None
    return board.mean_ratio(start, end, of=f"pcie_{direction}") / MIB


def _throughput(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    part = _PCIE_COUNTERS[argument(args, 0, range(len(_PCIE_COUNTERS)))]
    return round(board.mean_ratio(t - LOOK_S, t, of=part) / 1000)


THROUGHPUT_ANSWERS: Mapping[str, Answer] = {"nvmlDeviceGetPcieThroughput": _throughput}
