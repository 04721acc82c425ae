"""`seedance-obs topology labels` as it is typed, and what it prints."""

import json

import pytest

from tests.topology.command_line import PREFIX, run


def lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_labels_are_lines_and_annotations_are_comments(simulated):
    done = run("labels", *simulated("gb200"))
    assert (done.exit_code, done.stderr) == (0, "")
    text = done.stdout.splitlines()
    assert f"{PREFIX}gpus=4" in text
    assert f"{PREFIX}gpu3.topo-mask=0b1111" in text
    assert f"# annotation {PREFIX}gpu0.pci-bus-id=0008:01:00.0" in text
    assert all(line.removeprefix("# annotation ").startswith(PREFIX) for line in text)


def test_every_format_tells_the_same(simulated):
    host = simulated("v100-cubemesh")
    whole = json.loads(run("labels", "--format", "json", *host).stdout)
    printed = run("labels", *host).stdout.splitlines()
    assert lines("\n".join(printed[: len(whole["labels"])])) == whole["labels"]
    assert lines(run("labels", "--format", "nfd", *host).stdout) == whole["labels"]
    merged = json.loads(run("labels", "--format", "merge-patch", *host).stdout)
    assert merged == {"metadata": whole}
    operations = json.loads(run("labels", "--format", "json-patch", *host).stdout)
    assert {operation["op"] for operation in operations} == {"add"}
    key = "/metadata/labels/topology.seedance.io~1gpus"
    assert {"op": "add", "path": key, "value": "8"} in operations
    assert len(operations) == len(whole["labels"]) + len(whole["annotations"])


def test_a_node_loses_the_keys_of_ours_that_are_stale(files):
    labels = {f"{PREFIX}gpus": "2", f"{PREFIX}gpu7.numa-node": "1", "zone": "a"}
    node = files / "node.json"
    node.write_text(json.dumps({"kind": "Node", "metadata": {"name": "n", "labels": labels}}))
    arguments = ("labels", "pair.txt", "--node-name", "n", "--node-json", str(node), "--format")
    operations = json.loads(run(*arguments, "json-patch").stdout)
    removed = [operation["path"] for operation in operations if operation["op"] == "remove"]
    assert removed == ["/metadata/labels/topology.seedance.io~1gpu7.numa-node"]
    assert not any(operation["path"].endswith(("~1gpus", "/zone")) for operation in operations)
    merged = json.loads(run(*arguments, "merge-patch").stdout)["metadata"]["labels"]
    assert merged[f"{PREFIX}gpu7.numa-node"] is None
    assert not {"zone", f"{PREFIX}gpus"} & set(merged)


@pytest.mark.usefixtures("files")
def test_domains_of_a_file_need_a_hosts_name():
    bare = run("labels", "pair.txt")
    assert (bare.exit_code, "give --node-name" in bare.stderr) == (0, True)
    named = run("labels", "pair.txt", "--node-name", "node-9")
    assert named.stderr == ""
    assert lines(named.stdout)[f"{PREFIX}nvlink-domain"] == "node-9.GPU0"


@pytest.mark.usefixtures("files")
def test_labels_of_a_cut_file_warn_and_leave_out_what_is_lost():
    done = run("labels", "cut.txt", "--node-name", "n")
    assert done.stderr == "cut.txt: warning: GPU1 x CPU Affinity to NUMA Affinity: cut off\n"
    assert [line for line in done.stdout.splitlines() if "numa" in line] == [
        f"{PREFIX}gpu0.numa-node=0"
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "this is not JSON: "),
        ("[]", "a node as `kubectl get node NAME -o json` prints it is wanted"),
        ('{"metadata": {"labels": []}}', ""),
        ('{"metadata": {"labels": ["a"]}}', "a node as `kubectl get node NAME -o json`"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_node_that_is_none_is_refused(text, sentence, files):
    node = files / "node.json"
    if text is not None:
        node.write_text(text)
    arguments = ("labels", "pair.txt", "--node-name", "n", "--format", "json-patch")
    done = run(*arguments, "--node-json", str(node))
    assert done.exit_code == (2 if sentence else 0)
    assert (f"seedance-obs: {node}: {sentence}" if sentence else "") in done.stderr


@pytest.mark.usefixtures("files")
def test_a_node_without_a_patch_is_refused():
    done = run("labels", "pair.txt", "--node-json", "policy.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--node-json goes with --format json-patch or merge-patch" in done.stderr
    assert run("labels", "pair.txt", "--format", "yaml").exit_code == 2
