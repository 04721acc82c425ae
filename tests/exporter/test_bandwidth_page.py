"""The page of `GET /bandwidth`, and what reads it back."""

import copy
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from seedance_obs.bandwidth.reading import NodeBandwidth
from seedance_obs.cli_bandwidth_table import BandwidthReport, read_page
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.bandwidth_page import bandwidth_page, why_no_bandwidth
from tests.exporter.bandwidth_views import (
    MEMORY,
    ROOT,
    SWITCH,
    bandwidth,
    channel,
    segment,
    sensitivity,
    tenant,
    view,
)
from tests.exporter.leak_views import HOSTILE


def page(**changes: object) -> Any:
    return json.loads(bandwidth_page(view(bandwidth(**changes))))


def kinds(told: Any) -> list[str]:
    return [one["kind"] for one in told["segments"]]


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in nested data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in inner:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def test_why_there_is_no_page_is_said():
    assert "set bandwidth.enabled" in str(why_no_bandwidth(view(None)))
    assert "ask again in a moment" in str(why_no_bandwidth(view(NodeBandwidth())))
    nobody = replace(view(NodeBandwidth()), gpus=())
    assert "seedance_source_up" in str(why_no_bandwidth(nobody)), "no waiting will help"
    silent = NodeBandwidth(segments=bandwidth().segments)
    assert why_no_bandwidth(view(silent)) is None
    assert why_no_bandwidth(view(bandwidth())) is None
    assert bandwidth_page(view(None)) == "{}\n"


def test_what_was_contended_for_longest_comes_first_then_what_is_fullest():
    assert kinds(page()) == ["pcie_switch", "hbm", "nic", "pcie_root", "nvlink_domain"]
    more = segment(MEMORY, contention_seconds=900.0)
    assert kinds(page(segments=(segment(ROOT), segment(SWITCH, contention_seconds=5.0), more)))[
        :2
    ] == ["hbm", "pcie_switch"]


def test_tenants_come_by_what_they_send_and_with_their_sensitivity():
    first, *_ = page()["segments"]
    assert [one["tenant"] for one in first["tenants"]] == ["team-vision", "genomics"]
    assert first["tenants"][0]["sensitivity"] == {
        **{"score": 0.31, "p_value": 0.012, "windows_low": 140, "windows_high": 120},
        **{"windows": 300, "verdict": "significant", "proxy": "sm"},
    }
    assert first["tenants"][1]["sensitivity"] is None


def test_a_tenant_that_sends_nothing_now_keeps_its_sensitivity():
    told = page(tenants=(), sensitivities=(sensitivity("gone"),))
    (only,) = next(one for one in told["segments"] if one["kind"] == "pcie_switch")["tenants"]
    assert (only["tenant"], only["mean"], only["sensitivity"]["score"]) == ("gone", None, 0.31)


def test_devices_have_the_names_that_people_use():
    told = page()
    assert {one["device"] for one in told["segments"]} == {"GPU 3", "mlx5_0", None}
    assert {"GPU 0", "mlx5_7"} <= {one["device"] for one in told["channels"]}


def test_what_is_not_known_is_null():
    unknown = channel(capacity=None, mean=None, peak=float("inf"), busy_seconds={})
    told = page(
        channels={("GPU-0", "pcie", "transmit"): unknown},
        segments=(segment(mean=None, peak=None),),
        stuck={("GPU-0", "pcie", "transmit"): "dcgm"},
    )
    (only,) = told["channels"]
    assert (only["capacity"], only["mean"], only["peak"], only["busy_seconds"]) == (*[None] * 3, {})
    assert only["stuck_source"] == "dcgm"
    assert (told["segments"][0]["mean"], told["segments"][0]["peak"]) == (None, None)


def test_bytes_are_whole_numbers_however_many():
    total = 2**60 + 1
    told = page(channels={("GPU-0", "pcie", "transmit"): channel(total=total)})
    assert told["channels"][0]["total"] == total


def test_names_that_nobody_should_have_do_not_break_the_page():
    told = page(tenants=(tenant(HOSTILE),))
    assert read_page(told).segments[0].tenants[0].name.startswith("\x1b]0;owned")


def test_the_page_reads_back():
    told = read_page(page())
    assert (told.node, told.window_seconds, len(told.segments)) == ("gpu-17", 15.0, 5)
    first = told.segments[0]
    assert first.title == "PCIe switch 0000:16:00.0, transmit"
    assert (first.contention_seconds, first.tenants[0].name) == (132.0, "team-vision")
    assert [one.title for one in told.segments[1:3]] == [
        "memory of GPU 3",
        "network adapter mlx5_0, receive",
    ]


@pytest.mark.parametrize("wrong", [[], {}, "x", None, 7, -1e999, {"a": 1}])
def test_a_page_that_is_garbled_anywhere_is_refused_or_read_and_never_breaks(wrong):
    told = page(channels={("GPU-0", "pcie", "transmit"): channel()})
    for place in places(told):
        garbled = copy.deepcopy(told)
        inner = garbled
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = wrong
        with suppress(SourceUnavailableError):
            Console(file=io.StringIO()).print(BandwidthReport(read_page(garbled)))


def test_what_is_no_page_is_refused():
    for wrong in ({}, [], None, {"node": "x", "window_seconds": "15"}):
        with pytest.raises(SourceUnavailableError):
            read_page(wrong)
