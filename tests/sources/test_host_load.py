"""Memory in use, from `/proc/meminfo` as kernels write it."""

from pathlib import Path

import pytest

from seedance_obs.sources.host_load import MemoryUse

HEAD = "MemTotal:       2113535784 kB\nMemFree:        18311104 kB\n"
REST = "Buffers:             312 kB\nCached:         1690828628 kB\nSwapTotal:             0 kB\n"
AVAILABLE = "MemAvailable:   1585151838 kB\n"


def meminfo(root: Path, text: str) -> MemoryUse:
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/meminfo").write_text(text)
    return MemoryUse(root)


def test_page_cache_is_not_in_use(tmp_path):
    assert meminfo(tmp_path, HEAD + AVAILABLE + REST).read() == pytest.approx(0.25)


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD + REST,
        AVAILABLE + REST,
        HEAD + "MemAvailable:   15851518\n",
        HEAD + "MemAvailable:   -1 kB\n",
        HEAD + "XMemAvailable:   1 kB\n",
        "MemTotal: 0 kB\nMemAvailable: 0 kB\n",
        "MemTotal: 10 kB\nMemAvailable: 11 kB\n",
    ],
    ids=["empty", "old kernel", "no total", "no unit", "negative", "other", "none", "too much"],
)
def test_what_is_not_told_is_not_guessed(tmp_path, text):
    assert meminfo(tmp_path, text).read() is None


def test_a_host_without_the_file_is_unknown(tmp_path):
    assert MemoryUse(tmp_path).read() is None


def test_all_in_use_is_one_and_none_is_zero(tmp_path):
    assert meminfo(tmp_path, "MemTotal: 10 kB\nMemAvailable: 0 kB\n").read() == 1.0
    assert meminfo(tmp_path, "MemTotal: 10 kB\nMemAvailable: 10 kB\n").read() == 0.0


def test_this_machine_tells():
    used = MemoryUse("/").read()
    assert used is not None
    assert 0.0 < used < 1.0
