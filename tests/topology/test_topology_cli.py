"""`seedance-obs topology parse` and `show`, and what all its commands refuse alike."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.topology.command_line import NOTHING, PAIR, PREFIX, run

ON_A_HOST = ("show", "labels", "placements")


@pytest.mark.usefixtures("files")
def test_a_file_is_one_line_and_its_warnings_go_to_stderr():
    done = run("parse", "pair.txt", "cut.txt")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "pair.txt: topo-m: 2 GPUs, 1 NIC, 1 NVLink pair, 1 NVLink domain, 2 NUMA nodes",
        "cut.txt: topo-m: 2 GPUs, 1 NVLink pair, 1 NVLink domain, 1 NUMA node; 1 warning",
    ]
    assert done.stderr == "cut.txt: warning: GPU1 x CPU Affinity to NUMA Affinity: cut off\n"


@pytest.mark.usefixtures("files")
def test_what_is_not_told_is_not_counted_as_none():
    assert run("parse", "p2p.txt").stdout == (
        "p2p.txt: topo-p2p: 2 GPUs; not known: NVLink pairs, NUMA nodes\n"
    )
    far = PAIR.replace("NV4", "SYS")
    assert "2 GPUs, 1 NIC, no NVLinks, 2 NUMA nodes\n" in run("parse", "-", stdin=far).stdout


@pytest.mark.usefixtures("files")
def test_a_file_without_a_topology_is_one_and_the_others_are_read_all_the_same():
    done = run("parse", "nothing.txt", "pair.txt")
    assert done.exit_code == 1
    assert done.stdout.startswith("nothing.txt: no topology\npair.txt: topo-m: 2 GPUs")
    assert done.stderr.startswith("nothing.txt: warning: no format recognised; known are: ")


@pytest.mark.usefixtures("files")
def test_json_has_its_keys_and_several_files_are_one_object_a_line():
    one = json.loads(run("parse", "--json", "pair.txt").stdout)
    assert {"gpus", "nics", "links", "domains", "numa", "warnings"} <= set(one)
    assert [gpu["name"] for gpu in one["gpus"]] == ["GPU0", "GPU1"]
    assert [(nic["name"], nic["label"]) for nic in one["nics"]] == [("NIC0", "mlx5_0")]
    links = [(link["source"], link["target"], link["class"]) for link in one["links"]]
    assert links == [("GPU0", "GPU1", "NV4"), ("GPU0", "NIC0", "PIX"), ("GPU1", "NIC0", "SYS")]
    assert (one["links"][0]["nvlinks"], one["warnings"]) == (4, [])
    assert (one["domains"], one["numa"]) == (
        {"GPU0": ["GPU0", "GPU1"]},
        {"0": ["GPU0"], "1": ["GPU1"]},
    )
    done = run("parse", "--json", "pair.txt", "cut.txt", "pair.txt")
    several = [json.loads(line) for line in done.stdout.splitlines()]
    assert [data["file"] for data in several] == ["pair.txt", "cut.txt", "pair.txt"]
    assert several[0] == one
    assert several[1]["warnings"] == ["GPU1 x CPU Affinity to NUMA Affinity: cut off"]
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["parse", "show", "labels", "placements --size 1"])
def test_standard_input_is_a_file(command):
    done = run(*command.split(), "-", stdin=PAIR)
    assert done.exit_code == 0
    refused = run(*command.split(), "-", stdin=NOTHING)
    assert (refused.exit_code, "<stdin>: " in refused.stderr) == (1, True)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["parse", *ON_A_HOST])
@pytest.mark.parametrize(
    ("file", "sentence"),
    [("nowhere.txt", "No such file or directory"), (".", "Is a directory")],
)
def test_a_file_that_cannot_be_read_is_two_and_one_sentence(command, file, sentence):
    size = ["--size", "1"] if command == "placements" else []
    done = run(command, file, *size)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"seedance-obs: {file}: cannot be read: {sentence}\n"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ON_A_HOST)
def test_a_file_and_a_host_are_not_read_both(command):
    size = ["--size", "1"] if command == "placements" else []
    done = run(command, "pair.txt", "--nvml-library", "pynvml", "--node-root", "/", *size)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--nvml-library, --node-root: a FILE is read instead of a host" in done.stderr


@pytest.mark.parametrize("command", ON_A_HOST)
def test_without_a_driver_it_is_three_and_a_sentence_that_says_what_to_do(command, simulated):
    size = ["--size", "1"] if command == "placements" else []
    done = run(command, *simulated("no-gpu"), *size)
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("seedance-obs: NVML is not available: ")
    assert "install the NVIDIA driver here" in done.stderr
    assert "or give a FILE" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("library", ["nvml", "sim", "sim:"])
def test_a_library_that_is_none_is_named(library):
    done = run("show", "--nvml-library", library)
    assert done.exit_code in (2, 3)
    assert done.stderr.startswith("seedance-obs: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ON_A_HOST)
def test_a_host_whose_sys_is_elsewhere_is_warned_of(command, simulated, tmp_path):
    size = ["--size", "2"] if command == "placements" else []
    library = simulated("rtx3090-bridge")[:2]
    done = run(command, *library, "--node-root", str(tmp_path), *size)
    sentence = f"warning: {tmp_path}/sys shows none of the GPUs: PCIe paths and NICs are not known"
    told = done.stdout if command == "show" else done.stderr
    assert done.exit_code == 0
    assert sentence in " ".join(told.split())


def test_a_host_is_drawn_in_eighty_columns(simulated):
    done = run("show", *simulated("h100-nvswitch"))
    drawn = done.stdout.splitlines()
    assert (done.exit_code, done.stderr, drawn[0]) == (0, "", "node-1")
    assert max(map(len, drawn)) <= 80
    assert "GPU0  0000:18:00.0  gen5 x16  domain 0  H100 80GB HBM3" in done.stdout
    assert "NVLink domain 0: GPU 0-7  node-1.0000-18-00.0" in done.stdout
    assert "\x1b" not in done.stdout


def test_what_is_unusual_about_a_gpu_is_in_its_line(simulated):
    mig = run("show", *simulated("h100-mig")).stdout
    assert "GPU0  0000:18:00.0  gen5 x16  no NVLinks  MIG on  H100" in mig
    assert mig.count("no NVLinks") == 1
    assert "memory node 12" in run("show", *simulated("gh200")).stdout
    assert (
        "NVLink domain 0 (rack-wide): GPU 0-3  7c1e5a90" in run("show", *simulated("gb200")).stdout
    )
    assert "rack-wide" not in run("show", *simulated("gb200-zero")).stdout


@pytest.mark.usefixtures("files")
def test_a_file_is_drawn_with_its_warnings():
    assert "NVLink domain 0: GPU 0-1\n\nwarning: GPU1 x CPU Affinity to NUMA Affinity: cut off" in (
        run("show", "cut.txt").stdout
    )
    p2p = run("show", "p2p.txt").stdout
    assert p2p.startswith("Link classes between GPUs: not known.\n")
    assert "p2p read: chipset not supported (1 pair)" in p2p


def test_show_and_parse_print_the_same_json(simulated, files):
    parsed = json.loads(run("parse", "--json", str(files / "pair.txt")).stdout)
    shown = json.loads(run("show", "--json", str(files / "pair.txt")).stdout)
    assert {"file": str(files / "pair.txt"), **shown} == parsed
    host = json.loads(run("show", "--json", *simulated("rtx3090-bridge")).stdout)
    assert set(host) == set(shown)
    assert (host["format"], host["host"], len(host["gpus"])) == ("host", "node-1", 2)


def typed(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seedance_obs", "topology", *arguments]
    env = {**os.environ, "COLUMNS": "80", **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("show",), "GPU1 NV4  X    0"),
        (("labels", "--format", "nfd"), f"{PREFIX}nvlinks-per-gpu=4"),
        (("placements", "--size", "2"), "There is one set only: all GPUs."),
    ],
)
def test_a_simulated_host_in_a_process_of_its_own(command, told, simulated):
    done = typed(*command, *simulated("rtx3090-bridge"))
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout


def test_the_host_can_be_named_by_the_environment(simulated):
    library, root, name = simulated("rtx3090-bridge")[1::2]
    done = typed(
        "show",
        SEEDANCE_NVML_LIBRARY=library,
        SEEDANCE_NODE_ROOT=root,
        SEEDANCE_NODE_NAME=name,
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "node-1")


def test_parse_in_a_process_of_its_own(files):
    done = typed("parse", str(files / "pair.txt"), str(files / "nothing.txt"))
    assert (done.returncode, done.stdout.count("\n")) == (1, 2)
    assert done.stderr.count("Traceback") == 0


def test_parse_loads_no_drawing_no_driver_and_no_yaml(files):
    code = (
        "import sys; from click.testing import CliRunner; from seedance_obs.cli import main; "
        f"done = CliRunner().invoke(main, ['topology', 'parse', {str(files / 'pair.txt')!r}]); "
        "assert done.exit_code == 0; "
        "sys.exit(bool({'rich', 'pynvml', 'yaml', 'networkx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_machine_that_nobody_has_is_shown_with_its_own_bus():
    data = json.loads(run("show", "--nvml-library", "sim:gh200", "--json").stdout)
    assert [gpu["numa"] for gpu in data["gpus"]] == [[0], [1], [2], [3]]
    assert {nic["label"] for nic in data["nics"]} == {"hsn0", "hsn1", "hsn2", "hsn3"}
    assert data["warnings"] == []


def test_a_simulated_machine_that_there_is_not_is_two_and_the_known_ones_are_named():
    result = run("show", "--nvml-library", "sim:gh201")
    assert result.exit_code == 2
    assert "no simulated machine gh201: known are a100-mesh" in result.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_text_is_read_in_the_encoding_that_its_mark_names(encoding, tmp_path):
    file = tmp_path / "matrix.txt"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    file.write_bytes((mark + PAIR).encode(encoding))
    assert "2 GPUs, 1 NIC, 1 NVLink pair" in run("parse", str(file)).stdout


@pytest.mark.parametrize("library", ["sim:gh200@x", "sim:nope", "replay:/no/such/file"])
def test_a_library_that_cannot_be_read_is_two(library):
    assert run("show", "--nvml-library", library).exit_code == 2


def test_a_closed_standard_input_is_a_sentence():
    command = [sys.executable, "-m", "seedance_obs", "topology", "show", "-"]
    line = shlex.join(command) + " <&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("seedance-obs: <stdin>: cannot be read")
