from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, Device, Edge, Kind, NvLinkPort, PcieLink
from seedance_obs.topology.wiring import wire

names = st.sampled_from([f"0000:{bus}:00.0" for bus in ("18", "19", "2a", "3b")])
far_ends = st.one_of(
    st.tuples(names, st.just(Kind.GPU)),
    st.sampled_from([("0000:05:00.0", Kind.NVSWITCH), (UNKNOWN, Kind.NVSWITCH)]),
)


@st.composite
def gpus(draw: st.DrawFn) -> Device:
    name = draw(names)
    ends = [end for end in draw(st.lists(far_ends, max_size=6)) if end[0] != name]
    return Device(
        name,
        Kind.GPU,
        pcie_root=draw(st.sampled_from([UNKNOWN, "pci0000:15"])),
        ports=draw(
            st.sampled_from([UNKNOWN, (), ("0000:15:01.0", "0000:16:00.0", "0000:17:00.0")])
        ),
        nvlinks=tuple(
            NvLinkPort(number, draw(st.booleans()), 25_000.0, remote, kind)
            for number, (remote, kind) in enumerate(ends)
        ),
    )


@given(st.lists(gpus(), unique_by=lambda gpu: gpu.name))
def test_every_end_of_an_edge_is_a_device_and_no_edge_is_there_twice(found):
    devices, edges = wire(found, {})
    known = [device.name for device in devices]
    assert len(known) == len(set(known))
    assert all({edge.source, edge.target} <= set(known) for edge in edges)
    pairs = [(frozenset((edge.source, edge.target)), edge.kind) for edge in edges]
    assert len(pairs) == len(set(pairs))


@given(st.lists(gpus(), unique_by=lambda gpu: gpu.name))
def test_every_gpu_hangs_on_the_host(found):
    _, edges = wire(found, {})
    above = {edge.target: edge.source for edge in edges if edge.kind == "pcie"}
    for gpu in found:
        name, steps = gpu.name, 0
        while name != "host":
            name, steps = above[name], steps + 1
            assert steps <= 3


def linked(name: str, *ports: NvLinkPort, **facts: object) -> Device:
    return Device(name, Kind.GPU, nvlinks=ports, **facts)


def test_a_bridge_is_one_edge_although_both_ends_report_it():
    one = linked(
        "0000:18:00.0",
        *(NvLinkPort(n, True, 14_062.0, "0000:19:00.0", Kind.GPU) for n in range(4)),
    )
    two = linked(
        "0000:19:00.0",
        *(NvLinkPort(n, True, 14_062.0, "0000:18:00.0", Kind.GPU) for n in range(4)),
    )
    nvlinks = [edge for edge in wire([two, one], {})[1] if edge.kind == "nvlink"]
    rate = 4 * 14_062e6
    assert nvlinks == [Edge("0000:18:00.0", "0000:19:00.0", "nvlink", 4, rate, rate)]


def test_a_link_that_went_down_lowers_what_the_edge_carries_now_but_not_what_it_should():
    ports = [NvLinkPort(n, n > 0, 25_000.0, "0000:05:00.0", Kind.NVSWITCH) for n in range(2)]
    _, edges = wire([linked("0000:18:00.0", *ports)], {})
    assert edges[-1] == Edge("0000:18:00.0", "0000:05:00.0", "nvlink", 1, 50e9, 25e9)


def test_a_port_that_never_had_a_far_end_is_no_edge():
    _, edges = wire([linked("0000:18:00.0", NvLinkPort(0, active=False))], {})
    assert [edge.kind for edge in edges] == ["pcie"]


def test_hidden_switches_are_one_fabric():
    ports = [NvLinkPort(n, True, remote_kind=Kind.NVSWITCH) for n in range(18)]
    devices, edges = wire([linked("0000:18:00.0", *ports)], {})
    assert Device("hidden", Kind.NVLINK_FABRIC) in devices
    assert edges[-1] == Edge("0000:18:00.0", "hidden", "nvlink", 18)


def test_pcie_edges_carry_what_their_links_do():
    link = PcieLink(generation=1, width=8, generation_max=4, width_max=16)
    gpu = linked(
        "0000:18:00.0",
        pcie_root="pci0000:15",
        ports=("0000:15:01.0", "0000:16:00.0", "0000:17:00.0"),
        pcie=link,
    )
    above = PcieLink(generation=5, width=16, generation_max=5, width_max=16)
    devices, edges = wire([gpu], {"0000:16:00.0": above})
    assert Device("0000:16:00.0", Kind.PCIE_SWITCH, pcie=above) in devices
    by_target = {edge.target: edge for edge in edges}
    # 8b/10b leaves 250 MB/s of each lane of generation 1, 128b/130b 1.97 GB/s of generation 4.
    assert by_target["0000:18:00.0"].current == 8 * 250e6
    assert round(by_target["0000:18:00.0"].nominal / 1e9, 1) == 31.5
    assert round(by_target["0000:16:00.0"].current / 1e9) == 63
    assert by_target["pci0000:15"].nominal is UNKNOWN


def test_a_lost_gpu_keeps_its_place_but_carries_nothing_that_is_known():
    link = PcieLink(generation=4, width=16, generation_max=4, width_max=16)
    lost = linked("0000:18:00.0", pcie_root="pci0000:15", pcie=link, present=False)
    devices, edges = wire([lost], {})
    assert lost in devices
    assert edges[-1].source == "pci0000:15"
    assert edges[-1].current is UNKNOWN
    assert edges[-1].nominal is not UNKNOWN


def test_c2c_joins_a_gpu_to_its_host():
    _, edges = wire([linked("0009:01:00.0", c2c_links=10, c2c_mb_per_second=450_000.0)], {})
    assert edges[-1] == Edge("host", "0009:01:00.0", "c2c", 10, 450e9, 450e9)
