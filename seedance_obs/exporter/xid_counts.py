"""XID errors counted by GPU, whoever told of them."""

from collections import Counter
from collections.abc import Callable, Iterable

from seedance_obs.sources.readings import Xid


class XidCounts:
    """Counts that only grow, by source, GPU and code."""

    def __init__(self) -> None:
        self._by_source: dict[str, Counter[tuple[str, int]]] = {}

    def add(self, source: str, xids: Iterable[Xid]) -> None:
        """Count the XID events that a source tells of."""
        counts = self._by_source.setdefault(source, Counter())
        counts.update((xid.uuid, xid.code) for xid in xids)

    def totals(
        self, labels_of: Callable[[str], tuple[str, ...]]
    ) -> dict[tuple[tuple[str, ...], int], int]:
        """XID counts by GPU labels and code, lost GPUs included.

        Sources tell of the same events and each may miss some: the one that saw most is right.
        """
        most: Counter[tuple[str, int]] = Counter()
        for counts in self._by_source.values():
            most |= counts
        return {(labels_of(uuid), code): count for (uuid, code), count in sorted(most.items())}
