from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.errors import UsageError
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Device, Kind, Path, PcieLevel
from seedance_obs.topology.placement.pair_matrix import PairMatrix, host_facts
from seedance_obs.topology.placement.placements import Placements
from seedance_obs.topology.placement.policy import AffinityRule, Constraint, TopologyPolicy
from seedance_obs.topology.placement.policy_choice import choose
from seedance_obs.topology.placement.policy_facts import FACTS
from seedance_obs.topology.placement.policy_file import read_policies, read_policy
from seedance_obs.topology.placement.policy_host import HostView
from seedance_obs.topology.placement.policy_rules import RULES, score
from tests.topology.command_line import SEED_POLICY
from tests.topology.hosts_by_hand import bridged_pairs, dgx1, gpu, host, nvswitch, pcie_box
from tests.topology.random_hosts import hosts

TRAINING = TopologyPolicy(
    "training",
    (AffinityRule("nvlink-proximity", 120), AffinityRule("numa-locality", 80)),
    (Constraint("gpu-count", "Gt", ("1",)),),
)


def names(*indexes):
    return tuple(f"GPU{index}" for index in indexes)


def value(rule, topology, *indexes, free=None):
    placement = Placements().placement(topology, names(*indexes))
    return RULES[rule](HostView(topology, free), placement)


def fact(key, topology, *indexes):
    return FACTS[key](HostView(topology), Placements().placement(topology, names(*indexes)))


def test_the_seed_policy_is_read():
    assert read_policy(SEED_POLICY) == TRAINING


def test_several_policies_come_as_documents_a_sequence_or_a_list():
    other = SEED_POLICY.replace("training", "serving")
    documents = f"---\n{SEED_POLICY}---\n{other}---\n"
    indented = ["  ".join(["", *text.splitlines(keepends=True)]) for text in (SEED_POLICY, other)]
    sequence = "".join("- " + text[2:] for text in indented)
    listed = "apiVersion: v1\nkind: List\nitems:\n" + sequence
    for text in (documents, sequence, listed):
        assert [policy.name for policy in read_policies(text)] == ["training", "serving"]
    with pytest.raises(UsageError, match=r"one TopologyPolicy is wanted.*training, serving"):
        read_policy(documents)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("v1", "v2", "p.yaml:1: apiVersion: topology.seedance.io/v1 is wanted, found"),
        ("kind: TopologyPolicy", "kind: Pod", "p.yaml:2: kind: TopologyPolicy is wanted"),
        ("{name: training}", "{}", "p.yaml:3: metadata.name: this key is wanted"),
        ("{name: training}", "{name: }", "p.yaml:3: metadata.name: a value is wanted"),
        ("{name: training}", "training", "p.yaml:3: metadata: a mapping is wanted"),
        ("nvlink-proximity", "nvlink-proximty", "p.yaml:6: .*did you mean nvlink-proximity?"),
        ("weight: 120", "weight: much", "p.yaml:6: .*a number is wanted, found 'much'"),
        ("weight: 120", "weight: -1", "p.yaml:6: .*0 or more is wanted, found -1"),
        ("weight: 120", "weight: .nan", "p.yaml:6: .*number is wanted"),
        ("weight: 120", "weight: inf", "p.yaml:6: .*a finite number is wanted"),
        ("weight: 120", "wait: 120", "p.yaml:6: .*'wait' .did you mean weight?"),
        ("numa-locality", "nvlink-proximity", "p.yaml:6: .*each rule once"),
        ("key: gpu-count", "key: gpu", "p.yaml:9: .*constraints.0..key: one of .*gpu-count"),
        ("Gt", "Gte", "p.yaml:9: .*operator: one of .*Lt.* is wanted, found 'Gte'"),
        ("value: 1", "value: one", "p.yaml:9: .*a number is wanted, found 'one'"),
        (", value: 1", "", "p.yaml:9: .*one of value and values is wanted, found neither"),
        ("value: 1", "values: [1, 2]", "p.yaml:9: .*one number with Gt is wanted, found 2"),
        ("Gt, value: 1", "In, values: []", "p.yaml:9: .*at least one value with In"),
        ("Gt, value: 1", "Exists, value: 1", "p.yaml:9: .*no value with Exists"),
        ("spec:", "spec:\n  affinityRules: []", "p.yaml:6: spec.affinityRules: each key once"),
        ("spec:", "status: {}\nspec:", "p.yaml:4: .*the key 'status'"),
        ("  affinityRules", "\taffinityRules", "p.yaml:5:1: this is not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(was, now, message):
    with pytest.raises(UsageError, match=message):
        read_policy(SEED_POLICY.replace(was, now, 1), name="p.yaml")


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "kind: List\n"])
def test_a_file_with_nothing_in_it_is_refused(text):
    with pytest.raises(UsageError, match=r"p.yaml: .*holds nothing"):
        read_policy(text, name="p.yaml")


