import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from seedance_obs.errors import UsageError
from seedance_obs.topology.model import UNKNOWN, PcieLevel, PcieLink
from seedance_obs.topology.placement.gpu_lists import named_gpus, shown_gpus
from seedance_obs.topology.placement.policy_file import read_policy
from seedance_obs.topology.placement.report import report
from seedance_obs.topology.placement.report_table import print_report
from tests.topology.hosts_by_hand import dgx1, gpu, host, nvswitch, pcie_box

POLICY = read_policy(
    """\
apiVersion: topology.seedance.io/v1
kind: TopologyPolicy
metadata: {name: training}
spec:
  affinityRules:
    - {type: nvlink-proximity, weight: 120}
    - {type: nic-locality, weight: 40}
  constraints:
    - {key: worst-link-class, operator: NotIn, values: [SYS]}
"""
)


def names(*indexes):
    return tuple(f"GPU{index}" for index in indexes)


def printed(found, width=80):
    stream = io.StringIO()
    print_report(found, Console(file=stream, width=width, force_terminal=False))
    return stream.getvalue()


def row(text, word):
    return next(line.split() for line in text.splitlines() if word in line)


def test_json_tells_every_number_in_base_units():
    found = report(
        dgx1(), size=4, free=names(1, 2, 5, 6, 7), policy=POLICY, actual=names(1, 2, 6, 7)
    )
    data = json.loads(json.dumps(found.as_json()))
    assert data["size"] == 4
    assert data["free"] == list(names(1, 2, 5, 6, 7))
    by_role = {role: entry for entry in data["sets"] for role in entry["roles"]}
    assert set(by_role) == {
        "best of all",
        "worst of all",
        "best of free",
        "worst of free",
        "actual",
    }
    best = by_role["best of all"]
    assert best["gpus"] == list(names(0, 1, 2, 3))
    assert best["bottleneck_bytes_per_second"] == 25e9
    assert best["mean_bytes_per_second"] == pytest.approx(37.5e9)
    assert best["worst_link_class"] == "NV1"
    assert best["numa_nodes"] == 1
    assert best["exact"] is True
    assert best["allocator_scores"] == {"go-gpuallocator": 1120, "hami": 1120}
    assert len(best["pairs"]) == 6
    assert best["pairs"][0] == {
        "gpus": ["GPU0", "GPU1"],
        "bytes_per_second": 25e9,
        "basis": "nvlink",
        "link_class": "NV1",
    }
    policy = best["policy"]
    assert (policy["name"], policy["most"], policy["eligible"]) == ("training", 160, True)
    assert policy["total"] == sum(part["points"] for part in policy["contributions"])
    assert policy["contributions"][1]["value"] == "unsupported"  # no NICs
    assert by_role["worst of free"]["policy"]["eligible"] is False
    assert data["standings"]["all"]["regret_ratio"] == pytest.approx(1 - 6 / 25)
    assert data["standings"]["free"]["regret_ratio"] == 0


def test_a_set_with_several_roles_is_told_once():
    found = report(nvswitch(), size=4, policy=POLICY, actual=names(0, 1, 2, 3))
    assert [entry.roles for entry in found.sets] == [
        ("best of all", "policy's choice", "actual"),
        ("worst of all",),
    ]


def test_the_size_is_that_of_the_actual_set():
    assert report(dgx1(), actual=names(0, 1, 2)).size == 3
    with pytest.raises(UsageError, match="the actual set has 2 GPUs, and sets of 4"):
        report(dgx1(), size=4, actual=names(0, 1))
    with pytest.raises(UsageError, match="a size, or a set"):
        report(dgx1())


def test_the_table_tells_what_the_json_tells():
    text = printed(report(dgx1(), size=4, actual=names(0, 1, 2, 4)))
    assert " ".join(row(text, "best of all")) == "A best of all 0-3 25.0 37.5 NV1 1 1120 1120"
    assert row(text, "actual")[2:4] == ["0-2,4", "6.0"]
    assert "76% below the best (25.0; worst 6.0)" in text


