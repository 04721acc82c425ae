"""What Slurm leaves on a node of its jobs: the job map of its prolog, and a job's environment.

The job map is the directory that dcgm-exporter knows as `--hpc-job-mapping-dir`: a prolog and an
epilog keep one file per GPU there, named by its index (`0`), by index and MIG GPU instance (`0.3`)
or by UUID, with one job id a line; an empty file is a GPU that nobody holds.

A GPU has two numbers in a job: `SLURM_JOB_GPUS` and `SLURM_STEP_GPUS` count all GPUs of the node
(sbatch(1), srun(1)), `CUDA_VISIBLE_DEVICES` those that the job's device cgroup lets through, where
ConstrainDevices is on (gres.html).
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.sources.small_files import read_text
from seedance_obs.sources.sysfs import number_set

_TRIES = 3
_LARGEST_MAP_BYTES = 65_536
_MOST_JOBS = 64  # on one GPU
_LARGEST_ENVIRONMENT_BYTES = 2**20
_INDEX = re.compile(r"(\d{1,4})(?:\.(\d{1,3}))?", re.ASCII)
_INDICES = re.compile(r"\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?){0,255}", re.ASCII)
_JOB = re.compile(r"(?:s[0-9A-Z]{13}|[0-9][0-9A-Za-z_+.\[\]-]{0,63})")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class MappedGpu:
    """The device that a file of the job map is named for: by index or by UUID.

    `gpu_instance` is None for a whole board; the UUID may be a board's or a MIG device's.
    """

    index: int | None = None
    gpu_instance: int | None = None
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class JobEnvironment:
    """What a process of a job says of the job, in the words Slurm gave it; unknown is empty.

    A user can start a program with any environment: only the job id can be checked, against the
    cgroup. The GPU fields are None where nothing is said of them.

    Attributes:
        job: The job id, of its own for each task of an array.
        sluid: The id that Slurm 25.11 names cgroups by.
        account: Who is charged.
        user: The user's login name.
        job_gpu_indices: The job's GPUs, counted among all of the node (batch scripts and
            interactive shells only).
        step_gpu_indices: The step's GPUs, counted among all of the node.
        visible_devices: `CUDA_VISIBLE_DEVICES`: indices counted among the GPUs that the job's
            cgroup lets through, or UUIDs.
    """

    job: str = ""
    sluid: str = ""
    account: str = ""
    user: str = ""
    job_gpu_indices: frozenset[int] | None = None
    step_gpu_indices: frozenset[int] | None = None
    visible_devices: tuple[str, ...] | None = None

    def is_of(self, job: str) -> bool:
        """Whether this is the environment of a job, given as its cgroup names it."""
        return bool(job) and job in (self.job, self.sluid)


def read_job_map(directory: str | Path) -> dict[MappedGpu, tuple[str, ...]] | None:
    """The jobs on each GPU; none on an idle one. None where there is no such directory.

    A file that cannot be read, or that changed at each try, is absent: nobody knows who holds the
    GPU. Files with other names are none of the map, lines that are no job ids none of a file.
    """
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return None
    found: dict[MappedGpu, tuple[str, ...]] = {}
    for name in names:
        gpu = _gpu(name)
        jobs = _jobs(Path(directory) / name) if gpu else None
        if gpu is not None and jobs is not None:
            found[gpu] = jobs
    return found


def read_job_environment(proc_root: str | Path, pid: int) -> JobEnvironment | None:
    """What a process was told of its job; None where it cannot be read or is in no job."""
    environment = read_text(f"{proc_root}/{pid}/environ", _LARGEST_ENVIRONMENT_BYTES)
    if environment is None:
        return None
    said: dict[str, str] = {}
    for word in environment.split("\0"):
        name, _, value = word.partition("=")
        said.setdefault(name, value)
    job = said.get("SLURM_JOB_ID") or said.get("SLURM_JOBID") or ""
    return _environment(said, job) if job else None


def _environment(said: Mapping[str, str], job: str) -> JobEnvironment:
    visible = said.get("CUDA_VISIBLE_DEVICES")
    return JobEnvironment(
        job=job,
        sluid=said.get("SLURM_JOB_SLUID", ""),
        account=said.get("SLURM_JOB_ACCOUNT", ""),
        user=said.get("SLURM_JOB_USER", ""),
        job_gpu_indices=_indices(said.get("SLURM_JOB_GPUS")),
        step_gpu_indices=_indices(said.get("SLURM_STEP_GPUS")),
        visible_devices=None if visible is None else tuple(filter(None, visible.split(","))),
    )


def _indices(text: str | None) -> frozenset[int] | None:
    return number_set(text) if text and _INDICES.fullmatch(text) else None


def _gpu(name: str) -> MappedGpu | None:
    match = _INDEX.fullmatch(name)
    if match:
        index, instance = match.groups()
        return MappedGpu(int(index), int(instance) if instance else None)
    return MappedGpu(uuid=name) if _UUID.fullmatch(name) else None


def _jobs(file: Path) -> tuple[str, ...] | None:
    """The ids in one file; read again where the prolog wrote it meanwhile."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None  # a pipe would keep its reader waiting
        for _ in range(_TRIES):
            with file.open("rb") as opened:
                before = _version(opened.fileno())
                raw = opened.read(_LARGEST_MAP_BYTES)
                if before == _version(opened.fileno()):
                    return _ids(raw)
    except OSError:
        return None
    return None


def _version(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_mtime_ns, found.st_size


def _ids(raw: bytes) -> tuple[str, ...]:
    lines = (line.strip() for line in raw.decode("utf-8", errors="replace").splitlines())
    jobs = dict.fromkeys(line for line in lines if _JOB.fullmatch(line))
    return tuple(jobs)[:_MOST_JOBS]
