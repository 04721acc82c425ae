"""Real processes of this machine, watched for hours that an injected clock lets pass at once."""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry

from seedance_obs.cli import main
from seedance_obs.config import NodeSettings
from seedance_obs.exporter.leaks.opening import leak_parts
from seedance_obs.exporter.leaks.watch import LeakWatch, Prices
from seedance_obs.exporter.server import ScrapeServer
from seedance_obs.exporter.view import LeakView, NodeView
from seedance_obs.sources.process_probe import ProcessProbe
from tests.leaks.machine_scenes import BEGINS_AT_S, SCENES, scenes
from tests.leaks.puppet import puppet

pytestmark = pytest.mark.long
PROBE, HOURS = 15, 2.25
UNIX = 1_700_000_000.0


class Quiet:
    """Idle windows that are always open: how busy this machine is now is not what is tested."""

    node_open = True
    skipped = MappingProxyType[str, int]({})

    def probe(self, _now, _owners) -> None:
        """Nothing is read."""

    def open_accounts(self) -> frozenset[str]:
        return frozenset()

    def view(self, _shown) -> tuple[()]:
        return ()


class Only(ProcessProbe):
    """The probe, for which all processes are these: what others do meanwhile is not tested."""

    def __init__(self, pids: Iterable[int]) -> None:
        super().__init__("/")
        self._pids = list(pids)

    def all_pids(self) -> list[int]:
        return self._pids


def watch(pids: Iterable[int], **settings) -> LeakWatch:
    """The probes over this machine's own /proc."""
    parts = leak_parts(NodeSettings(leaks_processes="all", **settings), wall=lambda: UNIX)
    return LeakWatch(
        replace(parts, windows=Quiet(), probe=Only(pids)),
        every_process=True,
        most_shown=10,
        prices=Prices(),
        judged_after_seconds={},
        gap_seconds=45.0,
        host_pids=lambda: True,
        cpu_clock=time.thread_time,
    )


@dataclass
class Course:
    """By scene and kind, when it was first told and with which numbers; what the command prints."""

    told: dict[str, dict[str, tuple[float, dict[str, float]]]]
    pids: dict[str, int]
    printed: dict[str, Any]
    exit_code: int


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    told = defaultdict(dict)
    with scenes(tmp_path_factory.mktemp("scenes")) as all_scenes:
        watched = watch(scene.pid for scene in all_scenes)
        by_pid = {scene.pid: scene for scene in all_scenes}
        for t in range(0, int(HOURS * 3600), PROBE):
            for scene in all_scenes:
                scene.advance(float(t))
            watched.probe(float(t))
            for suspect in watched.view.suspects:
                for process in suspect.processes:
                    if process.pid in by_pid:
                        seen = told[by_pid[process.pid].name]
                        kind = suspect.finding.kind
                        seen.setdefault(kind, (float(t), dict(suspect.finding.evidence)))
        result = ask(watched.view, now=float(t))
    pids = {scene.name: scene.pid for scene in all_scenes}
    return Course(told, pids, json.loads(result.stdout), result.exit_code)


def ask(leaks: LeakView, *, now: float) -> Result:
    """What `seedance-obs leaks --json` prints of a view."""
    view = NodeView("node-1", leaks=leaks)
    server = ScrapeServer(
        "127.0.0.1:0",
        CollectorRegistry(),
        view=lambda: view,
        healthy=lambda: True,
        ready=lambda: True,
        monotonic=lambda: now,
    )
    server.start()
    try:
        return CliRunner().invoke(main, ["leaks", "--json", "--exporter", server.url])
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("name", list(SCENES))
def test_what_leaks_is_told_and_nothing_else_is(course, name):
    assert set(course.told[name]) == SCENES[name]


def test_nine_descriptors_a_second_are_told_within_nine_minutes(course):
    at, evidence = course.told["fd-leak"]["fd_growth"]
    assert 0 < at - BEGINS_AT_S <= 9 * 60
    assert evidence["growth_fds_per_second"] == pytest.approx(9.0, rel=0.02)
    left = evidence["fd_limit"] - evidence["open_fds"]
    assert evidence["exhaustion_seconds"] == pytest.approx(left / 9.0, rel=0.02)


def test_fifty_megabytes_an_hour_are_told_as_such(course):
    _, evidence = course.told["anonymous-growth"]["anonymous_growth"]
    assert evidence["growth_bytes_per_second"] * 3600 == pytest.approx(50e6, rel=0.05)
    assert evidence["swap_bytes"] == 0


def test_the_command_prints_the_leaks_with_their_trees(course):
    assert course.exit_code == 1
    (growth,) = [each for each in course.printed["suspects"] if each["kind"] == "anonymous_growth"]
    assert growth["processes"][0]["pid"] == course.pids["anonymous-growth"]
    assert growth["sandbox"]["chain"][0]["pid"] == course.pids["anonymous-growth"]
    assert growth["sandbox"]["mount_namespace"] == os.stat("/proc/self/ns/mnt").st_ino


def test_in_real_time_a_real_leak_is_told():
    """Everything as it is in the exporter, with windows of half a second."""
    with puppet() as leak, puppet() as steady:
        watched = watch(
            [leak.pid, steady.pid], leaks_fd_growth=("fast=8/s,0.5s",), leaks_interval_seconds=0.2
        )
        leak.fds(2000)
        steady.fds(2000)
        begun = time.monotonic()
        told: set[int] = set()
        while leak.pid not in told and time.monotonic() < begun + 60:
            now = time.monotonic()
            leak.fds(2000 + int(50 * (now - begun)))
            watched.probe(now)
            told = {process.pid for each in watched.view.suspects for process in each.processes}
            time.sleep(0.05)
    assert leak.pid in told
    assert steady.pid not in told
