"""Links, pairs, NUMA and fabric health of simulated machines, as a driver tells of them."""

from pathlib import Path
from typing import Any

import pytest
from one_gpu import ONE_GPU

from seedance_obs.sources.nvml.library import GPU_IS_LOST, INVALID_ARGUMENT, NvmlError
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.loading import parse_machine
from seedance_obs.sources.sim.machine import Machine

MESH = load_machine(Path(__file__).parent.parent / "nvml_abi/gh200-mesh.yaml")
OK, CHIPSET, GPU, REGKEY, NOT_SUPPORTED = 0, 1, 2, 4, 5
READ, WRITE, NVLINK, ATOMICS, PCI = range(5)
SPEED, STATE, REMOTE = 164, 165, 146


def opened(machine: Machine | str, t: float = 0.0) -> SimNvml:
    described = load_machine(machine) if isinstance(machine, str) else machine
    library = SimNvml(described, lambda: t)
    library.call("nvmlInit")
    return library


def two_gpus(first: list[str], second: list[str], **changes: Any) -> Machine:
    """Two boards below the given bridges, both on NUMA node 0 of two unless changed."""
    model = changes.pop("model", "a100-pcie-80gb")
    numa = changes.pop("numa", (0, 0))
    gpus = [
        {"model": model, "pci": pci, "path": path} | ({} if node is None else {"numa": node})
        for pci, path, node in zip(
            ("0000:41:00.0", "0000:42:00.0"), (first, second), numa, strict=True
        )
    ]
    value = ONE_GPU | {"numa_cpus": ["0-7", "8-15"], "gpus": gpus} | changes
    return parse_machine(value, file="test")


ROOT, PORT, OTHER_PORT = "pci0000:00", "0000:00:01.0", "0000:00:02.0"
UP, DOWN, DOWN2 = "0000:01:00.0", "0000:02:00.0", "0000:02:01.0"
UP2, DOWN3 = "0000:03:00.0", "0000:04:00.0"


@pytest.mark.parametrize(
    ("first", "second", "numa", "level"),
    [
        ([ROOT, PORT, UP, DOWN], [ROOT, PORT, UP, DOWN2], (0, 0), 10),
        ([ROOT, PORT, UP, DOWN, UP2, DOWN3], [ROOT, PORT, UP, DOWN2], (0, 0), 20),
        ([ROOT, PORT, UP, DOWN], [ROOT, OTHER_PORT], (0, 0), 30),
        ([ROOT, PORT], ["pci0000:40", "0000:40:01.0"], (0, 0), 40),
        ([ROOT, PORT], ["pci0000:40", "0000:40:01.0"], (0, 1), 50),
        ([ROOT, PORT], ["pci0000:40", "0000:40:01.0"], (None, None), 50),
    ],
)
def test_the_common_ancestor_is_the_highest_thing_that_is_crossed(
    first: list[str], second: list[str], numa: tuple[int | None, ...], level: int
) -> None:
    library = opened(two_gpus(first, second, numa=numa))
    assert library.call("nvmlDeviceGetTopologyCommonAncestor", "gpu0", 1) == level
    assert library.call("nvmlDeviceGetTopologyCommonAncestor", "gpu1", 0) == level


@pytest.mark.parametrize(
    ("changes", "statuses"),  # read, write, nvlink, atomics, pci
    [
        ({}, [OK, OK, NOT_SUPPORTED, NOT_SUPPORTED, OK]),
        ({"p2p": "chipset_not_supported"}, [CHIPSET, CHIPSET, NOT_SUPPORTED, NOT_SUPPORTED, 1]),
        ({"model": "rtx3090"}, [GPU, GPU, NOT_SUPPORTED, NOT_SUPPORTED, GPU]),
        (
            {"model": "rtx3090", "nvlinks": [{"gpus": [0, 1], "links": 4}]},
            [OK, OK, OK, OK, GPU],
        ),
    ],
)
def test_peer_to_peer_is_as_the_boards_and_their_links_have_it(
    changes: dict[str, Any], statuses: list[int]
) -> None:
    library = opened(two_gpus([ROOT, PORT], [ROOT, OTHER_PORT], **changes))
    found = [library.call("nvmlDeviceGetP2PStatus", "gpu0", 1, use) for use in range(5)]
    assert found == statuses


def test_gpus_at_one_switch_reach_each_other_over_nvlink() -> None:
    for name in ("h100-nvswitch", "gb200"):
        assert opened(name).call("nvmlDeviceGetP2PStatus", "gpu0", 3, NVLINK) == OK
    cube = opened("v100-cubemesh")
    assert cube.call("nvmlDeviceGetP2PStatus", "gpu0", 3, NVLINK) == OK
    assert cube.call("nvmlDeviceGetP2PStatus", "gpu0", 5, NVLINK) == NOT_SUPPORTED


@pytest.mark.parametrize(("other", "code"), [(5, GPU_IS_LOST), (8, INVALID_ARGUMENT)])
def test_a_pair_wants_both_of_its_boards(other: int, code: int) -> None:
    library = opened("a100-pcie", t=20.0)  # GPU 5 is lost
    for function, args in (
        ("nvmlDeviceGetTopologyCommonAncestor", (other,)),
        ("nvmlDeviceGetP2PStatus", (other, READ)),
    ):
        with pytest.raises(NvmlError) as refused:
            library.call(function, "gpu0", *args)
        assert refused.value.code == code


