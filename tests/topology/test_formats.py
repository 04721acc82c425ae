import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.topology.model import Reading, Topology
from seedance_obs.topology.readers import formats
from tests.topology.index_of_samples import SAMPLES, needs_samples
from tests.topology.tree_samples import sample


def test_a_text_that_nobody_recognises_is_empty_and_says_what_is_known():
    for text in ("", "\n", "hello", "# source: somewhere", "\x00\ud800", "<html/>"):
        reading = formats.read(text)
        assert reading.topology == Topology()
        assert len(reading.warnings) == 1
        assert all(form.name in reading.warnings[0] for form in formats.FORMATS)


def test_source_lines_are_skipped_but_counted():
    seen = []

    def read(text: str) -> Reading:
        seen.append(text)
        return Reading(Topology(), (), "mine")

    table = [formats.Format("mine", lambda text: "matrix" in text, read)]
    text = "# source: a\r\n\n# source: b\n  matrix\n# source: c\n"
    assert formats.read(text, table).format == "mine"
    assert seen == ["\n\n\n  matrix\n# source: c\n"]


def test_the_first_format_that_recognises_a_text_reads_it():
    def form(name):
        return formats.Format(name, lambda _: True, lambda _: Reading(Topology(), (), name))

    reading = formats.read("x", [form("a"), form("b")])
    assert reading.format == "a"
    assert reading.warnings == ("the text also holds b: it is not read",)


def test_paths_go_before_what_else_a_report_holds():
    paths = "  GPU0 GPU1 CPU Affinity\nGPU0 X PHB 0-7\nGPU1 PHB X 0-7\n"
    access = "$ nvidia-smi topo -p2p r\n  GPU0 GPU1\nGPU0 X NS\nGPU1 NS X\n"
    links = "GPU 0: NVIDIA A (UUID: GPU-0)\n\t Link 0: 25 GB/s\n"
    for text in (paths + access + links, links + access + paths):
        reading = formats.read(text)
        assert reading.format == "topo-m"
        assert reading.warnings[-2:] == (
            "the text also holds nvidia-smi topo -p2p: it is not read",
            "the text also holds nvidia-smi nvlink (-s, -R): it is not read",
        )


@needs_samples
@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("hwloc-dgx2-16x-v100.xml.txt", "hwloc-xml"),
        ("hwloc-power8-4x-p100-nvlink-cpu.xml.txt", "hwloc-xml"),
        ("lspci-nn-8x-a100-6-nvswitch.txt", "lspci"),
        ("lspci-tv-4x-rtx6000ada-esc8000a.txt", "lspci-tree"),
        ("lspci-tv-igx-a6000-cx7.txt", "lspci-tree"),
        ("nccl-topo-2x-a100-pcie-azure-nc48v4.xml.txt", "nccl-xml"),
        ("nccl-topo-8x-h100-oci.xml.txt", "nccl-xml"),
    ],
)
def test_every_tree_among_the_samples_is_recognised(name, format_):
    reading = formats.read(sample(f"other/{name}"))
    assert reading.format == format_
    assert reading.topology.gpus


@needs_samples
def test_no_reader_of_trees_takes_another_text_for_its_own():
    trees = ("hwloc", "lspci", "nccl-topo")
    others = [file for file in SAMPLES.rglob("*.txt") if not file.name.startswith(trees)]
    assert len(others) > 60
    own = {"hwloc-xml", "lspci", "lspci-tree", "nccl-xml"}
    assert {formats.read(file.read_text()).format for file in others}.isdisjoint(own)


TREES = [
    "nccl-topo-2x-a100-pcie-azure-nc48v4.xml.txt",
    "lspci-tv-igx-a6000-cx7.txt",
    "lspci-nn-8x-a100-6-nvswitch.txt",
    "hwloc-power8-4x-p100-nvlink-cpu.xml.txt",
]


@needs_samples
@pytest.mark.parametrize("name", TREES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_mangled_text_raises(name, data):
    text = sample(f"other/{name}")
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 40))
        patch = data.draw(st.text(alphabet='<>/="-+|[]:.0f9 \n\x00', max_size=6))
        text = text[:start] + patch + text[start + length :]
    reading = formats.read(text)
    names = reading.topology.by_name.keys()
    assert all({edge.source, edge.target} <= names for edge in reading.topology.edges)
    assert len(names) == len(reading.topology.devices)
