"""What it takes to push samples to Prometheus by remote write, over the standard library.

A request is a protobuf message in a snappy frame. Both are written here in their simplest form: a
frame may hold its message as it is.
"""

import struct
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection

from seedance_obs.errors import SourceUnavailableError

PATH = "/api/v1/write"
PATIENCE_SECONDS = 120.0
_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


def encoded_samples(samples: Iterable[tuple[int, float]]) -> bytes:
    """Samples of one series: milliseconds since the epoch and values, oldest first."""
    return b"".join(
        _field(2, struct.pack("<Bd", 0x09, value) + b"\x10" + _varint(at_ms))
        for at_ms, value in samples
    )


def encoded_labels(labels: Mapping[str, str]) -> bytes:
    """The labels of one series, its name as `__name__`; an empty one is none."""
    return b"".join(
        _field(1, _field(1, name.encode()) + _field(2, value.encode()))
        for name, value in sorted(labels.items())
        if value
    )


def encoded_series(labels: bytes, samples: bytes) -> bytes:
    """One series of a request, which is as many of these as wanted behind each other."""
    return _field(1, labels + samples)


def push(connection: HTTPConnection, request: bytes) -> None:
    """Write one request.

    Raises:
        SourceUnavailableError: Prometheus did not take it; the message says why.
    """
    connection.request("POST", PATH, _frame(request), _HEADERS)
    response = connection.getresponse()
    said = response.read()
    if response.status >= 300:
        raise SourceUnavailableError(f"remote write, HTTP {response.status}: {said[:200]!r}")


def _field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _frame(message: bytes) -> bytes:
    literal = b"\xfc" + (len(message) - 1).to_bytes(4, "little")  # tag of a literal, its length
    return _varint(len(message)) + literal + message
