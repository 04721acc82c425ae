"""FGD is as its authors computed it: on their cluster, on a state of it, and along their runs."""

import random
from statistics import mean

import pytest

from seedance_obs.fragmentation import fgd, measures
from seedance_obs.fragmentation.mix import Mix
from tests.fragmentation.placing import AtRandom, BestFit, states
from tests.fragmentation.traces import (
    authors_mean,
    empty_nodes,
    needs_openb,
    pods,
    requests,
    snapshot,
)

pytestmark = needs_openb
GPUS = 6212
LOADS = (50, 80, 90)


@pytest.mark.parametrize(
    ("workload", "classes", "percent"),
    [("default", 35, 13.945), ("multigpu20", 38, 14.021), ("gpushare40", 36, 13.880)],
)
def test_an_empty_cluster_has_the_published_rate(workload, classes, percent):
    mix = Mix.of(requests(workload))
    assert len(mix) == classes
    rate = fgd.rate([node.free() for node in empty_nodes()], mix)
    assert 100 * rate == pytest.approx(percent, abs=0.005)


def test_every_node_of_the_snapshot_has_its_fragment():
    mix = Mix.of(requests("default"))
    nodes, fragments = zip(*snapshot(), strict=True)
    found = [sum(causes) for causes in fgd.fragments_by_cause(nodes, mix)]
    assert max(map(abs, map(float.__sub__, found, fragments))) < 0.01


def test_one_state_reads_75_8_as_fragments_and_29_0_as_stranded():
    """75.8 counts requests for no GPU, the want of CPU and left-overs too; 29.0 does not."""
    asked = requests("default")
    nodes = [node for node, _ in snapshot()]
    rate = fgd.rate(nodes, Mix.of(asked))
    assert 100 * rate == pytest.approx(75.80, abs=0.005)
    every = Mix.of(asked, percent_kept=100)
    assert 100 * fgd.stranded_rate(nodes, every) == pytest.approx(29.00, abs=0.005)
    for_gpus = Mix.of([one for one in asked if one.gpus], percent_kept=100)
    assert fgd.stranded_rate(nodes, for_gpus) == pytest.approx(fgd.stranded_rate(nodes, every))


def test_what_the_snapshot_is_a_fragment_for():
    nodes = [node for node, _ in snapshot()]
    free = sum(sum(node.gpu_milli) for node in nodes)
    causes = fgd.fragments_by_cause(nodes, Mix.of(requests("default")))
    shares = {
        cause.value: round(100 * sum(milli) / free, 2)
        for cause, milli in zip(fgd.Cause, zip(*causes, strict=True), strict=True)
    }
    assert shares == {
        "no_gpu_wanted": 13.60,
        "other_model": 0.0,
        "gpu_and_cpu": 7.69,
        "gpu": 17.23,
        "cpu": 29.85,
        "remainder": 7.43,
    }


def test_the_simple_measures_of_the_snapshot():
    nodes = [node.gpu_milli for node, _ in snapshot()]
    whole = [sum(gpu == 1000 for gpu in node) for node in nodes]
    each = [gpu for node in nodes for gpu in node]
    demands = Mix.of(requests("default"), percent_kept=100).demands_milli()
    assert demands == [650, 1000, 1000]
    assert measures.unusable(each, demands) == pytest.approx(0.5007, abs=5e-5)
    assert measures.of_several(nodes) == pytest.approx(0.5510, abs=5e-5)
    assert [round(measures.gang(whole, gpus), 4) for gpus in (2, 4, 8)] == [0.3607, 0.777, 1.0]


def fragmented_percent(policy, mix):
    """Fragmented GPUs in per cent of all, at each load."""
    return [
        100 * sum(map(sum, fgd.fragments_by_cause(free, mix))) / (1000 * GPUS)
        for free in states(policy, pods("default"), LOADS)
    ]


@pytest.mark.parametrize(
    ("policy", "name", "seeds"), [(AtRandom, "01-Random", (1, 2, 3)), (BestFit, "05-BestFit", (1,))]
)
def test_placing_leaves_the_fragments_that_the_authors_report(policy, name, seeds):
    mix = Mix.of(requests("default"))
    runs = [fragmented_percent(policy(empty_nodes(), random.Random(seed)), mix) for seed in seeds]
    for load, *found in zip(LOADS, *runs, strict=True):
        assert mean(found) == pytest.approx(authors_mean(name, load), abs=0.7)
