import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.encoding.node_labels import ANNOTATIONS_MAX_BYTES, PREFIX, node_labels
from seedance_obs.topology.encoding.node_patch import feature_file, json_patch, merge_patch
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    FabricMembership,
    Kind,
    NvLinkKind,
    NvLinkPort,
    Path,
    PcieLevel,
    Topology,
)
from tests.topology.hand_made import CLUSTER, hgx, matrix
from tests.topology.made_up import texts, topologies
from tests.topology.test_encoding import LABEL_VALUE

KEY_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")  # apimachinery's


def ours(topology: Topology) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in node_labels(topology).labels.items()}


def raw(topology: Topology) -> dict[str, str]:
    annotations = node_labels(topology).annotations
    return {key.removeprefix(PREFIX): value for key, value in annotations.items()}


def test_an_hgx_h100_in_full():
    labels = ours(hgx(gpus=2, nics=0))
    assert labels == {
        "gpus": "2",
        "bandwidth-class": "HBM3_3350GBps",
        "nvlinks-per-gpu": "18",
        "nvlink-domains": "1",
        "nvlink-domain": "gpu-7.0000-1a-00.0",
        "numa-nodes": "1",
        "worst-link-class": "NV",
        "gpu0.root-complex-id": "pci0000-15",
        "gpu0.pcie-switch": "0000-18-00.0",
        "gpu0.numa-node": "0",
        "gpu0.topo-mask": "0b11",
        "gpu0.nvlink-domain": "gpu-7.0000-1a-00.0",
        "gpu1.root-complex-id": "pci0000-1d",
        "gpu1.pcie-switch": "0000-20-00.0",
        "gpu1.numa-node": "0",
        "gpu1.topo-mask": "0b11",
        "gpu1.nvlink-domain": "gpu-7.0000-1a-00.0",
    }


def test_annotations_hold_what_labels_cannot():
    assert raw(hgx(gpus=2, nics=0)) == {
        "gpu0.pci-bus-id": "0000:1a:00.0",
        "gpu0.uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "gpu0.model": "NVIDIA H100 80GB HBM3",
        "gpu0.root-complex-id": "pci0000:15",
        "gpu0.pcie-switch": "0000:18:00.0",
        "gpu1.pci-bus-id": "0000:22:00.0",
        "gpu1.uuid": "GPU-00000001-0000-0000-0000-000000000000",
        "gpu1.model": "NVIDIA H100 80GB HBM3",
        "gpu1.root-complex-id": "pci0000:1d",
        "gpu1.pcie-switch": "0000:20:00.0",
        "topology": '{"NV18":[[0,1]]}',
    }


def test_a_link_that_goes_down_changes_no_label():
    assert ours(hgx(lost_links=3)) == ours(hgx())
    assert json.loads(raw(hgx(lost_links=3))["topology"])["NV15"] == [[0, i] for i in range(1, 8)]


def test_a_lost_gpu_still_counts():
    topology = hgx()
    lost = tuple(replace(device, present=device.index != 3) for device in topology.devices)
    assert ours(replace(topology, devices=lost)) == ours(topology)


def test_a_host_without_gpus_says_so_and_an_empty_topology_says_nothing():
    assert ours(Topology((Device("host", Kind.HOST),))) == {"gpus": "0"}
    assert node_labels(Topology()).labels == node_labels(Topology()).annotations == {}


def test_unlinked_gpus_are_in_no_domain_and_as_far_apart_as_the_worst_pair():
    topology = matrix(
        4,
        lambda one, other: PcieLevel.NODE if other - one == 1 else PcieLevel.SYS,
        numa=lambda i: i // 2,
    )
    labels = ours(topology)
    assert labels["nvlink-domains"] == "0"
    assert labels["worst-link-class"] == "SYS"
    assert labels["numa-nodes"] == "2"
    assert labels["gpu2.topo-mask"] == "0b0100"
    assert "nvlink-domain" not in labels


@pytest.mark.parametrize("missing", [Path("GPU0", "GPU1"), Path("GPU0", "GPU1", PcieLevel.PIX)])
def test_one_pair_that_is_not_known_leaves_the_worst_class_open(missing):
    topology = matrix(3, lambda _one, _other: PcieLevel.SYS)
    paths = (missing, *(path for path in topology.paths if path.target != "GPU1"))
    assert "worst-link-class" in ours(topology)
    assert "worst-link-class" not in ours(replace(topology, paths=paths))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (Path("a", "b", PcieLevel.INTERNAL, 0), "PIX"),
        (Path("a", "b", PcieLevel.PHB, UNSUPPORTED), "PHB"),
        (Path("a", "b", UNKNOWN, 4), "NV"),
        (Path("a", "b", PcieLevel.SYS, 2, NvLinkKind.C2C), "C2C"),
    ],
)
def test_the_class_of_a_pair(path, expected):
    devices = (Device("a", Kind.GPU, 0), Device("b", Kind.GPU, 1))
    assert ours(Topology(devices, (path,)))["worst-link-class"] == expected


