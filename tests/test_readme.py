"""The README's commands exist as it writes them, and what it points at is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(
    set(
        re.findall(
            r"seedance-obs ((?:demo|exporter|web|capture|topology|rules)[^\n`#|>&]*)", README
        )
    )
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_of_every_command_exists(command):
    words = command.split()
    subcommand = words[:2] if words[0] in ("exporter", "topology", "rules") else words[:1]
    shown = subprocess.run(
        [sys.executable, "-m", "seedance_obs", *subcommand, "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for flag in re.findall(r"--[a-z-]+", command):
        assert flag in shown


def test_every_make_target_exists():
    targets = set(re.findall(r"^\$ make (\w+)", README, flags=re.MULTILINE))
    assert targets == {"demo", "test", "check", "generate"}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


def test_the_picture_is_one():
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert pictures
    for picture in pictures:
        content = (ROOT / picture).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000


def test_the_named_options_exist():
    from seedance_obs.config import OPTIONS

    for flag in re.findall(r"`?--((?:nvml|node|server|dcgm)-[a-z-]+)", README):
        assert flag.replace("-", "_") in OPTIONS


def test_the_policy_is_one():
    from seedance_obs.topology.placement.policy_file import read_policy

    (text,) = re.findall(r"```yaml\n(apiVersion: topology.*?)```", README, flags=re.DOTALL)
    assert [rule.weight for rule in read_policy(text).rules] == [120, 80]
