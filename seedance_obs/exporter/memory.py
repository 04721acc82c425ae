"""What is remembered of a board while the source that knows it best is away.

Labels must not change, and counters must not step back, because one source stopped answering and
another carries on: every series would end and begin anew, and every rate would jump.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from seedance_obs.merge import Chosen, MergedGpu
from seedance_obs.quantities import COUNTERS
from seedance_obs.sources.readings import MigReadings
from seedance_obs.wiring_memory import filled

COUNTER_PATIENCE_SECONDS = 120.0  # four of dcgm-exporter's collection intervals


class BoardMemory:
    """Completes each merged GPU by what was known of it before.

    Two sources read one hardware counter, but the one that samples less often is behind, and one
    whose driver hangs is frozen: its value is not shown until it has caught up. Only a value that
    stays behind for `patience_seconds` and moves all the same is a counter that restarted, as is a
    lower value from the same source.
    """

    def __init__(self, *, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._boards: dict[str, MergedGpu] = {}
        self._counters: dict[tuple[str, str], Chosen] = {}
        self._behind: dict[tuple[str, str], Chosen] = {}

    def boards(self) -> Iterable[MergedGpu]:
        """Every board ever seen, as it was last."""
        return self._boards.values()

    def complete(self, gpu: MergedGpu) -> MergedGpu:
        """The GPU with the lasting facts that are missing now, and counters that never lag."""
        before = self._boards.get(gpu.uuid, gpu)
        counters = {
            name: self._hold((gpu.uuid, name), gpu.readings[name])
            for name in COUNTERS & gpu.readings.keys()
        }
        complete = replace(
            gpu,
            index=before.index if gpu.index is None else gpu.index,
            pci_bus_id=gpu.pci_bus_id or before.pci_bus_id,
            model=before.model or gpu.model,
            facts={**gpu.facts, **before.facts},
            mig=tuple(_named(instance, before.mig) for instance in gpu.mig),
            nvlinks=before.nvlinks if gpu.nvlinks is None else gpu.nvlinks,
            fabric=gpu.fabric or before.fabric,
            place=filled(gpu.place, before.place) if gpu.place else before.place,
            readings={**gpu.readings, **counters},
            pod_managed=before.pod_managed or bool(gpu.pods),
        )
        self._boards[gpu.uuid] = complete
        return complete

    def _hold(self, key: tuple[str, str], chosen: Chosen) -> Chosen:
        shown = self._counters.get(key, chosen)
        if chosen.source != shown.source and chosen.value < shown.value:
            first = self._behind.setdefault(key, chosen)
            waited = chosen.taken_at - first.taken_at > self._patience_seconds
            if not waited or chosen.value == first.value:
                return shown
        self._behind.pop(key, None)
        self._counters[key] = chosen
        return chosen


def _named(instance: MigReadings, before: Sequence[MigReadings]) -> MigReadings:
    """An instance with the identity it had, where a source knows its number alone."""
    known = [other for other in before if other.gpu_instance == instance.gpu_instance]
    if instance.uuid is not None or len(known) != 1:
        return instance
    return replace(known[0], values=instance.values)