def joined(clique: int, **other: Any) -> FabricMembership:
    return replace(FabricMembership(3, 0, CLUSTER, clique, healthy=True), **other)


@pytest.mark.parametrize(
    ("fabrics", "rack"),
    [
        ((joined(7), joined(7)), "0f0e0d0c-0b0a-0908-0706-050403020100.7"),
        ((joined(7), joined(7, healthy=False)), "0f0e0d0c-0b0a-0908-0706-050403020100.7"),
        ((joined(7), joined(8)), None),
        ((joined(7), joined(7, state=2)), None),
        ((joined(7), UNKNOWN), None),
        ((joined(7), joined(7, status=UNKNOWN)), None),
        ((joined(7, cluster_uuid="0" * 32),) * 2, None),
    ],
)
def test_a_rack_is_named_when_every_gpu_is_in_it(fabrics, rack):
    gpus = tuple(Device(f"g{i}", Kind.GPU, i, fabric=fabric) for i, fabric in enumerate(fabrics))
    assert ours(Topology(gpus)).get("rack-domain") == rack


def linked(active: tuple[bool | Absent, ...]) -> tuple[NvLinkPort, ...]:
    return tuple(NvLinkPort(i, state) for i, state in enumerate(active))


@pytest.mark.parametrize(
    ("model", "nvlinks", "expected"),
    [
        (UNKNOWN, linked((True, False, True)), "3"),
        (UNKNOWN, linked((False, False)), "0"),
        (UNKNOWN, linked((False, UNKNOWN)), None),
        (UNKNOWN, (), "0"),
        (UNKNOWN, UNSUPPORTED, "0"),
        (UNKNOWN, UNKNOWN, None),
        ("NVIDIA H100 80GB HBM3", UNSUPPORTED, "18"),  # MIG mode answers no NVLink query
        ("NVIDIA H100 80GB HBM3", UNKNOWN, "18"),
        ("NVIDIA A100 80GB PCIe", UNKNOWN, None),
        ("NVIDIA A100 80GB PCIe", UNSUPPORTED, "0"),
        ("NVIDIA L40S", UNKNOWN, "0"),
    ],
)
def test_nvlinks_are_counted_up_or_down_and_never_guessed(model, nvlinks, expected):
    gpu = Device("a", Kind.GPU, 0, model=model, nvlinks=nvlinks)
    assert ours(Topology((gpu,))).get("nvlinks-per-gpu") == expected


def test_boards_that_differ_are_told_one_by_one():
    one = Device("a", Kind.GPU, 0, model="NVIDIA L4")
    other = Device("b", Kind.GPU, 1, model="Tesla P100-SXM2-16GB")
    unnamed = Device("c", Kind.GPU, 2)
    labels = ours(Topology((one, other, unnamed)))
    assert labels["gpu0.bandwidth-class"] == "GDDR6_300GBps"
    assert labels["gpu1.bandwidth-class"] == "HBM2_732GBps"
    assert labels["gpu0.nvlinks"] == "0"
    assert labels["gpu1.nvlinks"] == "4"
    assert not {"bandwidth-class", "nvlinks-per-gpu", "gpu2.bandwidth-class"} & set(labels)


def test_a_long_name_is_whole_in_the_annotation():
    host = "node." + "rack." * 12 + "example.org"
    topology = hgx(gpus=1, nics=0, host=host)
    assert len(ours(topology)["gpu0.nvlink-domain"]) == 63
    assert raw(topology)["gpu0.nvlink-domain"] == f"{host}.0000-1a-00.0"
    assert raw(topology)["nvlink-domain"] == f"{host}.0000-1a-00.0"


def test_annotations_never_outgrow_what_kubernetes_takes():
    labels = node_labels(matrix(300, lambda _one, _other: PcieLevel.SYS))
    assert PREFIX + "topology" not in labels.annotations
    sixteen = node_labels(matrix(16, lambda _one, _other: 6)).annotations
    assert 0 < sum(map(len, sixteen.values())) < ANNOTATIONS_MAX_BYTES // 100


@given(topologies())
def test_every_key_and_value_is_legal(topology):
    written = node_labels(topology)
    for key in (*written.labels, *written.annotations):
        prefix, name = key.split("/")
        assert prefix == "topology.seedance.io"
        assert len(name) <= 63
        assert KEY_NAME.fullmatch(name)
    for value in written.labels.values():
        assert value
        assert len(value) <= 63
        assert LABEL_VALUE.fullmatch(value)


