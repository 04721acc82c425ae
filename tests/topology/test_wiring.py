from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.wiring import Device, Edge, WiredGpu, wiring

names = st.sampled_from(["0000:18:00.0", "0000:19:00.0", "0000:2a:00.0", "0000:3b:00.0"])
peers = st.dictionaries(
    st.one_of(
        st.tuples(names, st.just("gpu")),
        st.tuples(st.sampled_from(["0000:05:00.0", "hidden"]), st.just("switch")),
    ),
    st.integers(1, 18),
    max_size=4,
)
gpus = st.builds(
    WiredGpu,
    pci_bus_id=names,
    uuid=st.just("GPU-x"),
    pcie_root=st.sampled_from(["", "pci0000:15"]),
    pcie_switch=st.sampled_from(["", "0000:16:00.0"]),
    nvlinks=peers,
)


@given(st.lists(gpus, unique_by=lambda gpu: gpu.pci_bus_id))
def test_every_end_of_an_edge_is_a_device_and_no_edge_is_there_twice(found):
    devices, edges = wiring(found)
    known = [device.name for device in devices]
    assert len(known) == len(set(known))
    assert all({edge.source, edge.target} <= set(known) for edge in edges)
    pairs = [(frozenset((edge.source, edge.target)), edge.kind) for edge in edges]
    assert len(pairs) == len(set(pairs))


@given(st.lists(gpus, unique_by=lambda gpu: gpu.pci_bus_id))
def test_every_gpu_hangs_on_the_host(found):
    _, edges = wiring(found)
    above = {edge.target: edge.source for edge in edges if edge.kind == "pcie"}
    for gpu in found:
        name, steps = gpu.pci_bus_id, 0
        while name != "host":
            name, steps = above[name], steps + 1
            assert steps <= 3


def test_a_bridge_is_one_edge_although_both_ends_report_it():
    one = WiredGpu("0000:18:00.0", "GPU-a", nvlinks={("0000:19:00.0", "gpu"): 4})
    two = WiredGpu("0000:19:00.0", "GPU-b", nvlinks={("0000:18:00.0", "gpu"): 4})
    assert wiring([two, one])[1] == [
        Edge("host", "0000:19:00.0", "pcie"),
        Edge("0000:18:00.0", "0000:19:00.0", "nvlink", 4),
        Edge("host", "0000:18:00.0", "pcie"),
    ]


def test_hidden_switches_are_one_fabric():
    devices, edges = wiring([WiredGpu("0000:18:00.0", "GPU-a", nvlinks={("hidden", "switch"): 18})])
    assert Device("hidden", "nvlink_fabric") in devices
    assert Edge("0000:18:00.0", "hidden", "nvlink", 18) in edges


def test_a_lost_gpu_keeps_its_place():
    lost = WiredGpu("0000:18:00.0", "GPU-a", pcie_root="pci0000:15", present=False)
    devices, edges = wiring([lost])
    assert Device("0000:18:00.0", "gpu", "", "GPU-a", present=False) in devices
    assert Edge("pci0000:15", "0000:18:00.0", "pcie") in edges
