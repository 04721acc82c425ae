"""Puts a node's attribution together from its settings."""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seedance_obs.attribution.state import optional_whole
from seedance_obs.config import NodeSettings
from seedance_obs.errors import UsageError
from seedance_obs.exporter.books.attribution import Attribution, Parts
from seedance_obs.exporter.books.board_books import Books
from seedance_obs.exporter.books.checkpoint import Checkpoint
from seedance_obs.exporter.books.host_energy import HostEnergy
from seedance_obs.exporter.books.people import People
from seedance_obs.exporter.books.quota_watch import QuotaWatch
from seedance_obs.exporter.books.roster import Roster
from seedance_obs.sources.cpu_times import CpuTimes
from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.procfs import boot_id, boot_time
from seedance_obs.sources.quota_reader import QuotaReader
from seedance_obs.sources.rapl import Rapl
from seedance_obs.tenant_file import TenantFile

STATE_FILE = "node.json"


def open_attribution(
    settings: NodeSettings,
    *,
    monotonic: Callable[[], float],
    wall: Callable[[], float],
    environment: Mapping[str, str] = os.environ,
) -> Attribution:
    """The books of a node as they were kept, or new ones.

    Raises:
        UsageError: the tenant rules or the floor powers cannot be used.
    """
    root = Path(settings.node_root)
    gap_seconds = settings.sampler_stale_after_seconds
    floors = floor_watts(settings.attribution_floor_watts)
    rules = Path(settings.tenants_file) if settings.tenants_file else None
    tenants = TenantFile(rules, clock=wall)
    checkpoint = Checkpoint(_state_file(settings, environment), boot_id=boot_id(root / "proc"))
    shapley = settings.attribution_shapley

    def opened(kept: Mapping[str, Any] | None) -> Attribution:
        parts = Parts(
            books=Books(gap_seconds=gap_seconds, floor_watts=floors, shapley=shapley),
            roster=Roster(ended_seconds=settings.attribution_ended_seconds),
            people=_people(root, kept),
            tenants=tenants,
            host=HostEnergy(Rapl(root), CpuTimes(root), gap_seconds=gap_seconds, wall=wall),
            quotas=QuotaWatch(
                QuotaReader(root, clock=monotonic), str(root / "proc"), gap_seconds=gap_seconds
            ),
            checkpoint=checkpoint,
            job_map=_below(root, settings.slurm_job_map_directory),
        )
        limit = settings.attribution_workload_limit
        return Attribution(parts, workload_limit=limit, shapley=shapley, kept=kept)

    return checkpoint.go_on(opened)


def floor_watts(entries: tuple[str, ...]) -> dict[str, float]:
    """What an idle board draws, by model, from entries `MODEL=WATTS`.

    Raises:
        UsageError: an entry is not of that form.
    """
    found = {}
    for entry in entries:
        model, _, text = entry.rpartition("=")
        try:
            watts = float(text)
        except ValueError:
            watts = 0.0
        if not model.strip() or not 0 < watts < 10_000 or model.strip() in found:
            raise UsageError(
                f"attribution.floor_watts entry {entry!r}: wanted MODEL=WATTS, each model once, "
                "for example NVIDIA H100 80GB HBM3=68"
            )
        found[model.strip()] = watts
    return found


def _people(root: Path, kept: Mapping[str, Any] | None) -> People:
    """Those whose starts are counted from one boot time, which clocks that are set may move."""
    boot_unix = optional_whole(kept or {}, "boot_unix")
    if boot_unix is None:
        boot_unix = boot_time(root / "proc")
    owners, finder = (ProcessOwners(root, boot_unix=boot_unix) for _ in range(2))
    return People(owners, finder)


def _state_file(settings: NodeSettings, environment: Mapping[str, str]) -> Path | None:
    folder = settings.state_directory or environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if not folder:
        return None
    with contextlib.suppress(OSError):  # saving will say what is wrong with it
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / STATE_FILE


def _below(root: Path, path: str) -> Path | None:
    return root / path.lstrip("/") if path else None
