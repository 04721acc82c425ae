"""Every option reaches what it is for."""

import dataclasses

import pytest

from seedance_obs.config import OPTIONS, NodeSettings
from seedance_obs.errors import UsageError
from seedance_obs.exporter.leaks import opening
from seedance_obs.exporter.leaks.watch import LeakWatch
from seedance_obs.leaks.board_detectors import BoardLimits
from seedance_obs.leaks.growth_rules import read_growth_rules


def opened(**settings: object) -> LeakWatch | None:
    return opening.open_leaks(
        NodeSettings(**settings),
        host_pids=lambda: True,
        wall=lambda: 0.0,
        cpu_clock=lambda: 0.0,
    )


def test_each_limit_of_boards_is_the_option_of_its_name_with_the_same_default():
    own = {
        field.name for field in dataclasses.fields(BoardLimits) if f"leaks_{field.name}" in OPTIONS
    }
    assert len(own) == 7
    assert opening._board_limits(NodeSettings()) == BoardLimits()
    for name in own:
        value = getattr(BoardLimits(), name) / 2
        limits = opening._board_limits(NodeSettings(**{f"leaks_{name}": value}))
        assert limits == dataclasses.replace(BoardLimits(), **{name: value})


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({"sampler_interval_seconds": 15.0}, 45.0),
        ({"sampler_interval_seconds": 60.0, "sampler_stale_after_seconds": 180.0}, 180.0),
        ({"dcgm_interval_seconds": 60.0}, 45.0),
        (
            {
                "dcgm_url": "http://dcgm",
                "dcgm_interval_seconds": 60.0,
                "sampler_stale_after_seconds": 180.0,
            },
            180.0,
        ),
    ],
    ids=["usual", "slow driver", "no DCGM", "slow DCGM"],
)
def test_boards_may_be_seen_as_seldom_as_their_slowest_source_is_read(settings, seconds):
    assert opening._board_limits(NodeSettings(**settings)).gap_seconds == seconds


def test_each_limit_of_processes_is_an_option():
    fds, memory = ("a=1/s,1m",), ("b=1MB/h,2m",)
    limits = opening._process_limits(
        NodeSettings(
            leaks_fd_growth=fds,
            leaks_memory_growth=memory,
            leaks_fd_limit_ratio=0.6,
            leaks_residency_ratio=0.2,
            leaks_residency_least_bytes=77,
            leaks_interval_seconds=5.0,
        )
    )
    assert limits.fd_growth == read_growth_rules(fds, "fds")
    assert limits.memory_growth == read_growth_rules(memory, "bytes")
    assert (limits.fd_limit_ratio, limits.residency_ratio) == (0.6, 0.2)
    assert (limits.residency_least_bytes, limits.gap_seconds) == (77, 15.0)


def test_prices_and_what_is_shown_are_in_the_view_and_0_is_no_price():
    watch = opened(prices_currency="EUR", prices_kwh=0.25, prices_gpu_hour=2.5, leaks_shown=3)
    assert watch is not None
    view = watch.view
    assert (view.currency, view.kwh_price, view.gpu_hour_price) == ("EUR", 0.25, 2.5)
    assert view.most_shown == 3
    free = opened()
    assert free is not None
    assert (free.view.kwh_price, free.view.gpu_hour_price) == (None, None)


def test_page_tables_are_walked_only_by_option_and_within_its_limits(monkeypatch):
    made = []
    monkeypatch.setattr(opening, "ReferencedMemory", lambda root, **caps: made.append((root, caps)))
    opened()
    opened(leaks_smaps=True, leaks_smaps_most_bytes=5, leaks_smaps_seconds=0.5, node_root="/none")
    assert made == [("/none", {"most_bytes": 5, "seconds": 0.5})]


def test_where_nothing_is_to_be_probed_nothing_is_opened():
    assert opened(leaks_processes="none") is None


@pytest.mark.parametrize("name", ["leaks_fd_growth", "leaks_memory_growth", "leaks_warm_servers"])
def test_an_entry_that_cannot_be_read_is_refused_at_the_start(name):
    with pytest.raises(UsageError, match=name.replace("_", ".", 1)):
        opened(**{name: ("nonsense",)})
