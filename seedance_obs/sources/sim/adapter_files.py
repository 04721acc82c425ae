"""The network adapters of a machine in its /sys: what stays, and counters to move on."""

import os
from pathlib import Path

from seedance_obs.sources.sim.adapters import INFINIBAND_RATES, adapter_bytes
from seedance_obs.sources.sim.machine import Machine, NetworkAdapter

_WORD_BYTES = 4  # of InfiniBand's counters


def add_adapter(folder: Path, nic: NetworkAdapter) -> None:
    """Write what does not change below the adapter's PCI device: its port and its speed."""
    if nic.rdma:
        port = folder / "infiniband" / nic.name / "ports/1"
        files = {
            "state": "4: ACTIVE",
            "link_layer": "InfiniBand",
            "rate": f"{nic.gbits} Gb/sec (4X {INFINIBAND_RATES[nic.gbits]})",
        }
    else:
        port = folder / "net" / nic.name
        files = {"type": "1", "operstate": "up", "speed": str(1000 * nic.gbits)}
    (port / _counters(nic)).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (port / name).write_text(f"{text}\n")


def write_nics(machine: Machine, root: Path, t: float) -> None:
    """Bring the counters of all adapters to t, in the files that `write_sysfs` has made.

    Each is written in place, for who reads them keeps them open.
    """
    moved = adapter_bytes(machine, t)
    for nic in machine.nics:
        folder = root.joinpath("sys/devices", *nic.device.path, nic.device.pci)
        amount = int(moved[nic.device.pci])
        if nic.rdma:
            counters = folder / "infiniband" / nic.name / "ports/1" / _counters(nic)
            names, count = ("port_xmit_data", "port_rcv_data"), amount // _WORD_BYTES
        else:
            counters = folder / "net" / nic.name / _counters(nic)
            names, count = ("tx_bytes", "rx_bytes"), amount
        for name in names:
            _write_in_place(counters / name, f"{count}\n".encode())


def _counters(nic: NetworkAdapter) -> str:
    return "counters" if nic.rdma else "statistics"


def _write_in_place(file: Path, text: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(descriptor, text, 0)
        os.ftruncate(descriptor, len(text))
    finally:
        os.close(descriptor)
