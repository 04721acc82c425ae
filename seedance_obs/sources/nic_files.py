"""Where Linux keeps what a network adapter has sent and received, and how fast it can.

An adapter is one PCI function; its ports add up. RDMA and Ethernet count different bytes:

* `rdma`: `infiniband/<device>/ports/<n>/counters/port_{xmit,rcv}_data`, in words of four bytes. On
  an InfiniBand port that is all that passes, IPoIB included, so its network interfaces are left
  out. On a RoCE port mlx5 adds up the RDMA packets of its virtual port, and no others
  (`drivers/infiniband/hw/mlx5/mad.c`); bnxt_re does alike.
* `ethernet`: `net/<interface>/statistics/{tx,rx}_bytes`, which the driver counts in its own queues,
  where RDMA does not pass. The exception is an adapter in switchdev mode: there mlx5 shows what
  passed its physical port. Beside RDMA counters such an interface is left out, for it holds their
  bytes once more.

Not counted, here or anywhere: virtual functions (their RDMA bytes are not in the counters of their
adapter either), the representors that stand for them, and bonds, whose members are. The one RDMA
device of a RoCE bond belongs to the bond's first function and counts there for both. Adapters that
count elsewhere (EFA in `hw_counters`, iWARP nowhere) tell no RDMA bytes.
"""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from seedance_obs.sources.small_files import read_text

RDMA, ETHERNET = "rdma", "ethernet"

_RDMA_WORD_BYTES = 4
_MEGABIT_BYTES = 125_000
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec \(\d+X (\w+)\)", re.ASCII)
# What the older rates of InfiniBand leave for data once they are encoded; later ones say that.
_CODING = {"SDR": 8 / 10, "DDR": 8 / 10, "QDR": 8 / 10, "FDR": 64 / 66}
_ETHERNET_TYPE = "1"  # ARPHRD_ETHER
_PHYSICAL_PORT = re.compile(r"p\d+(s\d+)?", re.ASCII)  # in switchdev mode; others are representors
# bnxt_en is told once a second by its adapter, unless ethtool's stats-block-usecs says otherwise.
_REFRESH_SECONDS = {"bnxt_en": 1.0}


@dataclass(frozen=True, slots=True)
class CounterFile:
    """A file with one number; `inode` tells it from a later one at the same place."""

    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class NicCounter:
    """What an adapter counts in one direction: one file a port.

    Attributes:
        source: `rdma` or `ethernet`.
        direction: `transmit` or `receive`.
        unit: Bytes for each one counted.
    """

    source: str
    direction: str
    files: tuple[CounterFile, ...]
    unit: int


@dataclass(frozen=True, slots=True)
class NicFiles:
    """The counters of one adapter, of those that it has.

    Attributes:
        capacity: Bytes per second one way, of all ports that are up; None where none is, or none
            says.
        refresh_seconds: How old the counters may be; 0 where they are always up to date.
    """

    counters: tuple[NicCounter, ...] = ()
    capacity: float | None = None
    refresh_seconds: float = 0.0


def find_nic(root: str, address: str) -> NicFiles:
    """What the adapter at a canonical PCI address has below a host root, such as `/host`.

    Empty where there is no such device, or it is a virtual function.

    Raises:
        OSError: nobody can tell, for this process can open nothing.
    """
    device = f"{root}/sys/bus/pci/devices/{address}"
    if os.path.lexists(f"{device}/physfn"):
        return NicFiles()
    ports = list(_ports(device))
    interfaces = [folder for folder in _interfaces(device) if _counts(folder, beside_rdma=ports)]
    counters = [
        *_counters(RDMA, _RDMA_WORD_BYTES, [_rdma_files(port) for port in ports]),
        *_counters(ETHERNET, 1, [_ethernet_files(folder) for folder in interfaces]),
    ]
    rates = [_port_rate(device, port) for port in ports] or [_speed(net) for net in interfaces]
    known = [rate for rate in rates if rate is not None]
    driver = os.path.basename(os.path.realpath(f"{device}/driver"))
    return NicFiles(
        tuple(counters), sum(known) if known else None, _REFRESH_SECONDS.get(driver, 0.0)
    )


def _ports(device: str) -> Iterator[str]:
    for rdma in _listed(f"{device}/infiniband"):
        yield from _listed(f"{rdma}/ports")


def _interfaces(device: str) -> Iterator[str]:
    """The network interfaces of a PCI function; those of a virtio adapter lie one level down."""
    yield from _listed(f"{device}/net")
    for folder in _listed(device):
        if os.path.basename(folder).startswith("virtio"):
            yield from _listed(f"{folder}/net")


def _counts(interface: str, *, beside_rdma: list[str]) -> bool:
    if _text(f"{interface}/type") != _ETHERNET_TYPE:
        return False
    if not _text(f"{interface}/phys_switch_id"):
        return True
    port = _text(f"{interface}/phys_port_name")
    return not beside_rdma and _PHYSICAL_PORT.fullmatch(port) is not None


def _counters(
    source: str, unit: int, ports: list[tuple[CounterFile, CounterFile] | None]
) -> Iterator[NicCounter]:
    """Both directions of the ports that count, added up."""
    counting = [pair for pair in ports if pair is not None]
    if counting:
        for place, direction in enumerate(("transmit", "receive")):
            yield NicCounter(source, direction, tuple(pair[place] for pair in counting), unit)


def _rdma_files(port: str) -> tuple[CounterFile, CounterFile] | None:
    """Kernels before 4.5 have the 64 bits apart; later ones show as many as the device has."""
    wide = f"{port}/counters_ext"
    return _pair(f"{wide}/port_xmit_data_64", f"{wide}/port_rcv_data_64") or _pair(
        f"{port}/counters/port_xmit_data", f"{port}/counters/port_rcv_data"
    )


def _ethernet_files(interface: str) -> tuple[CounterFile, CounterFile] | None:
    folder = f"{interface}/statistics"
    return _pair(f"{folder}/tx_bytes", f"{folder}/rx_bytes")


def _pair(sent: str, received: str) -> tuple[CounterFile, CounterFile] | None:
    try:
        return CounterFile(sent, os.stat(sent).st_ino), CounterFile(
            received, os.stat(received).st_ino
        )
    except OSError:
        return None


def _port_rate(device: str, port: str) -> float | None:
    """Bytes per second of a port that is up, without InfiniBand's encoding."""
    if _text(f"{port}/state") != "4: ACTIVE":
        return None
    if "bond" in os.path.basename(os.path.dirname(os.path.dirname(port))):
        masters = (f"{folder}/master" for folder in _interfaces(device))
        return next((rate for master in masters if (rate := _speed(master))), None)
    found = _RATE.fullmatch(_text(f"{port}/rate"))
    if found is None:
        return None
    coded = _text(f"{port}/link_layer") == "InfiniBand"
    return float(found[1]) * 1000 * _MEGABIT_BYTES * (_CODING.get(found[2], 1.0) if coded else 1.0)


def _speed(interface: str) -> float | None:
    """Bytes per second of an interface; one that is down has an error there, or -1."""
    text = _text(f"{interface}/speed")
    return float(text) * _MEGABIT_BYTES if re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII) else None


def _listed(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder))]
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return []


def _text(file: str) -> str:
    return (read_text(file, 256) or "").strip()
