"""`seedance-obs bandwidth` as it is typed, against loopback servers."""

import json
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from seedance_obs.bandwidth.reading import NodeBandwidth, SegmentReading
from seedance_obs.cli import main
from seedance_obs.cli_bandwidth import bandwidth as command
from seedance_obs.demo.programs import free_port
from seedance_obs.exporter.bandwidth_page import bandwidth_page
from tests.exporter.bandwidth_views import (
    DOMAIN,
    MEMORY,
    bandwidth,
    segment,
    sensitivity,
    tenant,
    view,
)
from tests.exporter.leak_views import HOSTILE
from tests.sources.page_server import Script, answering, serving

PROGRAM: click.Group = type(main)("seedance-obs", commands={"bandwidth": command})
WIDE = "\u4f60\u597d" * 40
IDLE = tuple(segment(replace(DOMAIN, name=f"node/{n}"), mean=2e6, peak=3e6) for n in range(16))
VERDICTS = bandwidth(
    segments=(*bandwidth().segments[:3], segment(MEMORY, mean=2e6, peak=3e6)),
    tenants=(
        *bandwidth().tenants,
        tenant("infra", mean=1.2e6, jitter=2e5, share=0.004, peak=3e6),
        tenant("unallocated", mean=0.0),
    ),
    sensitivities=(
        sensitivity("team-vision"),
        sensitivity("genomics", verdict="undecided", windows=112),
        sensitivity("infra", verdict="association", score=0.12, p_value=0.01),
        sensitivity("gone", verdict="none", score=0.0, p_value=0.41),
    ),
    stuck={("GPU-3", "pcie", "transmit"): "dcgm"},
)
MADE_UP = {
    "usual": bandwidth(),
    "verdicts": VERDICTS,
    "idle": bandwidth(tenants=(), sensitivities=(), segments=IDLE),
    "none": bandwidth(tenants=(), sensitivities=(), segments=()),
    "hostile": bandwidth(tenants=(tenant(HOSTILE),)),
    "wide": bandwidth(tenants=(tenant(WIDE), tenant("x", MEMORY))),
}


def run(*arguments: str, columns: int = 80) -> Result:
    return CliRunner().invoke(PROGRAM, ["bandwidth", *arguments], env={"COLUMNS": str(columns)})


def asked(script: Script, *arguments: str, columns: int = 80) -> Result:
    with serving(script) as url:
        return run("--exporter", url, *arguments, columns=columns)


def shown(node: NodeBandwidth, *arguments: str, columns: int = 80) -> Result:
    body = bandwidth_page(view(node)).encode()
    return asked(answering(body), *arguments, columns=columns)


def test_a_segment_comes_with_its_load_its_tenants_and_whom_it_slows_down():
    done = shown(VERDICTS)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "gpu-17: mean and peak over the last 15 s",
        "",
        "PCIe switch 0000:16:00.0, transmit",
        "  18.2 of 31.5 GB/s (58 %), peak 29.9 GB/s, contended for 2 min",
        "  TENANT            MEAN MB/s  JITTER SHARE    PEAK  SENSITIVITY",
        "  team-vision           9,120   1,203  50 %  15,002  0.31 (p 0.012, 300 windows)",
        "  genomics              9,080      44  50 %   9,400  needs more windows (112)",
        "  infra                   1.2     0.2 0.4 %     3.0",
        "      0.12, association only (p 0.01, 300 windows)",
        "  unallocated             0.0   1,203  50 %  15,002  -",
        "  gone                      -       -     -       -  none (p 0.41, 300 windows)",
        "",
        "PCIe root complex pci0000:15, receive",
        "  18.2 of 31.5 GB/s (58 %), peak 29.9 GB/s",
        "  TENANT            MEAN MB/s  JITTER SHARE    PEAK  SENSITIVITY",
        "  genomics              9,120   1,203  50 %  15,002  -",
        "",
        "2 more shared segments carry less than 1 %: --all shows them",
        "GPU 3 pcie transmit: dcgm stands at 0 while another source moves, and is not",
        "  believed",
    ]


