"""Where each NVLink of each GPU ends."""

from dataclasses import dataclass

from seedance_obs.sources.sim.machine import Machine

REMOTE_GPU, REMOTE_SWITCH = 0, 2


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """The far end of one link; `bus_id` is None where no host can address it."""

    remote_type: int  # nvmlIntNvLinkDeviceType_t
    bus_id: str | None


def links_of(machine: Machine, gpu: int) -> tuple[LinkEnd, ...]:
    """The wired links of a GPU in link order; links past the end of this list are inactive."""
    ends: list[LinkEnd] = []
    for bundle in machine.nvlinks:
        if gpu in bundle.gpus:
            peer = bundle.gpus[1 - bundle.gpus.index(gpu)]
            ends += [LinkEnd(REMOTE_GPU, machine.gpus[peer].device.pci)] * bundle.links
    for switch in machine.nvswitches:
        ends += [LinkEnd(REMOTE_SWITCH, switch.device.pci)] * switch.links
    if machine.hidden_switches is not None:
        ends += [LinkEnd(machine.hidden_switches.remote_type, None)] * machine.hidden_switches.links
    return tuple(ends)
