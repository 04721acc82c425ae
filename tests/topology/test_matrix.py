import re
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, Kind, NvLinkKind, PcieLevel
from seedance_obs.topology.readers import matrix
from seedance_obs.topology.readers.lines import MOST_WARNINGS
from tests.topology import index_of_samples as index
from tests.topology import rendered_matrix as rendered

styles = st.sampled_from(rendered.TAB_STYLES + rendered.LOSSY_STYLES)
newlines = st.sampled_from(["\n", "\r\n"])


def levels(text: str) -> dict[str, str | None]:
    return {
        f"{path.source}-{path.target}": path.link_class for path in matrix.read(text).topology.paths
    }


@index.needs_samples
def test_the_index_has_all_its_files():
    named = {sample.file for sample in index.matrices()}
    assert named == {file.name for file in index.SAMPLES.glob("*.txt")}
    assert len(named) >= 51


@index.needs_samples
@pytest.mark.parametrize("sample", index.matrices(), ids=lambda sample: sample.file)
def test_a_sample_is_what_a_person_reads_off_it(sample):
    text = index.text_of(sample.file)
    reading = matrix.read(text)
    topology = reading.topology
    assert matrix.recognises(text)
    assert reading.format == "topo-m"
    assert [gpu.name for gpu in topology.gpus] == [f"GPU{gpu}" for gpu in range(sample.gpus)]
    assert len(list(topology.of_kind(Kind.NIC))) == sample.nics
    linked = {
        (topology.by_name[path.source].index, topology.by_name[path.target].index): path.nvlinks
        for path in topology.paths
        if isinstance(path.nvlinks, int) and path.nvlinks
    }
    assert linked == sample.nvlinks
    numa = {gpu.index: gpu.numa for gpu in topology.gpus if gpu.numa is not UNKNOWN}
    assert numa == {gpu: {node} for gpu, node in sample.numa.items()}
    own = {gpu.index: gpu.memory_node for gpu in topology.gpus if gpu.memory_node is not UNKNOWN}
    assert own == sample.memory_nodes
    for gpu, cpus in sample.cpus.items():
        assert topology.by_name[f"GPU{gpu}"].cpus == cpus
    assert bool(reading.warnings) == sample.is_cut, reading.warnings


@index.needs_samples
@pytest.mark.parametrize("sample", index.matrices(), ids=lambda sample: sample.file)
def test_a_cut_sample_tells_nothing_that_the_whole_one_does_not(sample):
    text = index.text_of(sample.file)
    whole = rendered.told(matrix.read(text).topology)
    lost_at_the_end = rendered.told(matrix.read(f"{text}\n").topology)
    for end in range(0, len(text), 7):
        for key, value in rendered.told(matrix.read(text[:end]).topology).items():
            assert value in (UNKNOWN, whole[key], lost_at_the_end[key]), (end, key)


@given(rendered.hosts(), st.sampled_from(rendered.TAB_STYLES), newlines)
def test_a_matrix_with_tabs_is_read_back(host, style, newline):
    reading = matrix.read(rendered.text_of(host, style, newline=newline))
    assert rendered.told(reading.topology) == rendered.truth(host)
    assert reading.warnings == ()


@given(rendered.hosts(full=True), st.sampled_from(rendered.LOSSY_STYLES), newlines)
def test_a_matrix_with_lossy_separators_is_read_back(host, style, newline):
    reading = matrix.read(rendered.text_of(host, style, newline=newline))
    assert rendered.told(reading.topology) == rendered.truth(host)
    assert reading.warnings == ()


@given(rendered.hosts(), st.sampled_from(rendered.LOSSY_STYLES))
def test_empty_affinity_cells_between_lossy_separators_are_found_or_left_open(host, style):
    topology = matrix.read(rendered.text_of(host, style)).topology
    assert rendered.untrue(host, topology) == {}


@settings(max_examples=300)
@given(rendered.hosts(most_gpus=4), styles, newlines, st.data())
def test_a_cut_text_holds_no_untrue_value(host, style, newline, data):
    text = rendered.text_of(host, style, newline=newline)
    end = data.draw(st.integers(0, len(text)))
    reading = matrix.read(text[:end])
    assert set(reading.topology.by_name) <= set(host.names)
    assert rendered.untrue(host, reading.topology) == {}


