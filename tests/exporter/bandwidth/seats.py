"""Seats of tenants on boards, by hand."""

from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import MigReadings
from seedance_obs.workload import Workload


def seat(
    tenant: str,
    gpu: MergedGpu,
    *,
    activity: float | None = None,
    mig: MigReadings | None = None,
    pod: str = "p",
) -> Seat:
    workload = Workload("pod", f"{tenant}/{pod}", 0)
    name = account_name(tenant, workload.key)
    return Seat(name, workload, gpu, mig, (), 0, activity)
