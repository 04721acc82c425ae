"""What a line of a drawing says of one device, besides where it hangs."""

from seedance_obs.topology.fabric import state_name, status_name
from seedance_obs.topology.model import UNSUPPORTED, Absent, Device, Kind, PcieLink, known
from seedance_obs.topology.naming import number_list

FABRIC_IS_UP = (0, 3)  # a GPU that supports none, and a probe that has completed
MAKERS = ("NVIDIA Corporation ", "NVIDIA ")
MB_PER_GB = 1000


def address(device: Device) -> str:
    """The PCI address; the device's own name where none is known."""
    return known(device.bus_id) or device.name


def facts(device: Device, *, healthy_links: bool, domain: int | None = None) -> list[str]:
    """Words on the device's links, on what is unusual about it, and what people call it.

    Args:
        device: the device; what is not known of it is left out.
        healthy_links: whether to tell the NVLinks of a GPU that has them all, too.
        domain: the number of its NVLink domain.
    """
    memory = device.memory_node
    words = [
        _pcie(device.pcie),
        None if domain is None else f"domain {domain}",
        _nvlinks(device, healthy_links=healthy_links),
        None if isinstance(memory, Absent) else f"memory node {memory}",
        "MIG on" if device.mig is True else None,
        _fabric(device),
        None if device.present else "lost",
        *_called(device),
    ]
    return [word for word in words if word]


def numa_node(device: Device) -> str | None:
    """`NUMA node 0`; None where none is known."""
    nodes = number_list(device.numa)
    return f"NUMA node {nodes}" if nodes else None


def _called(device: Device) -> list[str]:
    """Label and model, or the shorter one that says as much: lspci has one inside the other."""
    label, model = _without_maker(device.label), _without_maker(known(device.model) or "")
    if label in model and device.kind in (Kind.GPU, Kind.NIC):
        return [label or model]
    return [model] if label in model else [label, model]


def _without_maker(name: str) -> str:
    for maker in MAKERS:
        name = name.removeprefix(maker)
    return name


def _pcie(link: PcieLink) -> str | None:
    """`gen5 x16`, or `gen1/5 x8/16` where the link runs below what it could."""
    generation = _of(link.generation, link.generation_max)
    width = _of(link.width, link.width_max)
    words = [f"gen{generation}" if generation else "", f"x{width}" if width else ""]
    return " ".join(word for word in words if word) or None


def _of(now: int | Absent, best: int | Absent) -> str | None:
    if isinstance(now, Absent):
        return None
    return str(now) if isinstance(best, Absent) or now >= best else f"{now}/{best}"


def _nvlinks(gpu: Device, *, healthy_links: bool) -> str | None:
    """`18 NVLinks of 26.562 GB/s`, or `16/18 NVLinks up`."""
    if isinstance(gpu.nvlinks, Absent):
        none = gpu.kind is Kind.GPU and gpu.nvlinks is UNSUPPORTED
        return "no NVLinks" if healthy_links and none else None
    count = len(gpu.nvlinks)
    down = sum(port.active is False for port in gpu.nvlinks)
    if down:
        return f"{count - down}/{count} NVLinks up"
    rates = {port.mb_per_second for port in gpu.nvlinks}
    rate = rates.pop() if len(rates) == 1 else None
    of = f" of {rate / MB_PER_GB:g} GB/s" if isinstance(rate, float) else ""
    return f"{count} NVLink{'' if count == 1 else 's'}{of}" if healthy_links and count else None


def _fabric(gpu: Device) -> str | None:
    """What is wrong with the GPU's NVLink fabric; None where nothing is known to be."""
    fabric = gpu.fabric
    if isinstance(fabric, Absent):
        return None
    if fabric.state not in FABRIC_IS_UP:
        return f"fabric {state_name(fabric.state).replace('_', ' ')}"
    if fabric.state and isinstance(fabric.status, int) and fabric.status:
        return f"fabric: {status_name(fabric.status).replace('_', ' ')}"
    if fabric.healthy is not False:
        return None
    return "fabric unhealthy" + "".join(f", {fault.replace('_', ' ')}" for fault in fabric.faults)
