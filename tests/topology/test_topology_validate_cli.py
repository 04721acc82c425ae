"""`seedance-obs topology validate` as it is typed, and as its output is read."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from seedance_obs.cli import main
from tests.topology.declared_text import HEAD, document, json_lines

COMMAND = ("topology", "validate")
TRAIN = json_lines([document("a", ("affinity", "serve/x"))])
SERVE = json_lines([document("x", ("affinity", "train/a"), namespace="serve")])


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, [*COMMAND, *arguments], input=stdin)


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.jsonl").write_text(TRAIN)
    (tmp_path / "serve.jsonl").write_text(SERVE)
    (tmp_path / "alone.yaml").write_text(f"{HEAD}metadata: {{name: a}}\n")
    return tmp_path


@pytest.mark.usefixtures("files")
def test_a_valid_topology_is_one_line_and_zero():
    done = run("alone.yaml")
    assert done.exit_code == 0
    assert re.fullmatch(
        r"valid: 0 errors, 0 warnings; 1 node, 0 edges in 1 file, \d+\.\d\d s\n", done.stdout
    )


@pytest.mark.usefixtures("files")
def test_findings_are_lines_as_a_compiler_writes_them_and_one():
    done = run("train.jsonl", "serve.jsonl")
    finding, summary = done.stdout.splitlines()
    assert (done.exit_code, done.stderr) == (1, "")
    assert finding == (
        "serve.jsonl:1: error: hidden reverse edge: serve/x -> train/a (affinity) leads from "
        "namespace serve back to train, against train/a -> serve/x (affinity) at train.jsonl:1; "
        "the cycle: train/a -> serve/x -> train/a [hidden-reverse-edge]"
    )
    assert summary.startswith("invalid: 1 error, 0 warnings; 2 nodes, 2 edges in 2 files, ")


@pytest.mark.usefixtures("files")
def test_json_is_the_same_as_data():
    done = run("train.jsonl", "--json")
    data = json.loads(done.stdout)
    assert done.exit_code == 1
    assert data.pop("seconds") >= 0
    assert data == {
        "valid": False,
        "nodes": 1,
        "edges": 1,
        "errors": 1,
        "warnings": 0,
        "omitted": {},
        "findings": [
            {
                "file": "train.jsonl",
                "line": 1,
                "rule": "dangling-edge",
                "severity": "error",
                "message": "train/a -> serve/x (affinity) leads to nothing: "
                "serve/x is not declared",
                "names": ["train/a", "serve/x"],
                "related": [],
            }
        ],
    }


@pytest.mark.usefixtures("files")
def test_standard_input_joins_the_files():
    done = run("train.jsonl", "-", stdin=SERVE)
    assert done.stdout.startswith("<stdin>:1: error: hidden reverse edge")
    assert run("-", stdin=f"{HEAD}metadata: {{name: a}}").exit_code == 0


def test_no_more_than_the_limit_is_shown_and_the_rest_is_counted():
    text = json_lines([document("a", *[("affinity", f"b{i}") for i in range(30)])])
    done = run("-", stdin=text)
    assert done.stdout.count("[dangling-edge]") == 20
    assert "\n10 more of dangling-edge not shown; --limit 0 shows all\ninvalid: 30 errors" in (
        done.stdout
    )
    assert run("-", "--limit", "0", stdin=text).stdout.count("[dangling-edge]") == 30


@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        (("nowhere.yaml",), "", "nowhere.yaml: cannot be read: No such file or directory"),
        ((".",), "", ".: cannot be read: Is a directory"),
        (("-",), "a: b\n\tc: d", "<stdin>:2:1: is not YAML: "),
        (("-",), '{"a": 1}\n{"b": 1', "<stdin>:2:8: is not JSON: "),
    ],
)
def test_what_cannot_be_read_is_a_usage_error_in_one_sentence(arguments, stdin, sentence, files):
    done = run(*arguments, stdin=stdin)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"seedance-obs: {sentence}")
    assert done.stderr.count("\n") == 1
    assert files.is_dir()


def test_no_file_is_a_usage_error():
    assert run().exit_code == 2


def test_the_format_in_the_help_is_a_valid_topology_but_for_the_nodes_that_it_leads_to():
    helped = run("--help").stdout
    block = re.search(r"^ +apiVersion.*?(?=\n\n)", helped, flags=re.MULTILINE | re.DOTALL)
    assert block
    indent = re.match(" +", block[0])[0]
    example = re.sub(f"^{indent}", "", block[0], flags=re.MULTILINE)
    others = [document("gpu-b"), document("gpu-c"), document("frontend", namespace="serve")]
    rest = "".join(f"---\n{json.dumps(one)}\n" for one in others)
    done = run("-", stdin=f"{example}\n{rest}")
    assert (done.exit_code, "4 nodes, 3 edges" in done.stdout) == (0, True), done.stdout


def test_the_group_loads_only_what_it_needs():
    code = (
        "import sys; import seedance_obs.cli; "
        "sys.exit(any(name.startswith('seedance_obs.topology') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
