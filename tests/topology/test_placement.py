import gc
import threading
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.errors import UsageError
from seedance_obs.topology.bandwidth import PathModel
from seedance_obs.topology.distance import worst_class
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Absent, PcieLevel, Topology
from seedance_obs.topology.placement.pair_matrix import fewest_nodes
from seedance_obs.topology.placement.placements import Placements
from tests.topology.hosts_by_hand import (
    bridged_pairs,
    dgx1,
    gpu,
    host,
    nvswitch,
    pcie_box,
    two_sockets,
)
from tests.topology.random_hosts import hosts


def names(*indexes: int) -> tuple[str, ...]:
    return tuple(f"GPU{index}" for index in indexes)


def rank_by_hand(topology: Topology, gpus: tuple[str, ...]) -> tuple[int, float, float, int]:
    """Unknown pairs, slowest, sum, NUMA nodes: worked out from the paths, one by one."""
    model = PathModel(topology)
    rates, unknown = [], 0
    for one, other in combinations(gpus, 2):
        found = model.bandwidth(topology.path(one, other))
        if isinstance(found, Absent):
            unknown += 1
        else:
            rates.append(round(found.bytes_per_second))
    near = [topology.by_name[name].numa for name in gpus]
    nodes = 99 if UNKNOWN in near else len(frozenset().union(*near))  # each GPU has one node
    return unknown, min(rates, default=0), sum(rates), nodes


