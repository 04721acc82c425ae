"""Real pages of every label generation, read from the shared data set."""

import os
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.dcgm.fields import FIELD_OF
from seedance_obs.sources.dcgm.page import parse_page, read_page
from seedance_obs.sources.readings import Pod, SourceSnapshot

SHARED = Path(os.environ.get("SEEDANCE_SHARED") or Path(__file__).parents[3] / "shared")
PAGES = SHARED / "data/dcgm-metrics"

pytestmark = pytest.mark.skipif(not PAGES.is_dir(), reason="the shared data set is not here")

CLOCKS = {"clock_sm_hertz", "clock_memory_hertz"}
MEMORY = {"memory_used_bytes", "memory_free_bytes"}
COMMON = {"temperature_gpu_celsius", "power_watts", "utilization_ratio"}
CODECS = {"encoder_utilization_ratio", "decoder_utilization_ratio"}
REMAPS = {"remapped_rows_correctable", "remapped_rows_uncorrectable", "remapped_rows_failed"}

# File: GPUs, MIG instances, drops, and the quantities seen on its boards.
EXPECTED: dict[str, tuple[int, int, dict[str, int], set[str]]] = {
    "a-v1_legacy-dcgm-prefix_v100era": (1, 0, {}, COMMON | {"clock_sm_hertz", "energy_mj"}),
    "b-v2_readme_int64-sentinel-leak": (1, 0, {"sentinel": 1}, CLOCKS),
    "c-2022-03_titanv_k8s_empty-pod-labels": (5, 0, {}, {"clock_sm_hertz"}),
    "c-2023-09_1x-compat-metric-names_k8s": (
        1,
        0,
        {},
        COMMON | CLOCKS | {"energy_mj", "pcie_replays"},
    ),
    "c-2024-01_t400_xid-count-exp-metric": (0, 0, {}, set()),
    "c-drv460_t4_many-label-fields": (
        2,
        0,
        {},
        COMMON
        | CLOCKS
        | MEMORY
        | CODECS
        | {"energy_mj", "pcie_replays", "memory_busy_ratio", "power_limit_watts"}
        | {"performance_state", "memory_total_bytes", "clocks_event_reasons"},
    ),
    "c-drv510_a100-80gb-pcie_k8s": (1, 0, {}, MEMORY),
    "c-drv535_a800-sxm4-80gb_x8_mixed-mig": (
        8,
        3,
        {},
        COMMON
        | CLOCKS
        | MEMORY
        | CODECS
        | REMAPS
        | {"energy_mj", "pcie_replays", "memory_busy_ratio", "temperature_memory_celsius"},
    ),
    "c-main-2024_v100-sxm2-32gb_x4_baremetal": (
        4,
        0,
        {},
        {"power_limit_watts", "pcie_replays", "utilization_ratio"},
    ),
    "c-v2.4.0rc_a100-40gb_mig-1g5gb": (
        1,
        1,
        {},
        CLOCKS
        | MEMORY
        | {"temperature_gpu_celsius", "temperature_memory_celsius", "power_watts", "energy_mj"}
        | {"pcie_replays", "engine_active_ratio", "tensor_active_ratio", "dram_active_ratio"}
        | {"pcie_transmit_bytes_per_second", "pcie_receive_bytes_per_second"},
    ),
    "d-drv580_gb200_x4_k8s_idle": (4, 0, {}, COMMON | MEMORY | {"memory_busy_ratio"}),
    "d-drv580_h100-hbm3_x8_k8s_one-pod": (8, 0, {}, COMMON | {"memory_busy_ratio"}),
    "d-drv580_h100-hbm3_x8_k8s_pod-uid": (8, 0, {}, COMMON | {"memory_busy_ratio"}),
}


def text_of(name: str) -> str:
    return (PAGES / f"{name}.prom").read_text("utf-8")


def snapshot_of(name: str) -> SourceSnapshot:
    return read_page(text_of(name), taken_at=0.0)


