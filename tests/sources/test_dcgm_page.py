"""What a dcgm-exporter line may say, and what it may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.dcgm.fields import FIELD_OF, FIELDS, XID_NAMES, Scope
from seedance_obs.sources.dcgm.page import DROP_REASONS, parse_page, read_page
from seedance_obs.sources.readings import GpuReadings, Pod

UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"
GPU = f'gpu="0",UUID="{UUID}"'
MIG = f'{GPU},GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'


def read_one(*lines: str) -> GpuReadings:
    (gpu,) = read_page("\n".join(lines) + "\n", taken_at=0.0).gpus
    return gpu


def drops(*lines: str) -> dict[str, int]:
    dropped = read_page("\n".join(lines) + "\n", taken_at=0.0).dropped
    assert dropped.keys() <= DROP_REASONS.keys()
    return dict(dropped)


def line(family: str, value: str, labels: str = GPU) -> str:
    return f"DCGM_FI_{family}{{{labels}}} {value}"


@pytest.mark.parametrize(
    "value",
    [
        *(str(2147483632 + kind) for kind in range(4)),
        *(str(9223372036854775792 + kind) for kind in range(4)),
        *(f"{140737488355328 + kind}.000000" for kind in range(4)),
        "9.223372036854776e+18",
        "140737488355328",
        "<<<NOT_SUPPORTED>>>",
        "<<<NULL>>>",
        "+Inf",
        "1" * 5000,
    ],
)
def test_a_sentinel_is_no_reading_in_any_field(value: str) -> None:
    for field in FIELDS:
        text = f"{field.names[0]}{{{GPU}}} {value}\n"
        snapshot = read_page(text, taken_at=0.0)
        assert [dict(gpu.values) for gpu in snapshot.gpus] == [{}]
        assert snapshot.dropped == {"sentinel": 1}


@pytest.mark.parametrize("value", ["4294967295", "101", "-1", "NaN", "-Inf", "1e6"])
def test_impossible_utilisation_is_dropped_as_out_of_range(value: str) -> None:
    assert drops(line("DEV_GPU_UTIL", value)) == {"out_of_range": 1}


def test_activity_above_one_on_a_mig_instance_is_dropped() -> None:
    assert drops(line("PROF_SM_ACTIVE", "1.742000", MIG)) == {"out_of_range": 1}


@pytest.mark.parametrize(
    ("family", "value", "expected"),
    [
        ("DEV_GPU_UTIL", "73", 0.73),
        ("DEV_GPU_UTIL", "1", 0.01),
        ("DEV_GPU_UTIL_RATIO", "73", 0.73),  # DCGM 4.6: an integer field, in per cent
        ("DEV_GPU_UTIL_RATIO", "1", 0.01),
        ("DEV_GPU_UTIL_RATIO", "0.730000", 0.73),  # DCGM 4.7: a floating-point field, a ratio
        ("DEV_GPU_UTIL_RATIO", "1.000000", 1.0),
        ("DEV_GPU_UTIL_RATIO", "0", 0.0),
    ],
)
def test_the_printed_form_tells_the_scale_of_utilisation(
    family: str, value: str, expected: float
) -> None:
    assert read_one(line(family, value)).values["utilization_ratio"] == expected


def test_a_ratio_above_one_is_not_taken_for_a_percentage() -> None:
    assert drops(line("DEV_GPU_UTIL_RATIO", "73.000000")) == {"out_of_range": 1}


def test_base_unit_fields_of_dcgm_4_7_agree_with_the_classic_ones() -> None:
    classic = read_one(
        line("DEV_SM_CLOCK", "1410"),
        line("DEV_FB_USED", "1024"),
        line("DEV_FAN_SPEED", "30"),
        line("DEV_TOTAL_ENERGY_CONSUMPTION", "257858000"),
    )
    base = read_one(
        line("DEV_SM_CLOCK_HERTZ", "1410000000"),
        line("DEV_FB_USED_BYTES", "1073741824"),
        line("DEV_FAN_SPEED_RATIO", "0.300000"),
        line("DEV_GPU_ENERGY_JOULES_TOTAL", "257858"),
    )
    assert classic.values == base.values


@pytest.mark.parametrize("swap", [False, True])
def test_the_finer_of_two_fields_is_believed_in_either_order(swap: bool) -> None:
    lines = [
        line("DEV_TOTAL_ENERGY_CONSUMPTION", "257858316"),
        line("DEV_GPU_ENERGY_JOULES_TOTAL", "257858"),
    ]
    assert read_one(*lines[:: -1 if swap else 1]).values == {"energy_mj": 257858316}
    assert drops(*lines) == {}


def test_energy_is_an_exact_integer_beyond_what_a_float_holds() -> None:
    gpu = read_one(line("DEV_TOTAL_ENERGY_CONSUMPTION", "9007199254740993"))
    assert gpu.values["energy_mj"] == 9007199254740993


def test_memory_at_zero_degrees_is_a_missing_sensor() -> None:
    assert drops(line("DEV_MEMORY_TEMP", "0")) == {"not_measured": 1}
    assert read_one(line("DEV_GPU_TEMP", "0")).values == {"temperature_gpu_celsius": 0.0}


def test_utilisation_of_a_mig_instance_is_not_the_boards() -> None:
    gpu = read_one(line("DEV_GPU_UTIL", "0", MIG), line("DEV_FB_USED", "10", MIG))
    assert gpu.values == {}
    assert gpu.mig[0].values == {"memory_used_bytes": 10 * 2**20}
    assert drops(line("DEV_GPU_UTIL", "0", MIG)) == {"not_measured": 1}


def test_a_boards_value_repeated_on_its_instances_is_taken_once_and_quietly() -> None:
    other = MIG.replace('GPU_I_ID="7"', 'GPU_I_ID="8"')
    lines = [line("DEV_POWER_USAGE", "78.174", MIG), line("DEV_POWER_USAGE", "78.446", other)]
    gpu = read_one(*lines)
    assert gpu.values == {"power_watts": 78.174}
    assert [part.gpu_instance for part in gpu.mig] == [7, 8]
    assert drops(*lines) == {}


def test_lines_that_contradict_each_other_keep_the_first_and_count() -> None:
    lines = [line("DEV_GPU_TEMP", "40"), line("DEV_GPU_TEMP", "41"), line("DEV_GPU_TEMP", "40")]
    assert read_one(*lines).values == {"temperature_gpu_celsius": 40.0}
    assert drops(*lines) == {"duplicate": 1}


def test_a_sharing_pods_part_is_not_the_boards_value() -> None:
    shared = f'{GPU},vgpu="1",namespace="a",pod="p1",container="c"'
    gpu = read_one(line("DEV_GPU_UTIL", "30", shared), line("DEV_GPU_TEMP", "40", shared))
    assert gpu.values == {"temperature_gpu_celsius": 40.0}
    assert gpu.pods == (Pod("a", "p1", "c"),)
    assert drops(line("DEV_FB_USED", "30", shared)) == {"not_measured": 1}


def test_pods_are_collected_over_rows_in_all_label_spellings() -> None:
    old = f'{GPU},pod_namespace="a",pod_name="p1",container_name="c1"'
    new = f'{GPU},namespace="b",pod="p2",container="c2",hpc_job="7"'
    gpu = read_one(line("DEV_GPU_TEMP", "40", old), line("DEV_GPU_TEMP", "40", new))
    assert gpu.pods == (Pod("a", "p1", "c1"), Pod("b", "p2", "c2"))


@pytest.mark.parametrize(
    "labels",
    [
        'nvlink="3",nvswitch="0",gpu="",gpu_uuid=""',
        f'nvlink="3",gpu="0",gpu_uuid="{UUID}",model_name="H100"',
        'nvswitch="0"',
        'cpu="1"',
        'cpucore="4",cpu="1"',
    ],
)
def test_rows_of_links_switches_and_cpus_are_ignored(labels: str) -> None:
    snapshot = read_page(line("DEV_GPU_TEMP", "40", labels) + "\n", taken_at=0.0)
    assert (snapshot.gpus, snapshot.dropped) == ((), {})


@pytest.mark.parametrize("labels", ['gpu="0"', 'gpu="0",UUID="<<<NULL>>>"', 'UUID="MIG-1"', ""])
def test_a_row_without_a_gpu_uuid_is_nobodys(labels: str) -> None:
    assert drops(line("DEV_GPU_TEMP", "40", labels)) == {"no_identity": 1}
    assert drops("DCGM_FI_DEV_GPU_TEMP 40") == {"no_identity": 1}


@pytest.mark.parametrize("instance", ['GPU_I_ID="x"', 'GPU_I_ID="²"', 'GPU_I_PROFILE="1g.5gb"'])
def test_an_instance_without_a_number_is_not_the_board(instance: str) -> None:
    row = line("DEV_FB_USED", "40", f"{GPU},{instance}")
    assert drops(row) == {"no_identity": 1}
    assert read_one(row).values == {}


@pytest.mark.parametrize(
    "bad",
    [
        line("DEV_GPU_TEMP", ""),
        line("DEV_GPU_TEMP", "abc"),
        line("DEV_GPU_TEMP", "1_000"),
        line("DEV_GPU_TEMP", "0x10"),
        line("DEV_GPU_TEMP", "40 then garbage"),
        line("DEV_GPU_TEMP", "40", f'{GPU},pod="say "hi""'),
        line("DEV_GPU_TEMP", "40", f'{GPU},pod="open'),
        line("DEV_GPU_TEMP", "40", f"{GPU},{GPU}"),
        line("DEV_GPU_TEMP", "40", f'{GPU},pod="\N{REPLACEMENT CHARACTER}"'),
        "DCGM_FI_DEV_GPU_TEMP{",
        "%$&",
    ],
)
def test_a_bad_line_costs_only_itself(bad: str) -> None:
    good = line("DEV_POWER_USAGE", "100.5")
    assert read_one(bad, good).values == {"power_watts": 100.5}
    assert drops(good, bad) == {"malformed": 1}


@pytest.mark.parametrize(
    "row",
    [
        line("DEV_GPU_TEMP", "4e+01"),
        line("DEV_GPU_TEMP", "40.0 1395066363000"),
        line("DEV_GPU_TEMP", " 40 "),
        line("DEV_GPU_TEMP", "40", f'gpu="0" , UUID = "{UUID}" ,'),
        line("DEV_GPU_TEMP", "40", f'{GPU},pod="a\\"b\\\\c\\nd",x="}}"'),
        f'DCGM_FI_DEV_GPU_TEMP {{gpu="0",UUID="{UUID.upper()}"}}\t40',
    ],
)
def test_legal_spellings_of_a_line_are_read(row: str) -> None:
    gpu = read_one(row)
    assert (gpu.uuid, gpu.index) == (UUID, 0)
    assert gpu.values == {"temperature_gpu_celsius": 40.0}


def test_escapes_in_label_values_are_undone() -> None:
    gpu = read_one(line("DEV_GPU_TEMP", "40", f'{GPU},namespace="n",pod="a\\"b\\\\c"'))
    assert gpu.pods == (Pod("n", 'a"b\\c', ""),)


def test_sentinel_texts_in_labels_say_nothing() -> None:
    labels = f'{GPU},modelName="<<<NULL>>>",DCGM_FI_DRIVER_VERSION="SKIPPING DCGM VALUE"'
    snapshot = read_page(line("DEV_GPU_TEMP", "40", labels) + "\n", taken_at=0.0)
    assert snapshot.gpus[0].model is None
    assert snapshot.versions == {}


def test_exporter_computed_and_unmapped_families_are_ignored() -> None:
    rows = [
        f'DCGM_EXP_XID_ERRORS_COUNT{{{GPU},window_size_in_ms="300000",xid="42"}} 1',
        line("DEV_NVLINK_BANDWIDTH_TOTAL", "12345"),
        line("DEV_PCIE_TX_THROUGHPUT", "12345"),
        "node_load1 0.5",
    ]
    snapshot = read_page("\n".join(rows) + "\n", taken_at=0.0)
    assert (snapshot.gpus, snapshot.dropped) == ((), {})


def test_pcie_bytes_are_a_rate_whatever_the_type_line_says() -> None:
    gpu = read_one("# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter", line("PROF_PCIE_TX_BYTES", "9"))
    assert gpu.values == {"pcie_transmit_bytes_per_second": 9.0}


def test_gpus_come_in_index_order_whatever_order_the_page_has() -> None:
    rows = [
        line("DEV_GPU_TEMP", "40", f'gpu="{index}",UUID="GPU-{index}"') for index in (10, 2, 0, 7)
    ]
    snapshot = read_page("\n".join(rows) + "\n", taken_at=0.0)
    assert [gpu.index for gpu in snapshot.gpus] == [0, 2, 7, 10]


def test_sticky_xids_of_all_rows_of_a_gpu_are_kept() -> None:
    page = parse_page(
        line("DEV_XID_ERRORS", "0") + "\n" + line("DEV_XID_ERROR", "43", MIG) + "\n"
        "dcgm_xid_errors{" + GPU + "} 79\n"
    )
    assert page.last_xids == {UUID: {0, 43, 79}}


def test_every_quantity_of_dcgm_has_a_field_and_no_other_has() -> None:
    from_dcgm = {name for name, quantity in QUANTITIES.items() if "dcgm" in quantity.sources}
    assert {field.quantity for field in FIELDS} == from_dcgm


def test_no_two_fields_claim_one_name() -> None:
    names = [name for field in FIELDS for name in field.names] + list(XID_NAMES)
    assert len(names) == len(set(names))


def test_equal_quantities_have_different_ranks_and_one_scope() -> None:
    for quantity in {field.quantity for field in FIELDS}:
        fields = [field for field in FIELDS if field.quantity == quantity]
        assert len({field.rank for field in fields}) == len(fields)
        assert len({field.scope for field in fields}) == 1
        assert isinstance(fields[0].scope, Scope)


names = st.sampled_from([*FIELD_OF, *XID_NAMES, "node_load1"])
values = st.one_of(
    st.floats().map(str),
    st.integers(-(10**45), 10**45).map(str),
    st.sampled_from(["2147483633", "<<<NULL>>>", "", "1.2.3", "٣"]),
    st.text(max_size=8),
)
labels = st.dictionaries(
    st.sampled_from(["UUID", "gpu", "pci_bus_id", "GPU_I_ID", "pod", "vgpu", "nvlink", "x y"]),
    st.one_of(st.sampled_from([UUID, "0", "7", "00000000:1B:00.0"]), st.text(max_size=6)),
)


def printed(name: str, pairs: dict[str, str], value: str) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in pairs.items())
    return f"{name}{{{inside}}} {value}"


lines = st.one_of(st.builds(printed, names, labels, values), st.text(max_size=40))


@given(st.lists(lines, max_size=6).map("\n".join))
def test_no_page_can_raise_or_give_a_value_that_is_not_legal(text: str) -> None:
    page = parse_page(text)
    assert page.dropped.keys() <= DROP_REASONS.keys()
    for gpu in page.gpus:
        for found in (gpu.values, *(part.values for part in gpu.mig)):
            assert all(QUANTITIES[name].admits(value) for name, value in found.items())
    assert all(0 <= code < 10000 for codes in page.last_xids.values() for code in codes)
