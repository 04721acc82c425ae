import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.pcie import PciId
from seedance_obs.topology.distance import combined_paths, pcie_level
from seedance_obs.topology.domains import domains
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Device,
    Edge,
    FabricMembership,
    Kind,
    NvLinkKind,
    NvLinkPort,
    PcieLevel,
)
from seedance_obs.topology.pci import root_complex, same_switch, without_inner_levels
from seedance_obs.topology.pcie_tree import assembled, nearest_switch


def device(bus: str, *ports: str, root="pci0000:00", numa=0, kind=Kind.GPU, **more) -> Device:
    """A device below some ports, each written `bus:slot`."""
    bus_id = f"0000:{bus}:00.0"
    names = tuple(f"0000:{port}.0" for port in ports)
    nodes = frozenset({numa}) if isinstance(numa, int) else numa
    return Device(
        bus_id,
        kind,
        bus_id=bus_id,
        pcie_root=root,
        ports=names,
        pcie_switch=nearest_switch(names),
        numa=nodes,
        **more,
    )


def level(one: Device, other: Device) -> object:
    assert pcie_level(one, other) == pcie_level(other, one)
    return pcie_level(one, other)


SWITCH = ("00:01", "01:00")


def test_one_switch_is_pix_and_several_are_pxb():
    near = device("03", *SWITCH, "02:00")
    assert level(near, device("04", *SWITCH, "02:01")) is PcieLevel.PIX
    behind = device("07", *SWITCH, "02:02", "05:00", "06:00")
    assert level(near, behind) is PcieLevel.PXB
    assert level(behind, device("08", *SWITCH, "02:02", "05:00", "06:01")) is PcieLevel.PIX
    other = device("0c", *SWITCH, "02:03", "0a:00", "0b:00")
    assert level(behind, other) is PcieLevel.PXB


def test_what_shares_a_root_port_without_a_switch_is_pix():
    one, other = device("21", "20:03"), replace(device("21", "20:03"), bus_id="0000:21:01.2")
    assert level(one, other) is PcieLevel.PIX


def test_functions_of_one_card_are_pix_even_where_nothing_else_is_known():
    port = Device("a", Kind.NIC, bus_id="0000:21:00.0")
    assert level(port, replace(port, name="b", bus_id="0000:21:00.1")) is PcieLevel.PIX
    assert level(port, replace(port, name="b", bus_id="0000:21:01.0")) is UNKNOWN


def test_root_complexes_and_numa_nodes_decide_above_the_ports():
    gpu = device("01", "00:01")
    assert level(gpu, device("02", "00:02")) is PcieLevel.PHB
    assert level(gpu, device("41", "40:01", root="pci0000:40")) is PcieLevel.NODE
    assert level(gpu, device("41", "40:01", root="pci0000:40", numa=1)) is PcieLevel.SYS
    assert level(gpu, device("41", "40:01", root="pci0000:40", numa=UNKNOWN)) is UNKNOWN


def test_devices_on_the_root_bus_of_a_virtual_machine_are_phb():
    one = Device("a", Kind.GPU, bus_id="0000:00:05.0", pcie_root="pci0000:00", ports=())
    assert level(one, replace(one, name="b", bus_id="0000:00:06.0")) is PcieLevel.PHB


def test_sets_of_numa_nodes_decide_only_where_they_agree_or_differ():
    def near(*nodes, root):
        return device(root, f"{root}:01", root=f"pci0000:{root}", numa=frozenset(nodes))

    assert level(near(0, 1, root="20"), near(0, 1, root="40")) is PcieLevel.NODE
    assert level(near(0, 1, root="20"), near(2, 3, root="40")) is PcieLevel.SYS
    assert level(near(0, 1, root="20"), near(1, root="40")) is UNKNOWN
    assert level(near(root="20"), near(1, root="40")) is UNKNOWN


def test_a_drive_behind_vmd_is_phb_to_a_gpu_of_the_same_root_complex():
    drive = device("e1", root="pci0000:00", kind=Kind.NVME)
    drive = replace(drive, bus_id="10000:e1:00.0", ports=("10000:e0:06.0",))
    assert level(device("01", "00:01"), drive) is PcieLevel.PHB
    assert root_complex(0x10000, 0xE0) is UNKNOWN
    assert root_complex(0xE, 0x40) == "pci000e:40"


BROADCOM = 0x1000