@settings(max_examples=300)
@given(rendered.hosts(most_gpus=4, full=True), styles, st.data())
def test_a_cut_text_that_was_given_a_last_newline_holds_no_untrue_path(host, style, data):
    lines = rendered.text_of(host, style, legend=False).split("\n")
    at = data.draw(st.integers(1, len(lines) - 1))
    end = data.draw(st.integers(0, len(lines[at])))
    topology = matrix.read("\n".join([*lines[:at], lines[at][:end], ""])).topology
    cut = rendered.untrue(host, topology)
    assert {key for key in cut if len(key) == 3} == set()


@settings(max_examples=300)
@given(rendered.hosts(most_gpus=6), styles, st.data())
def test_a_hole_in_one_row_leaves_no_untrue_path(host, style, data):
    lines = rendered.text_of(host, style).split("\n")
    header = next(at for at, line in enumerate(lines) if "GPU0" in line and "topology" not in line)
    at = header + data.draw(st.integers(1, len(host.names)))
    start = data.draw(st.integers(0, max(0, len(lines[at]) - 1)))
    size = data.draw(st.integers(1, 9))
    filler = data.draw(st.sampled_from(["", "#", "NV"]))
    lines[at] = lines[at][:start] + filler + lines[at][start + size :]
    topology = matrix.read("\n".join(lines)).topology
    assert {key for key in rendered.untrue(host, topology) if len(key) == 3} == set()


def is_junk(text: str) -> bool:
    """Whether a text is no cell, nor cells whose separators are lost."""
    return re.fullmatch(r"(?:X|PIX|PXB|PHB|NODE|SYS|SOC|NV[1-9][0-9]{0,2})+", text) is None


JUNK_WORDS = ("bad", "ERR", "?", "-", "??", "<--", "N/A", "4", "GPU3", "mlx5_7", "NV", "nv4", "X?")
SPOILT = ("PIX?", "SYS!", "NV4?", "NV1B", "SYS(!)", "NODE#", "PIX0", "SOC?", "NV0", "(SYS", "=PHB")
junk_words = st.sampled_from((*JUNK_WORDS, *SPOILT))
junk = st.one_of(
    junk_words,
    st.text("abcxyzPSX0189?!#%&/()<>=+-.,:;", min_size=1, max_size=6).filter(is_junk),
    st.tuples(st.sampled_from((*rendered.WORDS, "NV4", *JUNK_WORDS, *SPOILT)), junk_words).map(
        " ".join
    ),
    st.tuples(st.sampled_from(rendered.WORDS), st.sampled_from((*rendered.WORDS, "NV4", "OK"))).map(
        " ".join
    ),
    st.just("OK"),
)


@st.composite
def spoilt_hosts(draw, *, full=False):
    """A host, and the two devices in whose cell there is junk."""
    host = draw(rendered.hosts(full=full).filter(lambda host: len(host.names) > 3))
    return host, *draw(st.permutations(host.names))[:2]


def lost(host, topology):
    """What of the host was not read."""
    told = rendered.told(topology)
    return {key for key, value in rendered.truth(host).items() if told.get(key) != value}


@settings(max_examples=300)
@given(spoilt_hosts(), junk)
def test_junk_in_a_cell_between_tabs_costs_that_cell_only(spoilt, text):
    host, row, column = spoilt
    host.spoilt[row, column] = text
    reading = matrix.read(rendered.text_of(host, rendered.with_tabs))
    assert lost(host, reading.topology) == set()
    assert reading.warnings == (f"{row} x {column}: unreadable",)


def test_a_device_name_in_the_last_cell_of_a_row_begins_no_other_matrix():
    text = "\tGPU0\tNIC0\tNIC1\nGPU0\tX\tPIX\tSYS\nNIC0\tPIX\tX\tGPU3\nNIC1\tSYS\tPHB\tX\n"
    assert levels(text) == {"GPU0-NIC0": "PIX", "GPU0-NIC1": "SYS", "NIC0-NIC1": "PHB"}
    assert matrix.read(text).warnings == ("NIC0 x NIC1: unreadable",)


@given(spoilt_hosts(), junk, junk)
def test_junk_in_both_cells_of_a_pair_costs_that_pair_only(spoilt, text, other):
    host, row, column = spoilt
    host.spoilt.update({(row, column): text, (column, row): other})
    topology = matrix.read(rendered.text_of(host, rendered.with_tabs)).topology
    assert rendered.untrue(host, topology) == {}
    pair = {row, column}
    assert {key for key in lost(host, topology) if len(key) == 3 and set(key[:2]) != pair} == set()
    assert {key for key in lost(host, topology) if key[1:] == ("numa",)} == set()


