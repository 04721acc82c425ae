"""The sample texts of real machines, and what a cut of one may not do."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import combinations

from seedance_obs.topology.model import Absent, PcieLink, Reading
from seedance_obs.topology.model import Path as Way
from tests.topology.index_of_samples import SAMPLES


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def cuts(text: str, step: int) -> Iterator[str]:
    """A text cut at every `step`-th character, and at each of the last hundred."""
    for end in (*range(0, len(text), step), *range(max(0, len(text) - 100), len(text))):
        yield text[:end]


def assert_cut_agrees(cut: Reading, whole: Reading) -> None:
    """What a cut text tells, the whole text tells too: a part may be unknown, never different."""
    for device in cut.topology.devices:
        assert _agrees(device, whole.topology.by_name[device.name]), device
    for path in cut.topology.paths:
        full = whole.topology.path(path.source, path.target)
        for told, truth in zip(_values(path), _values(full), strict=True):
            assert isinstance(told, Absent) or told == truth, (path, full)
    edges = {frozenset((edge.source, edge.target)): edge for edge in whole.topology.edges}
    for edge in cut.topology.edges:
        assert edges[frozenset((edge.source, edge.target))].links == edge.links
    assert _groups(cut) <= _groups(whole)


def assert_every_cut_agrees(read: Callable[[str], Reading], text: str, step: int) -> None:
    whole = read(text)
    for cut in cuts(text, step):
        assert_cut_agrees(read(cut), whole)


def _agrees(told: object, truth: object) -> bool:
    """Whether every field is equal, or left open by the cut."""
    for one in fields(told):
        here, there = getattr(told, one.name), getattr(truth, one.name)
        if isinstance(here, PcieLink):
            if not _agrees(here, there):
                return False
        elif here != there and not isinstance(here, Absent) and here not in (None, ""):
            return False
    return True


def _values(path: Way) -> tuple[object, ...]:
    return path.pcie, path.nvlinks, path.nvlink_kind


def _groups(reading: Reading) -> set[frozenset[str]]:
    """The pairs of GPUs that share an NVLink domain."""
    domains = reading.topology.domains
    pairs = combinations(domains, 2)
    return {frozenset((a, b)) for a, b in pairs if domains[a] == domains[b]}
