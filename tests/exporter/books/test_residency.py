"""Who is on a board: living processes are believed before anything that was told of them."""

import dataclasses

import pytest

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD, Claim, occupancy
from seedance_obs.sources.readings import GpuProcess, VgpuInstance
from tests.exporter.books.boards import JOB, SPEECH, VISION, board, instance, running

OWNERS = {1: VISION, 2: VISION, 3: SPEECH, 4: JOB}


def on(gpu, claims=()):
    """The workloads on a board that has no MIG, each with its pids."""
    found = occupancy(gpu, OWNERS.get, lambda _place: claims)
    if found is None:
        return None
    return [(resident.workload, resident.pids) for resident in found.residents()]


def test_processes_of_one_workload_are_one_resident():
    gpu = board(processes=running(1, 2, 3, memory_bytes=10))
    assert on(gpu) == [(VISION, [1, 2]), (SPEECH, [3])]
    found = occupancy(gpu, OWNERS.get, lambda _place: ())
    assert [resident.memory_bytes for resident in found.residents()] == [20, 10]


def test_a_display_server_holds_nothing():
    assert on(board(processes=(GpuProcess(1, graphics=True),))) == []


def test_a_pod_that_was_given_a_board_holds_it_before_its_first_process():
    assert on(board(processes=()), [Claim(VISION)]) == [(VISION, [])]


def test_a_pod_with_processes_is_there_once_whatever_uid_it_was_told_with():
    told = dataclasses.replace(VISION, uid="told-otherwise")
    assert on(board(processes=running(1)), [Claim(told)]) == [(VISION, [1])]


def test_a_pod_whose_cgroup_is_gone_holds_nothing_whatever_the_kubelet_says():
    def found(ended):
        gpu, claims = board(processes=()), [Claim(VISION)]
        return occupancy(gpu, OWNERS.get, lambda _place: claims, has_ended=lambda _w: ended)

    assert [resident.workload for resident in found(False).residents()] == [VISION]
    assert found(True).residents() == []


def test_a_stale_claim_gives_way_to_a_living_process_of_another_pod():
    found = occupancy(board(processes=running(3)), OWNERS.get, lambda _place: [Claim(VISION)])
    assert [resident.workload for resident in found.residents()] == [SPEECH]
    assert found.dropped_claims == 1


def test_claims_of_a_shared_board_stand_beside_processes_of_other_pods():
    claims = [Claim(VISION, shared=True), Claim(SPEECH, shared=True)]
    assert on(board(processes=running(3)), claims) == [(SPEECH, [3]), (VISION, [])]


def test_a_pod_that_only_its_uid_is_known_of_gets_the_name_that_is_left_over():
    nameless = dataclasses.replace(VISION, namespace="", pod="")
    owners = {1: nameless, 3: SPEECH}
    claims = [
        Claim(dataclasses.replace(VISION, uid="told"), shared=True),
        Claim(SPEECH, shared=True),
    ]
    found = occupancy(board(processes=running(1, 3)), owners.get, lambda _place: claims)
    assert [resident.workload for resident in found.residents()] == [VISION, SPEECH]
    assert found.dropped_claims == 0
    exclusive = occupancy(board(processes=running(1)), owners.get, lambda _place: claims[:1])
    assert [resident.workload for resident in exclusive.residents()] == [VISION]


def test_a_slurm_job_is_there_once_though_its_map_does_not_know_when_it_began():
    told = dataclasses.replace(JOB, started_at=0)
    assert on(board(processes=running(4)), [Claim(told)]) == [(JOB, [4])]
    other = dataclasses.replace(JOB, uid="43", slurm_job="43", started_at=0)
    found = occupancy(board(processes=running(4)), OWNERS.get, lambda _place: [Claim(other)])
    assert ([r.workload for r in found.residents()], found.dropped_claims) == ([JOB], 1)


def test_a_board_with_a_process_on_an_instance_that_nobody_lists_is_not_called_free():
    gpu = board(mig=(instance(2, 3),), mig_slices=7, processes=running(1))
    assert occupancy(gpu, OWNERS.get, lambda _place: ()) is None


def test_a_virtual_machine_with_two_virtual_gpus_of_a_board_is_one_resident():
    guests = (VgpuInstance("v1", "vm", 10, 0.25), VgpuInstance("v2", "vm", 20, 0.5))
    (resident,) = occupancy(
        board(vgpus=guests, processes=()), OWNERS.get, lambda _p: ()
    ).residents()
    assert (resident.memory_bytes, resident.activity) == (30, 0.75)


def test_a_service_on_a_pods_board_does_not_drive_the_pod_out():
    assert on(board(processes=running(4)), [Claim(VISION)]) == [(JOB, [4]), (VISION, [])]


def test_processes_nobody_can_look_up_are_those_of_the_only_pod_without_any():
    gpu = board(processes=running(71, 72))
    assert on(gpu, [Claim(VISION)]) == [(VISION, [71, 72])]
    assert on(gpu) == [(UNKNOWN_WORKLOAD, [71, 72])]


def test_of_two_pods_that_may_run_a_hidden_process_neither_is_certain():
    claims = [Claim(VISION, shared=True), Claim(SPEECH, shared=True)]
    found = occupancy(board(processes=running(71)), OWNERS.get, lambda _place: claims)
    assert [(r.workload, r.certain) for r in found.residents()] == [
        (VISION, False),
        (SPEECH, False),
    ]


@pytest.mark.parametrize(
    ("processes", "claims", "expected"),
    [
        (None, (), None),
        (None, [Claim(VISION)], [(VISION, [])]),
        ((), None, None),
        (running(71), None, None),
        (running(1), None, [(VISION, [1])]),
    ],
)
def test_what_cannot_be_told_is_not_called_free(processes, claims, expected):
    assert on(board(processes=processes), claims) == expected


def test_each_mig_instance_is_a_place_of_its_own_and_free_slices_stay_free():
    gpu = board(
        mig=(instance(2, 3), instance(9, 1)),
        mig_slices=7,
        processes=(
            GpuProcess(1, gpu_instance=2, compute_instance=0),
            GpuProcess(3, gpu_instance=9),
        ),
    )
    found = occupancy(gpu, OWNERS.get, lambda _place: ())
    assert found.slices == 7
    assert [(place.slices, [r.workload for r in here]) for place, here in found.places] == [
        (3, [VISION]),
        (1, [SPEECH]),
    ]
