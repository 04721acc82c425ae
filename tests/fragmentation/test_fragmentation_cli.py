"""`seedance-obs topology fragmentation` as it is typed, and what it prints."""

import csv
import gzip
import io
import json

import pytest

from seedance_obs import cli_fragmentation
from tests.fragmentation.traces import SNAPSHOT, needs_openb, pod_file
from tests.topology.command_line import run

NODES = """\
sn,model,cpu_milli_free,gpu0_milli_free,gpu1_milli_free,gpu0_island,gpu1_island
a,T4,8000,1000,500,x,y
b,T4,,1000,,x,
full,T4,0,0,0,x,x
"""
PODS = "num_gpu,gpu_milli,cpu_milli,gpu_spec\n1,600,4000,\n1,,9000,T4|A10\n2,,,\n0,,100,\n"


@pytest.fixture
def measured(tmp_path):
    def measure(*options, nodes=NODES, pods=PODS):
        for name, content in (("nodes", nodes), ("pods", pods)):
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(raw)
        files = ("--nodes", str(tmp_path / "nodes"), "--pods", str(tmp_path / "pods"))
        return run("fragmentation", *files, *options)

    return measure


def test_the_measures_of_a_small_fleet(measured):
    data = json.loads(measured("--json").stdout)
    assert {name: data[name] for name in ("nodes", "gpus", "free_gpus", "requests", "classes")} == {
        "nodes": 3,
        "gpus": 5,
        "free_gpus": 2.5,
        "requests": 4,
        "classes": 4,
    }
    # Node a: 500 beside the 600 wanted, no CPU, no two GPUs, no GPU wanted. Node b: the last two.
    assert data["fgd"] == pytest.approx((500 + 3 * 1500 + 2 * 1000) / 4 / 2500)
    assert sum(data["fgd_by_cause"].values()) == pytest.approx(data["fgd"])
    assert data["fgd_by_cause"]["cpu"] == pytest.approx(1500 / 4 / 2500)
    assert data["stranded"] == pytest.approx(1 / 3)
    assert data["unusable_demands_milli"] == [600, 1000, 1000]
    assert data["unusable"] == pytest.approx(0.2)
    assert data["external"] == pytest.approx(0.2)
    assert data["island"] == pytest.approx(0.2)
    assert data["gang"] == {"2": 1.0, "4": 1.0, "8": 1.0}
    assert [node["node"] for node in data["worst"]] == ["a", "b"]
    assert data["worst"][0]["fragment_gpus"] == pytest.approx(1.25)


def test_the_table_has_a_sentence_for_each_measure_in_80_columns(measured):
    done = measured()
    assert (done.exit_code, done.stderr) == (0, "")
    for measure in ("FGD fragmentation", "stranded", "unusable", "external", "island", "gang of 8"):
        assert measure in done.stdout
    assert "3 nodes with 5 GPUs, 2.5 of them free." in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_only_so_many_of_the_worst_nodes_are_listed(measured):
    assert "Worst nodes" not in measured("--worst", "0").stdout
    assert [
        node["node"] for node in json.loads(measured("--json", "--worst", "1").stdout)["worst"]
    ] == ["a"]


def test_a_table_may_be_compressed_or_json_or_on_standard_input(measured, tmp_path):
    rows = list(csv.DictReader(io.StringIO(PODS)))
    plain = measured("--json").stdout
    assert measured("--json", pods=gzip.compress(PODS.encode())).stdout == plain
    assert measured("--json", pods=json.dumps(rows)).stdout == plain
    nodes = [
        {"name": "a", "model": "T4", "cpu_milli_free": 8000},
        {"name": "b", "gpu_milli_free": [1000], "gpu_island": ["x"], "model": "T4"},
        {"sn": "full", "gpu_milli_free": [0, 0], "gpu_island": ["x", "x"]},
    ]
    nodes[0] |= {"gpu_milli_free": [1000, 500], "gpu_island": ["x", "y"]}
    assert measured("--json", nodes=json.dumps(nodes)).stdout == plain
    files = ("--nodes", "-", "--pods", str(tmp_path / "pods"))
    assert run("fragmentation", *files, "--json", stdin=NODES).stdout == plain


