"""RAPL zones from trees laid out as powercap lays them out."""

import os
import tempfile
from pathlib import Path

import pytest

from seedance_obs.sources.rapl import Rapl, RaplReading, RaplZone
from tests.privileges import as_nobody

RANGE = 262_143_328_850


def zone(root: Path, folder: str, name: str, energy: object, wraps_at: object = RANGE) -> Path:
    """A zone in `/sys/devices/virtual/powercap` and the link to it in the class's folder."""
    control, _, numbers = folder.partition(":")
    parent = root / "sys/devices/virtual/powercap" / control
    if ":" in numbers:
        parent = parent / folder.rpartition(":")[0]
    (parent / folder).mkdir(parents=True, exist_ok=True)
    files = {"name": name, "energy_uj": energy, "max_energy_range_uj": wraps_at}
    for file, content in files.items():
        if content is not None:
            (parent / folder / file).write_text(f"{content}\n")
    bus = root / "sys/class/powercap"
    bus.mkdir(parents=True, exist_ok=True)
    if not (bus / folder).is_symlink():
        (bus / folder).symlink_to(os.path.relpath(parent / folder, bus))
    return parent / folder


def names(reading: RaplReading) -> list[tuple[str, str]]:
    return [(found.kind, found.name) for found in reading.zones]


def two_sockets(root: Path) -> None:
    for socket in (0, 1):
        zone(root, f"intel-rapl:{socket}", f"package-{socket}", 7_000_000_000 * (socket + 1))
        zone(root, f"intel-rapl:{socket}:0", "core", 1)
        zone(root, f"intel-rapl:{socket}:1", "uncore", 2)
        zone(root, f"intel-rapl:{socket}:2", "dram", 300 + socket, 65_712_999_613)


def test_two_sockets_have_their_packages_and_memory_and_no_part_of_a_package(tmp_path):
    two_sockets(tmp_path)
    assert Rapl(tmp_path).read() == RaplReading(
        (
            RaplZone("package", "package-0", 7_000_000_000, RANGE),
            RaplZone("dram", "package-0/dram", 300, 65_712_999_613),
            RaplZone("package", "package-1", 14_000_000_000, RANGE),
            RaplZone("dram", "package-1/dram", 301, 65_712_999_613),
        )
    )


def test_a_twelfth_zone_belongs_to_its_own_package(tmp_path):
    for socket in (1, 12):
        zone(tmp_path, f"intel-rapl:{socket}", f"package-{socket}", 10_000_000_000 * socket)
        zone(tmp_path, f"intel-rapl:{socket}:0", "dram", socket)
    assert [name for _, name in names(Rapl(tmp_path).read())] == [
        "package-1",
        "package-1/dram",
        "package-12",
        "package-12/dram",
    ]


