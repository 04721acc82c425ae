"""A node whose sources fail, lie or leave: each costs itself only."""

import dataclasses
import shutil

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.config import NodeSettings
from seedance_obs.errors import SourceUnavailableError, UsageError
from seedance_obs.exporter.collectors.gpu import GpuCollector
from seedance_obs.exporter.collectors.tenant import TenantCollector
from seedance_obs.exporter.registry import choose, registrations
from seedance_obs.sources.readings import GpuProcess, GpuReadings, NvLink, SourceSnapshot, Xid
from tests.machine import machine


class Scripted:
    """A source that says what the test puts into it."""

    def __init__(self, name: str, clock) -> None:
        self.name = name
        self.gpus: tuple[GpuReadings, ...] | None = ()
        self.xids: tuple[Xid, ...] = ()
        self._clock = clock

    def read(self) -> SourceSnapshot:
        if self.gpus is None:
            raise SourceUnavailableError(f"{self.name} does not answer")
        return SourceSnapshot(self.name, self._clock(), gpus=self.gpus, xids=self.xids)

    def close(self) -> None:
        pass


def gpu(index: int, **values: float) -> GpuReadings:
    return GpuReadings(
        f"GPU-{index}", index=index, pci_bus_id=f"0000:{index:02x}:00.0", values=values
    )


@pytest.fixture
def sources(clock):
    return [Scripted("nvml", clock), Scripted("dcgm", clock)]


@pytest.fixture
def host(sources, clock, tmp_path):
    return machine(sources, clock, root=tmp_path)


def samples(host, name: str) -> dict[tuple[str, ...], float]:
    return samples_of(host.scrape(), name)


def samples_of(text: str, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for key, value in sample.labels.items() if key in ("gpu", "source", "xid")): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_a_source_that_stops_leaves_the_scrape_when_it_is_stale_and_not_before(
    host, sources, clock
):
    nvml, dcgm = sources
    nvml.gpus = (gpu(0, power_watts=100.0),)
    dcgm.gpus = (gpu(0, sm_active_ratio=0.5),)
    host.pass_once()
    nvml.gpus = None
    clock.advance(NodeSettings().sampler_stale_after_seconds)
    host.pass_once()
    assert samples(host, "seedance_gpu_power_watts") == {("0",): 100.0}
    assert samples(host, "seedance_source_up")["nvml",] == 0.0
    assert samples(host, "seedance_source_age_seconds") == {("nvml",): 30.0, ("dcgm",): 0.0}
    clock.advance(0.1)
    host.pass_once()
    assert samples(host, "seedance_gpu_power_watts") == {}
    assert samples(host, "seedance_gpu_sm_active_ratio") == {("0",): 0.5}


def test_a_lost_gpu_takes_its_readings_along_and_leaves_its_accounts_and_xids(host, sources, clock):
    nvml, _ = sources
    nvml.gpus = (gpu(0, power_watts=1.0), gpu(1, power_watts=2.0))
    nvml.xids = (Xid("GPU-1", 79),)
    host.pass_once()
    nvml.gpus, nvml.xids = (gpu(0, power_watts=1.0),), ()
    clock.advance(1.0)
    host.pass_once()
    assert samples(host, "seedance_gpu_power_watts") == {("0",): 1.0}
    assert samples(host, "seedance_gpus_expected") == {(): 2.0}
    assert samples(host, "seedance_gpus_seen") == {(): 1.0}
    assert samples(host, "seedance_gpu_xid_errors_total") == {("1", "79"): 1.0}
    assert 'seedance_tenant_gpu_seconds_total{gpu_uuid="GPU-1"' in host.scrape()


