"""Where each NVLink of each GPU ends, and which of them are down."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from seedance_obs.sources.sim.machine import HiddenSwitches, Machine, NvSwitch

REMOTE_GPU, REMOTE_SWITCH = 0, 2  # nvmlIntNvLinkDeviceType_t


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """The far end of one link; `bus_id` is None where no host can address it."""

    remote_type: int  # nvmlIntNvLinkDeviceType_t
    bus_id: str | None
    gpu: int | None = None  # the GPU there, if it is one
    port: int | None = None  # the link's number on that side
    switch: int | None = None  # the NVSwitch there that the host can see, by its place


def links_of(machine: Machine, gpu: int) -> tuple[LinkEnd, ...]:
    """The wired links of a GPU in link order; links past the end of this list are inactive."""
    return (*_direct(machine, gpu), *_switched(machine.nvswitches, machine.hidden_switches, gpu))


def _direct(machine: Machine, gpu: int) -> Iterator[LinkEnd]:
    used = [0] * len(machine.gpus)  # links of each GPU that are taken by the bundles so far
    for bundle in machine.nvlinks:
        if gpu in bundle.gpus:
            peer = bundle.gpus[1 - bundle.gpus.index(gpu)]
            for port in range(used[peer], used[peer] + bundle.links):
                yield LinkEnd(REMOTE_GPU, machine.gpus[peer].device.pci, peer, port)
        for end in bundle.gpus:
            used[end] += bundle.links


@lru_cache
def _switched(
    switches: tuple[NvSwitch, ...], hidden: HiddenSwitches | None, gpu: int
) -> tuple[LinkEnd, ...]:
    ends = []
    for place, switch in enumerate(switches):
        if switch.gpus and gpu not in switch.gpus:
            continue
        for port in range(gpu * switch.links, (gpu + 1) * switch.links):
            ends.append(LinkEnd(REMOTE_SWITCH, switch.device.pci, port=port, switch=place))
    if hidden is not None:
        ends += [LinkEnd(hidden.remote_type, None)] * hidden.links
    return tuple(ends)


def active_end(machine: Machine, gpu: int, link: int, t: float) -> LinkEnd | None:
    """The far end of a link that is up at t; a wire that is down is down at both of its ends."""
    ends = links_of(machine, gpu)
    if link >= len(ends) or link in machine.gpus[gpu].inactive_links:
        return None
    end = ends[link]
    if end.gpu is not None and end.port in machine.gpus[end.gpu].inactive_links:
        return None
    if end.switch is not None and machine.switch_is_down(end.switch, t):
        return None
    return end


def joined(machine: Machine, one: int, other: int, t: float) -> bool:
    """Whether links that are up at t lead from one GPU to another, straight or through switches."""
    there, back = _far_ends(machine, one, t), _far_ends(machine, other, t)
    direct = any(end.gpu == other for end in there)
    through = {(end.remote_type, end.bus_id) for end in there if end.gpu is None}
    return direct or any((end.remote_type, end.bus_id) in through for end in back)


def _far_ends(machine: Machine, gpu: int, t: float) -> list[LinkEnd]:
    links = range(machine.gpus[gpu].model.nvlinks)
    return [end for link in links if (end := active_end(machine, gpu, link, t)) is not None]
