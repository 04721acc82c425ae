"""What NVML says of each process's use: samples that the driver takes six times a second."""

from collections.abc import Mapping
from math import floor

from seedance_obs.sources.nvml.library import NOT_FOUND, NvmlError, Plain
from seedance_obs.sources.sim.board_answers import Answer, argument
from seedance_obs.sources.sim.physics import Board, Holding, runs_between

SAMPLES_PER_S = 6
SAMPLES_KEPT = 60
EPOCH_US = 1_700_000_000_000_000  # where the driver's clock stands at the machine's epoch


def _process_use(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    since = argument(args, 0, range(2**63))
    newest = floor(t * SAMPLES_PER_S)
    kept = range(max(1, newest - SAMPLES_KEPT + 1), newest + 1)
    fresh = (number for number in kept if sampled_at_us(number) > since)
    samples = [entry for number in fresh for entry in _sample(board, number)]
    if not samples:
        raise NvmlError(NOT_FOUND)
    return samples


def sampled_at_us(number: int) -> int:
    """The time stamp of a sample by its number since the epoch."""
    return EPOCH_US + number * 1_000_000 // SAMPLES_PER_S


def _sample(board: Board, number: int) -> list[Mapping[str, Plain]]:
    """One entry for each process that lived while the sample was taken, the pids in order."""
    start, end = (number - 1) / SAMPLES_PER_S, number / SAMPLES_PER_S
    entries = [
        _entry(held, board.machine.pid(held.workload, run, held.rank), mean, sampled_at_us(number))
        for held in board.holdings
        if held.workload.has_contexts
        for run, mean in runs_between(held, start, end)
    ]
    return sorted(entries, key=_pid)


def _entry(held: Holding, pid: int, mean: float, at_us: int) -> Mapping[str, Plain]:
    parts = {"smUtil": 1.0, "memUtil": held.kind.memory_busy}
    parts |= {"encUtil": held.kind.encoder, "decUtil": held.kind.decoder}
    busy = 100 * held.weight * mean
    return {"pid": pid, "timeStamp": at_us} | {
        member: round(busy * part) for member, part in parts.items()
    }


def _pid(entry: Mapping[str, Plain]) -> int:
    pid = entry["pid"]
    return pid if isinstance(pid, int) else 0


USE_ANSWERS: Mapping[str, Answer] = {"nvmlDeviceGetProcessUtilization": _process_use}
USE_UNSUPPORTED_IN_MIG_MODE = USE_ANSWERS.keys()
