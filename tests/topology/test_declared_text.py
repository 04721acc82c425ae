"""Declared topologies as text: exact lines, every spelling, and no input that breaks the reader."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.errors import UsageError
from seedance_obs.topology.declared import yaml_text
from seedance_obs.topology.declared.validate import validate
from tests.topology.declared_text import API, HEAD, check, document, json_lines, only, rules

BLOCK = f"""\
# a comment
{HEAD}metadata:
  name: a
  namespace: train
spec:
  edges:
  - type: affinity
    to: nothing
  - {{type: latency-sla, to: b}}
---
{HEAD}metadata: {{name: b, namespace: train}}
---
"""
AS_LIST = f"""\
apiVersion: v1
kind: List
items:
- apiVersion: {API}
  kind: ResourceNode
  metadata: {{name: a}}
  spec:
    edges:
      - {{type: affinity,
          to: x}}
"""
EDGE = {"type": "affinity", "to": "b"}


@pytest.fixture(params=["C", "Python"])
def _loader(request, monkeypatch):
    if request.param == "Python":
        monkeypatch.setattr(yaml_text, "_Loader", yaml.SafeLoader)


def with_edges(*edges: object) -> str:
    node = document("a")
    node["spec"] = {"edges": list(edges)}
    return json_lines([node, document("b")])


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_yaml_findings_are_at_the_line_of_their_mapping(newline):
    report = check(BLOCK.replace("\n", newline))
    assert rules(report) == [("dangling-edge", "f0", 9), ("latency", "f0", 11)]
    assert report.nodes == 2


@pytest.mark.usefixtures("_loader")
def test_the_items_of_a_list_have_lines_of_their_own():
    assert rules(check(AS_LIST)) == [("dangling-edge", "f0", 9)]


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_of_any_layout_has_the_lines_of_its_objects(indent):
    annotations = {"note": '}{"\\', "empty": {}}
    nodes = [document(name, ("affinity", "x"), annotations=annotations) for name in "ab"]
    text = "\n" + "\n---\n".join(json.dumps(node, indent=indent) for node in nodes)
    typed = [number for number, line in enumerate(text.splitlines(), 1) if '"type"' in line]
    begun = [number - 1 if indent else number for number in typed]
    assert rules(check(text)) == [("dangling-edge", "f0", line) for line in begun]


@pytest.mark.parametrize(
    ("edge", "rule", "message"),
    [
        ("b", "edge", "train/a: an edge is a mapping with type and to, found 'b'"),
        ({"type": "affinity"}, "edge", "to: NAME or NAMESPACE/NAME is wanted, found nothing"),
        ({**EDGE, "to": 7}, "edge", "found the number 7"),
        ({**EDGE, "to": "a/b/c"}, "edge", "found 'a/b/c'"),
        ({**EDGE, "to": "/b"}, "edge", "found '/b'"),
        ({**EDGE, "to": ""}, "edge", "found an empty text"),
        ({**EDGE, "type": "near"}, "edge-type", "one of affinity, latency-sla, anti-affinity"),
        ({**EDGE, "type": ["affinity"]}, "edge-type", "found a list"),
        ({**EDGE, "maxMilliseconds": 5}, "unknown-field", "is for latency-sla only"),
        ({**EDGE, "weight": 5}, "unknown-field", "an edge has no field weight"),
        *(
            (
                {"type": "latency-sla", "to": "b", "maxMilliseconds": bound},
                "latency",
                "maxMilliseconds: a number above 0 is wanted, found ",
            )
            for bound in (None, 0, -1, "5", True, float("nan"), float("inf"))
        ),
    ],
)
def test_an_edge_that_says_nothing_clear_is_refused(edge, rule, message):
    found = only(check(with_edges(edge)))
    assert (found.rule, found.line, found.names) == (rule, 1, ("train/a",))
    assert message in found.message


@pytest.mark.parametrize(
    ("metadata", "rule", "message"),
    [
        ("{name: 12}", "name", "metadata.name: a text is wanted, found the number 12 (put it in"),
        ("{name: 0x1F}", "name", "found a number"),
        ("{name: .inf}", "name", "found the number inf"),
        ("{name: yes}", "name", "found true (put it in quotes)"),
        ("{name: null}", "name", "found nothing"),
        ("{}", "name", "found nothing"),
        ("{name: [a]}", "name", "found a list"),
        ("{name: GPU_a}", "name", "lower-case letters"),
        ("{name: a-}", "name", "found a-"),
        ('{name: "a\\e[31m"}', "name", r"found 'a\x1b[31m'"),
        ("{name: " + 254 * "a" + "}", "name", "found aaaa"),
        ("{name: a, namespace: b.c}", "name", "metadata.namespace: lower-case"),
        ("{name: a, labels: {zone: 1}}", "label", "label zone: a text is wanted"),
        ("{name: a, labels: {a/b/c: x}}", "label", "a/b/c is not a label's key"),
        ("{name: a, labels: {zone: a b}}", "label", "at most 63 of A-Z"),
        ("{name: a, labels: [x]}", "label", "metadata.labels: a mapping is wanted, found a list"),
        ("{name: a, name: a}", "duplicate-key", "the key name occurs twice"),
        ("[a]", "document", "metadata: a mapping is wanted, found a list"),
    ],
)
def test_a_name_or_label_that_kubernetes_refuses_is_refused(metadata, rule, message):
    found = only(check(f"{HEAD}metadata: {metadata}"))
    assert (found.rule, found.line) == (rule, 3 if rule != "document" else 1)
    assert message in found.message


@pytest.mark.parametrize("name", ["2024-01-01", "'12'", "!!str 12", "a.b-c", "nan", "x1"])
def test_a_text_is_a_text_however_it_is_spelt(name):
    assert check(f"{HEAD}metadata: {{name: {name}, namespace: null}}").valid


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[1]", "document"),
        ("kind: ResourceNode", "document"),
        (f"apiVersion: {API}", "document"),
        (f"{{apiVersion: {API}, kind: Rack}}", "unknown-kind"),
        ("{apiVersion: topology.seedance.io/v2, kind: JobVertex}", "unknown-kind"),
        ("{apiVersion: v1, kind: List, items: 5}", "document"),
        ("{apiVersion: v1, kind: List, items: [5]}", "document"),
        (f"{HEAD}metadata: {{name: a}}\nspec: 5", "document"),
        (f"{HEAD}metadata: {{name: a}}\nspec: {{edges: 5}}", "document"),
        (json_lines([document("a")]).replace('"kind"', '"kind": "x", "kind"'), "duplicate-key"),
        ("", "empty"),
        ("{apiVersion: v1, kind: List, items: []}", "empty"),
        (f"{{apiVersion: {API}, kind: TopologyPolicy}}", "empty"),
    ],
)
def test_what_is_no_node_is_an_error(text, rule):
    assert only(check(text)).rule == rule


def test_what_belongs_to_others_is_left_out_with_a_warning():
    report = check(f"{HEAD}metadata: {{name: a}}\n---\napiVersion: v1\nkind: Pod")
    assert (report.valid, rules(report)) == (True, [("foreign-document", "f0", 5)])


def test_anchors_and_merge_keys_are_followed():
    text = f"""{HEAD}metadata: {{name: a}}