def test_the_platform_is_a_kind_of_its_own(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    zone(tmp_path, "intel-rapl:1", "psys", 60_293_987_000_000, 4_294_967_295_000_000)
    assert names(Rapl(tmp_path).read()) == [("package", "package-0"), ("psys", "psys")]


def test_the_same_package_by_another_register_is_not_counted_twice(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    zone(tmp_path, "intel-rapl:1", "package-0", 6)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 7)
    (tmp_path / "sys/class/powercap/intel-rapl").mkdir()
    assert Rapl(tmp_path).read().zones == (RaplZone("package", "package-0", 5, RANGE),)


def test_dies_that_count_for_themselves_are_both_there(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0-die-0", 9_000_000_000)
    zone(tmp_path, "intel-rapl:1", "package-0-die-1", 8_000_000_000)
    assert names(Rapl(tmp_path).read()) == [
        ("package", "package-0-die-0"),
        ("package", "package-0-die-1"),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [(10_360_237_493, 10_359_908_363), (65_532_000_000, 400_000)],
    ids=["read-a-moment-apart", "wrapped-between"],
)
def test_dies_that_show_one_counter_of_their_package_are_counted_once(tmp_path, first, second):
    zone(tmp_path, "intel-rapl:0", "package-0-die-0", first, 65_532_610_987)
    zone(tmp_path, "intel-rapl:1", "package-0-die-1", second, 65_532_610_987)
    zone(tmp_path, "intel-rapl:2", "package-1-die-0", first, 65_532_610_987)
    rapl = Rapl(tmp_path)
    seen = [("package", "package-0-die-0"), ("package", "package-1-die-0")]
    assert names(rapl.read()) == seen, "another package may stand at the same count"
    zone(tmp_path, "intel-rapl:0", "package-0-die-0", 30_000_000_000, 65_532_610_987)
    assert names(rapl.read()) == seen, "and it stays so"


@pytest.mark.parametrize("energy", [RANGE + 1, 1 << 64, -5, "", "garbage", None])
def test_a_counter_that_shows_what_it_cannot_hold_costs_itself(tmp_path, energy):
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    folder = zone(tmp_path, "intel-rapl:0:0", "dram", 6)
    (folder / "energy_uj").unlink()
    zone(tmp_path, "intel-rapl:0:0", "dram", energy)
    reading = Rapl(tmp_path).read()
    assert names(reading) == [("package", "package-0")]
    assert reading.refused == ""


@pytest.mark.parametrize("wraps_at", [0, "", "none", None])
def test_a_zone_whose_range_nobody_knows_is_read_all_the_same(tmp_path, wraps_at):
    zone(tmp_path, "intel-rapl:0", "package-0", 5, wraps_at)
    assert Rapl(tmp_path).read().zones == (RaplZone("package", "package-0", 5, None),)


def test_a_huge_count_without_a_range_is_no_reading(tmp_path):
    zone(tmp_path, "intel-rapl:0", "package-0", 18_446_744_073_709_551_000, None)
    assert Rapl(tmp_path).read().zones == ()


def test_a_host_without_rapl_refuses_nothing(tmp_path):
    assert Rapl(tmp_path).read() == RaplReading()
    (tmp_path / "sys/class/powercap").mkdir(parents=True)
    assert Rapl(tmp_path).read() == RaplReading()


def test_a_file_that_only_root_may_read_says_what_to_do():
    with tempfile.TemporaryDirectory(prefix="rapl-") as root:
        Path(root).chmod(0o755)  # other users may look below it, unlike `tmp_path`
        (zone(Path(root), "intel-rapl:0", "package-0", 5) / "energy_uj").chmod(0)
        with as_nobody():
            reading = Rapl(root).read()
    assert reading.zones == ()
    assert "run as root or with the capability DAC_READ_SEARCH" in reading.refused


def test_a_refused_read_says_what_to_do_and_costs_its_zone_only(tmp_path, monkeypatch):
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    zone(tmp_path, "intel-rapl:1", "package-1", 6_000_000_000)
    read = Path.read_bytes

    def refuse(file: Path) -> bytes:
        if file.parent.name == "intel-rapl:0":
            raise PermissionError(13, "Permission denied", str(file))
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    reading = Rapl(tmp_path).read()
    assert names(reading) == [("package", "package-1")]
    assert "run as root or with the capability DAC_READ_SEARCH" in reading.refused


def test_zones_that_a_container_runtime_hides_say_what_to_do(tmp_path):
    bus = tmp_path / "sys/class/powercap"
    bus.mkdir(parents=True)
    (bus / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    reading = Rapl(tmp_path).read()
    assert reading.zones == ()
    assert "mount the host's /sys" in reading.refused


def test_zones_are_looked_for_again_when_one_has_gone(tmp_path):
    folder = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    rapl = Rapl(tmp_path)
    assert names(rapl.read()) == [("package", "package-0")]
    (folder / "energy_uj").unlink()
    assert rapl.read().zones == ()
    zone(tmp_path, "intel-rapl:0", "package-0", 6)
    zone(tmp_path, "intel-rapl:0:0", "dram", 7)
    assert names(rapl.read()) == [("package", "package-0"), ("dram", "package-0/dram")]
