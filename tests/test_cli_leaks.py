"""`seedance-obs leaks` as it is typed at night, against real servers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from urllib.request import ProxyHandler, build_opener

import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry
from rich.cells import cell_len

from seedance_obs import cli_exporter
from seedance_obs.cli import main
from seedance_obs.demo.programs import free_port
from seedance_obs.exporter.server import ScrapeServer
from seedance_obs.exporter.view import LeakView
from seedance_obs.leaks.suspect import KINDS
from seedance_obs.process_tree import ProcessName
from tests.exporter.leak_views import (
    NOW,
    hostile_suspect,
    leak_view,
    node_view,
    suspect,
    tree_suspect,
)
from tests.sources.page_server import Script, answering, serving

WIDE = "\u4f60\u597d" * 40
MADE_UP = {
    "none": leak_view(),
    "one": leak_view(suspect("fd_growth")),
    "twelve": leak_view(*[suspect(list(KINDS)[number % 10], number) for number in range(12)]),
    "sixty": leak_view(*[suspect(list(KINDS)[number % 5], number) for number in range(60)]),
    "tree": leak_view(tree_suspect(9)),
    "hostile": leak_view(hostile_suspect()),
    "wide": leak_view(
        suspect("fd_growth", tenant=WIDE, processes=(ProcessName(1, 1, WIDE),)), currency=WIDE
    ),
    "old": leak_view(probed_at=NOW - 10_000.0),
}


class Exporter:
    """A real exporter's server, and what it is to show."""

    def __init__(self) -> None:
        self.leaks: LeakView | None = None
        self.server = ScrapeServer(
            "127.0.0.1:0",
            CollectorRegistry(),
            view=lambda: node_view(self.leaks),
            healthy=lambda: True,
            ready=lambda: True,
            monotonic=lambda: NOW,
        )

    def shown(self, leaks: LeakView | None, *arguments: str, columns: int = 80) -> Result:
        self.leaks = leaks
        return run("--exporter", self.server.url, *arguments, COLUMNS=str(columns))


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    running = Exporter()
    running.server.start()
    yield running
    running.server.shutdown()
    running.server.server_close()


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["leaks", *arguments], env=environment)


def refused_by(script: Script) -> str:
    """The sentence where a server is no exporter; it comes with exit code 3."""
    with serving(script) as url:
        done = run("--exporter", url)
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("seedance-obs: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("kinds", "asked", "code"),
    [
        ([], [], 0),
        (["fd_growth"], [], 1),
        (["sparse_residency"], [], 0),
        (["sparse_residency", "spinning"], [], 1),
        (["sparse_residency", "spinning"], ["fd_growth"], 0),
        (["sparse_residency", "spinning"], ["fd_growth", "spinning"], 1),
    ],
)
def test_the_exit_code_says_whether_there_is_a_suspect(exporter, kinds, asked, code):
    leaks = leak_view(*map(suspect, kinds))
    options = [word for kind in asked for word in ("--kind", kind)]
    assert exporter.shown(leaks, *options).exit_code == code
    assert exporter.shown(leaks, "--json", *options).exit_code == code


def test_a_suspect_comes_with_its_numbers_its_tree_and_what_to_do_next(exporter):
    assert exporter.shown(MADE_UP["one"]).stdout.splitlines()[4:] == [
        "fd_growth (1): open file descriptors grow, by slope and by low-water mark",
        "  next: ls -l /proc/4711/fd shows what is left open",
        "  pt_data_worker[4711]  team-vision  serving/llm-7f9c5d-xk2lp/server",
        "    9.0 fds/s for 2 h 10 min, low water 8.9 fds/s, full in 1 h 52 min,",
        "    4,982 of 65,536 open (7.6 %), by rule fast",
        "    bash[4690] > python3.11[4700] > pt_data_worker[4711]",
        "    mnt 4026532001 net 4026532002",
        "    suspect fd_growth-4711-990000",
        "",
        "1 suspect: 1 fd_growth",
    ]


@pytest.mark.parametrize("length", [30, 60, 75, 120])
def test_the_name_of_a_suspect_can_be_pasted_from_any_terminal(exporter, length):
    name = "-".join(["allocated_without_process", "GPU:3", "x" * length])
    lines = exporter.shown(leak_view(suspect("fd_growth", name=name)), columns=80).stdout
    assert name in lines.split()
    assert f" {name}\n" in lines or f"\n{name}\n" in lines


