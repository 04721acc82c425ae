"""The scenes' processes hold what the scenes are named for, at any moment."""

import os
from pathlib import Path

import pytest

from tests.leaks.machine_scenes import (
    ANONYMOUS_BYTES,
    BEGINS_AT_S,
    FDS,
    LIFE_S,
    SCENES,
    Scene,
    scenes,
)

PAGE = os.sysconf("SC_PAGE_SIZE")
NEAR_BYTES = 1_000_000


def fds(scene: Scene) -> int:
    return len(os.listdir(f"/proc/{scene.pid}/fd"))


def held_bytes(scene: Scene) -> tuple[int, int]:
    """Anonymous and other resident memory."""
    fields = Path(f"/proc/{scene.pid}/statm").read_text().split()
    resident, shared = int(fields[1]), int(fields[2])
    return (resident - shared) * PAGE, shared * PAGE


def start(scene: Scene) -> str:
    return Path(f"/proc/{scene.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


FDS_AT = {
    "steady": {0: FDS, 9000: FDS},
    "fd-leak": {BEGINS_AT_S: FDS, BEGINS_AT_S + 15: FDS + 135, BEGINS_AT_S + 600: FDS + 5400},
    "fd-step": {BEGINS_AT_S - 1: FDS, BEGINS_AT_S: FDS + 2000, 9000: FDS + 2000},
    "fd-sawtooth-200": {0: FDS, 195: FDS + 1950, 200: FDS, 500: FDS + 1000},
    "fd-sawtooth-300": {0: FDS, 195: FDS + 1950, 305: FDS + 50},
    "fd-sawtooth-600": {0: FDS, 595: FDS + 5950, 600: FDS},
}


@pytest.mark.parametrize("name", FDS_AT)
def test_descriptors_are_as_the_scene_has_them(name: str, tmp_path: Path) -> None:
    with scenes(tmp_path, name) as (scene,):
        for t, count in FDS_AT[name].items():
            scene.advance(t)
            assert fds(scene) == count


def test_fifty_megabytes_an_hour_are_touched(tmp_path: Path) -> None:
    with scenes(tmp_path, "anonymous-growth") as (scene,):
        before, _ = held_bytes(scene)
        scene.advance(BEGINS_AT_S)
        assert held_bytes(scene)[0] == pytest.approx(before, abs=NEAR_BYTES)
        for quarter in range(1, 9):
            scene.advance(BEGINS_AT_S + quarter * 900)
        assert held_bytes(scene)[0] - before == pytest.approx(100e6, abs=NEAR_BYTES)


@pytest.mark.parametrize("name", ["mapping", "huge-and-shared"])
def test_what_is_mapped_or_shared_does_not_grow_as_anonymous_memory(
    name: str, tmp_path: Path
) -> None:
    with scenes(tmp_path, name) as (scene,):
        scene.advance(BEGINS_AT_S + 15)
        anonymous, other = held_bytes(scene)
        scene.advance(BEGINS_AT_S + 60)
        more_anonymous, more = held_bytes(scene)
        assert more_anonymous == pytest.approx(anonymous, abs=NEAR_BYTES)
        assert more - other >= 4_000_000


def test_each_life_has_the_same_pid_and_holds_more(tmp_path: Path) -> None:
    with scenes(tmp_path, "rebirth") as (scene,):
        first, count, (held, _) = start(scene), fds(scene), held_bytes(scene)
        scene.advance(LIFE_S - 1)
        assert (start(scene), fds(scene)) == (first, count)
        scene.advance(2 * LIFE_S)
        assert start(scene) != first
        assert fds(scene) > count + 4000
        assert held_bytes(scene)[0] > held + 20_000_000


def test_all_scenes_begin_alike_and_end_with_the_block(tmp_path: Path) -> None:
    with scenes(tmp_path) as all_of_them:
        assert {scene.name for scene in all_of_them} == set(SCENES)
        assert all(fds(scene) in (FDS, FDS + 1) for scene in all_of_them)
        assert all(held_bytes(scene)[0] >= ANONYMOUS_BYTES for scene in all_of_them)
        pids = [scene.pid for scene in all_of_them]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