def test_two_policies_of_one_name_are_refused():
    with pytest.raises(UsageError, match=r"p.yaml:11: metadata.name: a name of its own"):
        read_policies(f"{SEED_POLICY}---\n{SEED_POLICY}", name="p.yaml")


@given(st.text(alphabet=st.sampled_from("abk:-{}[]&*!|>%@'\" \n\t0~\x00\x1f#,"), max_size=60))
def test_any_other_text_is_refused_in_a_sentence(text):
    with pytest.raises(UsageError, match=r"^p.yaml:"):
        read_policies(text, name="p.yaml")


def test_every_part_of_a_score_is_shown():
    found = score(TRAINING, HostView(dgx1()), Placements().placement(dgx1(), names(0, 1, 2, 3)))
    assert [(part.value, part.points) for part in found.contributions] == [
        (pytest.approx(9 / 12), pytest.approx(90)),
        (1, 80),
    ]
    assert found.total == pytest.approx(170)
    assert found.policy.most == 200
    assert found.eligible
    assert [(check.found, check.met) for check in found.checks] == [(("4",), True)]


def test_a_broken_constraint_makes_a_set_ineligible():
    found = score(TRAINING, HostView(dgx1()), Placements().placement(dgx1(), names(0)))
    assert not found.eligible
    assert found.total == 200


def test_an_unknown_rule_contributes_nothing_and_says_so():
    topology = host([gpu(0), gpu(1)], lambda _i, _j: PcieLevel.PIX, lambda _i, _j: 4)
    found = score(TRAINING, HostView(topology), Placements().placement(topology, names(0, 1)))
    assert [(part.value, part.points) for part in found.contributions] == [(1, 120), (UNKNOWN, 0)]


def test_nvlink_proximity_is_the_share_of_the_most_links():
    assert value("nvlink-proximity", dgx1(), 0, 3) == 1
    assert value("nvlink-proximity", dgx1(), 0, 1) == 0.5
    assert value("nvlink-proximity", dgx1(), 0, 5) == 0
    assert value("nvlink-proximity", nvswitch(), 0, 1, 6, 7) == 1
    assert value("nvlink-proximity", pcie_box(), 0, 1) == 0
    assert value("nvlink-proximity", pcie_box(), 0) == 1
    lost = host([gpu(0), gpu(1)], lambda _i, _j: PcieLevel.PIX, lambda _i, _j: UNKNOWN)
    assert value("nvlink-proximity", lost, 0, 1) is UNKNOWN


def test_numa_locality_falls_with_every_node():
    assert value("numa-locality", pcie_box(), 0, 1, 2) == 1
    assert value("numa-locality", pcie_box(), 0, 1, 4) == 0.5