@settings(max_examples=300)
@given(spoilt_hosts(full=True), junk, st.sampled_from(rendered.BLANK_STYLES))
def test_junk_in_a_cell_between_blanks_costs_that_row_at_most(spoilt, text, style):
    host, row, column = spoilt
    host.spoilt[row, column] = text
    reading = matrix.read(rendered.text_of(host, style))
    assert rendered.untrue(host, reading.topology) == {}
    paths = {key[:2] for key in lost(host, reading.topology) if len(key) == 3}
    assert paths <= {(row, column), (column, row)}
    affinity = {
        key[0] for key in lost(host, reading.topology) if len(key) == 2 and key[1] != "domain"
    }
    assert affinity <= {row}
    assert set(reading.topology.by_name) == set(host.names)
    is_told = text.split()[0] == host.word(row, column)  # the junk is behind a true last word
    assert is_told or any(row in warning for warning in reading.warnings)
    assert not any("it is not used" in warning for warning in reading.warnings)


PIECES = (
    *("GPU0", "GPU1", "GPU10", "NIC0", "mlx5_0", "GPU0GPU1", "CPU Affinity", "NUMA Affinity"),
    *("X", "NV1", "NV12", "PIX", "SYS", "SOC", "NODENODE", "PH0-115", "OK", "N/A", "0-7", "9-1"),
    *("\t", "\n", "\r", "\x1b[4m", "[0m", "Legend:", "topo -mp", "-p2p", "=", "|", "²", "٣"),
)
tokens = st.sampled_from(PIECES)


@given(st.one_of(st.text(), st.lists(st.one_of(tokens, st.text(max_size=3))).map(" ".join)))
@example("GPU0 X\ufeff\x1b[")
@example(f"GPU0 NV{'9' * 5000} X\nGPU1 X NV{'9' * 5000}")
@example("GPU0 CPU Affinity\nGPU0 X 0-" + "9" * 5000)
def test_no_text_raises(text):
    reading = matrix.read(text)
    assert matrix.recognises(text) == bool(reading.topology.devices)
    assert len(reading.warnings) <= MOST_WARNINGS + 1


@pytest.mark.parametrize("text", ["", "\n", "no GPU here", "GPU0 is hot", "GPU 0: Tesla (UUID: x)"])
def test_a_text_without_a_matrix_is_an_empty_topology_and_one_warning(text):
    reading = matrix.read(text)
    assert not matrix.recognises(text)
    assert reading.topology.devices == ()
    assert len(reading.warnings) == 1


def test_sixteen_gpus_with_everything_glued():
    names = [f"GPU{number}" for number in range(16)]
    rows = [f"{name}{'NV6' * at}X{'NV6' * (15 - at)}" for at, name in enumerate(names)]
    reading = matrix.read("\n".join(["".join(names), *rows, ""]))
    assert reading.warnings == ()
    assert {path.nvlinks for path in reading.topology.paths} == {6}
    assert len(reading.topology.paths) == 120
    assert set(reading.topology.domains.values()) == {"GPU0"}


def test_the_cells_that_vllm_pastes_glue_and_destroy():
    text = (
        "GPU0GPU1NIC8NIC9CPU AffinityNUMA AffinityGPU NUMA ID\n"
        "GPU0\t X \tNV18\tPXBNODE\t0-55\t0\t\tN/A\n"
        "GPU1\tNV18\t X \tNODE\tPH0-115\t0\t\tN/A\n"
        "NIC8\tPXB\tNODE\t X \tSYS\n"
        "NIC9\tNODE\tSYSSYS\t X \n"
    )
    reading = matrix.read(text)
    assert levels(text) == {
        "GPU0-GPU1": "NV18",
        "GPU0-NIC8": "PXB",
        "GPU0-NIC9": "NODE",
        "GPU1-NIC8": "NODE",
        "GPU1-NIC9": "SYS",
        "NIC8-NIC9": "SYS",
    }
    assert reading.topology.by_name["GPU0"].numa == {0}
    assert reading.topology.by_name["GPU1"].numa is UNKNOWN
    assert reading.warnings == (
        "GPU1 x NIC9: unreadable",
        "GPU1 x CPU Affinity to GPU NUMA ID: unreadable",
    )


