"""Reads tenant rules from TOML, and says in one sentence what is wrong with them.

`[[rule]]` tables hold conditions and the tenant they lead to; a `default` may stand before them. A
condition asks for a name in which `*` stands for any text, or, of a cgroup path, for a regular
expression that is found in it; or for one of a list of such.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn

from seedance_obs.attribution.cgroup_pattern import LONGEST_PATH, cgroup_pattern
from seedance_obs.attribution.tenants import (
    CGROUP,
    IN_BRACES,
    LABEL,
    LONGEST_TENANT,
    NAMED_FACTS,
    RESERVED,
    Condition,
    Rule,
    TenantRules,
    fits_name,
)
from seedance_obs.errors import UsageError
from seedance_obs.workload import KINDS

LONGEST_NAME = 256  # characters that a condition may ask for


def read_tenant_rules(text: str, *, name: str = "tenant rules") -> TenantRules:
    """The rules of a rule file.

    Args:
        text: TOML.
        name: the file's name, for messages.

    Raises:
        UsageError: says which rule and key are wrong, what is wanted there and what was found.
    """
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{name}: this is not TOML: {error}") from error
    for key in tables:
        if key not in ("rule", "default"):
            _refuse(name, "[[rule]] tables and a default are", f"{key!r}{_meant(key, ['rule'])}")
    if not tables:
        _refuse(name, "a [[rule]] or a default is", "neither")
    rules = tables.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        _refuse(name, "a [[rule]] table is", f"rule = {rules!r}")
    read = (_rule(f"{name}: rule {number}", rule) for number, rule in enumerate(rules, start=1))
    return TenantRules(tuple(read), _default(f"{name}: default", tables))


def _default(where: str, tables: Mapping[str, object]) -> str | None:
    if "default" not in tables:
        return None
    tenant = _tenant(where, tables["default"])
    if "{" in tenant or "}" in tenant:
        _refuse(where, "a name without braces is", repr(tenant))
    return tenant


def _rule(where: str, table: Mapping[str, object]) -> Rule:
    if "tenant" not in table:
        _refuse(where, "a tenant is", "none")
    parts: set[str] = set()
    conditions: dict[str, Condition] = {}
    for fact, value in _wanted(where, table):
        at = f"{where}, {fact}"
        if fact in conditions:
            _refuse(at, "each condition once is", "it twice")
        conditions[fact], names = _condition(at, fact, _texts(at, value))
        parts |= names
    if not conditions:
        _refuse(where, "a condition is", "none; what holds for all is the default")
    tenant = _tenant(f"{where}, tenant", table["tenant"])
    _check_template(f"{where}, tenant", tenant, parts)
    return Rule(tuple(conditions.values()), tenant)


def _wanted(where: str, table: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    """What is wanted of each fact; a label stands in a table `pod_label` or is one quoted key."""
    for key, value in table.items():
        if key == "pod_label" and isinstance(value, dict) and value:
            yield from _labels(f"{where}, pod_label", value)
        elif key in (CGROUP, *NAMED_FACTS) or (key.startswith(LABEL) and key != LABEL):
            yield key, value
        elif key == "default":
            _refuse(where, "a default before the first [[rule]] is", "it below one")
        elif key != "tenant":
            known = ["tenant", CGROUP, "pod_label", *NAMED_FACTS]
            wanted = f"tenant or one of {', '.join((*NAMED_FACTS, CGROUP, f'{LABEL}<key>'))} is"
            _refuse(f"{where}, {key}", wanted, f"{key!r}{_meant(key, known)}")


def _labels(where: str, table: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    for label, value in table.items():
        if isinstance(value, dict):
            _refuse(where, "a label's key in quotes is", f"{label!r} with a dot behind it")
        yield f"{LABEL}{label}", value


def _texts(where: str, value: object) -> list[str]:
    texts: list[object] = value if isinstance(value, list) and value else [value]
    read = []
    for text in texts:
        if not isinstance(text, str) or not text:
            _refuse(where, "a text or a list of texts is", repr(text))
        if len(text) > LONGEST_NAME:
            _refuse(where, f"a text of {LONGEST_NAME} characters at most is", len(text))
        read.append(text)
    return read


def _condition(where: str, fact: str, texts: Sequence[str]) -> tuple[Condition, set[str]]:
    """That a fact fits one of the texts, and the names of the parts that this can find."""
    if fact == CGROUP:
        return _cgroup_condition(where, texts)
    if fact == "kind":
        for text in texts:
            if not any(fits_name(kind, text) for kind in KINDS):
                _refuse(where, f"one of {', '.join(KINDS)} is", f"{text!r}{_meant(text, KINDS)}")

    def match(value: str) -> Mapping[str, str] | None:
        return {} if any(fits_name(value, text) for text in texts) else None

    return Condition(fact, match), set()


def _cgroup_condition(where: str, texts: Sequence[str]) -> tuple[Condition, set[str]]:
    patterns = []
    for text in texts:
        try:
            patterns.append(cgroup_pattern(text))
        except ValueError as error:
            raise UsageError(f"{where}: a regular expression is wanted {error}") from error
    names = {name for pattern in patterns for name in pattern.groupindex}
    for name in sorted(names & {CGROUP, *NAMED_FACTS}):
        _refuse(where, "a group's name that is no fact's is", repr(name))

    def match(path: str) -> Mapping[str, str] | None:
        found = (pattern.search(path[:LONGEST_PATH]) for pattern in patterns)
        return next((each.groupdict("") for each in found if each), None)

    return Condition(CGROUP, match), names


def _tenant(where: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        _refuse(where, "a name is", repr(value))
    if not value.isprintable():
        _refuse(where, "a name of printable characters is", repr(value))
    if value in RESERVED:
        _refuse(where, f"a name other than {', '.join(RESERVED)} is", repr(value))
    if len(value) > LONGEST_TENANT:
        _refuse(where, f"a name of {LONGEST_TENANT} characters at most is", len(value))
    return value


def _check_template(where: str, tenant: str, parts: set[str]) -> None:
    known = sorted({*NAMED_FACTS, *parts})
    for fact in IN_BRACES.findall(tenant):
        if fact not in known and (not fact.startswith(LABEL) or fact == LABEL):
            wanted = f"one of {', '.join([*known, f'{LABEL}<key>'])} in braces is"
            _refuse(where, wanted, f"{fact!r}{_meant(fact, known)}")
    rest = IN_BRACES.sub("", tenant)
    if "{" in rest or "}" in rest:
        _refuse(where, "a brace that opens and one that closes are", repr(tenant))


def _refuse(where: str, wanted: str, found: object) -> NoReturn:
    raise UsageError(f"{where}: {wanted} wanted, found {found}")


def _meant(word: str, allowed: Iterable[str]) -> str:
    close = get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