def test_pcie_proximity_goes_from_one_switch_to_another_socket():
    assert value("pcie-proximity", pcie_box(), 0, 1) == 1
    assert value("pcie-proximity", pcie_box(), 0, 2) == 0.25
    assert value("pcie-proximity", pcie_box(), 0, 4) == 0
    assert value("pcie-proximity", pcie_box(), 0, 1, 2, 3) == pytest.approx((2 + 4 * 0.25) / 6)


def with_nics(levels):
    """Two GPUs; `levels` of GPU0 and GPU1 to two NICs."""
    nics = tuple(Device(f"NIC{place}", Kind.NIC) for place in range(2))
    paths = tuple(
        Path(f"GPU{place}", f"NIC{nic}", level)
        for place, row in enumerate(levels)
        for nic, level in enumerate(row)
    )
    return host([gpu(0), gpu(1)], lambda _i, _j: PcieLevel.SYS, others=nics, more_paths=paths)


def test_nic_locality_takes_the_nearest_nic_of_each_gpu():
    topology = with_nics([(PcieLevel.PIX, PcieLevel.SYS), (PcieLevel.SYS, PcieLevel.PHB)])
    assert value("nic-locality", topology, 0, 1) == 0.75
    assert value("nic-locality", topology, 0) == 1
    assert value("nic-locality", pcie_box(), 0) is UNSUPPORTED
    lost = with_nics([(PcieLevel.PIX, PcieLevel.SYS), (UNKNOWN, UNKNOWN)])
    assert value("nic-locality", lost, 0, 1) is UNKNOWN
    assert value("nic-locality", lost, 0) == 1


def test_domain_packing_leaves_whole_domains_alone():
    topology = bridged_pairs()
    assert value("domain-packing", topology, 0) == 0
    assert value("domain-packing", topology, 0, 1) == 1
    assert value("domain-packing", topology, 0, free=names(0, 2, 3)) == 1
    assert value("domain-packing", topology, 2, free=names(0, 2, 3)) == 0
    assert value("domain-packing", topology, 2, free=names(0, 3)) == 0  # held, so it was free
    assert value("domain-packing", topology, 0, 2, free=names(0, 2, 3)) == 0.5
    assert value("domain-packing", pcie_box(), 0, 5) == 1
    dark = host([gpu(0), gpu(1)], lambda _i, _j: PcieLevel.PIX, lambda _i, _j: UNKNOWN)
    assert value("domain-packing", dark, 0) is UNKNOWN


def test_domains_are_not_counted_where_one_gpus_links_are_unknown():
    dim = host(
        [gpu(0), gpu(1), gpu(2)],
        lambda _i, _j: PcieLevel.PIX,
        lambda i, j: 4 if {i, j} == {0, 1} else UNKNOWN,
    )
    assert value("domain-packing", dim, 0) is UNKNOWN
    assert fact("nvlink-domains", dim, 0, 2) is UNKNOWN


@given(hosts(), st.data())
def test_rules_stay_between_0_and_1_whatever_the_order(topology, data):
    everyone = [device.name for device in topology.gpus]
    chosen = data.draw(st.lists(st.sampled_from(everyone), min_size=1, unique=True))
    free = data.draw(st.none() | st.sets(st.sampled_from(everyone)))
    view = HostView(topology, free)
    placement = Placements().placement(topology, chosen)
    turned = replace(placement, gpus=placement.gpus[::-1], pairs=placement.pairs[::-1])
    for rule in RULES.values():
        found = rule(view, placement)
        assert found in (UNKNOWN, UNSUPPORTED) or 0 <= found <= 1
        assert rule(view, turned) == found


