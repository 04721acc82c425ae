"""dcgm-exporter as a source: its page, and the XID events that two pages in a row reveal."""

import re
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.dcgm.http_page import PageFetcher
from seedance_obs.sources.dcgm.page import DcgmPage, parse_page
from seedance_obs.sources.readings import SourceSnapshot, Xid

_DCGM_LINE = re.compile(r"^DCGM_", re.IGNORECASE | re.MULTILINE)


class DcgmSource:
    """Reads one dcgm-exporter.

    Args:
        url: the page, such as `http://127.0.0.1:9400/metrics`.
        timeout_seconds: for one whole read, from connecting to the last byte.
        page_limit_bytes: a larger page is refused.
        monotonic: the clock, in seconds.

    Raises:
        UsageError: the address is not an `http://` one.
    """

    name = "dcgm"

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = 5.0,
        page_limit_bytes: int = 16 << 20,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._monotonic = monotonic
        self._fetcher = PageFetcher(
            url,
            timeout_seconds=timeout_seconds,
            limit_bytes=page_limit_bytes,
            monotonic=monotonic,
        )
        self._xids = XidMemory()

    def read(self) -> SourceSnapshot:
        """Everything on the page now, with the XID events since the last read.

        A page that ended early gives what it had, and counts one `truncated`.

        Raises:
            SourceUnavailableError: there is no page, or it is not dcgm-exporter's.
        """
        fetched = self._fetcher.fetch()
        if not _DCGM_LINE.search(fetched.text):
            raise SourceUnavailableError(
                f"the page at {self._url} holds no DCGM metric: check that the address is "
                "dcgm-exporter's, and that its counters file enables GPU fields"
            )
        page = parse_page(fetched.text, cut=not fetched.complete)
        return SourceSnapshot(
            self.name,
            self._monotonic(),
            gpus=page.gpus,
            xids=self._xids.events(page),
            versions=page.versions,
            dropped=page.dropped,
        )

    def close(self) -> None:
        """Nothing is held between reads."""


class XidMemory:
    """Turns DCGM's sticky last-XID gauge into events.

    The gauge keeps its code until something else happens, so an event is a change to a code. What
    a GPU shows when it is first seen happened before; a GPU that showed no code then and shows one
    now had an event. Two equal codes in a row cannot be told apart, and a code that vanishes and
    comes back unchanged is not news.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._last: dict[str, AbstractSet[int]] = {}

    def events(self, page: DcgmPage) -> tuple[Xid, ...]:
        """The XIDs that happened since the page before, each once per GPU and code."""
        found = [
            Xid(uuid, code)
            for uuid, codes in page.last_xids.items()
            if uuid in self._seen
            for code in sorted(codes - self._last.get(uuid, set()) - {0})
        ]
        self._last.update(page.last_xids)
        if page.complete:  # in half a page a missing code may only have been cut off
            self._seen.update(gpu.uuid for gpu in page.gpus)
        return tuple(found)
