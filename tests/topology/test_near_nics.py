"""The adapters of a host's GPUs are told from those that only its CPUs are near."""

from seedance_obs.topology.model import UNKNOWN, Device, Kind, Path, PcieLevel, Topology
from seedance_obs.topology.near_nics import near_gpus
from tests.topology.hand_made import hgx, hgx_nic
from tests.topology.hosts_by_hand import gpu, host

LEVELS = [UNKNOWN, *PcieLevel]


def names(topology: Topology) -> list[str]:
    return [nic.name for nic in near_gpus(topology)]


def with_nics(*levels: tuple[object, ...]) -> Topology:
    """Two GPUs and one adapter for each entry, at these PCIe levels from each."""
    nics = tuple(Device(f"NIC{place}", Kind.NIC) for place in range(len(levels)))
    paths = tuple(
        Path(f"GPU{index}", nic.name, level)  # type: ignore[arg-type]  # a level or UNKNOWN
        for nic, of_nic in zip(nics, levels, strict=True)
        for index, level in enumerate(of_nic)
    )
    gpus = [gpu(0), gpu(1)]
    return host(gpus, lambda _i, _j: PcieLevel.SYS, others=nics, more_paths=paths)


def test_an_adapter_is_near_unless_every_gpu_is_on_another_node() -> None:
    topology = with_nics(*((PcieLevel.SYS, level) for level in LEVELS))
    far = LEVELS.index(PcieLevel.SYS)
    assert names(topology) == [f"NIC{place}" for place in range(len(LEVELS)) if place != far]


def test_adapters_of_unknown_place_are_near_and_without_gpus_there_are_none() -> None:
    assert names(with_nics((), (PcieLevel.SYS, PcieLevel.SYS))) == ["NIC0"]
    assert names(Topology((Device("host", Kind.HOST), hgx_nic(0), hgx_nic(1)))) == []


def test_on_a_whole_machine_each_gpu_has_its_adapters_and_disks_are_none() -> None:
    topology = hgx(gpus=4, nics=8)
    assert names(topology) == [hgx_nic(number).name for number in range(4)]
    disk = Device("nvme0", Kind.NVME)
    assert names(Topology((*topology.devices, disk), topology.paths)) == names(topology)
