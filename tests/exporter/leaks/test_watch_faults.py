"""A part of the leak probes that breaks costs its own findings, and what it said before."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from seedance_obs.exporter.leaks.watch import PROCESS_KINDS, LeakParts
from seedance_obs.exporter.view import LeakView
from seedance_obs.leaks.suspect import GPU_KINDS, KINDS
from tests.exporter.leaks.watched_host import Host


class Part:
    """A part of the probes that works until it is to break."""

    def __init__(self, made: object, broken: str) -> None:
        self._made = made
        self._broken = broken
        self.breaks = False

    def __getattr__(self, name: str):
        if self.breaks and name == self._broken:
            raise ZeroDivisionError
        return getattr(self._made, name)


NEAR, IDLE = "fd_near_limit", "pseudo_idle_context"
# By part: what of it breaks, the kinds that cannot be judged then, and what is told still.
FAULTS = {
    "probe": ("read", PROCESS_KINDS, {IDLE}),
    "members": ("of", PROCESS_KINDS, {IDLE}),
    "processes": ("advance", PROCESS_KINDS, {IDLE}),
    "windows": ("probe", {"anonymous_growth"}, {NEAR, IDLE}),
    "boards": ("findings", GPU_KINDS, {NEAR}),
    "costs": ("advance", set(), {NEAR, IDLE}),
    "whose": ("suspects", set(KINDS), set()),
    "held": ("by_board", set(KINDS), set()),
}
SETTINGS = {
    "leaks_fd_limit_ratio": 0.2,
    "leaks_context_seconds": 60.0,
    "leaks_context_samples": 2,
    "leaks_gpu_memory_bytes": 1,
}


class Faulty:
    """A host whose server is near its limit of files and idle on a GPU; one part can break."""

    def __init__(self, root: Path, name: str, broken: str) -> None:
        def change(parts: LeakParts) -> LeakParts:
            self.part = Part(getattr(parts, name), broken)
            return replace(parts, **{name: self.part})

        self.host = Host(root, change, **SETTINGS)
        for number in range(250):
            self.host.tree.write(f"proc/20/fd/{number}", "")
        for now in range(0, 90, 15):
            self.probe(float(now))

    @property
    def view(self) -> LeakView:
        return self.host.watch.view

    def probe(self, now: float) -> set[str]:
        """What a probe tells."""
        self.host.note(now, 20, utilization_ratio=0.0)
        self.host.watch.probe(now)
        return set(self.host.kinds())


@pytest.mark.parametrize("name", FAULTS)
def test_a_part_that_breaks_costs_its_own_findings_and_what_was_told_is_not_told_on(
    name: str, tmp_path: Path
) -> None:
    broken, unjudged, told = FAULTS[name]
    faulty = Faulty(tmp_path, name, broken)
    assert faulty.probe(90.0) == {NEAR, IDLE}
    assert (faulty.view.unjudged, faulty.view.probed_at) == (frozenset(), 90.0)
    faulty.part.breaks = True
    with pytest.raises(ZeroDivisionError) if name == "held" else nullcontext():
        faulty.probe(105.0)
    assert (set(faulty.host.kinds()), faulty.view.unjudged) == (told, unjudged)
    assert faulty.view.probed_at == 90.0, "no probe is complete without all of its parts"
    faulty.part.breaks = False
    assert faulty.probe(120.0) == {NEAR, IDLE}
    assert (faulty.view.unjudged, faulty.view.probed_at) == (frozenset(), 120.0)


def test_windows_that_break_are_neither_open_nor_shown(tmp_path: Path) -> None:
    faulty = Faulty(tmp_path, "windows", "probe")
    faulty.host.windows.node_open = True
    faulty.probe(90.0)
    faulty.part.breaks = True
    faulty.probe(105.0)
    assert faulty.view.probed_in_window_at == 90.0
    assert faulty.view.windows == ()


def test_one_probe_that_could_not_read_costs_no_history(tmp_path: Path) -> None:
    faulty = Faulty(tmp_path, "probe", "read")
    before = {suspect.name: suspect.finding.since for suspect in faulty.view.suspects}
    faulty.part.breaks = True
    faulty.probe(90.0)
    faulty.part.breaks = False
    faulty.probe(105.0)
    assert {suspect.name: suspect.finding.since for suspect in faulty.view.suspects} == before


def test_a_fault_of_a_probe_is_said_when_it_starts_and_when_it_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = Faulty(tmp_path, "boards", "findings")
    for now, faulty.part.breaks in ((90.0, True), (105.0, True), (120.0, False)):
        faulty.probe(now)
    assert [record.getMessage() for record in caplog.records] == [
        "event=fault_started of='judging boards for leaks'",
        "event=fault_ended of='judging boards for leaks'",
    ]
