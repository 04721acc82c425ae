import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.encoding.as_json import topology_json
from seedance_obs.topology.model import (
    UNSUPPORTED,
    Device,
    Kind,
    NvLinkPort,
    Path,
    PcieLevel,
    Reading,
    Topology,
)
from seedance_obs.topology.naming import natural_key, number_list
from tests.topology.hand_made import hgx, matrix
from tests.topology.made_up import topologies


def test_a_host_in_full():
    answer = topology_json(Reading(hgx(gpus=2, nics=1), ("row GPU1: cut",), "nvml"))
    assert answer["format"] == "nvml"
    assert answer["host"] == "gpu-7"
    assert answer["warnings"] == ["row GPU1: cut"]
    assert answer["domains"] == {"gpu-7.0000-1a-00.0": ["0000:1a:00.0", "0000:22:00.0"]}
    assert answer["numa"] == {"0": ["0000:1a:00.0", "0000:22:00.0"]}
    assert [nic["label"] for nic in answer["nics"]] == ["mlx5_0"]
    gpu = answer["gpus"][0]
    assert gpu["pcie"] == {"generation": 5, "width": 16, "generation_max": 5, "width_max": 16}
    assert gpu["nvlinks"][17]["remote_kind"] == "nvswitch"
    assert gpu["fabric"]["state"] == 3
    assert answer["links"][0] == {
        "source": "0000:1a:00.0",
        "target": "0000:22:00.0",
        "class": "NV18",
        "nvlinks": 18,
        "nvlink_kind": "switch",
        "pcie": "NODE",
        "p2p": None,
    }
    assert answer["links"][1]["class"] == "PIX"
    assert answer["links"][1]["nvlinks"] == "unsupported"


def test_what_is_not_known_is_null_and_what_is_not_there_says_so():
    gpu = Device("GPU0", Kind.GPU, 0, pcie_switch=UNSUPPORTED, nvlinks=UNSUPPORTED)
    answer = topology_json(Reading(Topology((gpu,), (Path("GPU0", "NIC0"),))))
    shown = answer["gpus"][0]
    assert shown["mig"] is None
    assert shown["pcie_switch"] == shown["nvlinks"] == "unsupported"
    for name in ("uuid", "bus_id", "model", "numa", "cpus", "pcie_root", "fabric", "label"):
        assert shown[name] is None
    assert answer["links"][0]["class"] is None
    assert answer["links"][0]["pcie"] is None
    assert answer["numa"] == answer["domains"] == {}
    assert answer["format"] is None


def test_numa_that_the_device_has_none_of_is_no_node():
    answer = topology_json(Reading(Topology((Device("GPU0", Kind.GPU, 0, numa=UNSUPPORTED),))))
    assert answer["gpus"][0]["numa"] == "unsupported"
    assert answer["numa"] == {}


def test_cpus_are_the_kernels_lists_and_ports_are_in_order():
    gpu = Device(
        "GPU0",
        Kind.GPU,
        0,
        cpus=frozenset({*range(48), *range(96, 144)}),
        nvlinks=(NvLinkPort(3, active=True), NvLinkPort(0)),
        numa=frozenset({10, 2}),
    )
    answer = topology_json(Reading(Topology((gpu,))))
    assert answer["gpus"][0]["cpus"] == "0-47,96-143"
    assert [port["port"] for port in answer["gpus"][0]["nvlinks"]] == [0, 3]
    assert [port["active"] for port in answer["gpus"][0]["nvlinks"]] == [None, True]
    assert list(answer["numa"]) == ["2", "10"]


def test_gpu_ten_comes_after_gpu_nine():
    answer = topology_json(Reading(matrix(12, lambda _one, _other: PcieLevel.SYS)))
    assert [gpu["name"] for gpu in answer["gpus"]] == [f"GPU{i}" for i in range(12)]
    assert [(link["source"], link["target"]) for link in answer["links"]] == [
        (f"GPU{i}", f"GPU{j}") for i in range(12) for j in range(i + 1, 12)
    ]


def test_addresses_are_ordered_as_hexadecimal():
    addresses = ["0000:1a:00.0", "0000:1d:00.0", "0000:15:00.0", "0000:9a:00.0", "0000:a0:00.0"]
    assert sorted(addresses, key=natural_key) == sorted(addresses)
    assert sorted(["pci0000:1d", "pci0000:25", "pci0000:15"], key=natural_key)[0] == "pci0000:15"


@given(topologies(), st.randoms(use_true_random=False))
def test_the_answer_is_json_and_the_same_for_any_order(topology, random):
    devices, paths = list(topology.devices), list(topology.paths)
    random.shuffle(devices)
    random.shuffle(paths)
    turned = [replace(path, source=path.target, target=path.source) for path in paths]
    shuffled = replace(topology, devices=tuple(devices), paths=tuple(turned))
    first = json.dumps(topology_json(Reading(topology)), allow_nan=False)
    assert first == json.dumps(topology_json(Reading(shuffled)), allow_nan=False)


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_a_number_list_names_every_number_once(numbers):
    named = set()
    for run in (number_list(numbers) or "").split(","):
        first, _, last = run.partition("-")
        span = set(range(int(first), int(last or first) + 1))
        assert not named & span
        named |= span
    assert named == numbers
