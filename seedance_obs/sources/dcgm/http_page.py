"""One bounded GET: a page of text in a limited time and size, whatever the far end does.

A socket's timeout covers one `recv`, so a server that sends a byte a second could hold a reader
for hours. Here every `recv` is given what is left of one overall deadline. Proxies in the
environment are never used: the page is on this node.
"""

import http.client
import socket
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from seedance_obs.errors import SourceUnavailableError, UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 1 << 16
_TEXT_TYPES = ("text/plain", "application/openmetrics-text")


@dataclass(frozen=True, slots=True)
class TextPage:
    """A page; `complete` is False where the connection ended before the page did."""

    text: str
    complete: bool


class PageFetcher:
    """Fetches one address again and again. Resolving its host name is not in the time limit.

    Raises:
        UsageError: the address is not an `http://` one.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        limit_bytes: int,
        monotonic: Callable[[], float],
    ) -> None:
        self._url = url
        self._parts = _split(url)
        self._timeout_seconds = timeout_seconds
        self._limit_bytes = limit_bytes
        self._monotonic = monotonic

    def fetch(self) -> TextPage:
        """The page as it stands now.

        Raises:
            SourceUnavailableError: nothing that can be read came in time.
        """
        deadline = self._monotonic() + self._timeout_seconds
        try:
            connection = self._connect(deadline)
        except TimeoutError as error:
            raise self._too_slow() from error
        except OSError as error:
            raise SourceUnavailableError(
                f"cannot connect to {self._url} ({error.strerror or error}): "
                "check that dcgm-exporter runs and listens there"
            ) from error
        try:
            return self._ask(connection)
        except TimeoutError as error:
            raise self._too_slow() from error
        except (http.client.HTTPException, OSError) as error:
            raise SourceUnavailableError(
                f"{self._url} did not answer in HTTP ({type(error).__name__}: {error}): "
                "check that the address is dcgm-exporter's and not behind TLS"
            ) from error
        finally:
            connection.close()

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port or 80
        connection = http.client.HTTPConnection(host, port)
        failure: OSError = OSError("no address for this host name")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            candidate = _DeadlineSocket(family, kind, protocol)
            candidate.allow_until(deadline, self._monotonic)
            try:
                candidate.spend()
                candidate.connect(address)
            except OSError as error:
                candidate.close()
                failure = error
                continue
            connection.sock = candidate
            return connection
        raise failure

    def _ask(self, connection: http.client.HTTPConnection) -> TextPage:
        path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        connection.request(
            "GET", path, headers={"Accept": "text/plain", "Accept-Encoding": "identity"}
        )
        with connection.getresponse() as response:
            return self._page(response)

    def _page(self, response: http.client.HTTPResponse) -> TextPage:
        if response.status != http.client.OK:
            raise SourceUnavailableError(
                f"{self._url} answered {response.status} {response.reason} instead of a page: "
                "read dcgm-exporter's own log for the cause"
            )
        self._check_type(response.headers.get_content_type(), response.getheader("Content-Type"))
        body, complete = self._body(response)
        encoding = (response.getheader("Content-Encoding") or "identity").strip().lower()
        if encoding != "identity":
            body, whole = self._unpacked(body, encoding)
            complete = complete and whole
        if b"\0" in body:
            raise self._not_text("binary data")
        return TextPage(body.decode("utf-8", errors="replace"), complete)

    def _body(self, response: http.client.HTTPResponse) -> tuple[bytes, bool]:
        body = bytearray()
        try:
            while chunk := response.read(_CHUNK_BYTES):
                body += chunk
                if len(body) > self._limit_bytes:
                    raise self._too_large()
        except http.client.IncompleteRead as error:
            return bytes(body + error.partial), False
        except ConnectionError:
            return bytes(body), False
        return bytes(body), not response.length

    def _unpacked(self, body: bytes, encoding: str) -> tuple[bytes, bool]:
        if encoding != "gzip":
            raise self._not_text(f"the encoding {encoding}")
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            text = unpacker.decompress(body, self._limit_bytes + 1)
        except zlib.error as error:
            raise self._not_text("what it calls gzip and is not") from error
        if len(text) > self._limit_bytes:
            raise self._too_large()
        return text, unpacker.eof

    def _check_type(self, kind: str, header: str | None) -> None:
        if header is not None and kind not in _TEXT_TYPES:
            raise self._not_text(kind)

    def _not_text(self, found: str) -> SourceUnavailableError:
        return SourceUnavailableError(
            f"{self._url} sent {found} where a text page of metrics was wanted: "
            "check that the address is dcgm-exporter's /metrics"
        )

    def _too_large(self) -> SourceUnavailableError:
        return SourceUnavailableError(
            f"the page at {self._url} is larger than {self._limit_bytes} bytes: "
            "ask dcgm-exporter for fewer fields, or raise the page limit"
        )

    def _too_slow(self) -> SourceUnavailableError:
        return SourceUnavailableError(
            f"{self._url} did not send its page within {self._timeout_seconds:g} s: "
            "look for a hung driver or host engine on this node, or raise the time limit"
        )


class _DeadlineSocket(socket.socket):
    """A socket whose every blocking call may use only what is left of one deadline."""

    def allow_until(self, deadline: float, monotonic: Callable[[], float]) -> None:
        self._deadline = deadline
        self._monotonic = monotonic

    def spend(self) -> None:
        left = self._deadline - self._monotonic()
        if left <= 0:
            raise TimeoutError("the time for this page is over")
        self.settimeout(left)

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0) -> int:
        self.spend()
        return super().recv_into(buffer, nbytes, flags)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        raise UsageError(f"{url!r} is not an address: {error}") from error
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"{url!r} is not an http:// address such as http://127.0.0.1:9400/metrics")
    return parts
