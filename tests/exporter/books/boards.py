"""Boards, processes and workloads for tests of the books."""

import dataclasses

from seedance_obs.merge import Chosen, MergedGpu, merge
from seedance_obs.sources.readings import GpuProcess, GpuReadings, MigReadings, SourceSnapshot
from seedance_obs.workload import Workload

VISION = Workload("pod", "uid-vision", 100, namespace="vision", pod="train-0")
SPEECH = Workload("pod", "uid-speech", 200, namespace="speech", pod="asr-0")
JOB = Workload("slurm", "42", 300, slurm_job="42", user="ada")


def board(uuid: str = "GPU-a", **fields) -> MergedGpu:
    """A board with the given fields of `MergedGpu`."""
    gpu = merge([SourceSnapshot("nvml", 0.0, gpus=(GpuReadings(uuid),))], {})[0]
    return dataclasses.replace(gpu, **fields)


def running(*pids: int, memory_bytes: int = 1) -> tuple[GpuProcess, ...]:
    return tuple(GpuProcess(pid, memory_bytes=memory_bytes) for pid in pids)


def reading(value: float, at: float = 0.0, source: str = "nvml") -> Chosen:
    return Chosen(value, source, at)


def instance(number: int, slices: int, **values: float) -> MigReadings:
    return MigReadings(number, 0, uuid=f"MIG-{number}", slices=slices, values=values)
