"""How much a path carries one way, in bytes per second, and what that number rests on.

The constants are those that NCCL plans its rings with (src/graph/topo.h). They are rounded to what
a collective reaches, while a generation and a width give what the wires carry: a number says which
of the two it is by its basis.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from seedance_obs.pcie import GIGATRANSFERS
from seedance_obs.topology.model import (
    UNKNOWN,
    Absent,
    Device,
    Kind,
    NvLinkKind,
    Path,
    PcieLevel,
    Topology,
)
from seedance_obs.topology.products import product

ASSUMED_NVLINK = 20e9  # a link of Volta and Ampere: SM70_NVLINK_BW, SM80_NVLINK_BW
ASSUMED_PCIE = 12e9  # generation 3, 16 lanes: PCI_BW
ASSUMED_C2C = 450e9  # NVLink-C2C as specified for Grace Hopper
ASSUMED_LANES = 16

LATEST_GENERATION = max(GIGATRANSFERS)

# An Intel root complex cuts what GPUs send each other into 64-byte packets: INTEL_P2P_OVERHEAD.
HOST_BRIDGE_SHARE = 5 / 6

# Between sockets. Intel's and unknown CPUs are told apart by their PCIe generation.
INTERCONNECTS = (
    (re.compile(r"amd|epyc|threadripper", re.I), 16e9),  # AMD_BW
    (re.compile(r"power9", re.I), 32e9),  # P9_BW
    (re.compile(r"\barm\b|aarch64|neoverse|grace", re.I), 6e9),  # ARM_BW
)
INTEL = re.compile(r"intel|xeon", re.I)
INTEL_INTERCONNECT = {3: 6e9, 4: 10e9, 5: 22e9}  # BDW_QPI_BW, SKL_QPI_BW, SRP_QPI_BW
SLOWEST_INTERCONNECT = {3: 6e9, 4: 10e9, 5: 16e9}  # the slower of Intel's and AMD's


class Basis(StrEnum):
    """What a bandwidth rests on.

    NVLINK: links counted, times the rate that the driver or the caller states, or that the
    product has by design. PCIE: generation and width of an end. ASSUMED: the path's kind alone,
    with NCCL's constants.
    """

    NVLINK = "nvlink"
    PCIE = "pcie"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes per second one way, and what the number rests on."""

    bytes_per_second: float
    basis: Basis


LinkRate = Callable[[Device], float | Absent]


def port_rate(device: Device) -> float | Absent:
    """What one NVLink of a GPU carries one way in bytes per second: its slowest active port.

    Where no active port states a rate, it is what the product has by design, or UNKNOWN.
    """
    rates = [
        port.mb_per_second
        for port in (() if isinstance(device.nvlinks, Absent) else device.nvlinks)
        if port.active is not False
        and not isinstance(port.mb_per_second, Absent)
        and port.mb_per_second > 0
    ]
    return min(rates) * 1e6 if rates else _rate_by_design(device)


def pcie_bytes_per_second(generation: int, width: int) -> float | Absent:
    """What a PCIe link carries one way after line encoding, before packet headers.

    Generations 1 and 2 send 8 bits in 10, 3 to 5 send 128 in 130, from 6 on 242 bytes in 256.
    UNKNOWN for a generation or a width that does not exist.
    """
    if generation not in GIGATRANSFERS or width < 1:
        return UNKNOWN
    payload = 8 / 10 if generation <= 2 else 128 / 130 if generation <= 5 else 242 / 256
    return GIGATRANSFERS[generation] * 1e9 * payload * width / 8


class PathModel:
    """The bandwidths of one topology's paths.

    `link_rate` gives what one NVLink of a GPU carries (bytes per second one way); where it answers
    UNKNOWN for both ends, a link counts as 20 GB/s.
    """

    def __init__(self, topology: Topology, link_rate: LinkRate = port_rate) -> None:
        gpus = topology.gpus
        self._rates = {gpu.name: link_rate(gpu) for gpu in gpus}
        self._links = {device.name: _pcie_link(device) for device in topology.devices}
        self._cpu = " ".join(
            cpu.model for cpu in topology.of_kind(Kind.CPU) if isinstance(cpu.model, str)
        )

    def bandwidth(self, path: Path) -> Bandwidth | Absent:
        """What a path carries: its NVLinks if it has any, else its PCIe.

        UNKNOWN where neither NVLinks nor the PCIe level are known. Where only the PCIe level is,
        it is what PCIe carries, which NVLinks that nobody reported can only better. Links count
        at their best generation and width: an idle link sleeps at generation 1. A switch's uplink
        that several GPUs share counts as theirs alone, and peer-to-peer status is not looked at.
        """
        if path.nvlink_kind is NvLinkKind.C2C:
            return Bandwidth(ASSUMED_C2C, Basis.ASSUMED)
        if isinstance(path.nvlinks, int) and path.nvlinks > 0:
            return self._nvlink(path, path.nvlinks)
        if isinstance(path.pcie, Absent):
            return UNKNOWN
        return self._pcie(path, path.pcie)

    def _nvlink(self, path: Path, links: int) -> Bandwidth:
        rates = _known(self._rates.get(end, UNKNOWN) for end in (path.source, path.target))
        if rates:
            return Bandwidth(links * min(rates), Basis.NVLINK)
        return Bandwidth(links * ASSUMED_NVLINK, Basis.ASSUMED)

    def _pcie(self, path: Path, level: PcieLevel) -> Bandwidth:
        ends = [self._links.get(end) for end in (path.source, path.target)]
        links = [end for end in ends if end is not None]
        rates = _known(pcie_bytes_per_second(*link) for link in links)
        if not rates:
            return Bandwidth(self._through_host(ASSUMED_PCIE, level, 3), Basis.ASSUMED)
        generation = min(generation for generation, _ in links)
        return Bandwidth(self._through_host(min(rates), level, generation), Basis.PCIE)

    def _through_host(self, carried: float, level: PcieLevel, generation: int) -> float:
        """What is left behind a host bridge and the interconnect of the sockets.

        NODE counts as PHB, as in NCCL, which knows no host bridges inside a NUMA node.
        """
        if level < PcieLevel.PHB:
            return carried
        named = next((rate for name, rate in INTERCONNECTS if name.search(self._cpu)), None)
        if named is None:
            carried *= HOST_BRIDGE_SHARE
        if level < PcieLevel.SYS:
            return carried
        slowest = INTEL_INTERCONNECT if INTEL.search(self._cpu) else SLOWEST_INTERCONNECT
        return min(carried, named or slowest[min(max(generation, 3), 5)])


def _rate_by_design(device: Device) -> float | Absent:
    board = None if isinstance(device.model, Absent) else product(device.model)
    return UNKNOWN if board is None or board.nvlink_gbps is None else board.nvlink_gbps * 1e9


def _known(values: Iterable[float | Absent]) -> list[float]:
    return [value for value in values if not isinstance(value, Absent) and value > 0]


def _pcie_link(device: Device) -> tuple[int, int] | None:
    """Generation and width at their best; a width that nobody told counts as 16 lanes."""
    link = device.pcie
    generations = _counts(link.generation_max, link.generation)
    widths = _counts(link.width_max, link.width)
    if not generations:
        return None
    return min(generations[0], LATEST_GENERATION), widths[0] if widths else ASSUMED_LANES


def _counts(*values: int | Absent) -> list[int]:
    return [value for value in values if isinstance(value, int) and value > 0]
