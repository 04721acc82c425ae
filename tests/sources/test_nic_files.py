"""Which files hold an adapter's bytes, each byte once, and how fast its ports are."""

from pathlib import Path

import pytest

from seedance_obs.sources.nic_files import find_nic
from tests.sources.nic_tree import NIC, NicTree


@pytest.fixture
def nic(tmp_path: Path) -> NicTree:
    return NicTree(tmp_path)


def counted(nic: NicTree) -> dict[tuple[str, str], list[str]]:
    """The files of each source and direction, below the device."""
    root = nic.device.parents[4]
    return {
        (counter.source, counter.direction): [
            str(Path(file.path).relative_to(nic.device)) for file in counter.files
        ]
        for counter in find_nic(str(root), NIC).counters
    }


def capacity(nic: NicTree) -> float | None:
    return find_nic(str(nic.device.parents[4]), NIC).capacity


def test_a_roce_adapter_has_both_apart(nic: NicTree) -> None:
    nic.rdma(0, 0, layer="Ethernet")
    nic.ethernet(0, 0)
    assert counted(nic) == {
        ("rdma", "transmit"): ["infiniband/mlx5_0/ports/1/counters/port_xmit_data"],
        ("rdma", "receive"): ["infiniband/mlx5_0/ports/1/counters/port_rcv_data"],
        ("ethernet", "transmit"): ["net/ens1np0/statistics/tx_bytes"],
        ("ethernet", "receive"): ["net/ens1np0/statistics/rx_bytes"],
    }


def test_ip_over_infiniband_is_in_the_counters_of_the_port(nic: NicTree) -> None:
    nic.rdma(0, 0)
    nic.ethernet(0, 0, name="ib0", kind=32)
    assert {source for source, _ in counted(nic)} == {"rdma"}


def test_in_switchdev_mode_the_physical_port_counts_once_and_representors_never(
    nic: NicTree,
) -> None:
    nic.ethernet(0, 0, name="ens1np0", switch="e8ebd3", port="p0")
    nic.ethernet(0, 0, name="ens1npf0vf0", switch="e8ebd3", port="pf0vf0")
    assert counted(nic)["ethernet", "transmit"] == ["net/ens1np0/statistics/tx_bytes"]
    nic.rdma(0, 0, layer="Ethernet")
    assert {source for source, _ in counted(nic)} == {"rdma"}


def test_a_virtual_function_is_not_counted(nic: NicTree) -> None:
    nic.rdma(0, 0)
    (nic.device / "physfn").symlink_to("../0000:1a:00.1")
    assert counted(nic) == {}
    assert capacity(nic) is None


def test_old_kernels_have_the_wide_counters_elsewhere(nic: NicTree) -> None:
    nic.rdma(0, 0)
    for name in ("xmit", "rcv"):
        nic.write(f"infiniband/mlx5_0/ports/1/counters_ext/port_{name}_data_64", 0)
    wide = "infiniband/mlx5_0/ports/1/counters_ext/port_xmit_data_64"
    assert counted(nic)["rdma", "transmit"] == [wide]


def test_an_rdma_port_without_counters_leaves_the_others(nic: NicTree) -> None:
    nic.rdma(0, 0, port=2)
    nic.write("infiniband/rdmap0s31/ports/1/hw_counters/tx_bytes", 5)
    assert counted(nic)["rdma", "receive"] == ["infiniband/mlx5_0/ports/2/counters/port_rcv_data"]


@pytest.mark.parametrize(
    ("rate", "layer", "bytes_per_second"),
    [
        ("800 Gb/sec (4X XDR)", "InfiniBand", 100e9),
        ("400 Gb/sec (4X NDR)", "InfiniBand", 50e9),
        ("56 Gb/sec (4X FDR)", "InfiniBand", 7e9 * 64 / 66),
        ("40 Gb/sec (4X QDR)", "InfiniBand", 4e9),
        ("40 Gb/sec (4X QDR)", "Ethernet", 5e9),
        ("2.5 Gb/sec (1X SDR)", "InfiniBand", 0.25e9),
        ("Unknown", "InfiniBand", None),
    ],
)
def test_the_rate_of_a_port_is_what_it_leaves_for_data(
    rate: str, layer: str, bytes_per_second: float | None, nic: NicTree
) -> None:
    nic.rdma(0, 0, rate=rate, layer=layer)
    nic.ethernet(0, 0, mbits=1)
    assert capacity(nic) == (pytest.approx(bytes_per_second) if bytes_per_second else None)


def test_ports_that_are_up_add_up_to_the_capacity(nic: NicTree) -> None:
    nic.rdma(0, 0, rate="100 Gb/sec (4X EDR)")
    nic.rdma(0, 0, port=2, rate="100 Gb/sec (4X EDR)")
    assert capacity(nic) == 25e9
    nic.rdma(0, 0, port=2, rate="10 Gb/sec (4X SDR)", state="1: DOWN")
    assert capacity(nic) == 12.5e9
    nic.rdma(0, 0, state="1: DOWN")
    assert capacity(nic) is None


@pytest.mark.parametrize(
    ("mbits", "bytes_per_second"), [(100_000, 12.5e9), (-1, None), (0, None), (4294967295, None)]
)
def test_the_speed_of_an_interface_that_is_down_is_not_known(
    mbits: int, bytes_per_second: float | None, nic: NicTree
) -> None:
    nic.ethernet(0, 0, mbits=mbits)
    assert capacity(nic) == bytes_per_second


def test_the_one_rdma_device_of_a_bond_can_carry_what_its_members_can(nic: NicTree) -> None:
    nic.rdma(0, 0, name="mlx5_bond_0", rate="200 Gb/sec (4X HDR)", layer="Ethernet")
    nic.ethernet(0, 0, mbits=200_000)
    nic.write("bond0/speed", 400_000)
    (nic.device / "net/ens1np0/master").symlink_to(nic.device / "bond0")
    assert capacity(nic) == 50e9