def test_a_cell_that_is_destroyed_in_both_halves_is_named():
    text = "\tGPU0\tGPU1\tNIC0\nGPU0\tX\tNV4\tP??\nGPU1\tNV4\tX\tSYS\nNIC0\tHB\tSYS\tX\n"
    assert levels(text)["GPU0-NIC0"] is None
    assert matrix.read(text).warnings == ("GPU0 x NIC0: unreadable", "NIC0 x GPU0: unreadable")


def test_halves_that_disagree_tell_nothing():
    text = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tSYS\t X \n"
    reading = matrix.read(text)
    assert reading.topology.path("GPU0", "GPU1").link_class is None
    assert reading.warnings == ("GPU0 x GPU1: NV4 in the row of GPU0, SYS in the row of GPU1",)


def test_the_number_of_a_link_cell_at_the_end_may_be_longer():
    head = "\tGPU0\tGPU1\nGPU0\t X \t"
    assert levels(f"{head}NV1") == {"GPU0-GPU1": None}
    assert levels(f"{head}NV1\t") == {"GPU0-GPU1": "NV1"}
    assert levels(f"{head}SYS") == {"GPU0-GPU1": "SYS"}


def test_the_number_of_a_numa_cell_at_the_end_may_be_longer():
    head = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\t1"
    cut, whole = matrix.read(head), matrix.read(f"{head}\n")
    assert cut.topology.gpus[0].numa is UNKNOWN
    assert cut.topology.gpus[0].cpus == set(range(8))
    assert cut.warnings == ("GPU0 x NUMA Affinity: cut off",)
    assert whole.topology.gpus[0].numa == {1}


def test_two_hundred_lost_cells_are_few_sentences():
    names = [f"GPU{at}" for at in range(16)] + [f"NIC{at}" for at in range(16)]
    text = "\t" + "\t".join(names) + "\nGPU0\t X \tNV18"
    assert matrix.read(text).warnings == (
        "GPU0 x GPU1 to NIC15: cut off",
        "GPU1 to NIC15: no row to read",
    )


def test_rows_without_a_header_name_the_columns():
    text = (
        "GPU0     X      NV4     PIX     0-15    0               N/A\n"
        "GPU1    NV4      X      SYS     16-31   1               N/A\n"
        "mlx5_0  PIX     SYS      X \n"
    )
    reading = matrix.read(text)
    assert levels(text) == {"GPU0-GPU1": "NV4", "GPU0-mlx5_0": "PIX", "GPU1-mlx5_0": "SYS"}
    assert [gpu.numa for gpu in reading.topology.gpus] == [{0}, {1}]
    assert reading.warnings == (
        "there is no header: each column is named by the row with its X there",
    )


def test_a_header_that_lost_a_name_is_not_used():
    text = "\tGPU0\tNIC0\nGPU0\t X \tNV4\tPIX\nGPU1\tNV4\t X \tSYS\nNIC0\tPIX\tSYS\t X \n"
    assert levels(text) == {"GPU0-GPU1": "NV4", "GPU0-NIC0": "PIX", "GPU1-NIC0": "SYS"}
    assert matrix.read(text).warnings[0].startswith("the header names fewer columns")


def test_a_row_with_its_x_elsewhere_is_not_read():
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV1\tNV2\nGPU1\tX\tSYS\nGPU2\tNV2\tSYS\tX\n"
    assert levels(text) == {"GPU0-GPU1": "NV1", "GPU0-GPU2": "NV2", "GPU1-GPU2": "SYS"}
    assert any("GPU1: its X" in warning for warning in matrix.read(text).warnings)


def test_nic_names_of_every_vendor_are_columns_and_their_own_label():
    nics = ["mlx4_0", "mlx5_bond_0", "irdma0", "bnxt_re0", "hfi1_0", "ibp12s0", "roceo1"]
    rows = ["\t" + "\t".join(["GPU0", *nics])]
    for at, name in enumerate(["GPU0", *nics]):
        rows.append("\t".join([name, *["SYS"] * at, " X ", *["SYS"] * (len(nics) - at)]))
    reading = matrix.read("\n".join([*rows, ""]))
    found = list(reading.topology.of_kind(Kind.NIC))
    assert [nic.name for nic in found] == nics == [nic.label for nic in found]
    assert reading.warnings == ()


