"""Machines go in, whole scrapes come out: `pytest --update-golden` rewrites what is expected."""

import shutil
import subprocess
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.assets import assets_folder
from tests.machine import HOSTS, Machine, replayed

MACHINES = sorted(folder.name for folder in HOSTS.iterdir())


@pytest.fixture(params=MACHINES)
def host(request, clock, tmp_path) -> tuple[str, Machine]:
    found = replayed(HOSTS / request.param, clock, tmp_path)
    found.pass_once()
    clock.advance(1.0)
    found.pass_once()
    yield request.param, found
    found.node.close()


def test_the_whole_scrape_is_as_expected(host, request):
    name, found = host
    expected = HOSTS / name / "expected.prom"
    scrape = found.scrape()
    if request.config.getoption("--update-golden"):
        expected.write_text(scrape)
    assert scrape == expected.read_text()


def test_promtool_finds_nothing_to_say_about_the_scrape(host):
    _, found = host
    promtool = shutil.which("promtool")
    assert promtool, "promtool is not installed: apt-get install prometheus"
    run = subprocess.run(
        [promtool, "check", "metrics"], input=found.scrape().encode(), capture_output=True
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")


def test_a_gpu_has_at_most_120_series(host):
    """The whole page counts, the node's own series and its wiring too, but for what work adds."""
    name, found = host
    of_work = ("seedance_mig", "seedance_tenant", "seedance_workload_")
    samples = [
        sample
        for family in text_string_to_metric_families(found.scrape())
        if not family.name.startswith(of_work)
        for sample in family.samples
    ]
    of_gpus = Counter(sample.labels.get("gpu_uuid") for sample in samples)
    gpus = len(of_gpus.keys() - {None, ""})
    assert all(count <= 120 for uuid, count in of_gpus.items() if uuid)
    if gpus and not (HOSTS / name / "dcgm.prom").exists():
        assert len(samples) <= 120 * gpus


def test_the_contract_names_every_series_of_every_machine(host):
    contract = (assets_folder("exporters") / "node.prom").read_text()
    _, found = host
    for line in found.scrape().splitlines():
        if line.startswith("# TYPE "):
            assert line in contract.splitlines()