def gen5(subsystem_device: int) -> PciId:
    return PciId(BROADCOM, 0xC030, BROADCOM, subsystem_device)


def test_two_levels_of_a_broadcom_switch_are_one():
    gen4 = PciId(BROADCOM, 0xC010, BROADCOM, 0xA096)
    assert same_switch(gen4, gen4)
    assert same_switch(gen5(0x0072), gen5(0x1003))
    assert not same_switch(gen5(0x0072), gen5(0x0072))
    assert not same_switch(gen5(0x1003), gen5(0x1003))
    assert not same_switch(gen4, gen5(0x1003))
    assert not same_switch(
        PciId(0x10B5, 0x9781, 0x10B5, 0x9781), PciId(0x10B5, 0x9781, 0x10B5, 0x9781)
    )
    assert not same_switch(None, gen4)


def test_an_inner_level_leaves_the_chain_and_a_third_stays():
    ports = ("root", "up0", "down0", "up1", "down1", "up2", "down2")
    gen4 = PciId(BROADCOM, 0xC010, BROADCOM, 0xA096)
    ids = {"up0": gen4, "up1": gen4, "up2": gen4}
    assert without_inner_levels(ports, ids) == ("root", "up0", "down1", "up2", "down2")
    assert without_inner_levels(ports, {}) == ports
    assert without_inner_levels(("root",), ids) == ("root",)
    assert without_inner_levels((), ids) == ()


def gpu(name: str, *peers: tuple[str, Kind, int], **more) -> Device:
    """A GPU with ports to some peers, each (address, kind, number of active links)."""
    ports = [
        NvLinkPort(0, active=True, remote=far, remote_kind=kind)
        for far, kind, count in peers
        for _ in range(count)
    ]
    return Device(name, Kind.GPU, nvlinks=tuple(ports), **more)


def links(devices, edges=(), **more) -> dict[tuple[str, str], tuple[object, object]]:
    paths = combined_paths(devices, edges, **more)
    return {(path.source, path.target): (path.nvlinks, path.nvlink_kind) for path in paths}


def test_links_to_switches_count_as_the_smaller_total():
    switches = [(f"s{number}", Kind.NVSWITCH, count) for number, count in enumerate((5, 5, 4, 4))]
    whole, hurt = gpu("a", *switches), gpu("b", *switches[:-1], ("s3", Kind.NVSWITCH, 3))
    assert links([whole, hurt]) == {("a", "b"): (17, NvLinkKind.SWITCH)}
    assert domains([whole, hurt]) == {"a": "a", "b": "a"}
    assert domains([whole, hurt], node="n") == {"a": "n.a", "b": "n.a"}


def test_far_ends_that_nobody_can_name_are_one_hidden_fabric():
    one = gpu("a", (UNKNOWN, Kind.NVSWITCH, 18))
    other = gpu("b", (UNKNOWN, UNKNOWN, 9), ("0000:99:00.0", UNKNOWN, 9))
    assert links([one, other]) == {("a", "b"): (18, NvLinkKind.HIDDEN)}


def test_a_direct_link_wins_over_the_switches():
    one = gpu("a", ("b", Kind.GPU, 2), ("s", Kind.NVSWITCH, 6))
    other = gpu("b", ("a", Kind.GPU, 2), ("s", Kind.NVSWITCH, 6))
    assert links([one, other]) == {("a", "b"): (2, NvLinkKind.DIRECT)}


def test_inactive_ports_do_not_count_and_unread_ones_make_a_gpu_unknown():
    down = NvLinkPort(7, active=False)
    one = replace(
        gpu("a", ("b", Kind.GPU, 3)), nvlinks=(*gpu("a", ("b", Kind.GPU, 3)).nvlinks, down)
    )
    unread = Device("b", Kind.GPU, nvlinks=(NvLinkPort(0), NvLinkPort(1)))
    assert links([one, unread])["a", "b"] == (3, NvLinkKind.DIRECT)
    assert links([unread, Device("c", Kind.GPU)])["b", "c"] == (UNKNOWN, UNKNOWN)
    assert links([unread, Device("c", Kind.GPU, nvlinks=())])["b", "c"] == (0, UNSUPPORTED)


