"""What a declared topology may be: a labelled DAG, and every way that it fails to be one."""

import random

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.topology.declared.findings import Finding
from tests.topology.declared_text import check, document, graph_lines, json_lines, only, rules

CYCLES = {"cycle", "hidden-reverse-edge"}


@st.composite
def graphs(draw, *, acyclic: bool):
    """A number of nodes and distinct edges without self edges; acyclic ones run forward."""
    nodes = draw(st.integers(2, 14))
    rank = draw(st.permutations(range(nodes)))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=30, unique=True))
    if acyclic:
        pairs = list({(a, b) if rank[a] < rank[b] else (b, a): None for a, b in pairs})
    return nodes, pairs


def cycles(report) -> list[Finding]:
    return [found for found in report.findings if found.rule in CYCLES]


def steps(found: Finding) -> list[tuple[int, int]]:
    """The edges of the cycle that a finding names, as numbers of nodes."""
    numbers = [int(name.partition("/n")[2]) for name in found.names]
    return list(zip([numbers[-1], *numbers], numbers, strict=False))


@given(graphs(acyclic=True))
def test_a_dag_is_valid(graph):
    report = check(graph_lines(*graph))
    assert (report.valid, report.findings) == (True, ())
    assert (report.nodes, report.edges) == (graph[0], len(graph[1]))


@given(graphs(acyclic=True), st.data())
def test_a_back_edge_is_found_with_a_cycle_of_declared_edges(graph, data):
    nodes, edges = graph
    reachable = networkx.DiGraph(edges)
    ways = [(a, b) for a in reachable for b in networkx.descendants(reachable, a)]
    if not ways:
        return
    target, source = data.draw(st.sampled_from(ways))
    met = cycles(check(graph_lines(nodes, [*edges, (source, target)])))
    assert met
    for found in met:
        assert set(steps(found)) <= {*edges, (source, target)}
        assert (source, target) in steps(found)


@given(graphs(acyclic=False))
@settings(max_examples=300)
def test_networkx_agrees_on_what_is_cyclic(graph):
    nodes, edges = graph
    judge = networkx.DiGraph(edges)
    judge.add_nodes_from(range(nodes))
    report = check(graph_lines(nodes, edges))
    assert report.valid is networkx.is_directed_acyclic_graph(judge)
    tangles = [part for part in networkx.strongly_connected_components(judge) if len(part) > 1]
    met = [set(steps(found)) for found in cycles(report)]
    assert all(way <= set(edges) for way in met)
    for tangle in tangles:
        assert any({a for a, _ in way} <= tangle for way in met)


@given(graphs(acyclic=False))
def test_a_cycle_closes_where_the_last_of_its_edges_is_declared(graph):
    """Node i is on line i + 1, so the last declared edge starts at the highest node."""
    for found in cycles(check(graph_lines(*graph))):
        if found.rule == "cycle":
            assert found.line == max(source for source, _ in steps(found)) + 1
            assert steps(found)[0][0] == int(found.names[-1].partition("/n")[2])


@given(graphs(acyclic=False), st.randoms(use_true_random=False))
def test_validity_does_not_depend_on_the_order_of_documents(graph, shuffler: random.Random):
    lines = graph_lines(*graph).splitlines(keepends=True)
    before = check("".join(lines))
    shuffler.shuffle(lines)
    after = check(*lines)
    assert (before.valid, before.edges) == (after.valid, after.edges)
    assert sorted(f.rule for f in cycles(before)) == sorted(f.rule for f in cycles(after))


def test_a_cycle_is_shown_whole_and_closed_by_its_last_edge():
    found = only(
        check(
            json_lines(
                [
                    document("b", ("affinity", "c")),
                    document("c", ("affinity", "a"), ("affinity", "d")),
                    document("d"),
                    document("a", ("latency-sla", "b")),
                ]
            )
        )
    )
    assert (found.rule, found.file, found.line) == ("cycle", "f0", 4)
    assert found.message == (
        "train/a -> train/b (latency-sla) closes a cycle: train/b -> train/c -> train/a -> train/b"
    )


def test_the_hidden_reverse_edge_ends_the_chain_although_others_are_declared_later():
    serve = [document("x", ("affinity", "train/a"), namespace="serve")]
    train = [document("b", ("affinity", "serve/x")), document("a", ("affinity", "b"))]
    found = only(check(json_lines(serve), json_lines(train)))
    assert (found.file, found.line, found.related) == ("f1", 1, (("f0", 1),))
    assert found.message.endswith("the cycle: serve/x -> train/a -> train/b -> serve/x")


def test_a_long_cycle_is_shown_at_its_ends():
    nodes = 1000
    ring = [document(f"n{i}", ("affinity", f"n{(i + 1) % nodes}")) for i in range(nodes)]
    found = only(check(json_lines(ring)))
    assert found.message.endswith(
        "train/n0 -> train/n1 -> train/n2 -> train/n3 -> (993 more) -> "
        "train/n997 -> train/n998 -> train/n999 -> train/n0"
    )
    assert found.line == nodes


def test_a_tangle_says_that_more_cycles_may_remain():
    pairs = [document(name, *[("affinity", to) for to in "abc" if to != name]) for name in "abc"]
    assert only(check(json_lines(pairs))).message.endswith(
        "; 3 nodes lead back to each other here, so others may remain"
    )