def states(library: SimNvml, gpu: int) -> list[int]:
    found: Any = library.call(
        "nvmlDeviceGetFieldValues", f"gpu{gpu}", *(STATE | link << 32 for link in range(18))
    )
    return [field["value"] for field in found]


def test_a_wire_that_is_down_is_down_at_both_ends() -> None:
    library = opened(MESH)
    assert [link for link, state in enumerate(states(library, 0)) if not state] == [3]
    assert [link for link, state in enumerate(states(library, 1)) if not state] == [3]
    assert states(library, 2) == [1] * 18
    for gpu in range(4):
        by_call = [
            library.call("nvmlDeviceGetNvLinkState", f"gpu{gpu}", link) for link in range(18)
        ]
        assert by_call == states(library, gpu)


def test_every_direct_link_leads_back_to_itself() -> None:
    library = opened(MESH)
    addresses = {gpu.device.pci: gpu.index for gpu in MESH.gpus}
    seen = 0
    for gpu in range(4):
        for link in range(18):
            device = f"gpu{gpu}"
            far: Any = library.call("nvmlDeviceGetFieldValues", device, REMOTE | link << 32)
            if far[0]["value"] is None:
                continue
            pci: Any = library.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link)
            peer = addresses[pci["busId"].lower().removeprefix("0000")]
            back: Any = library.call(
                "nvmlDeviceGetFieldValues", f"gpu{peer}", REMOTE | far[0]["value"] << 32
            )
            assert back[0]["value"] == link
            seen += 1
    assert seen == 4 * 18 - 2


def test_ports_of_a_switch_belong_to_one_gpu_each() -> None:
    library = opened("h100-nvswitch")
    ends = set()
    for gpu in range(8):
        for link in range(18):
            pci: Any = library.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", f"gpu{gpu}", link)
            port: Any = library.call("nvmlDeviceGetFieldValues", f"gpu{gpu}", REMOTE | link << 32)
            ends.add((pci["busId"], port[0]["value"]))
    assert len(ends) == 8 * 18


def test_older_boards_lack_the_fields_of_single_links() -> None:
    fields: Any = opened("v100-cubemesh").call("nvmlDeviceGetFieldValues", "gpu0", SPEED, STATE)
    assert [field["nvmlReturn"] for field in fields] == [3, 3]
    beyond: Any = opened(MESH).call("nvmlDeviceGetFieldValues", "gpu0", STATE | 18 << 32)
    assert beyond[0]["nvmlReturn"] == INVALID_ARGUMENT


def test_affinity_is_the_near_node_or_all_where_the_kernel_does_not_know() -> None:
    dgx = opened("v100-cubemesh")  # node 1 has CPUs 20-39 and 60-79
    assert dgx.call("nvmlDeviceGetMemoryAffinity", "gpu4", 16, 0) == [0b10]
    words: Any = dgx.call("nvmlDeviceGetCpuAffinityWithinScope", "gpu4", 128, 0)
    cpus = [cpu for cpu in range(128) if words[cpu // 64] >> cpu % 64 & 1]
    assert cpus == [*range(20, 40), *range(60, 80)]
    desk = opened("rtx3090-bridge")
    assert desk.call("nvmlDeviceGetMemoryAffinity", "gpu0", 16, 0) == [0b1]
    assert desk.call("nvmlDeviceGetCpuAffinity", "gpu0", 128) == [2**32 - 1]


def test_a_grace_superchip_has_its_memory_as_a_node_and_a_way_to_the_cpu() -> None:
    library = opened(MESH)
    nodes = [library.call("nvmlDeviceGetNumaNodeId", f"gpu{gpu}") for gpu in range(4)]
    assert nodes == [4, 12, 20, 28]
    assert library.call("nvmlDeviceGetAddressingMode", "gpu0") == 2
    fields: Any = library.call("nvmlDeviceGetFieldValues", "gpu0", 170, 171 | 9 << 32, 172)
    assert [field["value"] for field in fields] == [10, 1, 44_712]


def test_a_fabric_has_the_health_of_its_description() -> None:
    fabric: Any = opened(MESH).call("nvmlDeviceGetGpuFabricInfoV", "gpu0")
    assert (fabric["healthMask"], fabric["healthSummary"]) == (0x25A9, 3)


def test_a_rack_is_one_chassis_and_each_tray_has_its_slot() -> None:
    first: Any = opened("gb200").call("nvmlDeviceGetPlatformInfo", "gpu0")
    last: Any = opened("gb200").call("nvmlDeviceGetPlatformInfo", "gpu3")
    assert last == first | {"moduleId": 4}
    assert len(first["chassisSerialNumber"]) == 13
    assert first["slotNumber"] == first["trayIndex"] + 1


@pytest.mark.parametrize(
    ("model", "links"), [("a100-sxm4-80gb", 12), ("a100-sxm4-40gb", 12), ("gh200-96gb", 18)]
)
def test_new_models_bear_the_links_of_their_generation(model: str, links: int) -> None:
    library = opened(two_gpus([ROOT, PORT], [ROOT, OTHER_PORT], model=model))
    fields: Any = library.call("nvmlDeviceGetFieldValues", "gpu0", 91)
    assert fields[0]["value"] == links