def rivals(topology: Topology, pool: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    """The sets that may be called best or worst, in the order that breaks ties."""
    every = list(combinations(pool, size))
    fewest = min(rank_by_hand(topology, gpus)[0] for gpus in every)
    return [gpus for gpus in every if rank_by_hand(topology, gpus)[0] == fewest]


@given(hosts(), st.data())
def test_best_and_worst_are_those_of_brute_force(topology, data):
    everyone = tuple(device.name for device in topology.gpus)
    pool = tuple(sorted(data.draw(st.sets(st.sampled_from(everyone), min_size=1))))
    size = data.draw(st.integers(1, len(pool)))
    found = Placements().extremes(topology, size, among=pool)
    candidates = rivals(topology, pool, size)

    def goodness(gpus):
        _, low, total, nodes = rank_by_hand(topology, gpus)
        return low, total, -nodes

    best = max(goodness(gpus) for gpus in candidates)
    worst = min(goodness(gpus) for gpus in candidates)
    assert found.exact
    assert found.best.gpus == next(gpus for gpus in candidates if goodness(gpus) == best)
    assert found.worst.gpus == next(gpus for gpus in candidates if goodness(gpus) == worst)


@given(hosts(known=True), st.data())
def test_the_widest_set_has_the_fastest_mean_pair(topology, data):
    everyone = tuple(device.name for device in topology.gpus)
    if len(everyone) < 2:
        return
    pool = tuple(sorted(data.draw(st.sets(st.sampled_from(everyone), min_size=2))))
    gpus = data.draw(st.sets(st.sampled_from(pool), min_size=2))
    found = Placements().widest(topology, gpus, among=pool)
    sums = [rank_by_hand(topology, each)[2] for each in combinations(pool, len(gpus))]
    pairs = len(gpus) * (len(gpus) - 1) / 2
    assert found.mean == pytest.approx(max(sums) / pairs)


@given(hosts(known=True), st.data())
def test_every_set_stands_between_the_worst_and_the_best(topology, data):
    everyone = tuple(device.name for device in topology.gpus)
    gpus = data.draw(st.sets(st.sampled_from(everyone), min_size=2)) if len(everyone) > 1 else None
    if gpus is None:
        return
    standing = Placements().standing(topology, gpus)
    low, high = standing.extremes.worst.bottleneck, standing.extremes.best.bottleneck
    assert low <= standing.actual.bottleneck <= high
    assert 0 <= standing.regret < 1
    assert 0 < standing.percentile <= 1


@given(hosts(least=2), st.randoms(use_true_random=False))
def test_answers_do_not_depend_on_any_order(topology, shuffle):
    engine = Placements()
    everyone = [device.name for device in topology.gpus]
    turned = [
        replace(path, source=path.target, target=path.source) if shuffle.random() < 0.5 else path
        for path in topology.paths
    ]
    mixed = Topology(
        tuple(shuffle.sample(topology.devices, len(everyone))),
        tuple(shuffle.sample(turned, len(turned))),
    )
    some = everyone[: max(1, len(everyone) - 1)]
    backwards = Placements().placement(mixed, reversed(some))
    assert replace(backwards, pairs=()) == replace(engine.placement(topology, some), pairs=())
    size = len(some)
    one, other = engine.extremes(topology, size), Placements().extremes(mixed, size)
    assert (one.best.gpus, one.worst.gpus) == (other.best.gpus, other.worst.gpus)


def test_a_cube_mesh_has_good_and_bad_sets():
    engine, mesh = Placements(), dgx1()
    pairs, quads = engine.extremes(mesh, 2), engine.extremes(mesh, 4)
    assert (pairs.best.gpus, pairs.best.bottleneck) == (names(0, 3), 50e9)
    assert (pairs.worst.gpus, pairs.worst.worst_class) == (names(0, 5), "SYS")
    assert (quads.best.gpus, quads.best.bottleneck) == (names(0, 1, 2, 3), 25e9)
    assert quads.best.mean == pytest.approx(37.5e9)  # three NV1, three NV2
    assert quads.best.worst_class == "NV1"
    assert quads.worst.worst_class == "SYS"
    assert quads.worst.numa_spread == 2


def test_behind_nvswitches_all_pairs_are_equal_and_numa_decides():
    found = Placements().extremes(nvswitch(), 4)
    assert found.best.bottleneck == found.worst.bottleneck == pytest.approx(18 * 26.562e9)
    assert (found.best.gpus, found.best.numa_spread) == (names(0, 1, 2, 3), 1)
    assert (found.worst.gpus, found.worst.numa_spread) == (names(0, 1, 2, 4), 2)


def test_a_bridge_joins_two():
    found = Placements().extremes(bridged_pairs(), 2)
    assert (found.best.gpus, found.best.worst_class) == (names(0, 1), "NV4")
    assert (found.worst.gpus, found.worst.worst_class) == (names(0, 2), "SYS")


def test_without_nvlink_the_switch_and_the_socket_decide():
    engine, box = Placements(), pcie_box()
    assert engine.extremes(box, 2).best.worst_class == "PIX"
    assert engine.extremes(box, 4).best.gpus == names(0, 1, 2, 3)
    assert engine.extremes(box, 4).worst.gpus == names(0, 2, 4, 6)
    free = engine.extremes(box, 2, among=names(1, 2, 5))
    assert (free.best.gpus, free.worst.gpus) == (names(1, 2), names(1, 5))


def test_a_set_with_an_unknown_pair_is_neither_best_nor_worst():
    gpus = [gpu(i, numa=0) for i in range(4)]
    lost = {(0, 1): UNKNOWN, (2, 3): PcieLevel.SYS}
    topology = host(gpus, lambda i, j: lost.get((i, j), PcieLevel.PIX))
    found = Placements().extremes(topology, 2)
    assert (found.best.gpus, found.worst.gpus) == (names(0, 2), names(2, 3))
    quad = Placements().placement(topology, names(0, 1, 2, 3))
    assert (quad.bottleneck, quad.mean, quad.worst_class) == (UNKNOWN, UNKNOWN, UNKNOWN)
    standing = Placements().standing(topology, names(0, 1))
    assert (standing.regret, standing.percentile) == (UNKNOWN, UNKNOWN)


def test_a_single_gpu_has_no_pairs():
    standing = Placements().standing(dgx1(), names(5))
    assert standing.actual.bottleneck is UNSUPPORTED
    assert standing.actual.worst_class is UNSUPPORTED
    assert standing.actual.numa_spread == 1
    assert standing.regret is UNSUPPORTED


def test_regret_is_what_the_best_set_had_more():
    standing = Placements().standing(dgx1(), names(0, 5))
    assert standing.regret == pytest.approx(1 - 6 / 50)
    assert standing.percentile == pytest.approx(12 / 28)  # 16 of 28 pairs have NVLinks


def test_a_set_that_is_held_counts_among_the_free():
    standing = Placements().standing(pcie_box(), names(0, 4), among=names(1, 2))
    assert standing.extremes.among == names(0, 1, 2, 4)
    assert standing.extremes.best.gpus == names(0, 1)


def test_a_gpu_that_fell_off_is_not_placed_on():
    gpus = [gpu(0), gpu(1), gpu(2, present=False)]
    assert Placements().gpus(host(gpus, two_sockets(2))) == names(0, 1)


def test_gpu_10_comes_after_gpu_2():
    gpus = [replace(gpu(i), index=None) for i in (10, 2, 1)]
    assert Placements().gpus(host(gpus, two_sockets(3))) == names(1, 2, 10)
    buses = ["0000:9b:00.0", "0000:1b:00.0", "0000:c1:00.0"]
    gpus = [replace(gpu(0), index=None, name=bus) for bus in buses]
    assert Placements().gpus(host(gpus, two_sockets(3))) == tuple(sorted(buses))


@pytest.mark.parametrize(
    ("near", "nodes"),
    [
        ([], 0),
        ([{0}, {1}], 2),
        ([{0, 1}, {1, 2}], 1),
        ([{0, 1}, {2, 3}, {1, 2}], 2),
        ([{0, 5}, {5, 6}, {0, 6}], 2),
    ],
)
def test_a_set_needs_the_fewest_nodes_that_are_near_to_all(near, nodes):
    assert fewest_nodes([frozenset(one) for one in near]) == nodes


def test_numa_spread_is_unknown_if_one_gpus_nodes_are():
    topology = host([gpu(0, numa=0), gpu(1)], two_sockets(2))
    assert Placements().placement(topology, names(0, 1)).numa_spread is UNKNOWN


@pytest.mark.parametrize(
    ("classes", "worst"),
    [
        (["NV18", "NV2"], "NV2"),
        (["NV1", "C2C"], "C2C"),
        (["C2C", "PIX"], "PIX"),
        (["NODE", "SYS", "PHB"], "SYS"),
        (["NV4", UNKNOWN], UNKNOWN),
        ([], UNSUPPORTED),
    ],
)
def test_link_classes_are_ordered(classes, worst):
    assert worst_class(classes) == worst


@pytest.mark.parametrize("size", [0, -1, 9])
def test_a_size_that_does_not_fit_is_refused(size):
    with pytest.raises(UsageError, match=f"a set of {size} GPUs .* 8 to choose from"):
        Placements().extremes(dgx1(), size)


def test_an_unknown_gpu_is_named_with_those_that_are_there():
    with pytest.raises(UsageError, match="names GPU9; the GPUs are GPU0, GPU1"):
        Placements().placement(dgx1(), ["GPU9", "GPU1"])


def test_beyond_exhaustion_the_sets_met_are_marked_and_still_right_where_it_is_clear():
    box = pcie_box(20)
    found = Placements().extremes(box, 10)
    assert not found.exact
    assert found.best.gpus == names(*range(10))
    assert found.worst.gpus == names(*range(0, 20, 2))
    assert Placements().extremes(box, 4).exact
    assert Placements().standing(box, names(*range(10))).percentile is UNKNOWN


def test_the_actual_set_is_the_best_where_a_greedy_search_missed_it():
    """GPU11 lures every start away from the odd clique, and no single swap leads back."""
    clique = names(1, 3, 5, 7, 9)

    def links(one, other):
        if one % 2 and other % 2 and other < 10:
            return 2
        return 8 if 11 in (one, other) and (one + other) % 2 else 0

    topology = host([gpu(i) for i in range(20)], two_sockets(10), links)
    engine = Placements()
    assert engine.extremes(topology, 5).best.gpus != clique
    standing = engine.standing(topology, clique)
    assert standing.extremes.best == standing.actual
    assert standing.regret == 0


def test_the_actual_set_is_the_worst_where_a_greedy_search_missed_it():
    clique = names(1, 3, 5, 7, 9)

    def links(one, other):
        slow = one % 2 and other % 2 and other < 10
        return 0 if slow or (11 in (one, other) and (one + other) % 2) else 8

    topology = host([gpu(i) for i in range(20)], lambda _i, _j: PcieLevel.PIX, links)
    engine = Placements()
    assert engine.extremes(topology, 5).worst.gpus != clique
    assert engine.standing(topology, clique).extremes.worst.gpus == clique


def test_sets_with_unknown_pairs_do_not_count_among_the_sets():
    gpus = [gpu(i, numa=0) for i in range(4)]
    known = {(0, 1): PcieLevel.PIX, (0, 2): PcieLevel.SYS}
    topology = host(gpus, lambda i, j: known.get((i, j), UNKNOWN))
    assert Placements().standing(topology, names(0, 1)).percentile == 1
    assert Placements().standing(topology, names(0, 2)).percentile == 0.5


def test_hosts_wired_alike_share_one_search():
    engine = Placements()
    assert engine.extremes(dgx1(), 4) is engine.extremes(dgx1(), 4)


def test_another_wiring_is_not_confused_with_it():
    engine, mesh = Placements(), dgx1()
    first = engine.extremes(mesh, 2)
    cut = replace(mesh, paths=tuple(replace(path, nvlinks=0) for path in mesh.paths))
    assert engine.extremes(cut, 2).best.worst_class == "PIX"
    assert engine.extremes(mesh, 2) is first


def test_a_topology_at_the_address_of_another_is_read_anew():
    engine, mesh, box = Placements(), dgx1(), pcie_box()
    engine.extremes(mesh, 2)
    engine._seen[id(box)] = engine._seen[id(mesh)]
    assert engine.extremes(box, 2).best.worst_class == "PIX"


def test_topologies_that_are_gone_are_not_remembered():
    engine = Placements()
    for _ in range(50):
        engine.extremes(nvswitch(), 2)
    gc.collect()
    assert len(engine._seen) == 0


def test_many_threads_get_the_same_answer():
    engine, meshes = Placements(), [dgx1() for _ in range(8)]
    expected = Placements().extremes(dgx1(), 3)
    answers = []

    def ask(mesh):
        answers.extend(engine.extremes(mesh, 3) for _ in range(20))

    threads = [threading.Thread(target=ask, args=(mesh,)) for mesh in meshes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 160
    assert all(answer == expected for answer in answers)
