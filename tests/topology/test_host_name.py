from dataclasses import replace

from seedance_obs.topology.host_name import has_nameless_domain, is_rack_wide, under_name
from seedance_obs.topology.model import UNKNOWN
from tests.topology.hand_made import CLUSTER, hgx, matrix

RACK = "0f0e0d0c-0b0a-0908-0706-050403020100.7"


def a_pair():
    """Two GPUs of a matrix, which tells no host."""
    pair = matrix(2, lambda _one, _other: 4)
    return replace(pair, domains={gpu.name: "GPU0" for gpu in pair.gpus})


def in_a_rack():
    """Two GPUs that have joined a fabric, without a host's name."""
    plain = hgx(gpus=2, nics=0, host="")
    fabric = replace(plain.gpus[0].fabric, cluster_uuid=CLUSTER, clique_id=7)
    gpus = tuple(replace(gpu, fabric=fabric) for gpu in plain.gpus)
    return replace(plain, devices=gpus, domains={gpu.name: RACK for gpu in gpus})


def test_a_host_gives_its_name_to_its_own_domains_alone():
    named = under_name(a_pair(), "node-1")
    assert named.host == "node-1"
    assert set(named.domains.values()) == {"node-1.GPU0"}
    assert set(under_name(in_a_rack(), "node-1").domains.values()) == {RACK}


def test_a_domain_is_nameless_without_a_host_or_a_rack():
    bare = a_pair()
    assert has_nameless_domain(bare)
    assert not has_nameless_domain(under_name(bare, "node-1"))
    assert not has_nameless_domain(in_a_rack())
    assert not has_nameless_domain(replace(bare, domains={}))


def test_a_zero_or_unknown_cluster_is_no_rack():
    gpus = hgx(gpus=2, nics=0).gpus
    assert not is_rack_wide("gpu-7.0000-1a-00.0", gpus)
    assert not is_rack_wide(RACK, [replace(gpu, fabric=UNKNOWN) for gpu in gpus])
