"""Small hosts as the node exporter would show them: only what the dashboards and rules read."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Gpu:
    index: int
    address: str
    root: str = ""
    switch: str = ""
    numa: str = ""
    domain: str = ""
    model: str = "NVIDIA H100 80GB HBM3"
    utilization: float | None = 0.5
    peers: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Host:
    name: str
    gpus: tuple[Gpu, ...]
    expected: int
    xids: tuple[dict[str, str], ...] = ()


def hgx_h100() -> Host:
    switches = ("0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0")
    peers = {
        ("switch", address): count for address, count in zip(switches, (5, 5, 4, 4), strict=True)
    }
    gpus = tuple(
        Gpu(
            index=index,
            address=f"0000:{bus}:00.0",
            root=f"pci0000:{bus[0]}0",
            switch=f"0000:{bus[0]}1:00.0",
            numa="0" if index < 4 else "1",
            domain="hgx-a",
            utilization=None if index == 0 else index / 8,
            peers=peers,
        )
        for index, bus in enumerate(("1b", "2b", "3b", "4b", "9b", "ab", "bb", "cb"))
    )
    return Host("hgx-a", gpus, expected=8)


def pcie_pair() -> Host:
    """Two boards without a PCIe switch and without NVLink, one of three missing."""
    model = "NVIDIA A10"
    return Host(
        "pair-b",
        (
            Gpu(0, "0000:3b:00.0", root="pci0000:3a", numa="0", model=model),
            Gpu(1, "0000:af:00.0", root="pci0000:ae", numa="1", model=model),
        ),
        expected=3,
    )


def direct_links() -> Host:
    """Four boards linked to each other, each end naming the other; one has just had an error."""
    addresses = [f"0000:0{bus}:00.0" for bus in (1, 2, 3, 4)]
    gpus = tuple(
        Gpu(
            index,
            address,
            root="pci0000:00",
            model="Tesla V100-SXM2-32GB",
            peers={("gpu", peer): 2 for peer in addresses if peer != address},
        )
        for index, address in enumerate(addresses)
    )
    xid = {"gpu": "2", "gpu_uuid": "GPU-mesh-c-0002", "xid": "48", "class": "memory"}
    return Host("mesh-c", gpus, expected=4, xids=(xid,))


def bare_guest() -> Host:
    """A virtual machine: no tree, no address for one GPU, switches hidden by the hypervisor."""
    return Host(
        "guest-d",
        (
            Gpu(0, "0000:00:05.0", peers={("hidden", "hidden"): 18}),
            Gpu(1, "", peers={("hidden", "hidden"): 18}, utilization=0.25),
        ),
        expected=2,
    )


def no_gpu() -> Host:
    return Host("cpu-e", (), expected=0)


HOSTS = (hgx_h100(), pcie_pair(), direct_links(), bare_guest(), no_gpu())


def exposition(host: Host) -> str:
    lines = [
        *(_line("seedance_gpu_xid_errors_total", labels, 1) for labels in host.xids),
        f'seedance_exporter_info{{version="0",node="{host.name}"}} 1',
        f"seedance_gpus_expected {host.expected}",
        f"seedance_gpus_seen {len(host.gpus)}",
        'seedance_source_age_seconds{source="nvml"} 1.5',
    ]
    for gpu in host.gpus:
        lines += _gpu_lines(host, gpu)
    return "\n".join(lines) + "\n"


def uuid(host: Host, gpu: Gpu) -> str:
    return f"GPU-{host.name}-{gpu.index:04d}"


def _gpu_lines(host: Host, gpu: Gpu) -> list[str]:
    identity = {
        "gpu": str(gpu.index),
        "gpu_uuid": uuid(host, gpu),
        "pci_bus_id": gpu.address,
        "numa_node": gpu.numa,
        "pcie_root": gpu.root,
        "pcie_switch": gpu.switch,
        "nvlink_domain": gpu.domain,
    }
    facts = {"gpu_model": gpu.model, "serial": f"s{gpu.index}", "vbios_version": "96.00"}
    lines = [
        _line("seedance_gpu_info", {**identity, **facts}, 1),
        _line("seedance_gpu_power_watts", identity, 100 + gpu.index),
        _line("seedance_gpu_memory_used_bytes", identity, 2**30),
        _line("seedance_gpu_memory_total_bytes", identity, 2**32),
    ]
    if gpu.utilization is not None:
        lines.append(_line("seedance_gpu_utilization_ratio", identity, gpu.utilization))
    for (kind, peer), count in gpu.peers.items():
        labels = {**identity, "peer": peer, "peer_kind": kind}
        lines.append(_line("seedance_topology_nvlinks", labels, count))
    return lines


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}"
