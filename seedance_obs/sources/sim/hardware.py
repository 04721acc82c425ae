"""The hardware part of a description: boards, their MIG instances, switches, adapters, links."""

from seedance_obs.identity import canonical_bus_id
from seedance_obs.sources.sim.description import Section
from seedance_obs.sources.sim.machine import (
    DirectNvLinks,
    FabricState,
    Gpu,
    HiddenSwitches,
    MigInstance,
    Named,
    NvSwitch,
    PciDevice,
)
from seedance_obs.sources.sim.models import MODELS
from seedance_obs.sources.sim.reach import P2P_WORDS

SWITCH, UNKNOWN_REMOTE = 2, 255


def read_gpus(top: Section) -> tuple[Gpu, ...]:
    """The boards under `gpus`, with the instances under `mig`.

    Raises:
        UsageError: an unknown model, profile or GPU.
    """
    mig = _mig(top)
    gpus = []
    for index, section in enumerate(top.sections("gpus")):
        gpus.append(_gpu(index, section, tuple(mig.pop(index, []))))
        section.close()
    for gpu in mig:
        top.reject("mig", f"a GPU of this machine is wanted, found {gpu}")
    return tuple(gpus)


def _mig(top: Section) -> dict[int, list[MigInstance]]:
    found: dict[int, list[MigInstance]] = {}
    for section in top.sections("mig"):
        instance = MigInstance(section.text("profile"), section.integer("gpu_instance"))
        found.setdefault(section.integer("gpu"), []).append(instance)
        section.close()
    return found


def _gpu(index: int, section: Section, mig: tuple[MigInstance, ...]) -> Gpu:
    key = section.text("model")
    if key not in MODELS:
        section.reject("model", f"one of {', '.join(MODELS)} is wanted, found {key!r}")
    profiles = MODELS[key].mig_profiles
    for instance in mig:
        if instance.profile not in profiles:
            known = ", ".join(profiles) or "no MIG profile"
            section.reject("model", f"{key} has {known}, found {instance.profile!r} under mig")
    return Gpu(index, key, read_device(section), mig, section.integers("inactive_links"))


def read_device(section: Section) -> PciDevice:
    """The keys `pci`, `path` and `numa` of any PCI device."""
    path = section.texts("path")
    if not path or not path[0].startswith("pci"):
        section.reject("path", "the bridges from the host bridge (pci0000:00) down are wanted")
    bridges = tuple(_bus_id(section, "path", text) for text in path[1:])
    return PciDevice(
        pci=_bus_id(section, "pci", section.text("pci")),
        path=(path[0], *bridges),
        numa=section.optional_integer("numa"),
    )


def _bus_id(section: Section, key: str, text: str) -> str:
    canonical = canonical_bus_id(text)
    if canonical is None or canonical != text:
        section.reject(key, f"an address such as 0000:1b:00.0 is wanted, found {text!r}")
    return canonical


def read_nvswitch(_index: int, section: Section) -> NvSwitch:
    """One entry of `nvswitches`."""
    return NvSwitch(read_device(section), section.integer("links", low=1), section.integers("gpus"))


def read_named(_index: int, section: Section) -> Named:
    """One entry of `nvme`."""
    return Named(section.text("name"), read_device(section))


def read_direct_links(_index: int, section: Section) -> DirectNvLinks:
    """One entry of `nvlinks`: a bundle between two GPUs."""
    gpus = section.integers("gpus")
    if len(gpus) != 2 or gpus[0] == gpus[1]:
        section.reject("gpus", f"two different GPUs are wanted, found {list(gpus)}")
    return DirectNvLinks((gpus[0], gpus[1]), section.integer("links", low=1))


def read_hidden_switches(top: Section) -> HiddenSwitches | None:
    """The key `hidden_nvswitches`, or None where there is none."""
    section = top.section("hidden_nvswitches")
    if section is None:
        return None
    remote_type = section.integer("remote_type", SWITCH)
    if remote_type not in (SWITCH, UNKNOWN_REMOTE):
        section.reject("remote_type", f"{SWITCH} (switch) or {UNKNOWN_REMOTE} (unknown) is wanted")
    hidden = HiddenSwitches(section.integer("links", low=1), remote_type)
    section.close()
    return hidden


def read_fabric(top: Section) -> FabricState | None:
    """The key `fabric`, or None where there is none."""
    section = top.section("fabric")
    if section is None:
        return None
    uuid = section.text("cluster_uuid")
    if len(uuid) != 32 or not set(uuid) <= set("0123456789abcdef"):
        section.reject("cluster_uuid", f"32 lower-case hex digits are wanted, found {uuid!r}")
    fabric = FabricState(
        cluster_uuid=uuid,
        clique_id=section.integer("clique_id"),
        state=section.integer("state"),
        status=section.integer("status", 0),
        health_mask=section.integer("health_mask", 0),
        health_summary=section.integer("health_summary", 0),
    )
    section.close()
    return fabric


def read_p2p(top: Section) -> str | None:
    """The key `p2p`: what the driver says of peer-to-peer traffic between any two GPUs."""
    word = top.optional_text("p2p")
    if word is not None and word not in P2P_WORDS:
        top.reject("p2p", f"one of {', '.join(P2P_WORDS)} is wanted, found {word!r}")
    return word
