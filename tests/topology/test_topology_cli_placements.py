"""`seedance-obs topology placements` as it is typed, and what it prints."""

import json

import pytest

from seedance_obs.topology.placement.policy_facts import FACTS
from seedance_obs.topology.placement.policy_rules import RULES
from tests.topology.command_line import P2P, SEED_POLICY, run


def test_the_best_and_the_worst_four_of_a_cube_mesh(simulated):
    done = run("placements", "--size", "4", *simulated("v100-cubemesh"))
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Sets of 4 of 8 GPUs on node-1\n" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if " of all " in line]
    assert [row[:6] for row in rows] == [
        ["A", "best", "of", "all", "0-3", "25.8"],
        ["B", "worst", "of", "all", "0,2,5,7", "6.0"],
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_placement_is_compared_among_all_and_among_the_free(simulated):
    options = ("--gpus", "0,5-7", "--free", "0,2,4-7", "--json")
    data = json.loads(run("placements", *options, *simulated("v100-cubemesh")).stdout)
    assert (data["host"], data["size"], len(data["gpus"]), len(data["free"])) == ("node-1", 4, 8, 6)
    roles = {role for found in data["sets"] for role in found["roles"]}
    assert roles == {"best of all", "worst of all", "best of free", "worst of free", "actual"}
    assert set(data["standings"]) == {"all", "free"}
    assert 0.7 < data["standings"]["all"]["regret_ratio"] < 0.8
    assert "77% below the best (25.8; worst 6.0)" in (
        run("placements", "--gpus", "0,5-7", *simulated("v100-cubemesh")).stdout
    )
    best = run("placements", "--gpus", "0-3", *simulated("v100-cubemesh")).stdout
    assert "25.8 GB/s, as fast as the best (25.8; worst 6.0).\n" in best


def test_the_policy_of_the_seed_scores_every_set(simulated, files):
    policy = ("--policy", str(files / "policy.yaml"))
    host = simulated("v100-cubemesh")
    data = json.loads(run("placements", "--size", "4", "--json", *policy, *host).stdout)
    best = data["sets"][0]["policy"]
    assert (best["name"], best["most"], best["eligible"]) == ("training", 200, True)
    assert {part["type"]: part["weight"] for part in best["contributions"]} == {
        "nvlink-proximity": 120,
        "numa-locality": 80,
    }
    assert best["total"] == sum(part["points"] for part in best["contributions"]) == 170
    assert "policy's choice" in data["sets"][0]["roles"]
    table = run("placements", "--size", "4", *policy, *host).stdout
    rows = [line.split() for line in table.splitlines()]
    assert ["nvlink-proximity", "120", "90.0", "20.0"] in rows
    assert ["total", "200", "170.0", "60.0"] in rows
    assert ["gpu-count", "Gt", "1", "met", "met"] in rows
    alone = run("placements", "--size", "1", *policy, *host).stdout
    assert ["gpu-count", "Gt", "1", "broken"] in [line.split() for line in alone.splitlines()]
    assert "The policy has no choice: every set of free GPUs breaks a constraint." in alone


@pytest.mark.parametrize(
    ("size", "why"),
    [
        (1, "All sets of this size are as good as each other."),
        (8, "There is one set only: all GPUs."),
    ],
)
def test_why_the_best_set_is_the_worst_one_too(simulated, size, why):
    done = run("placements", "--size", str(size), *simulated("v100-cubemesh"))
    assert why in done.stdout
    assert f"{why}\n" not in run("placements", "--size", "4", *simulated("v100-cubemesh")).stdout


@pytest.mark.usefixtures("files")
def test_nothing_known_is_no_ranking():
    three = P2P.replace("\tGPU1\n", "\tGPU1\tGPU2\n").replace("X\tCNS\n", "X\tCNS\tCNS\n")
    three = three.replace("CNS\tX\n", "CNS\tX\tCNS\n GPU2\tCNS\tCNS\tX\n")
    done = run("placements", "--size", "2", "-", stdin=three)
    assert "Nothing is known that tells the sets apart.\n?: not known.\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--size N is wanted, or --gpus LIST of a placement to compare"),
        (("--size", "3"), "a set of 3 GPUs was asked for, and there are 2 to choose from"),
        (("--size", "1", "--free", "0,9"), "--free: '9' is no GPU here; the GPUs are 0-1"),
        (("--gpus", "mlx5_0"), "--gpus: 'mlx5_0' is no GPU here; the GPUs are 0-1"),
        (("--size", "1", "--free", ","), "--free: a list of GPUs such as 0,1,5 or 0-3 is wanted"),
        (("--size", "2", "--gpus", "0"), "the actual set has 1 GPU"),
        (("--size", "1", "--policy", "none.yaml"), "none.yaml: cannot be read: No such file"),
        (("--size", "1", "--policy", "bad.yaml"), "bad.yaml:2: kind: TopologyPolicy is wanted"),
        (("--size", "1", "--policy", "raw.yaml"), "raw.yaml: cannot be read: it is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(arguments, sentence, files):
    (files / "bad.yaml").write_text(SEED_POLICY.replace("TopologyPolicy", "Policy"))
    (files / "raw.yaml").write_bytes(b"\xff\xfe")
    done = run("placements", "pair.txt", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"seedance-obs: {sentence}")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("files")
def test_a_size_of_nought_is_a_usage_error():
    done = run("placements", "pair.txt", "--size", "0")
    assert (done.exit_code, "'--size'" in done.stderr) == (2, True)


def test_a_question_without_an_answer_is_one_and_is_shown_all_the_same(tmp_path):
    few = run("placements", "--size", "3", "--free", "0,1", "--nvml-library", "sim:gh200")
    assert few.exit_code == 1
    assert "best of all" in few.stdout
    policy = tmp_path / "policy.yaml"
    policy.write_text(SEED_POLICY.replace("value: 1", "value: 9"))
    asked = ("placements", "--size", "2", "--policy", str(policy), "--nvml-library", "sim:gh200")
    assert run(*asked).exit_code == 1
    as_json = run(*asked, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["feasible"]) == (1, False)


def test_every_rule_and_every_key_of_a_constraint_is_in_the_help():
    shown = " ".join(run("placements", "--help").stdout.split())
    for word in (*RULES, *FACTS):
        assert word in shown
