"""What a whole leak probe costs, from the list of processes to the suspects, case by case."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.opening import open_leaks
from seedance_obs.exporter.leaks.watch import LeakWatch
from seedance_obs.exporter.view import AttributionView
from seedance_obs.merge import MergedGpu
from seedance_obs.workload import Workload
from tests.bench.pass_cost import Cost, ours
from tests.bench.sleepers import sleepers
from tests.exporter.books.boards import board, reading, running

BOARDS, CONTEXTS = 8, 7  # contexts on each board, as many as it can have MIG instances
INTERVAL_SECONDS = 15.0
MANY_FDS = 210  # so many that the limit is asked for
LOW_LIMIT = 256  # so low that they are near it

Held = tuple[Workload, Sequence[int]]  # a workload and its processes on one board


def plain_probe(pids: Sequence[int]) -> Cost:
    """All processes, of which 56 are on GPUs, each a workload of its own."""
    return probed("whole probe", pids, each_alone(pids))


def dearer_probes(program: Path, count: int) -> Iterator[Cost]:
    """What may make a probe of so many processes dearer."""
    with sleepers(program, count, opened=MANY_FDS) as pids:
        yield probed(f"whole, {MANY_FDS}+ fds each", pids, each_alone(pids))
    with sleepers(program, count) as pids:
        parent = parent_of(pids[0])
        tree = (Workload("process", f"{parent}", 1), [parent])
        yield probed("whole, one tree, no cgroup", pids, [[tree]], which="gpu")
    with ExitStack() as stack:
        few = stack.enter_context(sleepers(program, count // 5, opened=MANY_FDS, limit=LOW_LIMIT))
        pids = [*few, *stack.enter_context(sleepers(program, count - len(few)))]
        name = f"whole, {len(few)} suspects"
        yield probed(name, pids, each_alone(pids), suspects=len(few))


def each_alone(pids: Sequence[int]) -> list[list[Held]]:
    """Processes on each board, every one of another workload."""
    on_gpus = [pids[n * CONTEXTS : (n + 1) * CONTEXTS] for n in range(BOARDS)]
    return [[(Workload("process", f"{pid}", 1), [pid]) for pid in own] for own in on_gpus]


def probed(
    name: str,
    pids: Sequence[int],
    on_boards: Sequence[Sequence[Held]],
    *,
    which: str = "all",
    suspects: int = 0,
) -> Cost:
    """What a probe of all these processes costs, at least so many of which are suspect."""
    watch = open_leaks(
        NodeSettings(leaks_processes=which),
        host_pids=lambda: True,
        wall=time.time,
        cpu_clock=time.thread_time,
    )
    assert watch is not None
    now = 0.0

    def tick() -> None:
        nonlocal now
        now += INTERVAL_SECONDS
        note(watch, on_boards, now)

    cost = ours(name, pids, lambda: watch.probe(now), before=tick)
    read = watch.view.processes.get("read", 0)
    assert read >= len(pids), f"only {read} of {len(pids)} were read"
    found = sum(len(suspect.processes) for suspect in watch.view.suspects)
    assert found >= suspects, f"only {found} of {suspects} are suspect"
    return cost


def note(watch: LeakWatch, on_boards: Sequence[Sequence[Held]], now: float) -> None:
    """A tick that finds these workloads busy on these boards."""
    boards, seats = [], []
    for number, held in enumerate(on_boards):
        pids = [pid for _, own in held for pid in own]
        gpu = busy_board(f"GPU-{number}", pids, now)
        boards.append(gpu)
        for workload, own in held:
            seats.append(Seat(f"bench\x1f{workload.uid}", workload, gpu, None, (*own,), 2**30, 0.5))
    watch.note(boards, seats, AttributionView(), now, expected=len(boards))


def busy_board(uuid: str, pids: Sequence[int], now: float) -> MergedGpu:
    told = {"memory_used_bytes": 6e10, "utilization_ratio": 0.5, "sm_active_ratio": 0.3}
    return board(
        uuid,
        listed_at=now,
        processes=running(*pids, memory_bytes=2**30),
        readings={name: reading(value, at=now) for name, value in told.items()},
    )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
