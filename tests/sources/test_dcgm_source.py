"""Fetching the page from a real server that behaves, misbehaves or is not there."""

import gzip
import itertools
import os
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest
from page_server import Script, answering, request_of, serving

from seedance_obs.errors import SourceUnavailableError, UsageError
from seedance_obs.sources.dcgm.page import parse_page
from seedance_obs.sources.dcgm.source import DcgmSource, XidMemory
from seedance_obs.sources.readings import SourceSnapshot, Xid

UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"
LINE = f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{UUID}"}} 40\n'
PAGE = LINE.encode()


def read(
    script: Script,
    *,
    limit: int = 1 << 16,
    timeout: float = 5.0,
    monotonic: Callable[[], float] | None = None,
) -> SourceSnapshot:
    clock = {} if monotonic is None else {"monotonic": monotonic}
    with serving(script) as url:
        return DcgmSource(url, timeout_seconds=timeout, page_limit_bytes=limit, **clock).read()


def refusal(script: Script, **options: object) -> str:
    with pytest.raises(SourceUnavailableError) as caught:
        read(script, **options)  # type: ignore[arg-type]  # the options of read, by name
    return str(caught.value)


def temperature(snapshot: SourceSnapshot) -> float:
    return snapshot.gpus[0].values["temperature_gpu_celsius"]


def chunked(*chunks: bytes, finish: bool = True) -> Script:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)

    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(head + body + (b"0\r\n\r\n" if finish else b"ff\r\nDCGM"))

    return script


def test_a_page_becomes_a_snapshot_stamped_with_the_clock() -> None:
    snapshot = read(answering(PAGE), monotonic=lambda: 123.0)
    assert (snapshot.source, snapshot.taken_at) == ("dcgm", 123.0)
    assert temperature(snapshot) == 40.0
    assert snapshot.dropped == {}


def test_a_chunked_page_is_read_whole() -> None:
    assert temperature(read(chunked(PAGE[:20], PAGE[20:]))) == 40.0


@pytest.mark.parametrize(
    "script",
    [
        answering(PAGE + b"DCGM_FI_DEV_POWER_USAGE{g", length=4096),
        answering(PAGE, length=4096),
        chunked(PAGE, finish=False),
    ],
)
def test_a_page_closed_in_the_middle_gives_what_came_and_says_so(script: Script) -> None:
    snapshot = read(script)
    assert temperature(snapshot) == 40.0
    assert snapshot.dropped == {"truncated": 1}


def test_a_gzip_page_is_unpacked_although_it_was_not_asked_for() -> None:
    headers = ("Content-Type: text/plain", "Content-Encoding: gzip")
    assert temperature(read(answering(gzip.compress(PAGE), headers=headers))) == 40.0


def test_a_gzip_page_that_ends_early_counts_as_cut() -> None:
    headers = ("Content-Type: text/plain", "Content-Encoding: gzip")
    snapshot = read(answering(gzip.compress(PAGE)[:-4], headers=headers))
    assert snapshot.dropped == {"truncated": 1}


def test_a_small_gzip_page_that_unpacks_huge_is_refused() -> None:
    headers = ("Content-Type: text/plain", "Content-Encoding: gzip")
    script = answering(gzip.compress(PAGE * 100_000), headers=headers)
    assert "larger than 65536 bytes" in refusal(script)


@pytest.mark.parametrize(
    ("headers", "body", "named"),
    [
        (("Content-Type: text/html",), b"<html>DCGM_</html>", "text/html"),
        (("Content-Type: application/octet-stream",), PAGE, "application/octet-stream"),
        (("Content-Type: text/plain",), b"\x7fELF\0\0" + PAGE, "binary data"),
        (("Content-Type: text/plain", "Content-Encoding: br"), PAGE, "the encoding br"),
        (("Content-Type: text/plain", "Content-Encoding: gzip"), PAGE, "gzip and is not"),
    ],
)
def test_what_is_not_text_is_refused(headers: tuple[str, ...], body: bytes, named: str) -> None:
    message = refusal(answering(body, headers=headers))
    assert named in message
    assert "/metrics" in message


def test_a_page_without_a_content_type_is_read() -> None:
    assert temperature(read(answering(PAGE, headers=("X-Other: 1",)))) == 40.0


def test_bytes_that_are_not_utf8_cost_only_their_line() -> None:
    bad = LINE.replace("GPU_TEMP", "MEMORY_TEMP").encode().replace(b"gpu=", b'pod="\xff",gpu=')
    snapshot = read(answering(bad + PAGE))
    assert temperature(snapshot) == 40.0
    assert snapshot.dropped == {"malformed": 1}


@pytest.mark.parametrize("status", ["500 Internal Server Error", "301 Moved", "404 Not Found"])
def test_any_status_but_ok_is_refused_and_named(status: str) -> None:
    message = refusal(answering(PAGE, status=status, headers=("Location: /elsewhere",)))
    assert status.split()[0] in message


def test_a_page_over_the_limit_is_refused() -> None:
    assert "larger than 100 bytes" in refusal(answering(PAGE * 50), limit=100)


def test_a_page_of_another_exporter_is_refused() -> None:
    assert "no DCGM metric" in refusal(answering(b"node_load1 0.5\n"))
    assert "no DCGM metric" in refusal(answering(b""))


def test_what_is_not_http_is_refused() -> None:
    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    assert "did not answer in HTTP" in refusal(script)


def test_an_answer_without_a_byte_is_refused() -> None:
    assert "did not answer in HTTP" in refusal(lambda _: None)


