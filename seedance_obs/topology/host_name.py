"""The host's name in the names of its NVLink domains, where a text does not tell it."""

from collections.abc import Iterable
from dataclasses import replace

from seedance_obs.topology.domains import rack_domain
from seedance_obs.topology.model import Device, Topology


def under_name(topology: Topology, host: str) -> Topology:
    """The topology as that of a host with a name, which its NVLink domains then begin with."""
    domains = {
        gpu: domain if is_rack_wide(domain, topology.gpus) else f"{host}.{domain}"
        for gpu, domain in topology.domains.items()
    }
    return replace(topology, host=host, domains=domains)


def has_nameless_domain(topology: Topology) -> bool:
    """Whether a domain's name tells no host, so that another host's may have the same one."""
    domains = set(topology.domains.values())
    return not topology.host and not all(is_rack_wide(name, topology.gpus) for name in domains)


def is_rack_wide(domain: str, gpus: Iterable[Device]) -> bool:
    """Whether an NVLink domain has the name of the fabric that some of its GPUs have joined."""
    return domain in {rack_domain(gpu.fabric) for gpu in gpus}
