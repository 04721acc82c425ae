import pytest

from seedance_obs.config import NodeSettings
from seedance_obs.errors import UsageError
from seedance_obs.leaks.growth_rules import GrowthRule, read_growth_rules


def test_descriptors_grow_by_a_rate_over_a_window():
    assert read_growth_rules(["fast=8/s,3m", "slow=0.05/s,2h"], "fds") == (
        GrowthRule("fast", 8.0, 180.0, 1000),
        GrowthRule("slow", 0.05, 7200.0, 1000),
    )


@pytest.mark.parametrize(
    ("rate", "per_second"),
    [
        ("32MiB/h", 32 * 2**20 / 3600),
        ("4KiB/s", 4096.0),
        ("1.5GiB/d", 1.5 * 2**30 / 86400),
        ("6kB/min", 100.0),
        ("36MB/h", 10_000.0),
        ("1 GB / s", 1e9),
    ],
)
def test_memory_grows_in_units_of_bytes(rate, per_second):
    (rule,) = read_growth_rules([f"r={rate},20m"], "bytes")
    assert rule == GrowthRule("r", pytest.approx(per_second), 1200.0, 0)


def test_windows_are_in_seconds_minutes_or_hours():
    rules = read_growth_rules(["a=1/s,90s", "b=1/min,1.5m", " c = 60 / h , 2 h "], "fds")
    assert [(rule.name, rule.window_seconds) for rule in rules] == [
        ("a", 90.0),
        ("b", 90.0),
        ("c", 7200.0),
    ]


def test_no_entry_is_no_rule():
    assert read_growth_rules([], "fds") == ()


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "fast",
        "8/s,3m",
        "=8/s,3m",
        "fast=8/s",
        "fast=8,3m",
        "fast=8/s,3",
        "fast=8/s,",
        "fast=0/s,3m",
        "fast=8/s,0m",
        "fast=-8/s,3m",
        "fast=1e3/s,3m",
        "fast=nan/s,3m",
        "fast=inf/s,3m",
        "fast=8/week,3m",
        "fast=8/s,3w",
        "fast=8KiB/s,3m",
        "fast rule=8/s,3m",
        "fast=8/s,3m,3m",
        "fast=٨/s,3m",
        f"{'x' * 41}=8/s,3m",
        f"fast={'9' * 400}/s,3m",
    ],
)
def test_anything_else_is_refused_with_what_was_wanted(entry):
    with pytest.raises(UsageError) as refusal:
        read_growth_rules([entry], "fds")
    assert repr(entry) in str(refusal.value)
    assert "leaks.fd_growth" in str(refusal.value)
    assert "fast=8/s,3m" in str(refusal.value)


@pytest.mark.parametrize("entry", ["fast=32/h,20m", "fast=32mib/h,20m", "fast=32B/h,20m", "x=1"])
def test_memory_needs_a_unit(entry):
    with pytest.raises(UsageError, match=r"leaks\.memory_growth .*fast=32MiB/h,20m"):
        read_growth_rules([entry], "bytes")


def test_two_rules_of_one_name_are_refused():
    with pytest.raises(UsageError, match="two rules of the name 'fast'"):
        read_growth_rules(["fast=8/s,3m", "fast=9/s,3m"], "fds")


def test_the_presets_can_be_read():
    settings = NodeSettings()
    names = [rule.name for rule in read_growth_rules(settings.leaks_fd_growth, "fds")]
    assert names == ["fast", "slow"]
    rules = read_growth_rules(settings.leaks_memory_growth, "bytes")
    assert [rule.name for rule in rules] == ["fast", "slow"]


def test_the_examples_of_a_refusal_can_be_read():
    for unit in ("fds", "bytes"):
        with pytest.raises(UsageError) as refusal:
            read_growth_rules(["x"], unit)
        assert len(read_growth_rules([str(refusal.value).rpartition("example ")[2]], unit)) == 1