def test_nobody_listening_is_a_sentence_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceUnavailableError, match=rf"127\.0\.0\.1:{port}.*dcgm-exporter runs"):
        DcgmSource(f"http://127.0.0.1:{port}/metrics").read()


def drip(head: bytes, byte: bytes) -> Script:
    """Sends one byte after another for as long as somebody reads."""

    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(head)
        while True:
            connection.sendall(byte)

    return script


@pytest.mark.parametrize(
    "script",
    [
        drip(b"", b"H"),
        drip(b"HTTP/1.1 200 OK\r\n", b"X"),
        drip(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"#"),
        drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n#\r\n"),
    ],
    ids=["status line", "headers", "body", "chunks"],
)
def test_a_dripping_server_ends_at_the_deadline(script: Script) -> None:
    """Every receive takes a second of this clock, and data never stops coming."""
    ticks = itertools.count()
    message = refusal(script, limit=1 << 40, timeout=3.0, monotonic=lambda: float(next(ticks)))
    assert "within 3 s" in message or "did not answer in HTTP" in message
    assert next(ticks) <= 6


def test_a_silent_server_ends_at_the_deadline() -> None:
    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.recv(1)  # returns when the reader gives up

    assert "within 0.05 s" in refusal(script, timeout=0.05)


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert temperature(read(answering(PAGE))) == 40.0


def test_the_request_asks_for_plain_text_at_the_right_path() -> None:
    requests: list[bytes] = []

    def script(connection: socket.socket) -> None:
        requests.append(request_of(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE))

    with serving(script) as url:
        DcgmSource(url + "?a=b").read()
    assert requests[0].startswith(b"GET /metrics?a=b HTTP/1.1\r\n")
    assert b"Accept: text/plain\r\n" in requests[0]


@pytest.mark.parametrize(
    "url", ["127.0.0.1:9400/metrics", "https://h/metrics", "http:///x", "http://h:x/", "http://[/"]
)
def test_an_address_that_cannot_work_is_refused_at_once(url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        DcgmSource(url)


def test_fifty_reads_leave_no_file_open() -> None:
    with serving(answering(PAGE)) as url, serving(answering(PAGE, length=9999)) as short:
        sources = [DcgmSource(url), DcgmSource(short), DcgmSource(url, page_limit_bytes=9)]
        before = len(os.listdir("/proc/self/fd"))
        for source in sources * 50:
            with suppress(SourceUnavailableError):
                source.read()
        # A server's end of the last connection may still be closing.
        assert len(os.listdir("/proc/self/fd")) <= before + len(sources)


class TestXidMemory:
    def events(self, *codes: str | None) -> list[list[int]]:
        memory = XidMemory()
        return [[xid.code for xid in memory.events(parse_page(self.text(code)))] for code in codes]

    @staticmethod
    def text(code: str | None, labels: str = f'gpu="0",UUID="{UUID}"') -> str:
        return LINE if code is None else f"{LINE}DCGM_FI_DEV_XID_ERRORS{{{labels}}} {code}\n"

    def test_what_stands_there_at_first_happened_before(self) -> None:
        assert self.events("79", "79", "79") == [[], [], []]

    def test_a_change_to_a_code_is_an_event_once(self) -> None:
        assert self.events("0", "43", "43", "79", "0", "79") == [[], [43], [], [79], [], [79]]

    def test_a_code_where_none_was_shown_is_an_event(self) -> None:
        assert self.events(None, "79", "79") == [[], [79], []]

    def test_a_code_that_vanishes_and_returns_is_no_news(self) -> None:
        assert self.events("0", "79", None, "79") == [[], [79], [], []]

    def test_a_sentinel_is_no_event_and_forgets_nothing(self) -> None:
        assert self.events("0", "79", "2147483632", "79") == [[], [79], [], []]

    def test_a_gpu_that_appears_later_brings_its_past_along(self) -> None:
        memory = XidMemory()
        other = self.text("79", 'gpu="1",UUID="GPU-1"')
        found = [list(memory.events(parse_page(text))) for text in (LINE, other, other)]
        assert found == [[], [], []]

    def test_half_a_page_does_not_make_an_old_code_new(self) -> None:
        memory = XidMemory()
        whole = parse_page(self.text("79"))
        found = [list(memory.events(part)) for part in (parse_page(LINE, cut=True), whole, whole)]
        assert found == [[], [], []]

    @staticmethod
    def on_instances(code: str, *numbers: int) -> str:
        parts = [f'gpu="0",UUID="{UUID}",GPU_I_ID="{number}"' for number in numbers]
        return "".join(TestXidMemory.text(code, part) for part in parts)

    def test_instances_repeating_one_code_are_one_event(self) -> None:
        memory = XidMemory()
        texts = [self.on_instances(code, 1, 2) for code in ("0", "48")]
        found = [memory.events(parse_page(text)) for text in texts]
        assert found == [(), (Xid(UUID, 48),)]

    def test_a_new_instance_repeating_an_old_code_is_no_news(self) -> None:
        memory = XidMemory()
        texts = [self.text("48"), self.text("48") + self.on_instances("48", 9), self.text("48")]
        assert [memory.events(parse_page(text)) for text in texts] == [(), (), ()]


def test_the_source_reports_xids_between_two_of_its_reads() -> None:
    codes = iter(["0", "79", "79"])

    def script(connection: socket.socket) -> None:
        request_of(connection)
        text = TestXidMemory.text(next(codes)).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))

    with serving(script) as url:
        source = DcgmSource(url)
        assert [source.read().xids for _ in range(3)] == [(), (Xid(UUID, 79),), ()]