def test_what_is_for_information_comes_last_and_is_counted_apart(exporter):
    both = leak_view(suspect("sparse_residency"), suspect("spinning"))
    text = exporter.shown(both, columns=160).stdout
    assert text.index("spinning (1)") < text.index("sparse_residency (1)")
    said = "1 suspect (68 W, 0.04 EUR/h), 1 for information: 1 spinning, 1 sparse_residency"
    assert text.splitlines()[-1] == said


def test_whose_nobody_knows_is_said_to_be_not_known(exporter):
    nobodys = suspect("fd_growth", tenant="unknown", workload="process-unknown-0")
    text = exporter.shown(leak_view(nobodys)).stdout
    assert "  pt_data_worker[4711]  tenant not known\n" in text


def test_a_process_of_no_workload_is_told_by_its_user_and_its_cgroup(exporter):
    told = {"user": "ann", "cgroup": "/system.slice/ollama.service"}
    bare = leak_view(suspect("fd_growth", tenant="", workload="", **told))
    text = exporter.shown(bare).stdout
    assert "pt_data_worker[4711]  tenant not known  user ann\n" in text
    assert "net 4026532002  cgroup /system.slice/ollama.service\n" in text
    assert "ollama" not in exporter.shown(leak_view(suspect("fd_growth", **told))).stdout


def test_idle_gpu_memory_is_told_with_its_board_its_watts_and_its_cost(exporter):
    whole = suspect("pseudo_idle_context", 5)
    part = replace(whole, finding=replace(whole.finding, gpu_instance=3))
    text = exporter.shown(leak_view(part)).stdout
    assert "GPU 5 instance 3" in text
    assert "3.2 GiB held idle for 2 h 10 min" in text
    assert "68 W,\n    0.04 EUR/h" in text
    assert "1 suspect (68 W, 0.04 EUR/h): 1 pseudo_idle_context" in text


def test_the_worst_kind_comes_first_whatever_the_order_of_the_page(exporter):
    text = exporter.shown(leak_view(suspect("spinning"), suspect("fd_growth"))).stdout
    assert 0 < text.index("fd_growth (1)") < text.index("spinning (1)")


def test_more_than_a_few_of_a_kind_are_counted_until_the_kind_is_asked_for(exporter):
    whole = exporter.shown(MADE_UP["sixty"]).stdout
    assert whole.count("suspect fd_growth-") == 10
    assert "and 2 more: --kind fd_growth shows all" in whole
    asked = exporter.shown(MADE_UP["sixty"], "--kind", "fd_growth").stdout
    assert asked.count("suspect fd_growth-") == 12
    assert "spinning" not in asked


def test_no_suspects_of_a_kind_says_of_which(exporter):
    text = exporter.shown(MADE_UP["one"], "--kind", "spinning").stdout
    assert "No suspects of spinning in what was looked at." in text


def test_an_old_probe_is_said_to_be_old(exporter):
    assert "the probe is old" in exporter.shown(MADE_UP["old"]).stdout
    assert "the probe is old" not in exporter.shown(MADE_UP["none"]).stdout


@pytest.mark.parametrize("name", MADE_UP)
@pytest.mark.parametrize("columns", [40, 80, 160])
def test_it_fits_the_terminal_and_sends_it_nothing_but_text(exporter, name, columns):
    text = exporter.shown(MADE_UP[name], columns=columns).stdout
    for line in text.splitlines():
        assert cell_len(line) <= columns
        assert line.isprintable()
    assert text.count("\n") == len(text.splitlines())


def test_a_name_of_ten_thousand_characters_takes_one_place_on_its_line(exporter):
    assert len(exporter.shown(MADE_UP["hostile"]).stdout) < 1_500


def test_a_wide_name_is_cut_to_half_a_line(exporter):
    pieces = [
        piece
        for line in exporter.shown(MADE_UP["wide"]).stdout.splitlines()
        for piece in line.split("  ")
        if WIDE[0] in piece and "…" in piece and "/h" not in piece and " > " not in piece
    ]
    assert pieces
    assert all(cell_len(piece) <= 40 for piece in pieces)


def test_as_json_the_page_comes_as_it_is(exporter):
    done = exporter.shown(MADE_UP["twelve"], "--json")
    with build_opener(ProxyHandler({})).open(f"{exporter.server.url}/leaks") as response:
        assert done.stdout == response.read().decode()


