import json

import pytest

from seedance_obs.topology.model import UNKNOWN, Topology
from seedance_obs.topology.readers import matrix, p2p

PLAIN = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\tPIX\t0-7,16-23\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\t8-15\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
)


def read(text: str) -> Topology:
    reading = matrix.read(text)
    assert reading.warnings == ()
    return reading.topology


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"stdout": PLAIN, "rc": 0}),
        json.dumps(json.dumps({"stdout": PLAIN})),
        json.dumps(PLAIN.splitlines(keepends=True), indent=1),
        json.dumps({"stdout": "\x1b[4m" + PLAIN.replace("\n", "\x1b[0m\n", 1)}),
        "want := `" + PLAIN[:-1] + "`,\n",
    ],
)
def test_a_matrix_in_an_escaped_string_is_the_matrix(text):
    assert read(text) == read(PLAIN)


def test_a_markdown_table_is_a_matrix():
    text = (
        "| | GPU0 | GPU1 | GPU2 | NUMA |\n|---|:-:|:-:|---|---|\n"
        "| GPU0 | X | **NV4** | SYS | 0 |\n| GPU1 | **NV4** | X | `SYS` | 0 |\n"
        "| GPU2 | SYS | SYS | X | 1 |\n"
    )
    topology = read(text)
    assert [path.link_class for path in topology.paths] == ["NV4", "SYS", "SYS"]
    assert [gpu.numa for gpu in topology.gpus] == [{0}, {0}, {1}]


def test_a_markdown_table_tells_peer_to_peer():
    text = "| | GPU0 | GPU1 |\n|--|--|--|\n| GPU0 | X | OK |\n| GPU1 | OK | X |\n"
    assert not matrix.recognises(text)
    assert [path.p2p for path in p2p.read(text).topology.paths] == [{"p2p": "ok"}]


def test_numa_alone_is_the_numa_column():
    text = "      GPU0  GPU1  CPU Affinity  NUMA\nGPU0  X  PHB  0-51  0\nGPU1  PHB  X  52-103  1\n"
    gpus = read(text).gpus
    assert [gpu.numa for gpu in gpus] == [{0}, {1}]
    assert [len(gpu.cpus) for gpu in gpus] == [52, 52]


def test_a_grace_gpu_lists_the_memory_of_all_gpus_near_its_node():
    header = "        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
    rows = (
        "GPU0     X      NV18    0-71    0,3-9,11-17             2\n"
        "GPU1    NV18     X      0-71    0,3-9,11-17             10\n"
    )
    gpus = read(header + rows).gpus
    assert [(gpu.numa, gpu.memory_node) for gpu in gpus] == [({0}, 2), ({0}, 10)]


def test_affinity_below_a_header_that_does_not_name_it():
    rows = "GPU0\t X \tSYS\t{0}\nGPU1\tSYS\t X \t{0}\n"
    whole = read("\tGPU0\tGPU1\n" + rows.format("0-7\t1\t\tN/A"))
    assert [gpu.numa for gpu in whole.gpus] == [{1}, {1}]
    reading = matrix.read("\tGPU0\tGPU1\n" + rows.format("0-7"))
    assert [gpu.cpus for gpu in reading.topology.gpus] == [UNKNOWN, UNKNOWN]
    assert reading.warnings == ("no header names the affinity columns: they are not read",)
