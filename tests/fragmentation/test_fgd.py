import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.fragmentation import fgd
from seedance_obs.fragmentation.fgd import Cause
from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import FreeNode, Request

NODE = FreeNode((1000, 500, 200, 0), 8000, "T4")
ANY_NODE = st.builds(
    FreeNode,
    st.lists(st.sampled_from([0, 200, 470, 500, 1000]), max_size=8).map(tuple),
    st.none() | st.integers(0, 20),
    st.sampled_from(["T4", "A100", ""]),
)
ANY_REQUEST = st.builds(
    Request,
    st.integers(0, 4),
    st.sampled_from([200, 470, 500, 501, 1000]),
    st.integers(0, 20),
    st.sets(st.sampled_from(["T4", "V100"])).map(frozenset),
)
ANY_MIX = st.lists(ANY_REQUEST, min_size=1, max_size=12).map(Mix.of)


def as_defined(node: FreeNode, request: Request) -> int:
    """The definition, read aloud."""
    free = sum(node.gpu_milli)
    if request.gpus == 0 or (request.models and node.model and node.model not in request.models):
        return free
    if node.cpu_milli is not None and request.cpu_milli > node.cpu_milli:
        return free
    if sum(gpu >= request.gpu_milli for gpu in node.gpu_milli) < request.gpus:
        return free
    return sum(gpu for gpu in node.gpu_milli if gpu < request.gpu_milli)


@given(ANY_NODE, ANY_MIX)
def test_a_fragment_is_the_mean_over_the_mix_of_the_definition(node, mix):
    expected = sum(weight * as_defined(node, request) for request, weight in mix)
    assert fgd.fragment_milli(node, mix) == pytest.approx(expected)


@given(st.lists(ANY_NODE, max_size=5), ANY_MIX)
def test_nodes_add_up_and_the_rate_is_of_what_is_free(nodes, mix):
    free = sum(sum(node.gpu_milli) for node in nodes)
    rate = fgd.rate(iter(nodes), mix)
    if not free:
        assert rate is None
    else:
        assert rate * free == pytest.approx(sum(fgd.fragment_milli(node, mix) for node in nodes))
        assert 0 <= rate <= 1 + 1e-12


@pytest.mark.parametrize(
    ("request_", "milli", "cause"),
    [
        (Request(0, 0, 100), 1700, Cause.NO_GPU_WANTED),
        (Request(1, 1000, 8000), 700, Cause.REMAINDER),
        (Request(1, 200, 8000), 0, None),
        (Request(1, 1000, 8001), 1700, Cause.CPU),
        (Request(2, 600, 8000), 1700, Cause.GPU),
        (Request(2, 600, 8001), 1700, Cause.GPU_AND_CPU),
        (Request(1, 500, 8000, frozenset({"T4", "A10"})), 200, Cause.REMAINDER),
        (Request(1, 500, 9000, frozenset({"A10"})), 1700, Cause.OTHER_MODEL),
    ],
)
def test_one_request_leaves_a_fragment_for_one_cause(request_, milli, cause):
    (found,) = fgd.fragments_by_cause([NODE], Mix(((request_, 1.0),)))
    expected = {} if cause is None else {cause: milli}
    assert {one: amount for one, amount in zip(Cause, found, strict=True) if amount} == expected


def test_requests_that_differ_in_cpu_alone_are_told_apart():
    mix = Mix.of([Request(1, 500, cpu) for cpu in (4000, 8000, 8001, 16000)], percent_kept=100)
    assert fgd.fragment_milli(NODE, mix) == pytest.approx((2 * 200 + 2 * 1700) / 4)


def test_no_request_fails_for_a_cpu_that_is_not_known():
    node = FreeNode((1000, 300))
    assert fgd.fragment_milli(node, Mix.of([Request(1, 1000, 10**9)])) == 300


def test_no_request_fails_for_a_model_that_is_not_known():
    node = FreeNode((1000, 300), 8000)
    assert fgd.fragment_milli(node, Mix.of([Request(1, models=frozenset({"A100"}))])) == 300
    assert fgd.stranded_rate([node], Mix.of([Request(2, models=frozenset({"A100"}))])) == 1


def test_a_full_node_has_no_fragment_and_a_full_fleet_no_rate():
    full, mix = FreeNode((0, 0), 8000), Mix.of([Request(0, 0), Request(1)])
    assert fgd.fragment_milli(full, mix) == 0
    assert fgd.rate([full], mix) is None
    assert fgd.stranded_rate([full], mix) is None


def test_of_an_empty_mix_nothing_can_be_said():
    for measure in (fgd.rate, fgd.stranded_rate):
        with pytest.raises(ValueError, match="nothing is asked for"):
            measure([NODE], Mix())


def test_stranded_leaves_out_cpu_left_overs_and_requests_for_no_gpu():
    asked = [Request(0, 0, 10**6), Request(2, 600, 10**6), Request(2, 600), Request(1, 600)]
    mix = Mix.of([*asked, Request(1, 100, 10**6)], percent_kept=100)
    assert fgd.stranded_rate([NODE], mix) == pytest.approx(2 / 4)
    assert fgd.rate([NODE], mix) == pytest.approx((4 + 700 / 1700) / 5)


def test_nothing_is_stranded_for_requests_that_want_no_gpu():
    assert fgd.stranded_rate([NODE], Mix.of([Request(0, 0)])) is None
