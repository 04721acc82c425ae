"""When each GPU last had an XID error, for as long as something may have to be done about it."""

from collections.abc import Callable, Iterable, Mapping

from seedance_obs.sources.readings import Xid

# An error is told for some minutes even where the driver wants nothing done, and is known for a
# while longer as the cause of what follows from it.
LEAST_SECONDS = 900.0


class XidTimes:
    """Monotonic times by GPU and code."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, int], float] = {}

    def note(self, xids: Iterable[Xid], at: float) -> None:
        """Take XID events that a source tells of."""
        self._times.update({(xid.uuid, xid.code): at for xid in xids})

    def settle(self, actions: Mapping[str, float | None], now: float) -> None:
        """Forget what is old on GPUs of which the driver asks for nothing, by its own word."""
        self._times = {
            (uuid, code): at
            for (uuid, code), at in self._times.items()
            if actions.get(uuid) != 0 or now - at < LEAST_SECONDS
        }

    def forget(self) -> None:
        """The driver is let go of, to be reloaded or to reset its GPUs."""
        self._times.clear()

    def last(
        self, labels_of: Callable[[str], tuple[str, ...]]
    ) -> dict[tuple[tuple[str, ...], int], float]:
        """Times by GPU labels and code, lost GPUs included."""
        return {(labels_of(uuid), code): at for (uuid, code), at in sorted(self._times.items())}