def test_each_of_many_cycles_is_counted_and_few_are_kept():
    rings = [
        document(name, ("affinity", to))
        for i in range(50)
        for name, to in [(f"a{i}", f"b{i}"), (f"b{i}", f"a{i}")]
    ]
    report = check(json_lines(rings), limit=3)
    assert (report.errors, report.omitted) == (50, {"cycle": 47})
    assert [found.line for found in report.findings] == [2, 4, 6]


def test_a_hidden_reverse_edge_is_named_with_the_edge_that_it_reverses():
    train = [document("a", ("affinity", "b")), document("b", ("latency-sla", "serve/x"))]
    serve = [
        document("x", ("affinity", "y"), namespace="serve"),
        document("y", ("affinity", "train/a"), namespace="serve"),
    ]
    assert [check(json_lines(one), json_lines([])).errors for one in (train, serve)] == [1, 1]
    found = only(check(json_lines(train), json_lines(serve)))
    assert (found.rule, found.file, found.line) == ("hidden-reverse-edge", "f1", 2)
    assert found.related == (("f0", 2),)
    assert found.message == (
        "hidden reverse edge: serve/y -> train/a (affinity) leads from namespace serve back to "
        "train, against train/b -> serve/x (latency-sla) at f0:2; the cycle: "
        "train/a -> train/b -> serve/x -> serve/y -> train/a"
    )


def test_a_cycle_inside_a_namespace_does_not_hide_one_across():
    report = check(
        json_lines(
            [
                document("a", ("affinity", "b"), ("affinity", "other/c")),
                document("b", ("affinity", "a")),
                document("c", ("affinity", "train/a"), namespace="other"),
            ]
        )
    )
    assert rules(report) == [("cycle", "f0", 2), ("hidden-reverse-edge", "f0", 3)]


def test_anti_affinity_carries_no_order():
    pair = [document("a", ("anti-affinity", "b")), document("b", ("anti-affinity", "a"))]
    assert check(json_lines(pair)).findings == ()


@pytest.mark.parametrize("ends", [("a", "b"), ("b", "a")])
def test_affinity_contradicts_anti_affinity_either_way_and_latency_does_not(ends):
    away, to = ends
    nodes = {"a": [("affinity", "b")], "b": [], "c": [("latency-sla", "d"), ("anti-affinity", "d")]}
    nodes["d"] = []
    nodes[away] = [*nodes[away], ("anti-affinity", to)]
    found = only(check(json_lines(document(name, *edges) for name, edges in nodes.items())))
    assert found.rule == "contradiction"
    assert found.line == (1 if away == "a" else 2)
    assert found.message == (
        f"train/{away} -> train/{to} (anti-affinity) contradicts "
        "train/a -> train/b (affinity) at f0:1"
    )


def test_an_edge_to_nothing_says_where_that_name_is_declared():
    text = json_lines(
        [
            document("a", ("affinity", "x"), ("affinity", "nowhere")),
            document("x", namespace="serve"),
        ]
    )
    first, second = check(text).findings
    assert first.message == (
        "train/a -> train/x (affinity) leads to nothing: train/x is not declared, but serve/x is"
    )
    assert second.message.endswith("leads to nothing: train/nowhere is not declared")


def test_a_self_edge_a_repeated_edge_and_a_second_name():
    report = check(
        json_lines(
            [
                document("a", ("affinity", "a"), ("affinity", "b"), ("affinity", "b")),
                document("b"),
                {**document("a", ("affinity", "nowhere")), "kind": "JobVertex"},
            ]
        )
    )
    assert rules(report) == [
        ("self-edge", "f0", 1),
        ("duplicate-edge", "f0", 1),
        ("duplicate-node", "f0", 3),
    ]
    assert (report.errors, report.warnings, report.edges) == (2, 1, 1)
    assert "the name of the ResourceNode at f0:1" in report.findings[2].message


def fan(count: int, **labels: int) -> str:
    """A hub with edges to `count` nodes; each label has that many values, dealt in turn."""
    leaves = [
        document(f"g{i:04}", labels={key: f"{key}{i % values}" for key, values in labels.items()})
        for i in range(count)
    ]
    hub = document("hub", *[("affinity", f"g{i:04}") for i in range(count)])
    return json_lines([hub, *leaves])


@pytest.mark.parametrize(
    ("labels", "suggestion"),
    [
        ({"rack": 20, "zone": 2}, "2 parts by label zone: zone0 (410), zone1 (410)"),
        ({"host": 820, "pool": 1}, "2 parts by name: train/g0000 to train/g0409 (410), "),
        (
            {"rack": 20},
            "20 parts by label rack: rack0 (41), rack1 (41), rack10 (41), rack11 (41), 16 more",
        ),
    ],
)
def test_a_node_with_too_many_edges_is_parted(labels, suggestion):
    found = only(check(fan(820, **labels)))
    assert (found.rule, found.line) == ("out-degree", 1)
    assert found.message.startswith("train/hub has 820 edges, more than 512; ")
    assert suggestion in found.message


def test_512_edges_are_not_too_many():
    assert check(fan(512)).valid
    assert only(check(fan(513))).rule == "out-degree"


def test_a_deep_graph_takes_no_recursion():
    depth = 50_000
    chain = [document(f"n{i}", ("affinity", f"n{i + 1}")) for i in range(depth)]
    assert check(json_lines([*chain, document(f"n{depth}")])).valid
    found = only(check(json_lines([*chain, document(f"n{depth}", ("affinity", "n0"))])))
    assert (found.rule, found.line) == ("cycle", depth + 1)