@given(topologies())
def test_a_fact_that_is_not_known_is_no_label(topology):
    labels = ours(topology)
    for gpu in topology.gpus:
        for name, value in (
            ("root-complex-id", gpu.pcie_root),
            ("pcie-switch", gpu.pcie_switch),
            ("numa-node", gpu.numa),
            ("nvlink-domain", topology.domains.get(gpu.name, UNKNOWN)),
        ):
            told = gpu.index is not None and bool(value) and not isinstance(value, Absent)
            assert (f"gpu{gpu.index}.{name}" in labels) == told


@given(topologies(), st.randoms(use_true_random=False))
def test_labels_do_not_depend_on_the_order_of_devices_or_paths(topology, random):
    devices, paths = list(topology.devices), list(topology.paths)
    random.shuffle(devices)
    random.shuffle(paths)
    turned = [replace(path, source=path.target, target=path.source) for path in paths]
    shuffled = replace(topology, devices=tuple(devices), paths=tuple(turned))
    indices = {gpu.index for gpu in topology.gpus}
    if None not in indices:
        assert node_labels(shuffled) == node_labels(topology)
    assert ours(shuffled).keys() == ours(topology).keys()


@given(topologies())
def test_a_gpu_of_which_nothing_is_known_adds_only_to_the_count(topology):
    """Facts of all GPUs go, as one of them is not known; facts of the others stay."""
    unknown = replace(topology, devices=(*topology.devices, Device("new", Kind.GPU, 9)))
    before, after = ours(topology), ours(unknown)
    assert after["gpus"] == str(len(topology.gpus) + 1)
    assert not [key for key in after if key.startswith("gpu9.")]
    for name in ("root-complex-id", "numa-node", "pcie-switch", "nvlink-domain"):
        keys = [key for key in before if key.startswith("gpu") and key.endswith(f".{name}")]
        assert all(after[key] == before[key] for key in keys)
    assert not set(after) & {"numa-nodes", "nvlink-domain", "rack-domain", "bandwidth-class"}


def apply(patch: list[dict[str, Any]], document: Any) -> Any:
    """RFC 6902 for objects: `add` wants its parent, `remove` its target."""
    document = copy.deepcopy(document)
    for operation in patch:
        *steps, last = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]
        ]
        parent = document
        for step in steps:
            parent = parent[step]
        if operation["op"] == "add":
            parent[last] = operation["value"]
        else:
            assert operation["op"] == "remove"
            del parent[last]
    return document


def merge(patch: Any, document: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(value, merged.get(key))
    return merged


foreign = st.dictionaries(st.sampled_from(["kubernetes.io/os", "a~b/c", "x"]), texts, max_size=3)
owned = st.sampled_from(["gpus", "gpu0.numa-node", "gpu7.topo-mask", "topology", "nvlink-domain"])
stale = st.dictionaries(owned.map(PREFIX.__add__), texts, max_size=4)
maps = st.builds(lambda one, other: one | other, foreign, stale)
nodes = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps})}
)


def kept(node: dict[str, Any], name: str, new: dict[str, str]) -> dict[str, str]:
    present = node["metadata"].get(name, {})
    return {key: value for key, value in present.items() if not key.startswith(PREFIX)} | new


@given(topologies(), nodes)
def test_a_patched_node_has_exactly_our_labels_and_all_that_are_not_ours(topology, node):
    written = node_labels(topology)
    wanted = (written.labels, written.annotations)
    for patched in (
        apply(json_patch(*wanted, current=node), node),
        merge(merge_patch(*wanted, current=node), node),
    ):
        metadata = patched["metadata"]
        assert metadata.get("labels", {}) == kept(node, "labels", written.labels)
        assert metadata.get("annotations", {}) == kept(node, "annotations", written.annotations)
        assert json_patch(*wanted, current=patched) == []
        assert merge_patch(*wanted, current=patched) == {}


def test_a_patch_made_without_the_node_sets_everything_and_removes_nothing():
    written = node_labels(hgx())
    patch = json_patch(written.labels, written.annotations)
    assert {operation["op"] for operation in patch} == {"add"}
    assert patch[0]["path"].startswith("/metadata/labels/topology.seedance.io~1")
    node = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    patched = apply(patch, node)
    assert patched["metadata"]["labels"] == {"a": "b"} | written.labels
    assert patched == merge(merge_patch(written.labels, written.annotations), node)


def parse_feature_file(text: str) -> dict[str, str]:
    """As the local source reads it: the key ends at the first `=`, `#` begins no feature."""
    lines = [line.strip() for line in text.split("\n")]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@given(topologies())
def test_a_feature_file_says_the_labels(topology):
    labels = node_labels(topology).labels
    assert parse_feature_file(feature_file(labels)) == labels


def test_a_feature_file_stays_far_below_the_size_limit():
    assert len(feature_file(node_labels(hgx(gpus=16)).labels)) < 65536 // 8
