"""A loopback server that answers every connection with the same scripted bytes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Script = Callable[[socket.socket], None]


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Serve until the block ends; yields the page's address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stopping = threading.Event()
        thread = threading.Thread(target=_accept, args=(listener, script, stopping))
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/metrics"
        finally:
            stopping.set()
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join()


def _accept(listener: socket.socket, script: Script, stopping: threading.Event) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            if stopping.is_set():
                return
            connection.settimeout(10)
            try:
                script(connection)
            except OSError:
                continue  # the reader hung up, which is what some tests are about


def request_of(connection: socket.socket) -> bytes:
    """The whole request, so that closing does not reset the connection."""
    request = b""
    while b"\r\n\r\n" not in request:
        received = connection.recv(65536)
        if not received:
            break
        request += received
    return request


def answering(
    body: bytes, *, status: str = "200 OK", headers: tuple[str, ...] = (), length: int | None = None
) -> Script:
    """One whole answer; `length` is the Content-Length to claim instead of the true one."""
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(body) if length is None else length}",
        *(headers or ("Content-Type: text/plain; version=0.0.4",)),
    )
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"

    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(head + body)

    return script
