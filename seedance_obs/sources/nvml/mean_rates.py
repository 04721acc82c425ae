"""How fast a counter has run since it was last looked at."""


class MeanRates:
    """The mean rates of counters from one pass to the next."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[float, float]] = {}  # when, and what it showed

    def per_second(self, owner: str, counter: str, total: float, at: float) -> float | None:
        """The mean since the call before; `at` is monotonic, in seconds.

        None in the first call, where no time has passed, and where the counter went back.
        """
        before = self._last.get((owner, counter))
        self._last[owner, counter] = at, total
        if before is None or at <= before[0] or total < before[1]:
            return None
        return (total - before[1]) / (at - before[0])

    def forget(self, owner: str | None = None) -> None:
        """Begin anew for one owner (None: for all)."""
        for key in [key for key in self._last if owner in (None, key[0])]:
            del self._last[key]