def test_points_and_values_stand_below_each_set():
    text = printed(report(dgx1(), size=4, policy=POLICY))
    assert row(text, "nvlink-proximity") == ["nvlink-proximity", "120", "90.0", "20.0"]
    assert row(text, "x 0.75") == ["x", "0.75", "x", "0.17"]
    assert row(text, "nic-locality") == ["nic-locality", "40", "0.0", "0.0"]
    assert row(text, "total") == ["total", "160", "90.0", "20.0"]
    assert row(text, "worst-link-class NotIn")[-2:] == ["met", "broken"]


def test_what_is_not_known_is_a_question_mark_and_explained():
    dark = host([gpu(i, pcie=PcieLink()) for i in range(3)], lambda _i, _j: UNKNOWN)
    text = printed(report(dark, size=2, actual=names(0, 1)))
    assert row(text, "best of all")[-6:] == ["?"] * 6
    assert "?: not known" in text
    assert "a bandwidth is unknown" in text
    assert "one GPU has no pairs" in printed(report(dgx1(), actual=names(3)))


def test_a_search_that_was_not_exhaustive_says_so():
    assert "greedy search" in printed(report(pcie_box(20), size=10))
    assert "greedy search" not in printed(report(pcie_box(16), size=8))


def test_the_basis_of_the_numbers_is_named():
    assumed = host([gpu(i, pcie=PcieLink()) for i in range(2)], lambda _i, _j: PcieLevel.PIX)
    assert "NCCL's constants" in printed(report(assumed, size=2))
    assert "NVLinks times the rate" in printed(report(nvswitch(), size=2))


def test_a_policy_without_a_choice_says_why():
    split = {"size": 2, "policy": POLICY}
    text = printed(report(dgx1(), free=names(0, 5), **split))
    assert "every set of free GPUs breaks a constraint" in text
    few = printed(report(dgx1(), free=names(0), **split))
    assert "free: 0 (too few for a set)" in few
    assert "there are too few free GPUs" in few


@pytest.mark.parametrize("size", [1, 2, 4, 8, 15])
def test_eighty_columns_are_enough(size):
    actual = names(*range(1, size + 1))
    found = report(nvswitch(16), free=names(*range(0, 16)), policy=POLICY, actual=actual)
    lines = printed(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("worst of all" in line for line in lines)


def test_gpus_are_named_by_index_range_name_uuid_and_address():
    gpus = [gpu(i, uuid=f"GPU-{i}{i}", bus_id=f"0000:0{i}:00.0") for i in range(6)]
    topology = host(gpus, lambda _i, _j: PcieLevel.PIX)
    assert named_gpus(topology, "0-2, 5,0", option="--free") == names(0, 1, 2, 5)
    assert named_gpus(topology, "gpu-33,00000000:04:00.0,GPU1", option="--free") == names(3, 4, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,9", "--gpus: '9' is no GPU here; the GPUs are 0-7"),
        ("3-1", "--gpus: '3-1': a range goes upwards, such as 1-3"),
        ("GPU9", "'GPU9' is no GPU here"),
        ("0-999999999999", "'0-999999999999' is no GPU"),
        (" , ", "--gpus: a list of GPUs .* found nothing"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused_with_those_that_are(text, message):
    with pytest.raises(UsageError, match=message):
        named_gpus(dgx1(), text, option="--gpus")


def test_a_gpu_is_called_as_tables_call_it_unless_another_has_that_very_name():
    plain = host(
        [replace(gpu(i), name=f"0000:0{i}:00.0") for i in range(3)], lambda _i, _j: PcieLevel.PIX
    )
    assert named_gpus(plain, "GPU2,gpu0", option="--free") == ("0000:02:00.0", "0000:00:00.0")
    crossed = host(
        [replace(gpu(i), name=f"GPU{1 - i}") for i in range(2)], lambda _i, _j: PcieLevel.PIX
    )
    assert named_gpus(crossed, "GPU1", option="--free") == ("GPU1",)
    assert named_gpus(crossed, "1", option="--free") == ("GPU0",)


def test_gpus_without_an_index_are_listed_by_name_in_the_same_style():
    dark = host([replace(gpu(i), index=None) for i in range(2)], lambda _i, _j: PcieLevel.PIX)
    assert shown_gpus(dark, names(0, 1)) == "GPU0,GPU1"


def test_gpus_are_shown_by_ranges_of_indexes():
    assert shown_gpus(nvswitch(16), names(0, 1, 2, 3, 5, 7, 8)) == "0-3,5,7-8"
