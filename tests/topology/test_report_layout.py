"""A placement report in terminals of any width: nothing is cut, torn or taken for markup."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from seedance_obs.topology.model import PcieLevel
from seedance_obs.topology.placement.gpu_lists import shown_gpus
from seedance_obs.topology.placement.policy_file import read_policy
from seedance_obs.topology.placement.report import report
from seedance_obs.topology.placement.report_table import print_report
from tests.topology.hosts_by_hand import dgx1, gpu, host, nvswitch, pcie_box

WIDTHS = (24, 40, 50, 60, 80, 120)
POLICY = """\
apiVersion: topology.seedance.io/v1
kind: TopologyPolicy
metadata: {name: training}
spec:
  affinityRules:
    - {type: nvlink-proximity, weight: 120}
    - {type: numa-locality, weight: 75.5}
  constraints:
    - {key: worst-link-class, operator: NotIn, values: [SYS]}
"""


def names(*indexes):
    return tuple(f"GPU{index}" for index in indexes)


def printed(found, width=80, *, colour=False):
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    print_report(found, console)
    return stream.getvalue()


def tokens(text):
    """Words and numbers, without the punctuation around them."""
    return {word.strip("(),;:") for word in text.split()}


def told(found):
    """Every number of a report, as it is shown."""
    for entry in found.sets:
        placement = entry.placement
        yield from (f"{rate / 1e9:.1f}" for rate in (placement.bottleneck, placement.mean))
        yield from (str(value) for _, value in entry.scores)
        yield f"{entry.policy.total:.1f}"
        yield from (f"{part.points:.1f}" for part in entry.policy.contributions)
        yield from (f"{part.value:.2f}" for part in entry.policy.contributions)


def full_report():
    free, policy = names(0, 1, 2, 3, 5), read_policy(POLICY)
    return report(dgx1(), size=4, free=free, policy=policy, actual=names(0, 1, 4, 7))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_is_whole_at_every_width(width):
    found = full_report()
    text = printed(found, width)
    assert set(told(found)) - tokens(text) == set()
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [2, 7, 9])
def test_gpu_lists_break_after_a_comma_only(width, size):
    members = (2, 3, 5, 8, 9, 13, 14, 15, 0)[:size]
    found = report(nvswitch(16), free=names(*members), actual=names(*members))
    text = printed(found, width)
    assert max(map(len, text.splitlines())) <= width
    for entry in found.sets:
        runs = shown_gpus(found.topology, entry.placement.gpus).split(",")
        assert set(runs) <= {run for word in tokens(text) for run in word.split(",")}
    assert not [line for line in text.splitlines() if line.rstrip().endswith("-")]


def test_what_does_not_fit_beside_each_other_is_stacked():
    assert printed(full_report(), 60).splitlines()[2:5] == [
        "A  best of all+free, policy's choice: 0-3",
        "   slowest 25.0 GB/s  mean 37.5 GB/s  worst link NV1",
        "   NUMA nodes 1  plugin score 1120  HAMi score 1120",
    ]
    narrow = printed(full_report(), 40)
    assert "nvlink-proximity, weight 120:\n   A 90.0 (x 0.75); B 20.0 (x 0.17);\n   C " in narrow
    assert "\ntotal of 195.5: A 165.5; B " in narrow
    wide = printed(full_report(), 60)
    assert "\nworst-link-class NotIn SYS: A met (NV1); B broken (SYS);\n" in wide


def test_a_table_is_drawn_where_it_fits_be_it_with_less_room_between_columns():
    found = report(dgx1(), size=4, free=names(0, 1, 2, 3, 5))
    for width, row in (
        (80, "A  best of all+free  0-3 25.0 37.5 NV1 1 1120 1120"),
        (65, "A best of all+free 0-3 25.0 37.5 NV1 1 1120 1120"),
        (58, "A  best of all+free: 0-3"),
    ):
        line = next(line for line in printed(found, width).splitlines() if "best of all" in line)
        assert line.split() == row.split()
        assert line.startswith(row[: len("A  best of all+free")].rstrip())


def test_sets_that_tie_are_one_row_with_every_role():
    found = report(dgx1(), size=8, free=names(*range(8)), actual=names(*range(8)))
    for width in (50, 80):
        lines = [line for line in printed(found, width).splitlines() if "best of" in line]
        assert ["best of all+free, worst of all+free, actual" in line for line in lines] == [True]


@pytest.mark.parametrize("text", ["[/q]", "a[red]y", ":smile:", "[bold]", "a\\[b"])
@pytest.mark.parametrize("width", [40, 80])
def test_what_users_wrote_is_no_markup(text, width):
    written = POLICY.replace("name: training", f"name: '{text}'").replace("[SYS]", f"['{text}']")
    topology = replace(dgx1(), host=text)
    out = printed(report(topology, size=3, policy=read_policy(written)), width)
    assert f"GPUs on {text}\n" in out
    assert f"policy {text}" in out
    assert f"worst-link-class NotIn {text}" in out


def test_control_characters_of_users_reach_no_terminal():
    written = POLICY.replace("name: training", 'name: "\\e[31mp"').replace("[SYS]", '["\\e[2J"]')
    topology = replace(dgx1(), host="n\x1b[31m\u202e\udcff\n1")
    out = printed(report(topology, size=3, policy=read_policy(written)))
    assert "\x1b" not in out
    assert "on n\ufffd[31m\ufffd\ufffd 1\n" in out
    assert "policy \ufffd[31mp" in out
    assert "NotIn \ufffd[2J" in out


def test_colour_adds_nothing_but_colour():
    for width in (40, 80):
        coloured = printed(full_report(), width, colour=True)
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == printed(full_report(), width)


def test_a_name_longer_than_the_terminal_is_whole():
    topology = replace(dgx1(), host="h" * 70)
    assert "h" * 70 in printed(report(topology, size=2), 40)


def test_little_is_not_none():
    """One pair of 276 is better, so that the share of better sets rounds to 0%."""
    two = [gpu(place) for place in range(24)]
    one_better = host(
        two, lambda _one, _other: PcieLevel.SYS, lambda *pair: 2 if pair == (0, 1) else 1
    )
    text = printed(report(one_better, actual=names(4, 5)), 120)
    assert "50% below the best" in text
    assert "; under 1% of the sets are better." in text


@pytest.mark.parametrize(
    ("asked", "feasible"),
    [
        ({"size": 3}, True),
        ({"size": 3, "free": names(0, 1, 2)}, True),
        ({"size": 3, "free": names(0, 1)}, False),
        ({"size": 2, "free": names(0, 5), "policy": read_policy(POLICY)}, False),
        ({"size": 2, "free": names(0, 1), "policy": read_policy(POLICY)}, True),
        ({"actual": names(0, 1, 2), "free": names(4)}, True),
        ({"actual": names(0, 1), "free": names(4), "policy": read_policy(POLICY)}, False),
    ],
)
def test_a_report_says_whether_there_is_a_set_to_choose(asked, feasible):
    found = report(dgx1(), **asked)
    assert (found.feasible, found.as_json()["feasible"]) == (feasible, feasible)


def test_a_search_that_met_no_eligible_set_does_not_speak_for_all():
    text = POLICY.replace("[SYS]", "[SYS, NODE, PHB, PXB, PIX]")
    found = report(pcie_box(20), size=10, policy=read_policy(text))
    assert "every set of free GPUs that was looked at breaks a" in printed(found).replace("\n", " ")


@given(st.integers(20, 130), st.sets(st.integers(0, 15), min_size=1))
def test_no_width_tears_a_range(width, members):
    found = report(nvswitch(16), actual=names(*members))
    runs = set(shown_gpus(found.topology, found.sets[-1].placement.gpus).split(","))
    assert runs <= {run for word in tokens(printed(found, width)) for run in word.split(",")}
