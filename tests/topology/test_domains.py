import random

import pytest

from seedance_obs.topology.domains import LinkedGpu, domains, nvlink_domains, rack_domain
from seedance_obs.topology.model import UNKNOWN, Device, FabricMembership, Kind

CLUSTER = "0f0e0d0c0b0a09080706050403020100"


def gpu(bus: str, *peers: str, rack: str | None = None) -> LinkedGpu:
    return LinkedGpu(f"0000:{bus}:00.0", frozenset(f"0000:{peer}:00.0" for peer in peers), rack)


def test_gpus_that_share_a_switch_are_one_domain():
    gpus = [gpu("18", "05", "06"), gpu("2a", "06", "07"), gpu("3a", "07")]
    assert set(nvlink_domains("n", gpus).values()) == {"n.0000-18-00.0"}


def test_bridged_pairs_are_domains_of_their_own_and_the_unlinked_have_none():
    gpus = [gpu("18", "2a"), gpu("2a", "18"), gpu("3a", "3b"), gpu("3b", "3a"), gpu("99")]
    assert nvlink_domains("n", gpus) == {
        "0000:18:00.0": "n.0000-18-00.0",
        "0000:2a:00.0": "n.0000-18-00.0",
        "0000:3a:00.0": "n.0000-3a-00.0",
        "0000:3b:00.0": "n.0000-3a-00.0",
    }


def test_a_domain_does_not_depend_on_the_order_of_its_gpus():
    gpus = [gpu(f"{i:02x}", f"{(i + 1) % 8:02x}", f"{(i - 1) % 8:02x}") for i in range(8)]
    expected = nvlink_domains("n", gpus)
    assert len(set(expected.values())) == 1
    for seed in range(20):
        assert nvlink_domains("n", random.Random(seed).sample(gpus, 8)) == expected


def test_a_rack_names_its_domain_and_no_host_does():
    gpus = [gpu("01", rack="r.7"), gpu("02", rack="r.7")]
    assert set(nvlink_domains("n", gpus).values()) == {"r.7"}


def test_a_joined_rack_is_cluster_and_clique():
    domain = rack_domain(FabricMembership(3, 0, CLUSTER, 32766))
    assert domain == "0f0e0d0c-0b0a-0908-0706-050403020100.32766"


@pytest.mark.parametrize(
    ("cluster", "state", "status"),
    [("0" * 32, 3, 0), (CLUSTER, 2, 0), (CLUSTER, 3, 23), (CLUSTER, 0, 0)],
)
def test_no_rack_before_a_fabric_is_joined_in_earnest(cluster, state, status):
    assert rack_domain(FabricMembership(state, status, cluster, 1)) is None


@pytest.mark.parametrize(("clique", "status"), [(UNKNOWN, 0), (1, UNKNOWN)])
def test_no_rack_from_half_of_what_names_one(clique, status):
    assert rack_domain(FabricMembership(3, status, CLUSTER, clique)) is None


def test_a_gpu_in_a_rack_is_in_its_domain_though_nobody_could_read_its_links():
    fabric = FabricMembership(3, 0, CLUSTER, 7)
    gpus = [Device("a", Kind.GPU, fabric=fabric), Device("b", Kind.GPU)]
    assert domains(gpus) == {"a": "0f0e0d0c-0b0a-0908-0706-050403020100.7"}
