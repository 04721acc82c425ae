import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.readers import matrix, p2p
from tests.topology import index_of_samples as index

WORDS = {
    "OK": "ok",
    "CNS": "chipset_not_supported",
    "GNS": "gpu_not_supported",
    "TNS": "topology_not_supported",
    "DR": "disabled_by_regkey",
    "NS": "not_supported",
    "U": "unknown",
}
SAMPLES = [(file, what) for file, what in index.others().items() if file.startswith("p2p-")]


def rendered(words: dict[tuple[int, int], str], size: int, command: str = "") -> str:
    lines = [f"$ nvidia-smi topo {command}"] if command else []
    lines.append(" \t" + "\t".join(f"GPU{number}" for number in range(size)) + "\t")
    for row in range(size):
        cells = ["X" if row == at else words[min(row, at), max(row, at)] for at in range(size)]
        lines.append(f" GPU{row}\t" + "\t".join(cells) + "\t")
    return "\n".join([*lines, "", "Legend:", "", "  OK   = Status Ok", ""])


@st.composite
def hosts(draw):
    size = draw(st.integers(2, 12))
    pairs = combinations(range(size), 2)
    return {pair: draw(st.sampled_from(list(WORDS))) for pair in pairs}, size


@index.needs_samples
@pytest.mark.parametrize(("file", "what"), SAMPLES)
def test_a_sample_is_what_the_index_says(file, what):
    text = index.text_of(f"other/{file}")
    reading = p2p.read(text)
    assert p2p.recognises(text)
    assert not matrix.recognises(text)
    gpus = int(re.search(r"-(\d+)x-", file)[1])
    word = re.search(r"\b(OK|CNS|GNS)\b", what)[1]
    asked = re.search(r"topo -p2p (\w+)$", text, re.MULTILINE)
    assert [gpu.name for gpu in reading.topology.gpus] == [f"GPU{gpu}" for gpu in range(gpus)]
    assert len(reading.topology.paths) == gpus * (gpus - 1) // 2
    for path in reading.topology.paths:
        assert path.p2p == {"read" if asked else "p2p": WORDS[word]}
    assert (reading.format, reading.warnings) == ("topo-p2p", ())


@pytest.mark.parametrize(
    ("command", "capabilities"),
    [
        ("-p2p r", {"read"}),
        ("-p2p w", {"write"}),
        ("-p2p rw", {"read", "write"}),
        ("-p2p n", {"nvlink"}),
        ("-p2p a", {"atomics"}),
        ("-p2p p", {"pcie"}),
        ("--p2p_capabilities r", {"read"}),
        ("", {"p2p"}),
    ],
)
def test_the_prompt_says_which_way_is_meant(command, capabilities):
    topology = p2p.read(rendered({(0, 1): "GNS"}, 2, command)).topology
    assert topology.path("GPU0", "GPU1").p2p == dict.fromkeys(capabilities, "gpu_not_supported")


@given(hosts())
def test_a_matrix_is_read_back(host):
    words, size = host
    reading = p2p.read(rendered(words, size, "-p2p r"))
    told = {(path.source, path.target): path.p2p["read"] for path in reading.topology.paths}
    assert told == {(f"GPU{a}", f"GPU{b}"): WORDS[word] for (a, b), word in words.items()}
    assert reading.warnings == ()


@given(hosts(), st.data())
def test_a_cut_matrix_holds_no_untrue_word(host, data):
    words, size = host
    text = rendered(words, size, "-p2p r")
    topology = p2p.read(text[: data.draw(st.integers(0, len(text)))]).topology
    for path in topology.paths:
        pair = int(path.source[3:]), int(path.target[3:])
        assert path.p2p in ({}, {"read": WORDS[words[pair]]})


def test_a_lost_cell_leaves_no_entry_and_a_warning():
    text = rendered({(0, 1): "OK", (0, 2): "?!", (1, 2): "CNS"}, 3)
    reading = p2p.read(text)
    assert reading.topology.path("GPU0", "GPU2").p2p == {}
    assert reading.topology.path("GPU1", "GPU2").p2p == {"p2p": "chipset_not_supported"}
    assert reading.warnings == ("GPU0 x GPU2: unreadable", "GPU2 x GPU0: unreadable")


def test_one_gpu_is_of_this_matrix_only_if_prompt_or_legend_say_so():
    alone = rendered({}, 1)
    assert p2p.recognises(alone)
    assert not matrix.recognises(alone)
    bare = alone.partition("\n\n")[0] + "\n"
    assert not p2p.recognises(bare)
    assert matrix.recognises(bare)


def test_a_matrix_of_paths_is_another_format():
    paths = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
    both = rendered({(0, 1): "OK"}, 2, "-p2p r") + paths
    assert not p2p.recognises(paths)
    assert p2p.read(paths).warnings == ("there is no matrix of nvidia-smi topo -p2p in the text",)
    assert p2p.read(both).topology.path("GPU0", "GPU1").p2p == {"read": "ok"}
    assert matrix.read(both).topology.path("GPU0", "GPU1").nvlinks == 4


@given(st.text(st.sampled_from("GPU01XOKCNSTDR \t\n-p2")))
def test_no_text_raises(text):
    assert p2p.recognises(text) == bool(p2p.read(text).topology.devices)