def test_what_is_no_gpu_has_no_nvlinks_except_the_processor_at_the_far_end():
    processor, nic = Device("n", Kind.NPU), Device("m", Kind.NIC)
    found = links([gpu("a", ("n", Kind.NPU, 3)), processor, nic])
    assert found == {("a", "m"): (0, UNSUPPORTED), ("a", "n"): (3, NvLinkKind.DIRECT)}
    assert domains([gpu("a", ("n", Kind.NPU, 3)), processor]) == {}
    chip = [Edge("a", "cpu0", "c2c", 1)]
    assert links([gpu("a"), Device("cpu0", Kind.CPU)], chip)["a", "cpu0"] == (1, NvLinkKind.C2C)


def test_edges_stand_for_ports_and_say_nothing_of_the_links_they_leave_out():
    mesh = [Device(name, Kind.GPU) for name in "abc"]
    wires = [Edge("a", "b", "nvlink", 4), Edge("b", "c", "nvlink", 4)]
    assert links(mesh, wires)["a", "c"] == (0, UNSUPPORTED)
    found = links(mesh, wires[:1], complete={"a"})
    assert found == {
        ("a", "b"): (4, NvLinkKind.DIRECT),
        ("a", "c"): (0, UNSUPPORTED),
        ("b", "c"): (UNKNOWN, UNKNOWN),
    }


def test_a_rack_names_the_domain_only_when_it_has_been_joined():
    fabric = FabricMembership(3, 0, "0f" * 16, 7, healthy=True)
    rack = gpu("a", (UNKNOWN, Kind.NVSWITCH, 18), fabric=fabric)
    assert domains([rack]) == {"a": "0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f.7"}
    zero = replace(rack, fabric=replace(fabric, cluster_uuid="0" * 32))
    assert domains([zero]) == {"a": "a"}


@st.composite
def machines(draw) -> list[Device]:
    """Devices under random trees of switches; every fact of each is known and consistent."""
    found = []
    for root in range(draw(st.integers(1, 3))):
        for number in range(draw(st.integers(1, 4))):
            depth = draw(st.integers(0, 2))
            top = draw(st.integers(1, 2))
            ports = [f"{root}:{top}"]
            for step in range(depth):
                above = ports[-1]
                ports += [f"{above}/u", f"{above}/u/{draw(st.integers(0, 1))}{step}"]
            name = f"{root}{number}"
            chain = tuple(ports)
            kind = draw(st.sampled_from([Kind.GPU, Kind.NIC, Kind.NVME]))
            found.append(
                Device(
                    name,
                    kind,
                    bus_id=f"000{root}:0{number}:00.0",
                    numa=frozenset({root // 2}),
                    pcie_root=f"pci000{root}:00",
                    ports=chain,
                    pcie_switch=nearest_switch(chain),
                )
            )
    return found


@given(machines(), st.data())
def test_a_distance_is_symmetric_and_a_lost_fact_never_becomes_a_level(devices, data):
    one, other = (data.draw(st.sampled_from(devices)) for _ in range(2))
    if one is other:
        return
    truth = level(one, other)
    assert truth is not UNKNOWN
    for lost in data.draw(
        st.lists(st.sampled_from(["bus_id", "numa", "pcie_root", "ports", "pcie_switch"]))
    ):
        one = replace(one, **{lost: UNKNOWN})
        assert level(one, other) in (truth, UNKNOWN)


@given(machines(), st.integers())
def test_the_order_of_devices_carries_no_meaning(devices, seed):
    def told(topology):
        paths = {(frozenset((p.source, p.target)), p.pcie, p.nvlinks) for p in topology.paths}
        return paths, set(topology.edges), set(topology.devices)

    shuffled = random.Random(seed).sample(devices, len(devices))
    assert told(assembled(devices)) == told(assembled(shuffled))


@given(machines())
def test_the_tree_of_edges_reaches_every_device_once_and_tells_the_same_switches(devices):
    topology = assembled(devices)
    wires = [edge for edge in topology.edges if edge.kind == "pcie"]
    assert sorted(e.target for e in wires) == sorted(topology.by_name.keys() - {"host"})
    blind = [replace(d, ports=UNKNOWN, pcie_root=UNKNOWN, pcie_switch=UNKNOWN) for d in devices]
    for path in combined_paths([*topology.devices[: -len(devices)], *blind], wires):
        truth = topology.path(path.source, path.target).pcie
        if truth is PcieLevel.PXB:
            assert path.pcie is PcieLevel.PXB or path.pcie is UNKNOWN