def test_nodes_without_columns_of_what_is_free_are_free(measured):
    data = json.loads(measured("--json", nodes="name,gpu,cpu_milli\na,8,96000\n").stdout)
    assert (data["gpus"], data["free_gpus"], data["island"]) == (8, 8, None)
    assert data["gang"]["8"] == 0


def test_a_model_that_is_not_known_lacks_nothing_and_the_command_says_so(measured):
    nodes = "name,gpu,model\na,8,T4\nb,8,\nc,0,\n"
    pods = "num_gpu,gpu_spec\n1,A100\n"
    data = json.loads(measured("--json", nodes=nodes, pods=pods).stdout)
    assert (data["fgd"], data["nodes_of_unknown_model"]) == (0.5, 1)
    assert "Of 1 node no model is known" in measured(nodes=nodes, pods=pods).stdout
    pods = "num_gpu,gpu_spec\n1,\n0,A100\n"
    assert "no model" not in measured(nodes=nodes, pods=pods).stdout


def test_models_may_be_a_list_and_columns_that_mean_nothing_here_anything(measured):
    pods = '[{"num_gpu": 1, "gpu_spec": ["T4", "A10"], "labels": {"a": [1]}}]'
    nodes = '[{"sn": "a", "gpu": 2, "gpu_island": ["x", "y"], "model": "A10"}]'
    data = json.loads(measured("--json", nodes=nodes, pods=pods).stdout)
    assert (data["fgd"], data["island"]) == (0, 0.5)