def test_every_page_of_the_data_set_is_expected() -> None:
    assert {page.stem for page in PAGES.glob("*.prom")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_page_gives_its_gpus_instances_quantities_and_drops(name: str) -> None:
    gpus, instances, dropped, quantities = EXPECTED[name]
    snapshot = snapshot_of(name)
    assert len(snapshot.gpus) == gpus
    assert sum(len(gpu.mig) for gpu in snapshot.gpus) == instances
    assert snapshot.dropped == dropped
    assert {quantity for gpu in snapshot.gpus for quantity in gpu.values} == quantities


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_is_one_its_quantity_admits(name: str) -> None:
    for gpu in snapshot_of(name).gpus:
        for values in (gpu.values, *(instance.values for instance in gpu.mig)):
            for quantity, value in values.items():
                assert QUANTITIES[quantity].admits(value), (gpu.uuid, quantity, value)


@pytest.mark.parametrize("name", EXPECTED)
def test_values_agree_with_prometheus_own_parser(name: str) -> None:
    """An independent reader of the same text finds the same numbers for whole boards."""
    boards = {gpu.uuid: gpu for gpu in snapshot_of(name).gpus}
    checked = 0
    for family in text_string_to_metric_families(text_of(name)):
        for sample in family.samples:
            field = FIELD_OF.get(sample.name)
            if field is None or "GPU_I_ID" in sample.labels or sample.value > 9.2e18:
                continue
            uuid = sample.labels.get("UUID") or sample.labels["uuid"]
            expected = field.convert(sample.value)
            assert boards[uuid].values[field.quantity] == pytest.approx(expected, rel=1e-12)
            checked += 1
    assert checked > 0 or not boards


def test_mig_instances_hold_their_memory_and_leave_the_boards_values_to_the_board() -> None:
    board = snapshot_of("c-drv535_a800-sxm4-80gb_x8_mixed-mig").gpus[0]
    assert [(part.gpu_instance, part.profile) for part in board.mig] == [
        (3, "2g.20gb"),
        (5, "2g.20gb"),
        (6, "2g.20gb"),
    ]
    for part in board.mig:
        assert part.values == {
            "memory_used_bytes": 10 * 2**20,
            "memory_free_bytes": 19957 * 2**20,
        }
    assert board.values["power_watts"] == 78.174
    assert board.values["energy_mj"] == 257858316
    assert not MEMORY & board.values.keys()


def test_a_board_row_outranks_the_rows_of_its_instances() -> None:
    board = snapshot_of("c-v2.4.0rc_a100-40gb_mig-1g5gb").gpus[0]
    assert board.values["dram_active_ratio"] == 0.690789
    assert board.mig[0].values["dram_active_ratio"] == 0.800339


def test_units_become_base_units() -> None:
    (gpu,) = snapshot_of("a-v1_legacy-dcgm-prefix_v100era").gpus
    assert gpu.values["clock_sm_hertz"] == 135e6
    assert gpu.values["energy_mj"] == 7824041
    assert isinstance(gpu.values["energy_mj"], int)


def test_identity_facts_versions_and_pods_come_from_the_labels() -> None:
    snapshot = snapshot_of("d-drv580_h100-hbm3_x8_k8s_pod-uid")
    assert snapshot.versions == {"driver_version": "580.105.08"}
    first, second, *_ = snapshot.gpus
    assert (first.index, first.pci_bus_id) == (0, "0000:53:00.0")
    assert first.model == "NVIDIA H100 80GB HBM3"
    assert first.pods == (Pod("ns-1", "pod-1", "ctr-1"),)
    assert second.pods == ()
    t4 = snapshot_of("c-drv460_t4_many-label-fields")
    assert t4.versions["nvml_version"] == "11.470.182.03"
    assert t4.versions["cuda_version"] == "12.1"
    facts = {gpu.uuid: gpu.facts for gpu in t4.gpus}["GPU-9410703f-7f20-5efa-bc73-60a5b34c6f95"]
    assert facts["vbios_version"] == "90.04.96.00.02"
    assert facts["minor_number"] == "0"


def test_empty_pod_labels_name_no_pod() -> None:
    assert all(not gpu.pods for gpu in snapshot_of("c-2022-03_titanv_k8s_empty-pod-labels").gpus)


GENERATIONS = {
    "lower-case host name": [("Hostname=", "hostname=")],
    "link-group spelling": [("UUID=", "gpu_uuid="), ("modelName=", "model_name=")],
    "1.x label": [("UUID=", "uuid=")],
    "space after the comma": [('",', '", ')],
    "before pci_bus_id": [(r'pci_bus_id="[^"]*",', "")],
    "4.6 names": [
        (r"DCGM_FI_DEV_GPU_TEMP\{", "DCGM_FI_DEV_GPU_TEMP_CELSIUS{"),
        (r"DCGM_FI_DEV_POWER_USAGE\{", "DCGM_FI_DEV_BOARD_POWER_WATTS{"),
        (r"DCGM_FI_DEV_GPU_UTIL\{", "DCGM_FI_DEV_GPU_UTIL_RATIO{"),
        ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
    ],
    "1.x names": [
        (r"DCGM_FI_DEV_GPU_TEMP\{", "dcgm_gpu_temp{"),
        (r"DCGM_FI_DEV_POWER_USAGE\{", "dcgm_power_usage{"),
        (r"DCGM_FI_DEV_GPU_UTIL\{", "dcgm_gpu_utilization{"),
        (r"DCGM_FI_DEV_MEM_COPY_UTIL\{", "dcgm_mem_copy_utilization{"),
    ],
    "Windows line ends": [("\n", "\r\n")],
}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(
    "name", ["d-drv580_h100-hbm3_x8_k8s_one-pod", "d-drv580_gb200_x4_k8s_idle"]
)
def test_one_machine_reads_the_same_in_every_generation(generation: str, name: str) -> None:
    text = text_of(name)
    rewritten = text
    for pattern, replacement in GENERATIONS[generation]:
        rewritten = re.sub(pattern, replacement, rewritten)
    assert rewritten != text
    before, after = (read_page(page, taken_at=0.0) for page in (text, rewritten))
    assert [gpu.values for gpu in after.gpus] == [gpu.values for gpu in before.gpus]
    assert [gpu.uuid for gpu in after.gpus] == [gpu.uuid for gpu in before.gpus]
    assert [gpu.model for gpu in after.gpus] == [gpu.model for gpu in before.gpus]
    assert [gpu.pods for gpu in after.gpus] == [gpu.pods for gpu in before.gpus]
    assert after.versions == before.versions
    assert after.dropped == before.dropped


@pytest.mark.parametrize(
    "name", ["c-v2.4.0rc_a100-40gb_mig-1g5gb", "b-v2_readme_int64-sentinel-leak"]
)
def test_a_page_cut_anywhere_says_nothing_that_the_whole_page_does_not(name: str) -> None:
    text = text_of(name)
    whole = parse_page(text)
    board, parts = whole.gpus[0], {part.gpu_instance: part for part in whole.gpus[0].mig}
    for end in range(len(text)):
        page = parse_page(text[:end])
        for gpu in page.gpus:
            assert gpu.uuid == board.uuid
            assert gpu.values.items() <= board.values.items()
            for part in gpu.mig:
                assert part.profile == parts[part.gpu_instance].profile
                assert part.values.items() <= parts[part.gpu_instance].values.items()
        for uuid, codes in page.last_xids.items():
            assert codes <= whole.last_xids[uuid]
        assert page.dropped.keys() <= {"truncated", *whole.dropped}
