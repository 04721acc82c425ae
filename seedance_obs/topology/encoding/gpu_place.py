"""What a scheduler may know of one GPU's place, in words short enough for a label.

Fields hold the raw form, as metrics carry it. Kubernetes allows less in a label's value (at most
63 of `A-Z a-z 0-9 . _ -`, a letter or digit at both ends), so `label_value` writes it anew.
"""

import re
from dataclasses import dataclass
from hashlib import sha256

from seedance_obs.topology.domains import are_apart, domain_is_known
from seedance_obs.topology.kubernetes import LABEL_VALUE_MAX
from seedance_obs.topology.model import Absent, Device, Topology, known
from seedance_obs.topology.naming import number_list
from seedance_obs.topology.products import product

DIGEST_DIGITS = 10

_WRITTEN_ADDRESS = re.compile(
    r"(?P<root>pci[0-9a-f]{4,8})-(?P<bus>[0-9a-f]{2})"
    r"|(?P<domain>[0-9a-f]{4,8})-(?P<device_bus>[0-9a-f]{2})-(?P<device>[0-9a-f]{2}\.[0-7])"
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """One GPU's place; None where a fact is not known or the GPU has no such thing.

    `numa_node` is the near NUMA node's number, or a list like `0,5-11` where several are near.
    """

    bandwidth_class: str | None = None
    topo_mask: str | None = None
    root_complex_id: str | None = None
    nvlink_domain: str | None = None
    pcie_switch: str | None = None
    numa_node: str | None = None


def encode(topology: Topology, gpu: Device) -> Encoding:
    """The place of one GPU of a host."""
    return Encoding(
        bandwidth_class=None if isinstance(gpu.model, Absent) else bandwidth_class(gpu.model),
        topo_mask=topo_mask(topology, gpu),
        root_complex_id=known(gpu.pcie_root),
        nvlink_domain=topology.domains.get(gpu.name),
        pcie_switch=known(gpu.pcie_switch),
        numa_node=number_list(gpu.numa),
    )


def bandwidth_class(model: str) -> str | None:
    """`HBM3_3350GBps`: memory and its nominal bandwidth (GB/s of 10**9 bytes) by model name.

    None for a model that is not in the table of products, or not with certainty.
    """
    board = product(model)
    if board is None or board.memory is None or board.memory_gbps is None:
        return None
    return f"{board.memory}_{board.memory_gbps}GBps"


def topo_mask(topology: Topology, gpu: Device) -> str | None:
    """`0b11110000`: the GPUs of the host in the same NVLink domain, the GPU itself included.

    Bit i, counted from the right, is the GPU with index i, and there is a digit for every index up
    to the highest of the host. A GPU that is known to have no NVLinks has its own bit alone. None
    where it has no index, or where its links, or those of a GPU that may be in its domain, are
    not known.
    """
    if gpu.index is None or not domain_is_known(topology, gpu):
        return None
    domain = topology.domains.get(gpu.name)
    members = [gpu]
    if domain is not None:
        members = [one for one in topology.gpus if topology.domains.get(one.name) == domain]
        unsure = [one for one in topology.gpus if not domain_is_known(topology, one)]
        if not are_apart(topology, members, unsure):
            return None
    bits = sum(1 << index for index in {one.index for one in members} if index is not None)
    width = 1 + max(one.index for one in topology.gpus if one.index is not None)
    return f"0b{bits:0{width}b}"


def label_value(text: str) -> str:
    """The text as a legal Kubernetes label value, always the same for the same text.

    A colon becomes a dash (`0000:8a:00.0` is written `0000-8a-00.0`), any other character that is
    not allowed an underscore. What does not fit is cut and ends in a digest of the whole text, so
    that two long names stay two; a cluster UUID with its clique fits. Nothing gives nothing.
    """
    written = re.sub(r"[^A-Za-z0-9._-]", "_", text.replace(":", "-")).strip("._-")
    if len(written) <= LABEL_VALUE_MAX and (written or not text):
        return written
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]
    head = written[: LABEL_VALUE_MAX - DIGEST_DIGITS - 1].rstrip("._-")
    return f"{head}-{digest}" if head else digest


def address_of(value: str) -> str | None:
    """The PCI address or root complex that a label value stands for; None if it is neither."""
    match = _WRITTEN_ADDRESS.fullmatch(value)
    if match is None:
        return None
    if match["root"]:
        return f"{match['root']}:{match['bus']}"
    return f"{match['domain']}:{match['device_bus']}:{match['device']}"
