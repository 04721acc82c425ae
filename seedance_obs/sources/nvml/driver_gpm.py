"""GPM as the driver has it: samples that the caller allocates, and metrics between two of them."""

import ctypes
from collections.abc import Callable
from math import isfinite
from typing import Any

from seedance_obs.sources.nvml.library import NOT_SUPPORTED, NvmlError, Plain
from seedance_obs.sources.nvml.structures import GpmMetricsGet, GpmSupport

Invoke = Callable[..., int]  # a function of the driver by its name: the code it returned
Question = tuple[str, int | None, tuple[int, ...]]  # device, MIG GPU instance, metrics


class GpmSamples:
    """Keeps the sample before for each question, so that each is told of its own past.

    A question is a device and its metrics. Two threads may ask, if not for the same metrics.
    """

    def __init__(self, invoke: Invoke) -> None:
        self._invoke = invoke
        self._pairs: dict[Question, list[ctypes.c_void_p]] = {}  # the one before, and a spare
        self._begun: set[Question] = set()
        self._asked: dict[tuple[int, ...], GpmMetricsGet] = {}

    def means(
        self, device: str, handle: Any, metrics: tuple[int, ...], *, instance: int | None = None
    ) -> Plain:
        """The metrics' means since this question was asked before, None where there is none.

        `handle` is the board's. `instance` is a MIG GPU instance of it; None is the whole board.

        Raises:
            NvmlError: the board has no GPM, or the driver failed.
        """
        question = device, instance, metrics
        if question not in self._pairs:
            self._pairs[question] = self._allocated(handle)
        before, spare = self._pairs[question]
        self._sample(handle, instance, spare)
        self._pairs[question] = [spare, before]
        if question not in self._begun:
            self._begun.add(question)
            return [None] * len(metrics)
        return self._between(before, spare, metrics)

    def free(self) -> None:
        """Give all samples back; the driver must still be there."""
        pairs, self._pairs = self._pairs, {}
        self._begun.clear()
        for pair in pairs.values():
            for sample in pair:
                self._invoke("nvmlGpmSampleFree", sample)

    def _allocated(self, handle: Any) -> list[ctypes.c_void_p]:
        support = GpmSupport()
        self._check("nvmlGpmQueryDeviceSupport", handle, ctypes.byref(support))
        if not support.isSupportedDevice:
            raise NvmlError(NOT_SUPPORTED)
        pair = [ctypes.c_void_p(), ctypes.c_void_p()]
        for sample in pair:
            self._check("nvmlGpmSampleAlloc", ctypes.byref(sample))
        return pair

    def _sample(self, handle: Any, instance: int | None, sample: ctypes.c_void_p) -> None:
        if instance is None:
            self._check("nvmlGpmSampleGet", handle, sample)
        else:
            self._check("nvmlGpmMigSampleGet", handle, ctypes.c_uint(instance), sample)

    def _between(
        self, before: ctypes.c_void_p, after: ctypes.c_void_p, metrics: tuple[int, ...]
    ) -> Plain:
        asked = self._asked.get(metrics)
        if asked is None:
            asked = self._asked[metrics] = GpmMetricsGet(*metrics)
        asked.sample1, asked.sample2 = before, after
        self._check("nvmlGpmMetricsGet", ctypes.byref(asked))
        return [_value(asked.metrics[place]) for place in range(len(metrics))]

    def _check(self, function: str, *args: Any) -> None:
        code = self._invoke(function, *args)
        if code:
            raise NvmlError(code)


def _value(metric: Any) -> float | None:
    value = float(metric.value)
    return value if not metric.nvmlReturn and isfinite(value) else None
