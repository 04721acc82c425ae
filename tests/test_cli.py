"""Commands as users type them: one sentence and a documented exit code, never a traceback."""

import os
import socket
import subprocess
import sys

import pytest


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seedance_obs", *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[nvml]\nenbled = true\n", "unknown option nvml.enbled; [nvml] has deadline_seconds"),
        ("[dcgm]\nurl = 9400\n", "dcgm.url = 9400: wanted a text"),
        (
            "[collectors]\ndisabled = ['gpus']\n",
            "there is no collector 'gpus'; there are attribution",
        ),
    ],
)
def test_a_bad_configuration_is_refused(tmp_path, toml, sentence):
    config = tmp_path / "node.toml"
    config.write_text(toml)
    done = run("exporter", "node", "--config", str(config), "--server-address", "127.0.0.1:0")
    assert done.returncode == 2
    assert done.stderr.startswith("seedance-obs: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_taken_port_is_refused(taken_port):
    done = run("exporter", "node", "--server-address", f"127.0.0.1:{taken_port}")
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{taken_port}: Address already in use" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_web_app_refuses_a_taken_port(taken_port):
    done = run("web", "--listen", f"127.0.0.1:{taken_port}")
    assert done.returncode == 2
    assert f"127.0.0.1:{taken_port}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bad_flag_or_variable_is_named():
    assert (
        "--sampler-interval-seconds = 'often': wanted a number"
        in run("exporter", "node", "--sampler-interval-seconds", "often").stderr
    )
    done = run("exporter", "node", SEEDANCE_NODE_EXPECTED_GPUS="all")
    assert (done.returncode, "SEEDANCE_NODE_EXPECTED_GPUS = 'all'" in done.stderr) == (2, True)


def test_an_unknown_command_is_a_usage_error():
    assert run("exprter").returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        *((), ("exporter",), ("exporter", "node"), ("demo",), ("web",), ("capture",), ("assets",)),
        ("leaks",),
        ("topology",),
        *(
            ("topology", name)
            for name in ("show", "parse", "labels", "placements", "validate", "fragmentation")
        ),
    ],
)
def test_every_command_explains_itself(command):
    done = run(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage:" in done.stdout


def test_help_does_not_load_what_only_the_app_needs():
    code = (
        "import sys; from click.testing import CliRunner; from seedance_obs.cli import main; "
        "CliRunner().invoke(main, ['--help']); "
        "sys.exit(bool({'dash', 'pandas', 'grafanalib', 'pynvml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
