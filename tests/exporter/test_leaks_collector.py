"""The series of leak probes, from views made by hand."""

import math
import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.collectors.suspects import EVIDENCE
from seedance_obs.exporter.registry import CollectorSet, registrations
from seedance_obs.exporter.view import IdleWindowView, LeakView, NodeView
from seedance_obs.leaks.suspect import GPU_KINDS, KINDS
from tests.exporter.leak_views import (
    JOB,
    NOW,
    ON_A_GPU,
    POD,
    hostile_suspect,
    leak_view,
    node_view,
    suspect,
)

INFO_LABELS = (
    *("comm", "gpu_instance", "gpu_uuid", "kind", "pid"),
    *("rule", "suspect", "tenant", "workload"),
)


def page(view: NodeView) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CollectorSet(lambda: view, NodeSettings(), monotonic=lambda: NOW))
    return generate_latest(registry).decode()


def scraped(leaks: LeakView | None) -> dict[str, dict[tuple[str, ...], float]]:
    """By series: its values by its label values, in the order of the label names."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(page(node_view(leaks))):
        for sample in family.samples:
            if "leak" in sample.name or "idle_window" in sample.name:
                labels = tuple(value for _, value in sorted(sample.labels.items()))
                found.setdefault(sample.name, {})[labels] = sample.value
    return found


def one_of_each() -> LeakView:
    return leak_view(*[suspect(kind, number) for number, kind in enumerate(KINDS)])


def test_the_collector_is_on_unless_it_is_left_out():
    assert registrations()["leaks"].default


def test_nothing_is_shown_where_nothing_is_probed():
    assert scraped(None) == {}


def test_before_the_first_probe_there_is_neither_an_age_nor_a_count():
    found = scraped(LeakView())
    assert found == {}


def test_once_probed_every_kind_is_counted_also_at_zero():
    found = scraped(leak_view(suspect("spinning")))["seedance_leak_suspects"]
    assert found == {(kind,): float(kind == "spinning") for kind in KINDS}


def test_a_kind_that_could_not_be_judged_is_not_counted_as_none():
    judged = scraped(LeakView(probed_at=1.0, unjudged=GPU_KINDS))["seedance_leak_suspects"]
    assert judged == {(kind,): 0 for kind in KINDS if kind not in GPU_KINDS}


def test_windows_are_the_nodes_and_each_workloads():
    found = scraped(leak_view())
    assert found["seedance_node_idle_window_open"] == {(): 0.0}
    assert found["seedance_node_idle_window_seconds_total"] == {(): 120.0}
    own = ("team-vision", POD.key)
    assert found["seedance_workload_idle_window_seconds_total"] == {own: 9_000.0}
    assert found["seedance_workload_idle_window_open"] == {own: 1.0}


def test_a_workloads_window_that_has_closed_again_is_told_to_be_closed():
    closed = IdleWindowView(open=False, seconds=900.0, workload=POD.key, reason="gpu_busy")
    never = replace(closed, seconds=0.0, workload=JOB.key)
    found = scraped(leak_view(windows=(closed, never)))
    assert found["seedance_workload_idle_window_open"] == {("", POD.key): 0.0}


def test_the_probe_tells_its_age_its_cost_and_what_it_could_not_read():
    found = scraped(leak_view())
    assert found["seedance_leak_probe_age_seconds"] == {(): 4.0}
    assert found["seedance_leak_idle_probe_age_seconds"] == {(): 18_000.0}
    assert found["seedance_leak_probe_cpu_seconds"] == {(): 0.012}
    assert found["seedance_leak_probe_processes"] == {
        ("read",): 409.0,
        ("no_permission",): 2.0,
        ("gone",): 1.0,
    }
    assert found["seedance_leak_probe_skipped_total"] == {
        ("memory_in_use",): 2300.0,
        ("warming_up",): 20.0,
    }


def test_until_a_window_lets_a_probe_pass_its_age_is_that_of_the_first_probe():
    found = scraped(leak_view(probed_in_window_at=None))
    assert found["seedance_leak_idle_probe_age_seconds"] == {(): 40_000.0}
    found = scraped(leak_view(probed_in_window_at=None, watching_since=None))
    assert "seedance_leak_idle_probe_age_seconds" not in found


def test_what_suspects_have_cost_so_far_is_counted_in_base_units():
    found = scraped(leak_view())
    assert found["seedance_leak_gpu_seconds_total"] == {("pseudo_idle_context",): 7_800.0}
    assert found["seedance_leak_gpu_energy_joules_total"] == {("pseudo_idle_context",): 530_400.0}


def test_a_suspect_says_what_it_is_and_whose():
    found = scraped(leak_view(suspect("pseudo_idle_context", 2)))
    (labels,) = found["seedance_leak_suspect_info"]
    assert dict(zip(INFO_LABELS, labels, strict=True)) == {
        "suspect": "pseudo_idle_context-4713-990000",
        "kind": "pseudo_idle_context",
        "rule": "",
        "gpu_uuid": "GPU-2",
        "gpu_instance": "",
        "pid": "4713",
        "comm": "pt_data_worker",
        "workload": POD.key,
        "tenant": "team-vision",
    }
    (started,) = found["seedance_leak_suspect_start_time_seconds"].values()
    assert started == 1_732_990_000.0


def test_every_number_of_a_suspect_is_a_series_and_an_unknown_one_is_none():
    evidence = {name: float(place) for place, name in enumerate(EVIDENCE, start=1)}
    whole = suspect("fd_growth")
    known = replace(whole, finding=replace(whole.finding, evidence=evidence), power_watts=70.0)
    found = scraped(leak_view(known))
    key = ("fd_growth", whole.name)
    for name, (series, _) in EVIDENCE.items():
        assert found[series] == {key: evidence[name]}
    assert found["seedance_leak_gpu_power_watts"] == {key: 70.0}
    nothing = replace(whole, finding=replace(whole.finding, evidence={}), started_unix=0.0)
    bare = scraped(leak_view(nothing))
    assert not {series for series, _ in EVIDENCE.values()} & bare.keys()
    assert "seedance_leak_gpu_power_watts" not in bare
    assert "seedance_leak_suspect_start_time_seconds" not in bare


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_no_sample(value):
    whole = suspect("fd_growth")
    evidence = {"exhaustion_seconds": value, "open_fds": 12.0}
    found = scraped(leak_view(replace(whole, finding=replace(whole.finding, evidence=evidence))))
    assert "seedance_leak_exhaustion_seconds" not in found
    assert found["seedance_leak_open_fds"] == {("fd_growth", whole.name): 12.0}


def test_only_the_worst_of_a_kind_are_shown_and_the_others_counted():
    many = [suspect("fd_growth", number) for number in range(12)]
    found = scraped(leak_view(*many, suspect("spinning"), most_shown=5))
    shown = {labels[1] for labels in found["seedance_leak_open_fds"]}
    assert shown == {one.name for one in many[:5]}
    assert found["seedance_leak_suspects"]["fd_growth",] == 12.0
    assert found["seedance_leak_suspects_hidden"] == {("fd_growth",): 7.0, ("spinning",): 0.0}
    assert len(found["seedance_leak_suspect_info"]) == 6


def test_without_a_price_there_is_no_cost():
    assert "seedance_leak_cost_per_hour" not in scraped(
        leak_view(suspect("spinning"), kwh_price=None)
    )


def test_energy_is_priced_where_power_is_known():
    two = [suspect("spinning"), suspect("spinning", 1, power_watts=None)]
    found = scraped(leak_view(*two, suspect("dead_pid_memory", power_watts=None)))
    assert found["seedance_leak_cost_per_hour"] == {
        ("EUR", "spinning"): pytest.approx(68 / 1000 * 0.6)
    }


def test_only_what_holds_a_gpu_costs_gpu_hours():
    leaks = replace(one_of_each(), kwh_price=None, gpu_hour_price=2.5)
    found = scraped(leaks)["seedance_leak_cost_per_hour"]
    assert {kind for _, kind in found} == GPU_KINDS == ON_A_GPU


def test_a_gpu_hour_is_priced_by_the_part_that_is_booked_to_the_suspect():
    leaks = leak_view(
        suspect("pseudo_idle_context", gpu_share=0.25),
        suspect("pseudo_idle_context", 1),
        suspect("dead_pid_memory", 8, gpu_share=None),
        kwh_price=None,
        gpu_hour_price=2.0,
    )
    assert scraped(leaks)["seedance_leak_cost_per_hour"] == {("EUR", "pseudo_idle_context"): 2.5}


def test_a_name_made_to_harm_is_a_short_harmless_label():
    process = replace(hostile_suspect().finding.process, pid=7)
    whole = suspect("fd_growth")
    found = scraped(leak_view(replace(whole, finding=replace(whole.finding, process=process))))
    (labels,) = found["seedance_leak_suspect_info"]
    comm = labels[0]
    assert comm.isprintable()
    assert len(comm) == 64


def test_promtool_finds_nothing_to_say():
    promtool = shutil.which("promtool")
    assert promtool, "promtool is not installed: apt-get install prometheus"
    text = page(node_view(replace(one_of_each(), gpu_hour_price=2.5)))
    run = subprocess.run(
        [promtool, "check", "metrics"], input=text.encode(), capture_output=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")
    assert "seedance_leak_suspect_info" in text
