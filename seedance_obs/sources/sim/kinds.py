"""The kinds of workload, told apart by which parts of a GPU they keep busy at full activity."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """Ratios of time at activity 1.0, and traffic over links in bytes per second.

    What passes the network goes straight to and from the GPU (GPUDirect RDMA): it is in the PCIe
    traffic too, so it is never more.
    """

    sm: float
    occupancy: float
    tensor: float
    dram: float
    fp64: float
    fp32: float
    fp16: float
    memory_busy: float
    encoder: float
    decoder: float
    pcie_transmit: float
    pcie_receive: float
    nvlink: float
    network: float = 0.0  # each way


KINDS = {
    "training": Kind(
        0.93, 0.38, 0.56, 0.47, 0.0, 0.11, 0.07, 0.52, 0.0, 0.0, 1.1e9, 2.4e9, 90e9, network=8e8
    ),
    "inference": Kind(0.61, 0.24, 0.21, 0.68, 0.0, 0.06, 0.12, 0.44, 0.0, 0.0, 4e8, 6e8, 8e9),
    "video": Kind(0.48, 0.31, 0.12, 0.29, 0.0, 0.22, 0.05, 0.21, 0.18, 0.72, 2.6e9, 5.1e9, 0.0),
    # A kernel that waits in a loop on a few multiprocessors, as collectives do for a lost peer.
    "spinning": Kind(0.08, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    # Decodes on the CPU and copies every batch over, as loaders of images do.
    "loading": Kind(0.41, 0.22, 0.08, 0.33, 0.0, 0.14, 0.03, 0.31, 0.0, 0.0, 1.2e9, 14.5e9, 0.0),
    "simulation": Kind(
        0.88, 0.52, 0.0, 0.71, 0.63, 0.14, 0.0, 0.66, 0.0, 0.0, 3e8, 3e8, 2e9, network=2e8
    ),
}
