"""The simulated dcgm-exporter page is a legal page, of the right moment."""

from collections import Counter

import pytest
from one_gpu import machine_with
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from seedance_obs.errors import UsageError
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.page import render_page

SENTINELS_FROM = 2_147_483_632
WITH_DCGM = [
    "a100-nvswitch",
    "a100-pcie",
    "gb200",
    "gb200-zero",
    "h100-mig",
    "h100-nvswitch",
    "leaky",
    "v100-cubemesh",
]


def samples(name: str, t: float) -> list[Sample]:
    page = render_page(load_machine(name), t)
    return [s for family in text_string_to_metric_families(page) for s in family.samples]


def of(found: list[Sample], name: str, **labels: str) -> list[Sample]:
    return [s for s in found if s.name == name and labels.items() <= s.labels.items()]


@pytest.mark.parametrize("name", WITH_DCGM)
@pytest.mark.parametrize("t", [0.0, 11.0, 33.3, 4000.0])
def test_a_page_parses_and_holds_no_sentinel_and_no_impossible_value(name: str, t: float) -> None:
    found = samples(name, t)
    assert len(found) > 100
    for sample in found:
        if "ENERGY" not in sample.name and "PCIE_" not in sample.name:
            assert 0 <= sample.value < SENTINELS_FROM, sample
        if "UTIL" in sample.name:
            assert sample.value <= 100
        if "_ACTIVE" in sample.name or "OCCUPANCY" in sample.name:
            assert sample.value <= 1


def test_a_page_has_each_series_once_and_each_family_in_one_piece() -> None:
    page = render_page(load_machine("h100-mig"), 33.0)
    rows = [line.rsplit(" ", 1)[0] for line in page.splitlines() if not line.startswith("#")]
    helps = [line.split(" ")[2] for line in page.splitlines() if line.startswith("# HELP")]
    assert max(Counter(rows).values()) == 1
    assert max(Counter(helps).values()) == 1
    assert {row.split("{")[0] for row in rows} == set(helps)


def test_labels_and_numbers_are_spelt_as_dcgm_exporter_does() -> None:
    lines = render_page(load_machine("h100-nvswitch"), 33.0).splitlines()
    uuid = load_machine("h100-nvswitch").gpu_uuid(2)
    labels = (
        f'gpu="2",UUID="{uuid}",pci_bus_id="00000000:3A:00.0",device="nvidia2",'
        'modelName="NVIDIA H100 80GB HBM3",Hostname="h100-nvswitch",'
        'DCGM_FI_DRIVER_VERSION="580.105.08",'
        'container="trainer",namespace="research",pod="llm-pretrain-0"'
    )
    assert f"DCGM_FI_DEV_FB_USED{{{labels}}} 68000" in lines
    power = next(line for line in lines if line.startswith(f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}"))
    assert len(power.rsplit(".", 1)[1]) == 6
    xid = f'DCGM_FI_DEV_XID_ERRORS{{{labels},err_code="0",err_msg="No Error"}} 0'
    assert xid in lines


def test_a_free_board_has_no_pod_and_a_machine_without_kubernetes_none_at_all() -> None:
    free = of(samples("h100-nvswitch", 33.0), "DCGM_FI_DEV_GPU_UTIL", gpu="7")
    assert "pod" not in free[0].labels
    assert all("pod" not in sample.labels for sample in samples("a100-pcie", 33.0))


@pytest.mark.parametrize("name", WITH_DCGM)
def test_values_are_those_of_the_last_whole_interval(name: str) -> None:
    machine = load_machine(name)
    interval = machine.dcgm_interval_s
    assert interval is not None
    at, before_next = (render_page(machine, 2 * interval + more) for more in (0, interval - 0.01))
    assert at == before_next
    assert at != render_page(machine, 3 * interval)


def test_the_page_agrees_with_nvml_at_the_sampled_moment() -> None:
    machine = load_machine("v100-cubemesh")
    found = samples("v100-cubemesh", 42.0)
    library = SimNvml(machine, lambda: 40.0)
    library.call("nvmlInit")
    for gpu in range(8):
        energy = of(found, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", gpu=str(gpu))[0].value
        clock = of(found, "DCGM_FI_DEV_SM_CLOCK", gpu=str(gpu))[0].value
        assert energy == library.call("nvmlDeviceGetTotalEnergyConsumption", f"gpu{gpu}")
        assert clock == library.call("nvmlDeviceGetClockInfo", f"gpu{gpu}", 1)


def test_the_last_xid_sticks_and_a_lost_board_vanishes() -> None:
    def xids(t: float) -> dict[str, float]:
        rows = of(samples("a100-pcie", t), "DCGM_FI_DEV_XID_ERRORS")
        return {row.labels["gpu"]: row.value for row in rows}

    assert xids(11.0)["5"] == 0
    assert "5" not in xids(15.0)
    assert len(xids(15.0)) == 7
    machine = machine_with({}, faults=[{"at_s": 3, "gpu": 0, "xid": 63}], dcgm_interval_s=1)
    for t, code in ((2.9, "0"), (3.0, "63"), (500.0, "63")):
        assert f'err_code="{code}"' in render_page(machine, t)


def test_mig_instances_have_rows_of_their_own_and_the_board_has_none() -> None:
    found = samples("h100-mig", 33.0)
    used = of(found, "DCGM_FI_DEV_FB_USED", gpu="0")
    assert {(s.labels["GPU_I_PROFILE"], s.labels["GPU_I_ID"]): s.value for s in used} == {
        ("3g.40gb", "2"): 30000,
        ("2g.20gb", "3"): 7000,
        ("1g.10gb", "9"): 7000,
        ("1g.10gb", "10"): 0,
    }
    assert len({s.value for s in of(found, "DCGM_FI_DEV_POWER_USAGE", gpu="0")}) == 1
    assert of(found, "DCGM_FI_DEV_GPU_UTIL", gpu="0") == []
    assert len(of(found, "DCGM_FI_DEV_GPU_UTIL")) == 7
    assert len(of(found, "DCGM_FI_PROF_SM_ACTIVE", gpu="0")) == 4


def test_a_consumer_board_has_no_profiling_and_no_memory_sensor() -> None:
    machine = machine_with({"gpus": [0]}, dcgm_interval_s=1)
    gpu = {"model": "rtx3090", "pci": "0000:18:00.0", "path": ["pci0000:15"]}
    consumer = machine_with({"gpus": [0]}, dcgm_interval_s=1, gpus=[gpu])
    for family in ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_MEMORY_TEMP", "REMAPPED_ROWS"):
        assert family in render_page(machine, 3.0)
        assert family not in render_page(consumer, 3.0)


@pytest.mark.parametrize("name", sorted(set(machine_names()) - set(WITH_DCGM)))
def test_a_machine_without_dcgm_exporter_has_no_page(name: str) -> None:
    with pytest.raises(UsageError, match="has no dcgm-exporter"):
        render_page(load_machine(name), 5.0)