def test_as_json_names_made_to_harm_are_only_characters(exporter):
    done = exporter.shown(MADE_UP["hostile"], "--json")
    assert all(line.isprintable() and line.isascii() for line in done.stdout.splitlines())
    (told,) = json.loads(done.stdout)["suspects"]
    assert told["process"]["comm"].startswith("\x1b]0;owned\x07")


def test_as_json_only_the_kinds_asked_for_come(exporter):
    done = exporter.shown(MADE_UP["twelve"], "--json", "--kind", "spinning")
    assert {one["kind"] for one in json.loads(done.stdout)["suspects"]} == {"spinning"}


def test_a_kind_that_does_not_exist_is_a_usage_error():
    done = run("--kind", "fd_groth")
    assert done.exit_code == 2
    assert "'fd_groth' is not one of 'fd_growth'" in done.stderr


@pytest.mark.parametrize(
    "url", ["ftp://node:1", "http://", "http://node:99999", "http://no de", "http://a\x1bb", ""]
)
def test_what_is_no_address_is_a_usage_error(url):
    done = run("--exporter", url)
    assert done.exit_code == 2
    assert "wanted http://HOST:PORT" in done.stderr


def test_an_address_may_be_as_short_as_a_host_and_a_port_or_be_that_of_the_metrics(exporter):
    exporter.leaks = MADE_UP["one"]
    url = exporter.server.url
    for given in (url.removeprefix("http://"), f"{url}/metrics", f"{url}/leaks", f"{url}/"):
        assert run("--exporter", given).exit_code == 1


def test_the_exporter_of_this_node_is_found_by_its_own_settings(exporter, tmp_path):
    exporter.leaks = MADE_UP["one"]
    port = exporter.server.server_address[1]
    assert run(SEEDANCE_SERVER_ADDRESS=f"0.0.0.0:{port}").exit_code == 1
    config = tmp_path / "node.toml"
    config.write_text(f'[server]\naddress = "127.0.0.1:{port}"\n')
    assert run(SEEDANCE_CONFIG=str(config)).exit_code == 1


def test_a_port_that_changes_cannot_be_guessed():
    done = run(SEEDANCE_SERVER_ADDRESS="127.0.0.1:0")
    assert done.exit_code == 2
    assert "say --exporter URL" in done.stderr


def test_where_no_exporter_listens_a_sentence_says_what_to_do():
    done = run("--exporter", f"http://127.0.0.1:{free_port()}")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "Connection refused" in done.stderr
    assert "start one with `seedance-obs exporter node`" in done.stderr


def test_an_exporter_that_probes_nothing_says_so_itself(exporter):
    done = exporter.shown(None)
    assert done.exit_code == 3
    assert "nothing is probed for leaks here: set leaks.processes" in done.stderr


def test_an_older_exporter_and_other_servers_are_told_apart_from_a_clean_node():
    assert "answered HTTP 404" in refused_by(answering(b"no", status="404 Not Found"))
    assert "does not answer in JSON" in refused_by(answering(b"<html>"))
    assert "does not answer in JSON" in refused_by(answering(b'{"node": NaN}'))
    assert "does not answer in JSON" in refused_by(answering(b"[" * 100_000))
    assert "this is no page of leaks" in refused_by(answering(b"{}"))
    assert "answered HTTP 500" in refused_by(answering(b"\x1b[2J", status="500 No"))


def test_a_refusal_cannot_take_over_the_terminal():
    body = b"\x1b[2J busy \xff\n\n" + b"x" * 10_000
    said = refused_by(answering(body, status="503 Busy"))
    assert said.rstrip("\n").isprintable()
    assert len(said) < 500


def test_an_exporter_that_hangs_is_not_waited_for_without_limit(monkeypatch):
    monkeypatch.setattr(cli_exporter, "TIMEOUT_SECONDS", 0.05)
    assert "(timed out)" in refused_by(lambda connection: connection.makefile().read())


def test_what_ends_in_the_middle_is_no_page():
    refused_by(answering(b'{"node": "a"', length=1_000))


def test_a_terminal_that_lacks_characters_shows_question_marks(exporter):
    exporter.leaks = MADE_UP["hostile"]
    done = subprocess.run(
        [sys.executable, "-m", "seedance_obs", "leaks", "--exporter", exporter.server.url],
        env={"PYTHONIOENCODING": "ascii", "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\x1b" not in done.stdout
    assert b"?]0;owned" in done.stdout


def test_the_exit_codes_are_in_the_help():
    text = " ".join(run("--help").stdout.split())
    assert "Exit codes: 0 no suspects" in text
