"""Tenant rules: what they match, what they refuse, and that none can be made slow."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.assets import assets_folder
from seedance_obs.attribution.cgroup_pattern import LONGEST_PATH, cgroup_pattern
from seedance_obs.attribution.tenant_reading import read_tenant_rules
from seedance_obs.attribution.tenants import UNKNOWN, TenantRules, fits_name
from seedance_obs.errors import UsageError
from seedance_obs.workload import Workload

EXAMPLE = assets_folder("exporters") / "tenants.toml"


def workload(kind: str = "pod", **facts: object) -> Workload:
    return Workload(kind, "u1", 1, **facts)


def tenant(text: str, **facts: object) -> str:
    return read_tenant_rules(text).tenant_of(workload(**facts))


def rule(conditions: str, name: str = "t") -> str:
    return f'[[rule]]\n{conditions}\ntenant = "{name}"\n'


def test_the_first_rule_that_matches_decides():
    text = rule('namespace = "a*"', "first") + rule('namespace = "*"', "second")
    assert tenant(text, namespace="abc") == "first"
    assert tenant(text, namespace="b") == "second"
    assert tenant(text, user="anna") == "anna"


def test_all_conditions_of_a_rule_must_hold():
    text = rule('namespace = "ml"\nuser = "anna"')
    assert tenant(text, namespace="ml", user="anna") == "t"
    assert tenant(text, namespace="ml", user="bob") == "ml"


@pytest.mark.parametrize(
    ("condition", "facts"),
    [
        ('namespace = ["x", "ml-*"]', {"namespace": "ml-7"}),
        ('pod = "train-*-0"', {"pod": "train-llm-0"}),
        ('image = "*/ci/*:v?"', {"image": "r.io/ci/job:v?"}),
        ('kind = "slurm"', {"kind": "slurm"}),
        ('slurm_account = "physics"', {"slurm_account": "physics"}),
        ('user = "anna"', {"user": "anna"}),
        ('pod_label.team = "x"', {"pod_labels": (("team", "x"),)}),
        ('"pod_label.a.b/c" = "x"', {"pod_labels": (("a.b/c", "x"),)}),
        ('pod_label."a.b/c" = "x"', {"pod_labels": (("a.b/c", "x"),)}),
        (r"cgroup = '/job_\d+$'", {"cgroup": "/slurm/uid_5/job_77"}),
    ],
)
def test_each_fact_can_be_a_condition(condition, facts):
    assert tenant(rule(condition), **facts) == "t"
    assert tenant(rule(condition), namespace="other", cgroup="/other") == "other"


@pytest.mark.parametrize("condition", ['namespace = "*"', 'pod_label.team = "*"', "cgroup = '.?'"])
def test_no_condition_holds_for_a_fact_that_is_unknown_or_empty(condition):
    assert tenant(rule(condition), pod_labels=(("team", ""),)) == UNKNOWN


def test_a_name_is_matched_whole_and_with_its_case():
    for namespace in ("prod", "Prod-a", "my-prod-a"):
        assert tenant(rule('namespace = "prod-*"'), namespace=namespace) == namespace


@pytest.mark.parametrize(
    ("conditions", "template", "facts", "expected"),
    [
        ('namespace = "*"', "k8s/{namespace}", {"namespace": "ml"}, "k8s/ml"),
        ('pod_label.team = "*"', "{pod_label.team}", {"pod_labels": (("team", "é x"),)}, "é x"),
        (
            'namespace = "*"',
            "{pod_label.a.b/c}",
            {"namespace": "n", "pod_labels": (("a.b/c", "v"),)},
            "v",
        ),
        ("cgroup = '/uid_(?P<uid>[0-9]+)/'", "uid {uid}", {"cgroup": "/s/uid_12/j"}, "uid 12"),
        ('user = "*"', "{user}@{kind}", {"user": "{kind}"}, "{kind}@pod"),
    ],
)
def test_a_tenant_can_be_made_of_facts(conditions, template, facts, expected):
    assert tenant(rule(conditions, template), **facts) == expected


@pytest.mark.parametrize("value", [None, "", "   ", "unobserved", "system", "a\x1fb", "x" * 129])
def test_a_template_without_a_usable_fact_leaves_the_workload_to_the_next_rule(value):
    text = rule('namespace = "*"', "{pod_label.team}") + rule('namespace = "*"', "next")
    labels = () if value is None else (("team", value),)
    assert tenant(text, namespace="n", pod_labels=labels) == "next"


def test_a_group_of_the_alternative_that_did_not_match_is_unknown():
    text = rule("cgroup = ['/a_(?P<a>x+)', '/b_(?P<b>x+)']", "{b}")
    assert tenant(text, cgroup="/b_xx") == "xx"
    assert tenant(text, cgroup="/a_xx") == UNKNOWN


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"namespace": "n", "slurm_account": "s", "user": "u"}, "n"),
        ({"slurm_account": "s", "user": "u"}, "s"),
        ({"user": "u"}, "u"),
        ({}, "unknown"),
        ({"slurm_account": "unallocated", "user": "u"}, "u"),
        ({"user": "unobserved"}, "unknown"),
        ({"user": "system"}, "unknown"),
        ({"namespace": "a\x1fb", "user": "anna"}, "anna"),
        ({"slurm_account": "s" * 129, "user": "u" * 128}, "u" * 128),
    ],
)
def test_without_a_default_it_is_the_namespace_the_account_or_the_user(facts, expected):
    assert TenantRules().tenant_of(workload(**facts)) == expected


def test_the_default_takes_what_no_rule_matches():
    assert tenant('default = "shared"\n' + rule('user = "a"'), namespace="n") == "shared"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rule = 5", "rules: a [[rule]] table is wanted, found rule = 5"),
        ("", "rules: a [[rule]] or a default is wanted, found neither"),
        ("[[rules]]\n", "[[rule]] tables and a default are wanted, found 'rules' (did you mean"),
        ("[[rule]\n", "rules: this is not TOML: "),
        ("a = " + "[" * 5000, "rules: this is not TOML: "),
        ('[[rule]]\nuser = "x"\n', "rule 1: a tenant is wanted, found none"),
        (rule('user="x"') + rule(""), "rule 2: a condition is wanted, found none; what holds for"),
        (rule('usr = "x"'), "rule 1, usr: tenant or one of namespace, pod,"),
        (rule('usr = "x"'), "cgroup, pod_label.<key> is wanted, found 'usr' (did you mean user?)"),
        (rule('pod_label = "x"'), "rule 1, pod_label: tenant or one of"),
        (rule("pod_label = {}"), "rule 1, pod_label: tenant or one of"),
        (rule('"pod_label." = "x"'), "rule 1, pod_label.: tenant or one of"),
        (rule('pod_label.app.name = "x"'), "pod_label: a label's key in quotes is wanted, found"),
        (
            rule('"pod_label.a" = "x"\npod_label.a = "y"'),
            "rule 1, pod_label.a: each condition once is wanted, found it twice",
        ),
        (rule("user = 5"), "rule 1, user: a text or a list of texts is wanted, found 5"),
        (rule("user = []"), "rule 1, user: a text or a list of texts is wanted, found []"),
        (rule('user = ["a", ""]'), "user: a text or a list of texts is wanted, found ''"),
        (
            rule(f'user = "{"x" * 257}"'),
            "user: a text of 256 characters at most is wanted, found 2",
        ),
        (rule('kind = "slrum"'), "kind: one of pod, slurm, container, service, process, vgpu is"),
        (
            rule("cgroup = '('"),
            "rule 1, cgroup: a regular expression is wanted that compiles, found '('",
        ),
        (rule("cgroup = '(?P<user>x)'"), "cgroup: a group's name that is no fact's is wanted"),
        (
            rule('user = "x"', "unallocated"),
            "tenant: a name other than unallocated, unobserved, system is wanted, found 'unalloc",
        ),
        (rule('user = "x"', "system"), "tenant: a name other than unallocated, unobserved, syst"),
        (rule('user = "x"', "a\\u001fb"), "tenant: a name of printable characters is wanted"),
        (rule('user = "x"', " "), "tenant: a name is wanted, found ' '"),
        (rule('user = "x"', "x" * 129), "tenant: a name of 128 characters at most is wanted, fou"),
        (rule('user = "x"', "{usr}"), "in braces is wanted, found 'usr' (did you mean user?)"),
        (rule('user = "x"', "{pod_label.}"), "in braces is wanted, found 'pod_label.'"),
        (rule('user = "x"', "{}"), "in braces is wanted, found ''"),
        (rule('user = "x"', "{lab}"), "pod_label.<key> in braces is wanted, found 'lab'"),
        (rule('user = "x"', "{user"), "a brace that opens and one that closes are wanted"),
        ('[[rule]]\nuser = "x"\ntenant = 5', "rule 1, tenant: a name is wanted, found 5"),
        (rule('user = "x"') + 'default = "y"', "rule 1: a default before the first [[rule]] is"),
        ('default = "unobserved"', "default: a name other than"),
        ('default = "{user}"', "default: a name without braces is wanted"),
        ("default = ''", "default: a name is wanted"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_what_is_wanted(text, sentence):
    with pytest.raises(UsageError) as refused:
        read_tenant_rules(text, name="rules")
    assert str(refused.value).startswith("rules: ")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a|b)*",
        "(?:x(a?)y){2,}",
        "((a|b)c)+",
        "(a{1,9}){1,9}",
        "(?=a)b",
        "(?i)a",
        "(?<!a)b",
        r"(a)\1",
        "(?P<q>a)(?P=q)",
        ".*.*.*",
        "[^x]*[^x]*/*",
        r"\S+\D+.+",
        "a+b+c+d{2,3}",
        "(a|b){3}",
        "a?" * 9,
        "(a|a)" * 9,
        "a?a?a?a+b+c+",
        "a" * 201,
        "[[:alpha:]]",
        "a{2,1}",
    ],
)
def test_an_expression_that_a_path_could_make_slow_is_refused(pattern):
    with pytest.raises(ValueError, match=r"."):
        cgroup_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^/slurm/uid_(?P<uid>\d+)/job_(?P<job>\d+)(?:/|$)",
        r"/user\.slice/user-(?P<uid>[0-9]{1,7})\.slice/.*\.scope$",
        r"/(ci|build|test)-[a-z0-9-]+/",
        r"[]|(a]+[^]/]*\(\[\|",
        r"/kubepods.*/pod([0-9a-f-]{36})/(?:x{2}){3}[0-9a-f]{64}+(-[a-z]+)?",
        "a{,b}{x}",
        r"\x41+\u0041\0\N{DIGIT ONE}",
    ],
)
def test_the_expressions_that_cgroup_paths_need_are_taken(pattern):
    assert cgroup_pattern(pattern).pattern == pattern


@pytest.mark.parametrize("pattern", [".*a.*ab", "a?a?a+a+a+b"])
def test_the_worst_expressions_allowed_come_to_an_end(pattern):
    path = "/".join(["a" * 250] * 40)  # a name has 255 characters at most
    assert tenant(rule(f"cgroup = '{pattern}'"), cgroup=path, namespace="n") == "n"


def test_a_path_is_searched_as_far_as_it_is_said():
    text = rule("cgroup = 'b'")
    assert tenant(text, cgroup="a" * (LONGEST_PATH - 1) + "b") == "t"
    assert tenant(text, cgroup="a" * LONGEST_PATH + "b") == UNKNOWN


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_a_star_stands_for_any_text(name, value):
    def slowly(name: str, value: str) -> bool:
        if not name:
            return not value
        if name[0] == "*":
            return any(slowly(name[1:], value[start:]) for start in range(len(value) + 1))
        return value[:1] == name[0] and slowly(name[1:], value[1:])

    assert fits_name(value, name) == slowly(name, value)


@given(st.builds(workload, namespace=st.text(max_size=140), user=st.text(max_size=140)))
def test_every_workload_has_a_tenant_that_a_label_can_hold(any_workload):
    found = read_tenant_rules(rule('user = "*"', "u {user}")).tenant_of(any_workload)
    assert 0 < len(found) <= 128
    assert found.isprintable()
    assert found not in ("unallocated", "unobserved", "system")


def test_rules_remember_a_bounded_number_of_workloads():
    rules = read_tenant_rules(rule('user = "*"', "{user}"))
    for number in range(9000):
        person = Workload("process", str(number), 1, user=f"u{number}")
        assert rules.tenant_of(person) == f"u{number}"
    assert len(rules._known) <= 4096


def test_the_shipped_example_is_valid_and_does_what_it_says():
    rules = read_tenant_rules(EXAMPLE.read_text(), name="tenants.toml")
    team = (("team", "vision"),)
    user = (("hub.jupyter.org/username", "anna"),)
    for facts, expected in (
        ({"namespace": "monitoring-eu", "pod_labels": team}, "platform"),
        ({"namespace": "ml", "pod_labels": team}, "vision"),
        ({"namespace": "jupyter", "pod_labels": user}, "anna"),
        ({"kind": "slurm", "slurm_account": "astro-x"}, "faculty of science"),
        ({"kind": "slurm", "slurm_account": "law"}, "law"),
        ({"kind": "slurm", "cgroup": "/slurm/uid_1001/job_7/step_0"}, "uid 1001"),
        ({"kind": "container", "image": "registry.example.com/ci/x:1", "user": "root"}, "ci"),
        ({"namespace": "ml"}, "ml"),
    ):
        assert rules.tenant_of(workload(**facts)) == expected
    assert read_tenant_rules(EXAMPLE.read_text().replace('# default = "', 'default = "')).default


def test_the_shipped_example_shows_every_condition():
    shown = {key for table in tomllib.loads(EXAMPLE.read_text())["rule"] for key in table}
    text = EXAMPLE.read_text()
    for fact in ("namespace", "pod", "image", "kind", "slurm_account", "user", "cgroup"):
        assert fact in shown or f" {fact}," in text