def test_a_full_fleet_has_no_fragmentation(measured):
    nodes = "name,gpu0_milli_free\na,0\n"
    assert "Nothing is free" in measured(nodes=nodes).stdout
    data = json.loads(measured("--json", nodes=nodes).stdout)
    assert (data["fgd"], data["stranded"], data["unusable"], data["external"]) == (None,) * 4
    assert data["gang"] == {"2": None, "4": None, "8": None}


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ("sn,gpu\na,8\nb,many\n", "nodes:3: gpu is 'many', wanted a number from 0 to 1024"),
        ("sn,gpu\na,-1\n", "nodes:2: gpu is '-1', wanted"),
        ("sn,gpu\na,2.5\n", "nodes:2: gpu is '2.5', wanted a whole number"),
        ("sn,gpu\na,nan\n", "nodes:2: gpu is 'nan', wanted"),
        (
            "sn,gpu0_milli_free\na,1001\n",
            "gpu0_milli_free is '1001', wanted a number from 0 to 1000",
        ),
        ("sn,gpu0_milli_free,gpu1_milli_free\na,,5\n", "gpu0_milli_free is empty, but a later"),
        ("sn,gpu,gpu0_milli_free\na,2,500\n", "gpu is 2, but there are free thousandths of 1"),
        ("sn,gpu\na,8\n\na,8\n", "nodes:4: a second node is called 'a'"),
        ("sn,gpu\na,8,9\n", "nodes:2: 3 cells under 2 columns"),
        ('sn,gpu\n"a,8\n', "this is not CSV"),
        ("sn,model\na,T4\n", "a column gpu, or gpu0_milli_free and so on, is wanted"),
        ("gpu\n8\n", "a column sn or name is wanted"),
        (
            "sn,gpu0_milli_free,gpu1_milli_free,gpu0_island\na,1,1,x\n",
            "an island is named for some of its GPUs alone",
        ),
        ("", "there is no node in it"),
        ("[1]", "item 1: an object is wanted"),
        ("{}", "a list of objects is wanted"),
        ("[{", "this is not JSON"),
        ('[{"sn": "a", "gpu": true}]', "item 1: gpu is 'True', wanted"),
        (
            '[{"sn": "a", "gpu_milli_free": 500}]',
            "item 1: gpu_milli_free is '500', wanted a list, one for each GPU",
        ),
        ('[{"sn": "a", "gpu_milli_free": {"0": 5}}]', "wanted a list, one for each GPU"),
        ('[{"sn": {"x": 1}, "gpu": 8}]', "item 1: sn is \"{'x': 1}\", wanted a single value"),
        ('[{"sn": "a", "gpu": [8]}]', "item 1: gpu is '[8]', wanted a single value"),
        ('[{"sn": "a", "gpu_milli_free": [[5]]}]', "gpu0_milli_free is '[5]', wanted a single"),
        (
            '[{"sn": "a", "gpu_milli_free": [5], "gpu_island": ["x", "y"]}]',
            "there are 1 GPUs, but an island is named for another",
        ),
        ('[{"sn": "a", "gpu": 8, "gpu": 4}]', "nodes: 'gpu' is there twice"),
        ("sn,gpu,gpu\na,8,4\n", "nodes: 'gpu' is there twice"),
        ('{"x": 1}', "a list of objects is wanted"),
        ('[{"x": 1}]', "a column sn or name is wanted"),
        (b"\x1f\x8b\x08broken", "cannot be decompressed"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(measured, nodes, sentence):
    done = measured(nodes=nodes)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("pods", "sentence"),
    [
        (
            "num_gpu,gpu_milli\n1,500\n,500\n",
            "pods:3: num_gpu, how many GPUs are asked for, is wanted",
        ),
        (
            "num_gpu,gpu_milli\n1,0\n",
            "it asks for GPUs, but gpu_milli, what it wants of each, is 0",
        ),
        ("num_gpu\n1\n0.5\n", "pods:3: num_gpu is '0.5', wanted a whole number"),
        ("num_gpu,cpu_milli\n1,-5\n", "cpu_milli is '-5', wanted a number from 0 up"),
        ("num_gpu\n", "there is no request in it"),
        ('[{"x": 1}]', "num_gpu, how many GPUs are asked for, is wanted"),
        ('[{"num_gpu": 1, "gpu_milli": [500]}]', "gpu_milli is '[500]', wanted a single value"),
        ('[{"num_gpu": 1, "gpu_spec": [["T4"]]}]', "gpu_spec[0] is \"['T4']\", wanted a single"),
    ],
)
def test_a_wrong_request_is_refused_with_its_place(measured, pods, sentence):
    done = measured(pods=pods)
    assert (done.exit_code, sentence in done.stderr) == (2, True)


def test_a_name_cannot_act_on_the_terminal(measured):
    done = measured(nodes="sn,gpu0_milli_free\n\x1b[31mred,500\n")
    assert "\x1b" not in done.stdout
    assert "[31mred" in done.stdout


def test_standard_input_is_one_of_the_files():
    assert run("fragmentation", "--nodes", "-", "--pods", "-").exit_code == 2


@needs_openb
def test_the_published_state_reads_as_in_the_python_interface():
    files = ("--nodes", str(SNAPSHOT), "--pods", str(pod_file("default")))
    data = json.loads(run("fragmentation", *files, "--json").stdout)
    assert (round(data["fgd"], 4), round(data["stranded"], 4)) == (0.7580, 0.2900)
    table = run("fragmentation", *files).stdout
    assert "75.8%" in table
    assert "29.0%" in table


def test_a_table_that_unpacks_without_end_is_refused(measured, monkeypatch):
    monkeypatch.setattr(cli_fragmentation, "MOST_TABLE_BYTES", 2**20)
    done = measured(nodes=gzip.compress(b"sn,gpu\n" + b"0" * 2**21))
    assert done.exit_code == 2
    assert "more than 1 MiB are too much for a table" in done.stderr