spec:
  edges:
    - &fast {{type: latency-sla, to: b, maxMilliseconds: 1}}
    - {{<<: *fast, to: c}}
    - *fast
"""
    assert sorted(rules(check(text))) == [
        ("dangling-edge", "f0", 6),
        ("dangling-edge", "f0", 7),
        ("duplicate-edge", "f0", 6),
    ]


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(10 * [f'*{old}'])}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"a: [\n", "2:1", "is not YAML: "),
        (b"a:\n\t- b", "2:1", "is not YAML: "),
        (b"a: *b", "1:4", "is not YAML: no anchor 'b' above"),
        (b"a: b\nc: \x01", "2:4", "is not YAML: "),
        (b"a: b\nc: \xff", "2:4", "is not UTF-8 text"),
        (b'{"a": 1}\n{"b": }\n', "2:7", "is not JSON: "),
        (b'\n{"a": 1}\nfoo', "3:1", "is not JSON: "),
        (b'\n{"a": ' + 100_000 * b"[", "2:1", "is nested too deeply"),
        (LAUGHS.encode(), "6:", "aliases add more than 1000000 values"),
    ],
)
def test_what_is_no_text_of_ours_is_refused_at_its_line_and_column(data, place, message):
    with pytest.raises(UsageError) as refused:
        validate([("f0", data)])
    assert str(refused.value).startswith(f"f0:{place}")
    assert message in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_taken(encoding):
    assert validate([("f0", f"{HEAD}metadata: {{name: a}}".encode(encoding))]).valid


@given(st.text(alphabet=" \n\t-:[]{}&*a1,'\"<!|?#%", max_size=60))
def test_no_text_breaks_the_reader(text):
    try:
        report = check(text)
    except UsageError:
        return
    assert not report.valid


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
PLACES = st.sampled_from(
    [
        (),
        ("kind",),
        ("metadata",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "labels"),
        ("spec",),
        ("spec", "edges"),
        ("spec", "edges", 0),
        ("spec", "edges", 0, "type"),
        ("spec", "edges", 0, "to"),
        ("spec", "edges", 0, "maxMilliseconds"),
    ]
)


@given(PLACES, VALUES)
def test_any_value_anywhere_is_told_and_never_breaks_the_reader(place, value):
    node: object = document("a", ("affinity", "b"))
    holder = {"": node}
    *way, last = ("", *place)
    for step in way:
        holder = holder[step]
    holder[last] = value
    spellings = [json.dumps(node)] if place else []
    for text in [*spellings, yaml.safe_dump(node, allow_unicode=True)]:
        for found in check(f"{text}\n", json_lines([document("b")])).findings:
            assert found.line >= 1
            assert found.message.isprintable()