def test_an_xid_that_two_sources_tell_of_is_counted_once_and_one_is_enough(host, sources):
    nvml, dcgm = sources
    nvml.gpus = (gpu(0),)
    nvml.xids = dcgm.xids = (Xid("GPU-0", 48),)
    host.pass_once()
    assert samples(host, "seedance_gpu_xid_errors_total") == {("0", "48"): 1.0}
    nvml.gpus = None
    dcgm.xids = (Xid("GPU-0", 119),)
    host.pass_once()
    assert samples(host, "seedance_gpu_xid_errors_total") == {("0", "48"): 1.0, ("0", "119"): 1.0}


def on_switch(index: int) -> GpuReadings:
    link = NvLink(0, "switch", "0000:f0:00.0")
    return dataclasses.replace(gpu(index, power_watts=1.0), nvlinks=(link,))


def labels_of(text: str) -> dict[str, dict[str, str]]:
    return {
        sample.labels["gpu_uuid"]: sample.labels
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "seedance_gpu_power_watts"
    }


def test_no_label_of_a_healthy_gpu_changes_when_another_is_lost(host, sources, clock):
    nvml, _ = sources
    nvml.gpus = tuple(on_switch(index) for index in range(3))
    host.pass_once()
    before = labels_of(host.scrape())
    assert {labels["nvlink_domain"] for labels in before.values()} == {"node-1.0000-00-00.0"}
    nvml.gpus = nvml.gpus[1:]
    clock.advance(1.0)
    host.pass_once()
    after = labels_of(host.scrape())
    assert after == {uuid: before[uuid] for uuid in ("GPU-1", "GPU-2")}
    lonely = dataclasses.replace(nvml.gpus[0], nvlinks=())
    nvml.gpus = (lonely,)
    clock.advance(1.0)
    host.pass_once()
    assert labels_of(host.scrape()) == {"GPU-1": before["GPU-1"]}


def test_links_that_are_down_join_nothing(host, sources):
    nvml, _ = sources
    up = on_switch(0)
    down = dataclasses.replace(up.nvlinks[0], active=False)
    nvml.gpus = (
        dataclasses.replace(up, nvlinks=(*up.nvlinks, down)),
        dataclasses.replace(on_switch(1), nvlinks=(down,)),
    )
    host.pass_once()
    domains = {uuid: labels["nvlink_domain"] for uuid, labels in labels_of(host.scrape()).items()}
    assert domains == {"GPU-0": "node-1.0000-00-00.0", "GPU-1": ""}
    edges = [
        line.rpartition(" ")[2]
        for line in host.scrape().splitlines()
        if line.startswith("seedance_topology_edge_links{") and 'kind="nvlink"' in line
    ]
    assert edges == ["1.0", "0.0"]


def test_a_replaced_board_is_not_missing(host, sources, clock):
    nvml, _ = sources
    nvml.gpus = (gpu(0),)
    host.pass_once()
    nvml.gpus = (dataclasses.replace(gpu(0), uuid="GPU-new"),)
    clock.advance(1.0)
    host.pass_once()
    assert 'state="missing"' not in host.scrape()
    assert samples(host, "seedance_gpus_expected") == {(): 1.0}


def test_a_source_with_a_bug_is_down_and_says_so_once(host, sources, caplog, monkeypatch):
    def broken():
        raise ZeroDivisionError

    host.pass_once()
    monkeypatch.setattr(sources[0], "read", broken)
    for _ in range(3):
        host.pass_once()
    assert samples(host, "seedance_source_up")["nvml",] == 0.0
    assert sum("source_broken" in record.message for record in caplog.records) == 1


def test_nothing_is_counted_before_the_first_view(host):
    assert "seedance_gpus_" not in host.scrape()


