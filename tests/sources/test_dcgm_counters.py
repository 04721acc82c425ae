"""The file that tells dcgm-exporter what to export, held against what the reader reads."""

from seedance_obs.assets import assets_folder
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.dcgm.fields import FACT_LABELS, FIELD_OF, VERSION_LABELS, XID_NAMES

LABEL_NAMES = {names[0] for names in (*VERSION_LABELS.values(), *FACT_LABELS.values())}


def rows() -> list[tuple[str, str, str]]:
    text = (assets_folder("exporters") / "dcgm-counters.csv").read_text("utf-8")
    taken = text.replace("#DCGM_", "DCGM_")  # rows that only a newer dcgm-exporter can be asked for
    lines = [line for line in taken.splitlines() if line and not line.startswith("#")]
    split = [tuple(cell.strip() for cell in line.split(",")) for line in lines]
    assert all(len(row) == 3 and all(row) for row in split)
    return [(row[0], row[1], row[2]) for row in split]


def test_exactly_what_the_reader_reads_is_asked_for() -> None:
    asked = [name for name, kind, _ in rows() if kind != "label"]
    quantities = sorted(FIELD_OF[name].quantity for name in asked if name not in XID_NAMES)
    assert quantities == sorted(
        name for name, quantity in QUANTITIES.items() if "dcgm" in quantity.sources
    )
    assert [name for name in asked if name in XID_NAMES] == [XID_NAMES[0]]


def test_names_are_the_classic_ones_that_every_version_resolves() -> None:
    for name, kind, _ in rows():
        if name in FIELD_OF:
            assert name == FIELD_OF[name].names[0]
            assert kind in ("gauge", "counter")


def test_a_name_that_not_every_version_knows_is_not_asked_for_unasked() -> None:
    lines = (assets_folder("exporters") / "dcgm-counters.csv").read_text("utf-8").splitlines()
    assert [line.partition(",")[0] for line in lines if line.startswith("#DCGM_")] == [
        "#DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"
    ]


def test_label_rows_are_those_whose_labels_are_read() -> None:
    assert {name for name, kind, _ in rows() if kind == "label"} == LABEL_NAMES


def test_only_what_never_falls_is_typed_counter() -> None:
    counters = {FIELD_OF[name].quantity for name, kind, _ in rows() if kind == "counter"}
    assert counters == {
        "energy_mj",
        "pcie_replays",
        "ecc_corrected_volatile",
        "ecc_uncorrected_volatile",
        "ecc_corrected_aggregate",
        "ecc_uncorrected_aggregate",
        "remapped_rows_correctable",
        "remapped_rows_uncorrectable",
    }
