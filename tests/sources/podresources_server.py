"""Kubelets for tests: a real gRPC server with scripted answers, and listeners that are none."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc

SERVICE = "v1.PodResourcesLister"
Answer = Callable[[bytes, Any], bytes]  # a request and its context to a reply


@contextmanager
def kubelet(path: Path, **answers: Answer) -> Iterator[grpc.Server]:
    """Serve the methods that are given until the block ends."""
    handlers = {name: grpc.unary_unary_rpc_method_handler(each) for name, each in answers.items()}
    with ThreadPoolExecutor(4) as executor:
        server = grpc.server(executor)
        service = grpc.method_handlers_generic_handler(SERVICE, handlers)
        server.add_generic_rpc_handlers((service,))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        try:
            yield server
        finally:
            server.stop(None).wait()


def always(reply: bytes) -> Answer:
    return lambda _request, _context: reply


def failing(code: grpc.StatusCode, details: str) -> Answer:
    def answer(_request: bytes, context: Any) -> bytes:
        context.set_code(code)
        context.set_details(details)
        return b""

    return answer


@contextmanager
def listener(path: Path, talk: Callable[[socket.socket], None]) -> Iterator[None]:
    """Accept connections until the block ends, and let `talk` have each; then hang up on it."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen()
        stopping = threading.Event()
        thread = threading.Thread(target=_accept, args=(server, talk, stopping))
        thread.start()
        stack.callback(path.unlink)
        stack.callback(thread.join)
        stack.callback(_wake, path)
        stack.callback(stopping.set)
        yield


def _accept(
    server: socket.socket, talk: Callable[[socket.socket], None], stopping: threading.Event
) -> None:
    while not stopping.is_set():
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            try:
                talk(connection)
            except OSError:
                continue  # the caller hung up first


def _wake(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one_more:
        one_more.connect(str(path))


def silence(connection: socket.socket) -> None:
    """Take everything, say nothing, until the caller gives up."""
    while connection.recv(65536):
        pass


def pod(name: str, *containers: bytes, namespace: str = "research") -> bytes:
    """A serialized `PodResources`, inside its `ListPodResourcesResponse`."""
    return field(1, pod_message(name, *containers, namespace=namespace))


def pod_message(name: str, *containers: bytes, namespace: str = "research") -> bytes:
    body = field(1, name) + field(2, namespace)
    return body + b"".join(field(3, each) for each in containers)


def container(name: str, *parts: bytes) -> bytes:
    return field(1, name) + b"".join(parts)


def device(resource: str, *ids: str, topology: bytes | None = None) -> bytes:
    """A `ContainerDevices` as field 2 of its container; `topology` is serialized."""
    body = field(1, resource) + b"".join(field(2, each) for each in ids)
    return field(2, body + (b"" if topology is None else field(3, topology)))


def claim(name: str, device_name: str, *cdi: str, driver: str = "gpu.nvidia.com") -> bytes:
    """A `DynamicResource` with one device as field 5 of its container."""
    one = b"".join(field(1, field(1, each)) for each in cdi)
    one += field(2, driver) + field(3, "node-7") + field(4, device_name)
    return field(5, field(2, name) + field(3, "research") + field(4, one))


def field(number: int, value: bytes | str) -> bytes:
    """One length-delimited field of protobuf's wire format, by the format's own description."""
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
