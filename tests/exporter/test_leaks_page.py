"""`GET /leaks` over real sockets, and its page read back."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from seedance_obs.attribution.tenants import UNKNOWN
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.leaks_page import leaks_page
from seedance_obs.exporter.server import ScrapeServer
from seedance_obs.exporter.view import AttributionView, LeakView
from seedance_obs.leaks.held_memory import Held
from seedance_obs.leaks.report.page import ToldWindow, read_page
from seedance_obs.leaks.suspect import KINDS
from seedance_obs.process_tree import Sandbox
from tests.exporter.leak_views import (
    BASH,
    HOSTILE,
    JOB,
    LOADER,
    NOW,
    POD,
    PYTHON,
    hostile_suspect,
    leak_view,
    node_view,
    suspect,
    tree_suspect,
)


@pytest.fixture
def ask() -> Iterator[Any]:
    """Asks a server whose view is `shown[0]`, at `NOW`."""
    shown = [node_view(None)]
    server = ScrapeServer(
        "127.0.0.1:0",
        CollectorRegistry(),
        view=lambda: shown[0],
        healthy=lambda: True,
        ready=lambda: True,
        monotonic=lambda: NOW,
    )
    server.start()

    def get(leaks: LeakView | None, path: str = "/leaks") -> Any:
        shown[0] = node_view(leaks)
        connection = HTTPConnection(*server.server_address[:2], timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    yield get
    server.shutdown()
    server.server_close()


def page_of(leaks: LeakView) -> Any:
    return json.loads(leaks_page(node_view(leaks), NOW))


def one_of_each() -> LeakView:
    return leak_view(*[suspect(kind, number) for number, kind in enumerate(KINDS)])


def test_the_page_is_json_that_no_cache_keeps(ask):
    status, headers, body = ask(one_of_each())
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert headers["Cache-Control"] == "no-store"
    assert len(json.loads(body)["suspects"]) == len(KINDS)


def test_where_nothing_is_probed_a_sentence_says_what_to_set(ask):
    status, headers, body = ask(None)
    assert (status, headers["Cache-Control"]) == (503, "no-store")
    assert body == b"nothing is probed for leaks here: set leaks.processes to gpu or all\n"


def test_before_the_first_probe_a_sentence_says_to_ask_again(ask):
    status, _, body = ask(LeakView())
    assert (status, body) == (503, b"no leak probe is complete yet: ask again in a moment\n")


def test_the_index_and_the_404_name_the_page(ask):
    assert b'<a href="/leaks">' in ask(None, "/")[2]
    assert b"/leaks" in ask(None, "/leakz")[2]


def test_kinds_that_could_not_be_judged_are_named():
    leaks = LeakView(probed_at=1.0, unjudged=frozenset({"spinning", "fd_growth"}))
    assert page_of(leaks)["probe"]["unjudged"] == ["fd_growth", "spinning"]


def test_keys_stay():
    """Programs rely on them: adding one is fine, and changes this test."""
    page = page_of(one_of_each())
    assert list(page) == [
        *("node", "gpus", "gpus_idle_draw_unknown", "probe", "idle_windows", "most_shown"),
        "suspects",
        *("gpu_seconds", "gpu_energy_joules", "gpu_memory_held", "prices"),
    ]
    assert list(page["probe"]) == [
        *("age_seconds", "idle_age_seconds", "watched_seconds", "judged_after_seconds"),
        *("cpu_seconds", "processes", "skipped", "unjudged"),
    ]
    assert list(page["idle_windows"][0]) == ["workload", "tenant", "open", "reason", "seconds"]
    wanted = [
        *("name", "kind", "rule", "age_seconds", "started_unix", "tenant", "workload"),
        *("user", "cgroup", "gpu_uuid", "gpu_instance", "process", "processes", "sandbox"),
        *("evidence", "findings", "totals", "power_watts", "gpu_share"),
        *("workload_identity", "gpu", "cost_per_hour"),
    ]
    assert [list(one) for one in page["suspects"]] == [wanted] * len(KINDS)
    assert list(page["prices"]) == ["currency", "kwh", "gpu_hour"]


def test_a_suspect_is_told_in_full():
    (told,) = page_of(leak_view(suspect("pseudo_idle_context", 2)))["suspects"]
    assert told["age_seconds"] == 7_800.0
    assert told["sandbox"]["chain"] == [
        {"pid": 4713, "start_ticks": LOADER.start_ticks, "comm": LOADER.comm},
        {"pid": PYTHON.pid, "start_ticks": PYTHON.start_ticks, "comm": PYTHON.comm},
        {"pid": BASH.pid, "start_ticks": BASH.start_ticks, "comm": BASH.comm},
    ]
    assert told["sandbox"]["net_namespace"] == 4_026_532_002
    assert told["workload_identity"]["pod"] == POD.pod
    assert (told["workload"], told["gpu"], told["gpu_uuid"]) == (POD.key, "2", "GPU-2")
    assert told["evidence"]["samples"] == 7_800
    assert told["cost_per_hour"] == pytest.approx(68 / 1000 * 0.6)


def test_the_part_of_the_gpu_that_is_booked_to_a_suspect_is_told():
    (told,) = page_of(leak_view(suspect("spinning", gpu_share=0.25)))["suspects"]
    assert told["gpu_share"] == 0.25


def test_each_process_of_a_tree_is_told_with_its_numbers_and_its_parents():
    (told,) = page_of(leak_view(tree_suspect(3)))["suspects"]
    assert [one["process"]["pid"] for one in told["findings"]] == [4711, 4712, 4713]
    rates = [one["evidence"]["growth_fds_per_second"] for one in told["findings"]]
    assert rates == [9.0, 8.5, 8.0]
    assert told["totals"] == {"growth_fds_per_second": 25.5}
    assert [each["pid"] for each in told["findings"][2]["chain"]] == [4713, PYTHON.pid, BASH.pid]


def test_parents_that_nobody_looked_at_are_no_chain():
    (told,) = page_of(leak_view(tree_suspect(2, sandboxes=())))["suspects"]
    assert [len(one["chain"]) for one in told["findings"]] == [3, 0]


def test_whose_nobody_knows_is_not_known_rather_than_a_name():
    nobodys = suspect("fd_growth", tenant=UNKNOWN, workload=UNKNOWN_WORKLOAD.key)
    (told,) = page_of(leak_view(nobodys))["suspects"]
    assert (told["tenant"], told["workload"]) == (None, None)


def test_whose_a_process_is_outside_of_workloads_is_told_by_user_and_cgroup():
    bare = suspect("fd_growth", workload="", user="ann", cgroup="/system.slice/ollama.service")
    (told,) = page_of(leak_view(bare))["suspects"]
    assert (told["user"], told["cgroup"]) == ("ann", "/system.slice/ollama.service")


def test_a_window_that_never_let_a_probe_pass_has_no_age_even_where_its_series_has():
    page = page_of(leak_view(probed_in_window_at=NOW - 40_000.0))
    assert page["probe"]["idle_age_seconds"] is None
    assert page["probe"]["watched_seconds"] == 40_000.0


def test_gpus_whose_idle_draw_is_not_known_are_counted():
    view = node_view(leak_view(), idle_draw_known=6)
    assert json.loads(leaks_page(view, NOW))["gpus_idle_draw_unknown"] == 2
    bare = replace(view, attribution=AttributionView())
    assert json.loads(leaks_page(bare, NOW))["gpus_idle_draw_unknown"] == 8


def test_all_suspects_are_told_however_few_are_shown_as_series():
    many = [suspect("fd_growth", number) for number in range(60)]
    page = page_of(leak_view(*many, most_shown=3))
    assert [one["name"] for one in page["suspects"]] == [one.name for one in many]
    assert page["most_shown"] == 3


def test_times_on_the_exporters_own_clock_are_ages():
    page = page_of(leak_view())
    assert page["probe"]["age_seconds"] == 4.0
    assert page["probe"]["idle_age_seconds"] == 18_000.0
    assert page_of(leak_view(probed_in_window_at=None))["probe"]["idle_age_seconds"] is None
    assert page_of(leak_view(probed_at=NOW + 1.0))["probe"]["age_seconds"] == 0.0


def test_what_is_not_known_is_null():
    bare = replace(
        suspect("fd_growth"), processes=(), sandbox=None, workload="", tenant="", started_unix=0.0
    )
    (told,) = page_of(leak_view(bare, currency="", kwh_price=None))["suspects"]
    for key in ("sandbox", "workload", "tenant", "started_unix", "workload_identity", "gpu"):
        assert told[key] is None
    assert told["cost_per_hour"] is None


def test_why_windows_are_closed_is_told():
    windows = page_of(leak_view())["idle_windows"]
    assert [one["reason"] for one in windows] == ["memory_in_use", None, None]
    assert [one["workload"] for one in windows] == [None, POD.key, JOB.key]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_left_out(value):
    whole = suspect("fd_growth")
    evidence = {"exhaustion_seconds": value, "open_fds": 12.0}
    page = page_of(
        leak_view(
            replace(whole, finding=replace(whole.finding, evidence=evidence), power_watts=value)
        )
    )
    assert page["suspects"][0]["evidence"] == {"open_fds": 12.0}
    assert page["suspects"][0]["power_watts"] is None


def test_names_made_to_harm_break_nothing():
    text = leaks_page(node_view(leak_view(hostile_suspect())), NOW)
    assert text.isascii()
    assert "\x1b" not in text
    (told,) = json.loads(text)["suspects"]
    assert told["process"]["comm"] == HOSTILE.replace("\udcff", "?")


def test_the_page_is_read_back_as_it_was_told():
    page = read_page(page_of(leak_view(suspect("fd_growth"), suspect("spinning", 1))))
    first, second = page.suspects
    assert (page.node, page.gpus, page.age_seconds) == ("gpu-17", 8, 4.0)
    assert first.chain == (BASH, PYTHON, LOADER)
    assert first.processes == (LOADER,)
    assert [finding.chain for finding in first.findings] == [(BASH, PYTHON, LOADER)]
    assert first.identity == "serving/llm-7f9c5d-xk2lp/server"
    assert second.identity == "Slurm job 90210 of ann"
    assert first.evidence == suspect("fd_growth").finding.evidence
    assert second.cost_per_hour == pytest.approx(68 / 1000 * 0.6)
    assert page.windows[0] == ToldWindow(open=False, reason="memory_in_use", seconds=120.0)


def test_a_process_without_a_tree_is_the_suspects_only_one():
    alone = suspect("fd_growth", processes=(), sandbox=Sandbox((LOADER,)))
    (told,) = read_page(page_of(leak_view(alone))).suspects
    assert (told.processes, told.chain, told.mount_namespace) == ((LOADER,), (LOADER,), None)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every value below one."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


GOOD = page_of(leak_view(suspect("fd_growth"), suspect("spinning", 1)))
WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.just(-1),
    st.just(10**400),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=2),
)


@given(place=st.sampled_from(list(places(GOOD))), wrong=WRONG)
def test_a_page_with_anything_wrong_is_read_or_refused_in_a_sentence(place, wrong):
    page = copy.deepcopy(GOOD)
    inner = page
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = wrong
    try:
        read_page(page)
    except SourceUnavailableError as error:
        assert "this is no page of leaks" in str(error)  # noqa: PT017  # either outcome is right


@pytest.mark.parametrize("data", [None, [], {}, "leaks", 3, {"probe": {}}])
def test_what_is_no_page_is_refused(data):
    with pytest.raises(SourceUnavailableError, match="this is no page of leaks"):
        read_page(data)


def test_memory_time_is_told_of_all_boards_together():
    held = {
        "GPU-0": Held(samples=2, byte_seconds=10.0, idle_byte_seconds=4.0),
        "GPU-1": Held(samples=1, byte_seconds=5.0, idle_byte_seconds=5.0),
    }
    told = page_of(replace(one_of_each(), held=held))["gpu_memory_held"]
    assert (told["samples"], told["byte_seconds"], told["idle_byte_seconds"]) == (3, 15.0, 9.0)