def test_noise_between_the_lines_is_not_in_the_matrix():
    text = (
        "srun: job 7 queued and waiting for resources\n"
        "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
        "  MIG 3g.71gb     Device  0: (UUID: MIG-2)\n"
        "user@host:~$ nvidia-smi topo -m\n"
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\t X \tNV18\t0-7\t0\n"
        "srun: error: Unable to create step\n"
        "GPU1\tNV18\t X \t8-15\t1\n"
        "GPU0 and GPU1 are joined by NODE\n"
        "user@host:~$ exit\n"
    )
    reading = matrix.read(text)
    assert levels(text) == {"GPU0-GPU1": "NV18"}
    assert [gpu.numa for gpu in reading.topology.gpus] == [{0}, {1}]
    assert reading.warnings == ()


def test_a_second_matrix_is_not_mixed_in():
    one = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
    reading = matrix.read(one + one.replace("NV4", "SYS"))
    assert reading.topology.path("GPU0", "GPU1").nvlinks == 4
    assert reading.warnings == ("line 4: one more matrix begins; it is not read",)


@pytest.mark.parametrize(
    ("command", "nvlinks"), [("topo -m", 0), ("topo -mp", UNKNOWN), ("topo --matrix_pci", UNKNOWN)]
)
def test_a_matrix_of_pcie_paths_hides_nvlinks_between_gpus(command, nvlinks):
    text = f"$ nvidia-smi {command}\n\tGPU0\tGPU1\tNIC0\nGPU0\tX\tSYS\tPIX\nGPU1\tSYS\tX\tSYS\n"
    topology = matrix.read(text).topology
    assert topology.path("GPU0", "GPU1").nvlinks == nvlinks
    assert topology.path("GPU0", "GPU1").pcie is PcieLevel.SYS
    assert topology.path("GPU0", "NIC0").nvlinks == 0


def test_a_whole_legend_without_nv_is_of_pcie_paths():
    rows = "\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU1\tSYS\tX\n\nLegend:\n\n"
    keys = "  X    = Self\n  SYS  = far\n  PIX  = near\n"
    assert matrix.read(f"{rows}{keys}\n").topology.path("GPU0", "GPU1").nvlinks is UNKNOWN
    assert matrix.read(f"{rows}{keys}  NV#  = links\n\n").topology.path("GPU0", "GPU1").nvlinks == 0


def test_wsl_and_windows_know_no_affinity():
    for row in ("GPU0\t X \t\t\t\tN/A\n", "GPU0     X                              N/A\n"):
        header = "        GPU0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
        reading = matrix.read(header + row)
        assert reading.topology.gpus[0].cpus is reading.topology.gpus[0].numa is UNKNOWN
        assert reading.warnings == ()


@pytest.mark.parametrize(
    "row", ["GPU0\t X \t\t3\t\tN/A\n", "GPU0     X              3               N/A\n"]
)
def test_a_job_without_near_cpus_still_has_a_numa_node(row):
    header = "        GPU0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
    gpu = matrix.read(header + row).topology.gpus[0]
    assert gpu.cpus is UNKNOWN
    assert gpu.numa == {3}


def test_a_header_that_lost_its_indent_does_not_tell_which_cell_is_empty():
    text = (
        "GPU0    GPU1    CPU Affinity    NUMA Affinity\n"
        "GPU0     X      PHB             0-3\n"
        "GPU1    PHB      X              0-3\n"
    )
    reading = matrix.read(text)
    assert levels(text) == {"GPU0-GPU1": "PHB"}
    assert {gpu.numa for gpu in reading.topology.gpus} == {UNKNOWN}
    assert {gpu.cpus for gpu in reading.topology.gpus} == {UNKNOWN}
    assert reading.warnings == (
        "GPU0 x CPU Affinity to NUMA Affinity: unreadable",
        "GPU1 x CPU Affinity to NUMA Affinity: unreadable",
    )


@pytest.mark.parametrize("row", ["GPU0 X 3 N/A\n", "GPU0  X  3  4\n"])
def test_affinity_that_the_layout_does_not_tell_apart_is_left_open(row):
    header = "      GPU0 CPU Affinity NUMA Affinity GPU NUMA ID\n"
    reading = matrix.read(header + row)
    assert reading.topology.gpus[0].numa is UNKNOWN
    assert reading.topology.gpus[0].memory_node is UNKNOWN
    assert len(reading.warnings) == 1


