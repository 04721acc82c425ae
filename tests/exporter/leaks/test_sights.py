from dataclasses import replace

import pytest

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.sights import Alive, Sights
from seedance_obs.exporter.leaks.warm import WarmServers
from seedance_obs.process_tree import ProcessName
from seedance_obs.sources.readings import GpuProcess, ProcessUse, VgpuInstance
from tests.exporter.books.boards import JOB, VISION, board, instance, reading, running

WAITS, WORKS = "ml\x1fvision", "ml\x1fjob"
PYTHON = ProcessName(7, 700, "python3")


@pytest.fixture
def sights():
    made = Sights(WarmServers(["comm=tritonserver"]))
    made.know({7: Alive(PYTHON, alive=True)}, trusted=True)
    return made


def seat(account, workload, gpu, *pids, place=None) -> Seat:
    return Seat(account, workload, gpu, place, tuple(pids), 1, None)


def sight(sights, gpu, *seats, watts=None):
    (found,) = sights.of([gpu], seats, {gpu.uuid: watts})
    return found


def test_a_board_is_told_with_its_readings_and_who_is_on_it(sights):
    readings = {
        "memory_used_bytes": reading(3e9),
        "utilization_ratio": reading(0.5, at=4.0),
        "sm_active_ratio": reading(0.1, at=3.0, source="dcgm"),
        "memory_busy_ratio": reading(0.02),
        "power_watts": reading(90.0),
        "power_limit_watts": reading(700.0),
    }
    gpu = board(listed_at=5.0, readings=readings, processes=running(7, memory_bytes=2**30))
    found = sight(sights, gpu, seat(WORKS, JOB, gpu, 7), watts=70.0)
    assert (found.at, found.activity_at, found.memory_used_bytes) == (5.0, 3.0, 3_000_000_000)
    assert (found.sm_active_ratio, found.dram_active_ratio) == (0.1, 0.02)
    assert (found.power_watts, found.idle_watts, found.limit_watts) == (90.0, 70.0, 700.0)
    (context,) = found.contexts
    assert (context.process, context.account, context.memory_bytes) == (PYTHON, WORKS, 2**30)
    assert (context.sm_ratio, context.alive, context.warm) == (None, True, False)


def test_where_the_driver_tells_of_processes_one_it_leaves_out_did_nothing(sights):
    use = (ProcessUse(7, 0.25, 0.1, encoder_ratio=0.2, decoder_ratio=0.3),)
    told = {"utilization_ratio": reading(0.25)}
    gpu = board(processes=running(7, 8), process_use=use, readings=told)
    by_pid = {context.process.pid: context for context in sight(sights, gpu).contexts}
    assert (by_pid[7].sm_ratio, by_pid[7].dram_ratio) == (0.25, 0.1)
    assert (by_pid[8].sm_ratio, by_pid[8].dram_ratio) == (0.0, None)
    assert (by_pid[7].video_ratio, by_pid[8].video_ratio) == (0.3, None)
    assert by_pid[8].process == ProcessName(8, None)
    assert by_pid[8].alive is None


def test_display_servers_and_declared_servers_may_wait(sights):
    triton = ProcessName(8, 1, "tritonserver")
    sights.know({7: Alive(PYTHON, alive=True), 8: Alive(triton, alive=True)}, trusted=True)
    gpu = board(processes=(*running(7, 8), GpuProcess(9, 1, graphics=True)))
    warm = {context.process.pid: context.warm for context in sight(sights, gpu).contexts}
    assert warm == {7: False, 8: True, 9: True}


def test_of_a_process_that_ended_its_owner_is_remembered_while_the_driver_lists_it(sights):
    gpu = board(processes=running(7))
    (living,) = sight(sights, gpu, seat(WORKS, JOB, gpu, 7)).contexts
    sights.know({7: Alive(ProcessName(7, None), alive=False)}, trusted=True)
    nobody = seat("unknown\x1fprocess-unknown-0", UNKNOWN_WORKLOAD, gpu, 7)
    (dead,) = sight(sights, gpu, nobody).contexts
    assert (living.owner, dead.owner, dead.alive) == (WORKS, WORKS, False)
    sight(sights, board(processes=()))
    (another,) = sight(sights, gpu, nobody).contexts
    assert another.owner == ""