def test_a_process_that_has_just_ended_keeps_its_user(host, sources, clock, tmp_path):
    process = tmp_path / "proc/77"
    process.mkdir(parents=True)
    (process / "stat").write_text("77 (python) S " + " ".join(["1"] * 49))
    (process / "status").write_text("Name:\tpython\nUid:\t1000\t1000\t1000\t1000\n")
    (tmp_path / "proc/stat").write_text("btime 1700000000\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("ada:x:1000:1000::/home/ada:/bin/sh\n")
    sources[0].gpus = (dataclasses.replace(gpu(0), processes=(GpuProcess(77),)),)
    host.pass_once()
    shutil.rmtree(process)
    clock.advance(1.0)
    host.pass_once()
    held = 'seedance_tenant_gpu_seconds_total{gpu_uuid="GPU-0",state="reserved",tenant="ada"} 1.0'
    assert held in host.scrape()


def test_a_collector_that_breaks_costs_only_its_own_series(host, sources, monkeypatch, caplog):
    sources[0].gpus = (gpu(0, power_watts=1.0),)
    host.pass_once()

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("seedance_obs.exporter.collectors.device._mig_info", broken)
    for _ in range(3):
        text = host.scrape()
    assert 'seedance_collector_success{collector="device"} 0.0' in text
    assert 'seedance_collector_success{collector="gpu"} 1.0' in text
    assert "seedance_gpu_power_watts{" in text
    assert "seedance_gpus_seen" not in text
    monkeypatch.undo()
    assert 'seedance_collector_success{collector="device"} 1.0' in host.scrape()
    failures = [r for r in caplog.records if "collector_failing" in r.message]
    assert len(failures) == 1, "a fault that lasts is logged when it starts"
    assert any("collector_recovered" in record.message for record in caplog.records)


def test_nothing_to_show_is_told_apart_from_failure(host):
    host.pass_once()
    text = host.scrape()
    assert 'seedance_collector_has_data{collector="gpu"} 0.0' in text
    assert 'seedance_collector_success{collector="gpu"} 1.0' in text


def test_expected_gpus_can_be_told(sources, clock, tmp_path):
    host = machine(sources, clock, root=tmp_path)
    host.node._settings = dataclasses.replace(host.node._settings, node_expected_gpus=8)
    host.pass_once()
    assert samples(host, "seedance_gpus_expected") == {(): 8.0}


def test_a_fault_is_logged_when_it_starts_and_when_it_ends(host, sources, caplog):
    sources[0].gpus = None
    for _ in range(3):
        host.pass_once()
    sources[0].gpus = ()
    host.pass_once()
    events = [record.message.split()[0] for record in caplog.records]
    assert events == ["event=source_down", "event=source_up"]


def test_collectors_are_found_and_can_be_left_out():
    assert list(registrations()) == [
        "attribution",
        "bandwidth",
        "device",
        "exporter",
        "fragmentation",
        "gpu",
        "host",
        "leaks",
        "links",
        "nics",
        "placement",
        "quota",
        "segments",
        "suspects",
        "tenant",
        "topology",
        "workload",
    ]
    assert "tenant" not in choose(NodeSettings(collectors_disabled=("tenant",)))
    with pytest.raises(UsageError, match="there is no collector 'gpus'; there are attribution,"):
        choose(NodeSettings(collectors_disabled=("gpus",)))


def test_a_view_that_is_replaced_during_a_scrape_does_not_mix_with_the_old(
    host, sources, clock, monkeypatch
):
    nvml, _ = sources
    nvml.gpus = (gpu(0, energy_mj=1_000),)
    host.pass_once()

    def pass_on(original):
        def collect(self, view, now):
            clock.advance(1.0)
            nvml.gpus = (gpu(0, energy_mj=nvml.gpus[0].values["energy_mj"] + 500),)
            host.pass_once()
            return original(self, view, now)

        return collect

    monkeypatch.setattr(GpuCollector, "collect", pass_on(GpuCollector.collect))
    monkeypatch.setattr(TenantCollector, "collect", pass_on(TenantCollector.collect))
    for _ in range(2):
        text = host.scrape()
        board = samples_of(text, "seedance_gpu_energy_joules_total")["0",]
        tenants = samples_of(text, "seedance_tenant_gpu_energy_joules_total")[()]
        assert board - 1.0 == tenants