def folded(*segments: SegmentReading) -> str:
    node = bandwidth(tenants=(), sensitivities=(), segments=segments)
    return " ".join(shown(node).stdout.split("\n\n")[-1].split())


def test_segments_that_nobody_uses_are_one_line_unless_asked_for():
    lines = shown(MADE_UP["idle"]).stdout.splitlines()
    assert lines[-2:] == ["", "16 shared segments carry less than 1 %: --all shows them"]
    assert len(lines) < 24
    every = shown(MADE_UP["idle"], "--all").stdout
    assert every.count("NVLink domain node/") == 16
    assert "--all" not in every


def test_what_is_folded_is_not_passed_over_in_silence():
    assert folded(IDLE[0]) == "1 shared segment carries less than 1 %: --all shows it"
    dark = replace(IDLE[1], mean=None, peak=None)
    assert folded(dark) == "1 shared segment is not observed now: --all shows it"
    once = replace(IDLE[2], contention_seconds=9.0)
    assert folded(segment(MEMORY), dark, once, IDLE[3]) == (
        "2 more shared segments carry less than 1 %, 1 is not observed now, 1 of them was "
        "contended before: --all shows them"
    )


def test_a_burst_is_reason_enough_to_show_a_segment():
    done = shown(bandwidth(segments=(replace(IDLE[0], peak=1e9),)))
    assert "NVLink domain node/0, transmit" in done.stdout


def test_memory_at_terabytes_a_second_is_written_out():
    memory = segment(MEMORY, capacity=3_350e9, mean=1_910e9, peak=2_354e9)
    said = shown(bandwidth(segments=(memory,))).stdout
    assert "1,910 of 3,350 GB/s (57 %), peak 2,354 GB/s" in said


def test_where_nothing_is_shared_that_is_said():
    assert shown(MADE_UP["none"]).stdout == "gpu-17: no shared segment is known here\n"


@pytest.mark.parametrize("name", MADE_UP)
@pytest.mark.parametrize("columns", [40, 80, 160])
def test_it_fits_the_terminal_and_sends_it_nothing_but_text(name, columns):
    for line in shown(MADE_UP[name], columns=columns).stdout.splitlines():
        assert cell_len(line) <= columns
        assert line.isprintable()


def test_as_json_the_page_comes_as_it_is():
    done = shown(MADE_UP["usual"], "--json")
    assert (done.exit_code, done.stdout) == (0, bandwidth_page(view(MADE_UP["usual"])))


def test_as_json_names_made_to_harm_are_only_characters():
    done = shown(MADE_UP["hostile"], "--json")
    assert all(line.isprintable() and line.isascii() for line in done.stdout.splitlines())
    assert json.loads(done.stdout)["segments"]


def test_an_exporter_without_a_fast_loop_says_so_itself():
    done = asked(answering(b"no fast loop runs here: set bandwidth.enabled\n", status="503 No"))
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no fast loop runs here: set bandwidth.enabled" in done.stderr


@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b'{"segments": NaN}'])
def test_what_is_no_such_page_is_refused_in_a_sentence(body):
    done = asked(answering(body))
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("seedance-obs: ")


def test_the_page_of_bandwidth_is_asked_for_wherever_the_address_points():
    paths = []

    def note(connection):
        paths.append(connection.recv(65536).split(b" ")[1])

    asked(note)
    assert paths == [b"/bandwidth"]


def test_where_no_exporter_listens_a_sentence_says_what_to_do():
    done = run("--exporter", f"http://127.0.0.1:{free_port()}")
    assert done.exit_code == 3
    assert "start one with `seedance-obs exporter node`" in done.stderr


def test_what_is_no_address_is_a_usage_error():
    done = run("--exporter", "ftp://node:1")
    assert (done.exit_code, "wanted http://HOST:PORT" in done.stderr) == (2, True)
