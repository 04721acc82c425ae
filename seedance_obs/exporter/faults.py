"""Lets one thing fail without the others, and tells an operator when a fault starts and ends."""

import logging
from dataclasses import dataclass
from types import TracebackType

LOG = logging.getLogger(__name__)


class Faults:
    """The things that fail now; each is the business of one thread."""

    def __init__(self) -> None:
        self._failing: set[str] = set()

    def kept_to(self, what: str) -> "_Kept":
        """A context in which an exception costs no more than the rest of the block."""
        return _Kept(self._failing, what)


@dataclass(frozen=True, slots=True)
class _Kept:
    failing: set[str]
    what: str

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _where: TracebackType | None,
    ) -> bool:
        """Log the start or the end of a fault; True: the exception goes no further."""
        if isinstance(error, Exception):
            if self.what not in self.failing:
                LOG.error("event=fault_started of=%r", self.what, exc_info=error)
            self.failing.add(self.what)
            return True
        if error is None and self.what in self.failing:
            LOG.warning("event=fault_ended of=%r", self.what)
            self.failing.discard(self.what)
        return False