def test_whoever_was_given_a_board_and_runs_nothing_is_an_idle_holder(sights):
    gpu = board(processes=running(7))
    seats = [seat(WORKS, JOB, gpu, 7), seat(WAITS, VISION, gpu)]
    assert sight(sights, gpu, *seats).idle_holders == (WAITS,)


def test_while_a_process_is_nobodys_no_holder_is_called_idle(sights):
    gpu = board(processes=running(7, 8))
    seats = [seat(WORKS, JOB, gpu, 7), seat(WAITS, VISION, gpu)]
    assert sight(sights, gpu, *seats).idle_holders == ()


@pytest.mark.parametrize(
    ("trusted", "fields"),
    [
        (False, {"processes": ()}),
        (True, {"processes": None}),
        (True, {"processes": (), "vgpus": (VgpuInstance("v"),)}),
    ],
    ids=["no host pids", "no list", "vGPU host"],
)
def test_a_list_that_says_nothing_is_none(sights, trusted, fields):
    sights.know({}, trusted=trusted)
    gpu = board(**fields)
    found = sight(sights, gpu, seat(WAITS, VISION, gpu))
    assert found.contexts is None
    assert found.idle_holders == ()


def test_before_the_first_probe_no_list_is_trusted():
    gpu = board(processes=())
    assert sight(Sights(WarmServers([])), gpu).contexts is None


def test_each_mig_instance_is_a_place_of_its_own(sights):
    one, two = instance(1, 3, memory_used_bytes=5.0, engine_active_ratio=0.4), instance(2, 4)
    gpu = board(
        mig=(one, two),
        readings={"power_watts": reading(90.0)},
        processes=(GpuProcess(7, 1, gpu_instance=1), GpuProcess(8, 1, gpu_instance=2)),
    )
    seats = [seat(WORKS, JOB, gpu, 7, place=one), seat(WAITS, VISION, gpu, 8, place=two)]
    first, second = sights.of([gpu], seats, {gpu.uuid: 70.0})
    assert (first.gpu_instance, second.gpu_instance) == (1, 2)
    assert [context.process.pid for context in first.contexts] == [7]
    assert [context.account for context in second.contexts] == [WAITS]
    assert (first.memory_used_bytes, first.utilization_ratio) == (5, 0.4)
    assert (first.power_watts, first.idle_watts) == (None, None)


def test_a_process_of_another_compute_instance_is_elsewhere(sights):
    halves = [replace(instance(1, 3), compute_instance=number) for number in (0, 1)]
    gpu = board(
        mig=tuple(halves),
        processes=tuple(
            GpuProcess(pid, 1, gpu_instance=1, compute_instance=number)
            for pid, number in ((7, 0), (8, 1), (9, None))
        ),
    )
    found = [
        [context.process.pid for context in each.contexts] for each in sights.of([gpu], [], {})
    ]
    assert found == [[7, 9], [8, 9]]


def test_the_memory_of_an_instance_is_told_of_the_one_compute_instance_that_may_use_it(sights):
    halves = [
        replace(instance(1, 3, memory_used_bytes=5.0), compute_instance=number) for number in (0, 1)
    ]

    def used(*numbers):
        processes = tuple(
            GpuProcess(7 + number, 1, gpu_instance=1, compute_instance=number) for number in numbers
        )
        found = sights.of([board(mig=tuple(halves), processes=processes)], [], {})
        return [each.memory_used_bytes for each in found]

    assert used() == used(0) == [5, None]
    assert used(1) == used(0, 1) == [None, None]


def test_an_instance_is_a_part_of_what_nobody_holds_of_its_board(sights):
    held, free = instance(1, 3), instance(2, 1)
    gpu = board(mig=(held, free), mig_slices=7, processes=())
    first, second = sights.of([gpu], [seat(WORKS, JOB, gpu, place=held)], {})
    assert (first.slices, first.free_ratio) == (3, 0.0)
    assert (second.slices, second.free_ratio) == (1, 0.25)
    (whole,) = sights.of([board()], [], {})
    assert whole.free_ratio == 1.0


def test_a_transcoder_is_busy_by_its_board_where_the_driver_does_not_tell_of_processes(sights):
    told = {"sm_active_ratio": reading(0.0), "decoder_utilization_ratio": reading(0.4)}
    found = sight(sights, board(processes=running(7), readings=told))
    assert found.activity_of(found.contexts[0]).highest == 0.4
