"""What the free parts of a node are worth: gangs, islands, fragments, memory."""

import pytest

from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.residency import Resident
from seedance_obs.exporter.fragmentation.free_gpus import free_gpus
from seedance_obs.exporter.fragmentation.limits import limits_of
from seedance_obs.exporter.fragmentation.placements import Asked, Placements
from seedance_obs.exporter.fragmentation.units import Unit, units_of
from seedance_obs.exporter.view import FreeGpus, LocatedGpu, QuotaRow
from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import Request
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Topology
from tests.exporter.books.boards import instance
from tests.exporter.fragmentation.located import GIB, located, occupied, pod

NONE_ASKED = Asked(Mix(), Mix())
HELD = Unit(1.0, 0.0, 0.0)
FREE = Unit(1.0, 1.0, 80 * GIB)


def asked(*requests: Request) -> Asked:
    return Asked(Mix.of(requests), Mix.of(requests, percent_kept=100))


def measured(
    boards: list[LocatedGpu], units: list[Unit], what: Asked = NONE_ASKED, **domains: str
) -> FreeGpus:
    """The measures of boards of one unit each; `domains` are NVLink domains by board number."""
    names = {f"0000:0{number[1:]}:00.0": domain for number, domain in domains.items()}
    topology = Topology(tuple(gpu.device for gpu in boards), domains=names)
    return free_gpus([(g, (u,)) for g, u in zip(boards, units, strict=True)], topology, what)


def row(count: int, **device: object) -> list[LocatedGpu]:
    return [located(number, **device) for number in range(count)]


def test_a_gang_is_given_whole_multiples_of_its_size():
    found = measured(row(8), [FREE] * 7 + [HELD])
    assert (found.gpus, found.whole) == (7.0, 7)
    assert found.gang == {1: 7, 2: 6, 4: 4, 8: 0}


def test_halves_are_free_and_serve_no_gang():
    found = measured(row(4), [Unit(1.0, 0.5, 40 * GIB)] * 4)
    assert (found.gpus, found.whole) == (2.0, 0)
    assert set(found.gang.values()) == {0}


def test_seven_slices_are_one_gpu_that_no_gang_can_have():
    gpu = located(mig=tuple(instance(number, 1) for number in range(7)))
    found = free_gpus([(gpu, units_of(gpu, occupied(gpu), {}))], Topology(), asked(Request(1, 143)))
    assert (found.gpus, found.whole, found.fgd) == (1.0, 0, 0.0)
    whole = located(mig=(instance(0, 7),))
    found = free_gpus([(whole, units_of(whole, occupied(whole), {}))], Topology(), NONE_ASKED)
    assert (found.gpus, found.whole) == (1.0, 0)


def test_a_board_with_a_holder_of_next_to_nothing_serves_no_gang():
    quota = QuotaRow("GPU-0", account_name("team", pod("a").key), "gpu-quota", None, 0.0, None, {})
    gpu = located()
    units = units_of(gpu, occupied(gpu, Resident(pod("a"))), limits_of([quota], {}))
    placements = Placements(10)
    placements.note(units)
    found = free_gpus([(gpu, units)], Topology(), placements.asked)
    assert (found.gpus, found.whole, found.gang[1]) == (0.999, 0, 0)
    assert dict(placements.asked.whole) == {Request(1, 1): 1.0}


def test_fgd_goes_by_the_frequent_requests_and_the_others_by_all():
    both = Asked(Mix.of([Request(1, 500)]), Mix.of([Request(1, 500), Request(3)], percent_kept=100))
    found = measured(row(2), [FREE, Unit(1.0, 0.5, 0.0)], both)
    assert (found.fgd, found.stranded) == (0.0, 0.75)
    assert found.unusable == pytest.approx(0.5 / 3)  # quartiles: 500, 500, 1000


def test_requests_for_more_than_is_free_make_all_of_it_a_fragment_and_strand_it():
    found = measured(row(2), [FREE, Unit(1.0, 0.5, 0.0)], asked(Request(2), Request(1, 500)))
    assert found.gpus == 1.5
    assert found.fgd == pytest.approx((1.5 + 0.0) / 2)
    assert found.stranded == pytest.approx(1.5 / 2)
    assert found.unusable == pytest.approx((0.0 + 0.0 + 0.5) / 3)  # quartiles: 500, 500, 1000


def test_remainders_are_fragments_that_strand_nothing():
    found = measured(row(2), [FREE, Unit(1.0, 0.5, 0.0)], asked(Request(1)))
    assert (found.fgd, found.stranded, found.unusable) == (pytest.approx(0.5), 0.0, 0.5)


def test_before_the_first_placement_nothing_is_known_to_be_of_no_use():
    found = measured(row(2), [FREE, HELD])
    assert (found.fgd, found.stranded, found.unusable) == (None, None, None)


def test_a_full_node_has_nothing_that_is_of_no_use_and_no_fragmentation():
    found = measured(row(2), [HELD, HELD], asked(Request(8)))
    assert (found.gpus, found.fgd, found.stranded, found.unusable) == (0.0, 0.0, 0.0, 0.0)
    assert (found.memory_external, found.memory_external_normalised) == (None, None)


def test_memory_of_which_any_is_unknown_has_no_share():
    lopsided = [FREE, Unit(1.0, 1.0, 240 * GIB)]
    found = measured(row(2), lopsided)
    assert (found.memory_external, found.memory_external_normalised) == (0.25, 0.5)
    assert measured(row(2), [FREE, Unit(1.0, 1.0, None)]).memory_external is None


def test_islands_are_counted_by_level():
    boards = [
        located(0, numa=frozenset((0,)), pcie_switch="s0"),
        located(1, numa=frozenset((0,)), pcie_switch="s1"),
        located(2, numa=frozenset((1,)), pcie_switch="s1"),
        located(3, numa=frozenset((1,)), pcie_switch="s1"),
    ]
    found = measured(boards, [FREE, FREE, FREE, HELD], _0="d", _1="d", _2="d", _3="e")
    assert found.island == {"nvlink_domain": 3, "pcie_switch": 2, "numa_node": 2}


def test_a_gpu_without_a_bridge_is_an_island_of_its_own():
    boards = [*row(2), *(located(number, nvlinks=UNSUPPORTED) for number in (2, 3))]
    found = measured(boards, [HELD, HELD, FREE, FREE], _0="d", _1="d")
    assert found.island["nvlink_domain"] == 1


def test_a_level_that_the_node_does_not_have_is_left_out():
    boards = row(2, nvlinks=UNSUPPORTED, pcie_switch=UNSUPPORTED, numa=frozenset((0,)))
    assert measured(boards, [FREE, FREE]).island == {"numa_node": 2}


def test_a_level_on_which_a_free_gpu_cannot_be_placed_is_left_out():
    boards = [located(0, pcie_switch="s0"), located(1, pcie_switch=UNKNOWN)]
    assert measured(boards, [FREE, FREE]).island == {}
    assert measured(boards, [FREE, HELD]).island == {"pcie_switch": 1}


def test_on_a_level_without_free_gpus_none_is_on_any_island():
    assert measured(row(2, pcie_switch="s0"), [HELD, HELD]).island == {"pcie_switch": 0}


def test_a_resident_of_an_instance_leaves_the_others_free():
    gpu = located(mig=(instance(1, 4), instance(2, 3)))
    units = units_of(gpu, occupied(gpu, Resident(pod("a"))), {})
    found = free_gpus([(gpu, units)], Topology(), asked(Request(1, 571)))
    assert found.gpus == pytest.approx(3 / 7)
    assert found.fgd == pytest.approx(3 / 7)  # too small for another of its kind
