"""Prometheus' remote write, so that a real server holds samples of any time.

A WriteRequest is repeated TimeSeries (1), one of these repeated Label (1: name 1, value 2) and
repeated Sample (2: double value 1, int64 milliseconds 2); snappy's block format carries it as one
literal. What Prometheus itself would write around a scrape is written here: `up`, the target's
labels, and the NaN that ends a series.
"""

import struct
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from prometheus_client import Metric

Labels = tuple[tuple[str, str], ...]  # in order of their names, __name__ among them
Encoded = Mapping[Labels, bytes]
STALE = None
STALE_BITS = struct.pack("<Q", 0x7FF0000000000002)
REQUEST_BYTES = 4 * 2**20
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def labels_of(name: str, labels: Mapping[str, str]) -> Labels:
    """A series' labels as Prometheus keeps them: in order, none of them empty."""
    return tuple(
        sorted((key, text) for key, text in {**labels, "__name__": name}.items() if text != "")
    )


class Samples:
    """Samples by series, each series in the order of time; none after a moment, if one is said."""

    def __init__(self, *, until_ms: float = float("inf")) -> None:
        self.encoded: dict[Labels, bytearray] = defaultdict(bytearray)
        self._until_ms = until_ms

    def add(self, series: Labels, at_ms: int, value: float | None) -> None:
        """One value, or the end of a series: STALE."""
        if at_ms > self._until_ms:
            return
        before, after = _around(at_ms)
        bits = STALE_BITS if value is None else struct.pack("<d", value)
        self.encoded[series] += before + bits + after


SCRAPE_TAKES_S = 0.01


class Target:
    """Writes what Prometheus writes of one scrape target."""

    def __init__(self, samples: Samples, **labels: str) -> None:
        self._samples = samples
        self._labels = labels
        self._known: dict[tuple[str, Labels], Labels] = {}
        self._alive: set[Labels] = set()

    def scraped(self, families: Iterable[Metric], at_ms: int) -> None:
        """A scrape that was answered."""
        found: set[Labels] = set()
        for family in families:
            for name, labels, value, *_ in family.samples:
                series = self._series(name, labels)
                found.add(series)
                self._samples.add(series, at_ms, float(value))
        self._end(self._alive - found, at_ms)
        self._alive = found
        self._tell(at_ms, 1, len(found))

    def failed(self, at_ms: int) -> None:
        """A scrape that nobody answered."""
        self._end(self._alive, at_ms)
        self._alive = set()
        self._tell(at_ms, 0, 0)

    def _series(self, name: str, labels: Mapping[str, str]) -> Labels:
        key = name, tuple(labels.items())
        series = self._known.get(key)
        if series is None:
            assert not labels.keys() & self._labels, f"{name} would be renamed by Prometheus"
            series = self._known[key] = labels_of(name, {**labels, **self._labels})
        return series

    def _end(self, gone: Iterable[Labels], at_ms: int) -> None:
        for series in gone:
            self._samples.add(series, at_ms, STALE)

    def _tell(self, at_ms: int, up: int, samples: int) -> None:
        told = {
            "up": up,
            "scrape_samples_scraped": samples,
            "scrape_duration_seconds": SCRAPE_TAKES_S,
        }
        for name, value in told.items():
            self._samples.add(self._series(name, {}), at_ms, float(value))


def push(url: str, encoded: Encoded) -> None:
    """Hand samples to the Prometheus at a URL."""
    for body in _bodies(encoded):
        request = urllib.request.Request(
            f"{url}/api/v1/write",
            data=_snappy(body),
            headers={
                "Content-Type": "application/x-protobuf",
                "Content-Encoding": "snappy",
                "X-Prometheus-Remote-Write-Version": "0.1.0",
            },
        )
        try:
            with _OPENER.open(request, timeout=60) as answer:
                assert answer.status == 204, answer.status
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error


def _bodies(encoded: Encoded) -> Iterator[bytes]:
    body = bytearray()
    for series, samples in encoded.items():
        labels = b"".join(
            _field(1, _field(1, name.encode()) + _field(2, text.encode())) for name, text in series
        )
        body += _field(1, labels + samples)
        if len(body) > REQUEST_BYTES:
            yield bytes(body)
            body.clear()
    if body:
        yield bytes(body)


@lru_cache
def _around(at_ms: int) -> tuple[bytes, bytes]:
    """What stands before and after a value of that moment."""
    moment = b"\x10" + _varint(at_ms)
    return b"\x12" + _varint(9 + len(moment)) + b"\x09", moment


def _field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def _snappy(plain: bytes) -> bytes:
    """One literal whose length less one is told in four bytes."""
    return _varint(len(plain)) + b"\xfc" + struct.pack("<I", len(plain) - 1) + plain
