"""One GPU out of what several sources say of it: who is believed, and how far apart they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seedance_obs.sources.readings import (
    Fabric,
    GpuPlace,
    GpuProcess,
    GpuReadings,
    MigReadings,
    NvLink,
    Pod,
    ProcessUse,
    SourceSnapshot,
    VgpuInstance,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A value, the source it is from, and that source's clock reading when it was taken."""

    value: float
    source: str
    taken_at: float


@dataclass(frozen=True, slots=True)
class MergedGpu:
    """One board under one identity.

    `disagreement` holds, for each quantity that more than one source reports, the largest
    distance between two of them as a share of the larger magnitude: 0 equal, up to 2 for
    opposite signs. `seen_at` is the latest monotonic time at which a source saw the board,
    `listed_at` that of the source whose processes these are (`seen_at` where none lists any).
    """

    uuid: str
    index: int | None
    pci_bus_id: str | None
    model: str | None
    seen_at: float
    readings: Mapping[str, Chosen]
    disagreement: Mapping[str, float]
    facts: Mapping[str, str]
    mig: tuple[MigReadings, ...]
    nvlinks: tuple[NvLink, ...] | None
    fabric: Fabric | None
    processes: tuple[GpuProcess, ...] | None
    pods: tuple[Pod, ...] | None
    pod_managed: bool = False  # a pod has been seen on it before
    place: GpuPlace | None = None
    process_use: tuple[ProcessUse, ...] | None = None
    mig_slices: int | None = None
    listed_at: float = 0.0
    vgpus: tuple[VgpuInstance, ...] | None = None

    def value(self, quantity: str) -> float | None:
        """The believed value, or None where no source has a reading."""
        chosen = self.readings.get(quantity)
        return None if chosen is None else chosen.value


def merge(
    snapshots: Sequence[SourceSnapshot], orders: Mapping[str, Sequence[str]]
) -> tuple[MergedGpu, ...]:
    """The GPUs of all snapshots by UUID, in index order; `orders` is each quantity's source order.

    A snapshot that names another UUID for a PCI address already taken is describing a board that
    was replaced: its rows are left out.
    """
    views: dict[str, dict[str, tuple[SourceSnapshot, GpuReadings]]] = {}
    owner: dict[str, str] = {}
    for snapshot in snapshots:
        for gpu in snapshot.gpus:
            if gpu.pci_bus_id and owner.setdefault(gpu.pci_bus_id, gpu.uuid) != gpu.uuid:
                continue
            views.setdefault(gpu.uuid, {})[snapshot.source] = (snapshot, gpu)
    merged = [_merge_gpu(uuid, views[uuid], orders) for uuid in views]
    return tuple(sorted(merged, key=_position))


def _position(gpu: MergedGpu) -> tuple[bool, int, str, str]:
    return (gpu.index is None, gpu.index or 0, gpu.pci_bus_id or "", gpu.uuid)


def _merge_gpu(
    uuid: str,
    views: Mapping[str, tuple[SourceSnapshot, GpuReadings]],
    orders: Mapping[str, Sequence[str]],
) -> MergedGpu:
    gpus = [gpu for _, gpu in views.values()]
    seen_at = max(snapshot.taken_at for snapshot, _ in views.values())
    readings, disagreement = {}, {}
    for quantity, order in orders.items():
        candidates = [
            Chosen(views[source][1].values[quantity], source, views[source][0].taken_at)
            for source in order
            if source in views and quantity in views[source][1].values
        ]
        if candidates:
            readings[quantity] = candidates[0]
        if len(candidates) > 1:
            disagreement[quantity] = distance([candidate.value for candidate in candidates])
    return MergedGpu(
        uuid=uuid,
        index=next((gpu.index for gpu in gpus if gpu.index is not None), None),
        pci_bus_id=next((gpu.pci_bus_id for gpu in gpus if gpu.pci_bus_id), None),
        model=next((gpu.model for gpu in gpus if gpu.model), None),
        seen_at=seen_at,
        readings=readings,
        disagreement=disagreement,
        facts={key: value for gpu in reversed(gpus) for key, value in gpu.facts.items()},
        mig=_merge_mig(gpu.mig for gpu in gpus),
        nvlinks=next((gpu.nvlinks for gpu in gpus if gpu.nvlinks is not None), None),
        fabric=next((gpu.fabric for gpu in gpus if gpu.fabric), None),
        processes=next((gpu.processes for gpu in gpus if gpu.processes is not None), None),
        pods=next((gpu.pods for gpu in gpus if gpu.pods is not None), None),
        place=next((gpu.place for gpu in gpus if gpu.place is not None), None),
        process_use=next((gpu.process_use for gpu in gpus if gpu.process_use is not None), None),
        mig_slices=next((gpu.mig_slices for gpu in gpus if gpu.mig_slices is not None), None),
        listed_at=next((s.taken_at for s, g in views.values() if g.processes is not None), seen_at),
        vgpus=next((gpu.vgpus for gpu in gpus if gpu.vgpus is not None), None),
    )


def _unnamed(source: tuple[MigReadings, ...]) -> int:
    return sum(instance.uuid is None for instance in source)


def distance(values: Sequence[float]) -> float:
    """How far apart values are: (max - min) / max |value|, and 0 when all are 0."""
    scale = max(abs(value) for value in values)
    return (max(values) - min(values)) / scale if scale else 0.0


def _merge_mig(sources: Iterable[tuple[MigReadings, ...]]) -> tuple[MigReadings, ...]:
    # Whoever names the instances leads, whatever the order: the others know their numbers only.
    by_source = sorted(filter(None, sources), key=_unnamed)
    if not by_source:
        return ()
    first, others = by_source[0], by_source[1:]
    alone = {
        instance.gpu_instance
        for instance in first
        if sum(other.gpu_instance == instance.gpu_instance for other in first) == 1
    }
    # A page that knows GPU instances only cannot say which compute instance a value belongs to.
    extra = {
        instance.gpu_instance: instance
        for other in others
        for instance in other
        if instance.gpu_instance in alone
    }
    return tuple(
        MigReadings(
            gpu_instance=instance.gpu_instance,
            compute_instance=instance.compute_instance,
            uuid=instance.uuid,
            profile=instance.profile or (more.profile if more else None),
            values={**(more.values if more else {}), **instance.values},
            slices=instance.slices or (more.slices if more else None),
        )
        for instance in first
        for more in (extra.get(instance.gpu_instance),)
    )
