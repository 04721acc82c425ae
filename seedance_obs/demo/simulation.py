"""The simulated fleet's side of the demo: DCGM pages, kubelets, and file systems on disk."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.sources.podresources.call import SOCKET_PATH_BYTES
from seedance_obs.sources.sim.adapter_files import write_nics
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.kubelet import SimulatedKubelet
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.page import render_page

PROC_REFRESH_SECONDS = 0.5
NIC_REFRESH_SECONDS = 0.05  # they are read every tenth of a second


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """One node of the fleet: its machine, and what its exporter is pointed at."""

    machine: Machine
    root: Path
    nvml_library: str
    dcgm_url: str


class _PageServer(ThreadingHTTPServer):
    """Serves each machine's DCGM page at /NAME/metrics."""

    daemon_threads = True

    def __init__(self, machines: Sequence[Machine], epoch_unix: float) -> None:
        super().__init__(("127.0.0.1", 0), _PageHandler)
        self.pages = {f"/{machine.name}/metrics": machine for machine in machines}
        self.epoch_unix = epoch_unix


class _PageHandler(BaseHTTPRequestHandler):
    """Answers with the page of the machine named by the path, as of now."""

    server: _PageServer

    def do_GET(self) -> None:
        """Send the page."""
        machine = self.server.pages.get(self.path)
        if machine is None:
            self.send_error(404)
            return
        body = render_page(machine, time.time() - self.server.epoch_unix).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        """Requests are not news."""


@contextlib.contextmanager
def running_simulation(
    names: Sequence[str], folder: Path, *, epoch_unix: float
) -> Iterator[list[SimulatedNode]]:
    """The fleet's nodes, alive until the context ends; time in them starts at `epoch_unix`."""
    machines = [load_machine(name) for name in names]
    server = _PageServer(machines, epoch_unix)
    nodes = []
    for name, machine in zip(names, machines, strict=True):
        root = folder / machine.name
        write_sysfs(machine, root)
        write_proc(machine, root, time.time() - epoch_unix, epoch_unix=epoch_unix)
        nodes.append(
            SimulatedNode(
                machine=machine,
                root=root,
                nvml_library=f"sim:{name}@{epoch_unix}",
                dcgm_url=f"http://127.0.0.1:{server.server_address[1]}/{machine.name}/metrics",
            )
        )
    kubelets = contextlib.ExitStack()
    for node in nodes:
        socket = node.root / NodeSettings().podresources_socket.lstrip("/")
        # Below a long temporary folder there is no room for a socket; its pods are then known by
        # their processes alone.
        if node.machine.kubernetes and len(os.fsencode(socket)) <= SOCKET_PATH_BYTES:
            kubelets.enter_context(_kubelet(node.machine, socket, epoch_unix))
    stopping = threading.Event()
    threads = [
        threading.Thread(target=server.serve_forever, daemon=True),
        threading.Thread(target=_keep_proc, args=(nodes, epoch_unix, stopping), daemon=True),
        threading.Thread(target=_keep_nics, args=(nodes, epoch_unix, stopping), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield nodes
    finally:
        stopping.set()
        kubelets.close()
        server.shutdown()
        server.server_close()
        for thread in threads:
            thread.join()


def _kubelet(machine: Machine, socket: Path, epoch_unix: float) -> SimulatedKubelet:
    socket.parent.mkdir(parents=True)
    return SimulatedKubelet(machine, socket, now=lambda: time.time() - epoch_unix)


def _keep_proc(
    nodes: Sequence[SimulatedNode], epoch_unix: float, stopping: threading.Event
) -> None:
    while not stopping.wait(PROC_REFRESH_SECONDS):
        for node in nodes:
            t = time.time() - epoch_unix
            write_proc(node.machine, node.root, t, epoch_unix=epoch_unix)


def _keep_nics(
    nodes: Sequence[SimulatedNode], epoch_unix: float, stopping: threading.Event
) -> None:
    while not stopping.wait(NIC_REFRESH_SECONDS):
        for node in nodes:
            write_nics(node.machine, node.root, time.time() - epoch_unix)
