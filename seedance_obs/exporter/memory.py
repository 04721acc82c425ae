"""What is remembered of a board while the source that knows it best is away.

Labels must not change, and counters must not step back, because one source stopped answering and
another carries on: every series would end and begin anew, and every rate would jump.
"""

from dataclasses import replace

from seedance_obs.merge import Chosen, MergedGpu
from seedance_obs.quantities import COUNTERS


class BoardMemory:
    """Completes each merged GPU by what was known of it before.

    Two sources read one hardware counter, but the one that samples less often is behind: its value
    is not shown until it has caught up. A value that stays behind for `patience_seconds` is a
    counter that really restarted, as is a lower value from the same source.
    """

    def __init__(self, *, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._boards: dict[str, MergedGpu] = {}
        self._counters: dict[tuple[str, str], Chosen] = {}

    def complete(self, gpu: MergedGpu) -> MergedGpu:
        """The GPU with the lasting facts that are missing now, and counters that never lag."""
        before = self._boards.get(gpu.uuid, gpu)
        counters = {
            name: self._hold(gpu.uuid, name, gpu.readings[name])
            for name in COUNTERS & gpu.readings.keys()
        }
        complete = replace(
            gpu,
            index=before.index if gpu.index is None else gpu.index,
            pci_bus_id=gpu.pci_bus_id or before.pci_bus_id,
            model=gpu.model or before.model,
            facts={**before.facts, **gpu.facts},
            nvlinks=before.nvlinks if gpu.nvlinks is None else gpu.nvlinks,
            fabric=gpu.fabric or before.fabric,
            readings={**gpu.readings, **counters},
        )
        self._boards[gpu.uuid] = complete
        return complete

    def _hold(self, uuid: str, name: str, chosen: Chosen) -> Chosen:
        shown = self._counters.get((uuid, name), chosen)
        behind = chosen.source != shown.source and chosen.value < shown.value
        if behind and chosen.taken_at - shown.taken_at <= self._patience_seconds:
            return shown
        self._counters[uuid, name] = chosen
        return chosen
