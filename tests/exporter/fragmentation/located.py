"""Boards with places, and who sits on them, for tests of what is free."""

from dataclasses import replace

from seedance_obs.exporter.books.residency import Occupancy, Resident, places_of
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.sources.readings import MigReadings
from seedance_obs.topology.model import UNKNOWN, Device, Kind
from seedance_obs.workload import Workload
from tests.exporter.books.boards import board, reading

GIB = 2.0**30
TOTAL = 80 * GIB


def pod(name: str, started_at: int = 100) -> Workload:
    return Workload("pod", f"uid-{name}", started_at, namespace="ml", pod=name)


def located(
    number: int = 0, *, mig: tuple[MigReadings, ...] = (), in_mig: bool = False, **device: object
) -> LocatedGpu:
    """A board of 80 GiB, or of 7 slices where it is cut; `device` are fields of its device."""
    uuid, name = f"GPU-{number}", f"0000:0{number}:00.0"
    gpu = board(
        uuid,
        index=number,
        pci_bus_id=name,
        mig=mig,
        mig_slices=7 if mig else None,
        readings={"memory_total_bytes": reading(TOTAL), "memory_free_bytes": reading(TOTAL)},
        processes=(),
        pods=None,
    )
    facts = Device(name, Kind.GPU, index=number, uuid=uuid, mig=bool(mig) or in_mig or UNKNOWN)
    return LocatedGpu(gpu, replace(facts, **device), ("",) * 7)


def occupied(gpu: LocatedGpu, *residents: Resident, at: int = 0) -> Occupancy:
    """Residents on one place of a board, and nobody on the others."""
    places = places_of(gpu.merged)
    return Occupancy(
        tuple((place, residents if at == number else ()) for number, place in enumerate(places)),
        slices=7 if gpu.merged.mig else 1,
    )
