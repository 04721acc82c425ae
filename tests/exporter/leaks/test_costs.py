import pytest

from seedance_obs.attribution.tick import UNALLOCATED, Balance
from seedance_obs.exporter.leaks.costs import Costs
from seedance_obs.exporter.view import AttributionView, TenantAccount, WorkloadAccount
from seedance_obs.leaks.suspect import GPU_KINDS, Finding

JOB = "research\x1fslurm-42-1"
IDLE = Finding("pseudo_idle_context", 0.0, gpu_uuid="GPU-a", account=JOB)
ORPHAN = Finding("memory_without_process", 0.0, gpu_uuid="GPU-b")
FDS = Finding("fd_growth", 0.0, account=JOB)


def books(job_mj: int, job_us: int, free_mj: int, free_us: int, *, metered: bool = True):
    job = Balance(active_mj=job_mj // 4, reserved_mj=job_mj - job_mj // 4, reserved_us=job_us)
    free = Balance(reserved_mj=free_mj, reserved_us=free_us)
    return AttributionView(
        workload_accounts=(WorkloadAccount("GPU-a", JOB, job, metered, None),),
        tenants=(
            TenantAccount("GPU-a", "research", job, metered),
            TenantAccount("GPU-b", UNALLOCATED, free, metered),
        ),
    )


def told(costs: Costs) -> tuple[dict[str, float], dict[str, int]]:
    """The kinds that cost anything; all kinds are there from the start."""
    assert costs.gpu_seconds.keys() == costs.gpu_energy_mj.keys() == GPU_KINDS
    return (
        {kind: seconds for kind, seconds in costs.gpu_seconds.items() if seconds},
        {kind: used for kind, used in costs.gpu_energy_mj.items() if used},
    )


def test_what_passes_while_a_kind_is_suspect_is_booked_to_it():
    costs = Costs()
    costs.advance(books(1000, 0, 5000, 0), [], 0.0)
    costs.advance(books(2000, 15_000_000, 6000, 15_000_000), [IDLE], 15.0)
    assert told(costs) == ({}, {})  # nobody was suspect while that passed
    costs.advance(books(3500, 30_000_000, 7000, 30_000_000), [IDLE, ORPHAN], 30.0)
    costs.advance(books(5500, 45_000_000, 9000, 45_000_000), [ORPHAN], 45.0)
    assert told(costs) == (
        {"pseudo_idle_context": 15.0, "memory_without_process": 15.0},
        {"pseudo_idle_context": 1500, "memory_without_process": 2000},
    )


def test_two_contexts_of_one_account_on_a_board_cost_once():
    costs = Costs()
    for at in (0, 15, 30):
        costs.advance(books(100 * at, at * 1_000_000, 0, 0), [IDLE, IDLE], float(at))
    assert costs.gpu_energy_mj["pseudo_idle_context"] == 3000
    assert costs.gpu_seconds["pseudo_idle_context"] == 30.0


def test_leaks_of_descriptors_cost_no_gpu():
    costs = Costs()
    for at in (0, 15, 30):
        costs.advance(books(100 * at, at * 1_000_000, 0, 0), [FDS], float(at))
    assert told(costs) == ({}, {})


@pytest.mark.parametrize(("busy_until", "watts"), [(180, 70.0), (195, 70 + 330 * 15 / 120)])
def test_power_is_the_mean_of_the_last_two_minutes(busy_until, watts):
    costs = Costs()
    for at in range(0, 301, 15):
        energy = 400_000 * min(at, busy_until) + 70_000 * max(0, at - busy_until)
        costs.advance(books(energy, 0, 0, 0), [], float(at))
    assert costs.draw(("GPU-a", JOB)) == pytest.approx((watts, 0.0))


def test_the_power_of_a_board_without_a_meter_is_unknown():
    costs = Costs()
    for at in (0.0, 15.0, 30.0):
        costs.advance(books(0, 0, 0, 0, metered=False), [IDLE], at)
    assert costs.draw(("GPU-a", JOB)) == (None, 0.0)
    assert costs.draw(("GPU-b", UNALLOCATED)) == (None, 0.0)
    assert told(costs)[1] == {}


def test_an_account_that_left_the_books_is_forgotten():
    costs = Costs()
    for at in (0, 15, 30):
        costs.advance(books(100 * at, 0, 0, 0), [IDLE], float(at))
    costs.advance(AttributionView(), [IDLE], 45.0)
    assert costs.draw(("GPU-a", JOB)) == (None, None)