def test_a_grace_gpu_lists_its_own_memory_among_the_near_nodes():
    header = "        GPU0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
    row = "GPU0     X      0-71            0,36-43         36\n"
    gpu = matrix.read(header + row).topology.gpus[0]
    assert (gpu.numa, gpu.memory_node, len(gpu.cpus)) == ({0}, 36, 72)


def test_domains_are_named_by_their_lowest_gpu_in_number():
    names = [f"GPU{number}" for number in range(12)]
    rows = ["\t" + "\t".join(names)]
    for at, name in enumerate(names):
        cells = ["NV4" if {at, other} == {2, 10} else "SYS" for other in range(12)]
        rows.append("\t".join([name, *cells[:at], "X", *cells[at + 1 :]]))
    assert matrix.read("\n".join([*rows, ""])).topology.domains == {"GPU2": "GPU2", "GPU10": "GPU2"}


def test_lost_cells_leave_a_domain_open():
    text = (
        "\tGPU0\tGPU1\tGPU2\tGPU3\n"
        "GPU0\tX\tNV4\t?\tSYS\nGPU1\tNV4\tX\tSYS\tSYS\nGPU2\t?\tSYS\tX\tNV4\nGPU3\tSYS\tSYS\tNV4\tX\n"
    )
    reading = matrix.read(text)
    assert reading.topology.domains == {"GPU0": "GPU0", "GPU1": "GPU0"}
    assert "GPU2 to GPU3: lost cells leave their NVLink domain open" in reading.warnings


def test_a_matrix_does_not_tell_how_nvlinks_run():
    text = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
    path = matrix.read(text).topology.path("GPU0", "GPU1")
    assert path.nvlink_kind is UNKNOWN
    assert path.nvlink_kind is not NvLinkKind.DIRECT
    assert path.pcie is UNKNOWN


def test_a_matrix_names_a_path_for_every_two_devices():
    text = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\n"
    topology = matrix.read(text).topology
    assert [(path.source, path.target) for path in topology.paths] == list(
        combinations(["GPU0", "GPU1", "NIC0"], 2)
    )
    assert {path.link_class for path in topology.paths} == {None}


def test_a_cell_that_is_gone_without_a_trace_leaves_what_is_behind_the_x_open():
    text = (
        "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
        "GPU0\t X \tPIX\tSYS\t0-7\n"
        "GPU1\tPIX\t X \tSYS\tSYS\t0-7\n"
    )
    assert levels(text) == {
        "GPU0-GPU1": "PIX",
        "GPU0-GPU2": None,
        "GPU0-GPU3": None,
        "GPU1-GPU2": "SYS",
        "GPU1-GPU3": "SYS",
        "GPU2-GPU3": None,
    }


@pytest.mark.parametrize("change", [str, str.expandtabs])
def test_a_last_row_that_tells_less_than_the_others_may_be_cut_in_its_last_number(change):
    text = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-7\t0\nGPU1\tNV4\t X \t8-1\n"
    )
    reading = matrix.read(change(text))
    assert [gpu.cpus for gpu in reading.topology.gpus] == [set(range(8)), UNKNOWN]
    assert reading.warnings == ("GPU1 x CPU Affinity to NUMA Affinity: cut off",)


def test_a_wide_gap_is_no_empty_cell_where_the_columns_are_wide():
    text = (
        "             GPU0         mlx5_bond_0  CPU Affinity   NUMA Affinity\n"
        "GPU0         X            SYS          0-7\n"
        "mlx5_bond_0  SYS          X\n"
    )
    reading = matrix.read(text)
    assert reading.topology.gpus[0].numa is UNKNOWN
    assert reading.warnings == ("GPU0 x CPU Affinity to NUMA Affinity: unreadable",)


def test_a_last_row_of_which_only_the_name_is_left_is_no_other_matrix():
    whole = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-7\t0\nGPU1\t"
    for cut in ("", "NV", "NV4", "NV4\t X"):
        reading = matrix.read(whole + cut)
        assert reading.topology.path("GPU0", "GPU1").link_class == "NV4"
        assert not any("one more matrix" in warning for warning in reading.warnings)
        assert any("GPU1" in warning for warning in reading.warnings)
