import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.products import _TABLE, product
from tests.topology.made_up import ALPHABET


@pytest.mark.parametrize(
    ("model", "memory", "memory_gbps", "nvlinks", "nvlink_gbps"),
    [
        ("NVIDIA H100 80GB HBM3", "HBM3", 3350, 18, 25),
        ("NVIDIA H100 PCIe", "HBM2e", 2039, None, 25),
        ("NVIDIA H100 NVL", "HBM3", 3938, None, 25),
        ("NVIDIA H200", "HBM3e", 4800, 18, 25),
        ("NVIDIA H200 NVL", "HBM3e", 4800, None, 25),
        ("NVIDIA H20", "HBM3", 4000, 18, 25),
        ("NVIDIA H20-3e", "HBM3e", 4800, 18, 25),
        ("NVIDIA H800", "HBM3", 3350, 8, 25),
        ("NVIDIA GH200 480GB", "HBM3", 4000, 18, 25),
        ("NVIDIA GH200 144G HBM3e", "HBM3e", 4900, 18, 25),
        ("NVIDIA GB200", "HBM3e", 8000, 18, 50),
        ("NVIDIA B300 SXM6 AC", "HBM3e", 8000, 18, 50),
        ("NVIDIA A100-SXM4-40GB", "HBM2", 1555, 12, 25),
        ("NVIDIA A100-SXM4-80GB", "HBM2e", 2039, 12, 25),
        ("NVIDIA A100-PCIE-40GB", "HBM2", 1555, None, 25),
        ("NVIDIA A100 80GB PCIe", "HBM2e", 1935, None, 25),
        ("NVIDIA A800-SXM4-80GB", "HBM2e", 2039, 8, 25),
        ("NVIDIA A10", "GDDR6", 600, 0, None),
        ("NVIDIA A2", "GDDR6", 200, 0, None),
        ("NVIDIA L4", "GDDR6", 300, 0, None),
        ("NVIDIA L40", "GDDR6", 864, 0, None),
        ("NVIDIA L40S", "GDDR6", 864, 0, None),
        ("Tesla T4", "GDDR6", 320, 0, None),
        ("Tesla V100-SXM2-32GB", "HBM2", 900, 6, 25),
        ("Tesla V100-SXM3-32GB-H", "HBM2", None, 6, 25),
        ("Tesla V100-PCIE-16GB", "HBM2", 900, 0, None),
        ("Tesla P100-SXM2-16GB", "HBM2", 732, 4, 20),
        ("NVIDIA GeForce RTX 3090", "GDDR6X", 936, None, 14.0625),
        ("NVIDIA GeForce RTX 4090", "GDDR6X", 1008, 0, None),
        ("NVIDIA GeForce RTX 3060 Ti", None, None, 0, None),
        ("NVIDIA RTX 6000 Ada Generation", "GDDR6", 960, 0, None),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "GDDR7", 1792, 0, None),
        ("NVIDIA TITAN V", "HBM2", 653, 0, None),
    ],
)
def test_a_board_is_found_by_the_name_the_driver_prints(
    model, memory, memory_gbps, nvlinks, nvlink_gbps
):
    board = product(model)
    assert board is not None
    assert (board.memory, board.memory_gbps) == (memory, memory_gbps)
    assert (board.nvlinks, board.nvlink_gbps) == (nvlinks, nvlink_gbps)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("GeForce RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti"),
        ("RTX A6000", "NVIDIA RTX A6000"),
        ("TITAN RTX", "NVIDIA TITAN RTX"),
    ],
)
def test_drivers_that_leave_out_the_maker_name_the_same_board(older, newer):
    assert product(older) == product(newer) is not None


@pytest.mark.parametrize("profile", ["1g.5gb", "3g.20gb", "1g.5gb+me", "1c.2g.10gb", "1g.5gb-me"])
def test_a_mig_instance_is_on_its_board(profile):
    board = product("NVIDIA A100-SXM4-40GB")
    assert product(f"NVIDIA A100-SXM4-40GB MIG {profile}") == board is not None


@pytest.mark.parametrize(
    "model",
    [
        "GRID A100-4C",
        "GRID A100D-80C",
        "NVIDIA A100-1-5CME",
        "NVIDIA A40-8Q",
        "NVIDIA L40S-48Q",
        "NVIDIA H100XM-80C",
        "GRID T4-16Q",
        "GRID V100-8Q",
    ],
)
def test_a_virtual_gpu_is_not_the_board_it_is_cut_from(model):
    assert product(model) is None


@pytest.mark.parametrize(
    "model",
    [
        "",
        "NVIDIA",
        "NVIDIA A1000",
        "NVIDIA RTX A1000",
        "NVIDIA A100",
        "NVIDIA H100",
        "NVIDIA L400",
        "NVIDIA T400 4GB",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 5090 D v2",
        "NVIDIA GeForce RTX 2070 Super",
        "NVIDIA RTX 5000 Ada Generation Laptop GPU",
        "NVIDIA RTX A5000 Laptop GPU",
        "NVIDIA H100 80GB HBM3 MIG",
        "NVIDIA R200",
        "AMD Instinct MI300X",
    ],
)
def test_a_name_that_only_resembles_one_gives_nothing(model):
    assert product(model) is None


def sample_name(pattern: str) -> str:
    """The shortest name that a row's pattern takes."""
    bare = re.sub(r"\(\?:[^()]*(?:\(\?:[^()]*\)\?)?[^()]*\)\?|(?<=[GS])\?", "", pattern)
    bare = re.sub(r"\(\?:([^|()]*)\|[^()]*\)", r"\1", bare)
    return re.sub(r"\[(.)[^]]*\]", r"\1", bare).replace("\\", "")


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in _TABLE])
def test_rows_do_not_overlap_so_their_order_means_nothing(pattern):
    name = sample_name(pattern)
    assert [row for row, _ in _TABLE if re.fullmatch(row, name)] == [pattern]


@pytest.mark.parametrize("board", [board for _, board in _TABLE])
def test_a_board_without_nvlinks_has_no_link_speed(board):
    assert (board.nvlink_gbps is None) == (board.nvlinks == 0)


@given(st.text(ALPHABET), st.sampled_from([sample_name(pattern) for pattern, _ in _TABLE]))
def test_what_stands_before_a_name_makes_it_another(extra, name):
    assert product(f"{extra}x{name}") is None
    assert product(f"{name}x{extra}") is None