def test_the_facts_of_a_set():
    assert fact("gpu-count", dgx1(), 0, 1, 4) == {"3"}
    assert fact("numa-nodes", dgx1(), 0, 1, 4) == {"2"}
    assert fact("nvlink-domains", dgx1(), 0, 7) == {"1"}
    assert fact("nvlink-domains", bridged_pairs(), 0, 1, 2) == {"2"}
    assert fact("nvlink-domains", pcie_box(), 0, 1, 2) == {"3"}
    assert fact("worst-link-class", dgx1(), 0, 1, 2, 3) == {"NV1"}
    assert fact("bottleneck-gbps", dgx1(), 0, 1, 2, 3) == {"25"}
    assert fact("mean-gbps", dgx1(), 0, 1, 2, 3) == {"37.5"}
    assert fact("gpu-model", nvswitch(), 0, 1) == {"H100"}
    assert fact("gpu-model", dgx1(), 0, 1) is UNKNOWN
    assert fact("pcie-roots", dgx1(), 0, 1) is UNKNOWN
    roots = [gpu(i, pcie_root=f"pci0000:{i // 2}0") for i in range(4)]
    assert fact("pcie-roots", host(roots, lambda _i, _j: PcieLevel.SYS), 0, 1, 2) == {"2"}


@pytest.mark.parametrize(
    ("operator", "values", "found", "met"),
    [
        ("In", ("2", "4"), {"4"}, True),
        ("In", ("4.0",), {"4"}, True),
        ("In", ("A100",), {"A100", "H100"}, False),
        ("In", ("A100", "H100"), {"A100", "H100"}, True),
        ("NotIn", ("SYS",), {"NODE"}, True),
        ("NotIn", ("H100",), {"A100", "H100"}, False),
        ("Exists", (), {"1"}, True),
        ("DoesNotExist", (), {"1"}, False),
        ("Gt", ("1",), {"1"}, False),
        ("Gt", ("1",), {"10"}, True),
        ("Lt", ("2",), {"10"}, False),
        ("Lt", ("25.5",), {"25"}, True),
        ("Gt", ("1",), {"SYS"}, False),
        ("In", ("1",), UNKNOWN, False),
        ("NotIn", ("1",), UNKNOWN, True),
        ("Exists", (), UNKNOWN, False),
        ("DoesNotExist", (), UNSUPPORTED, True),
        ("Gt", ("0",), UNKNOWN, False),
        ("Lt", ("9",), UNKNOWN, False),
    ],
)
def test_operators_mean_what_they_mean_in_kubernetes(operator, values, found, met):
    fact = frozenset(found) if isinstance(found, set) else found
    assert Constraint("gpu-count", operator, values).met(fact) is met


def chosen(policy, topology, size, *, free=None):
    matrix = PairMatrix(host_facts(topology))
    return choose(policy, HostView(topology, free), matrix, size=size)


def test_a_policy_chooses_among_the_free():
    choice = chosen(TRAINING, dgx1(), 2, free=names(1, 5, 6, 7))
    assert choice.placement.gpus == names(5, 6)
    assert choice.exact
    assert choice.score.total == 200


def test_a_policy_may_want_what_a_collective_does_not():
    policy = TopologyPolicy("packed", (AffinityRule("domain-packing", 10),))
    assert chosen(policy, bridged_pairs(), 1, free=names(0, 2, 3)).placement.gpus == names(0)
    assert chosen(policy, bridged_pairs(), 1, free=names(1, 2, 3)).placement.gpus == names(1)


def test_a_policy_that_nothing_meets_chooses_nothing():
    strict = replace(TRAINING, constraints=(Constraint("worst-link-class", "In", ("NV2",)),))
    assert chosen(strict, dgx1(), 2).placement.gpus == names(0, 3)
    assert chosen(strict, dgx1(), 4) is None
    assert chosen(strict, dgx1(), 2, free=names(0)) is None


def test_constraints_come_before_points():
    near = replace(TRAINING, constraints=(Constraint("numa-nodes", "Gt", ("1",)),))
    choice = chosen(near, dgx1(), 2)
    assert choice.placement.gpus == names(0, 4)
    assert choice.score.total == pytest.approx(120 + 40)


def test_a_choice_beyond_exhaustion_is_marked():
    choice = chosen(TRAINING, pcie_box(20), 8)
    assert not choice.exact
    assert choice.placement.numa_spread == 1
