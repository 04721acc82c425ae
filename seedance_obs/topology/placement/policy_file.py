"""Reads topology policies from YAML, and says on which line what is wrong with one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import NoReturn

import yaml

from seedance_obs.errors import UsageError
from seedance_obs.topology.kubernetes import API_VERSION
from seedance_obs.topology.placement.policy import (
    COMPARISONS,
    OPERATORS,
    WITHOUT_VALUES,
    AffinityRule,
    Constraint,
    TopologyPolicy,
)
from seedance_obs.topology.placement.policy_facts import FACTS
from seedance_obs.topology.placement.policy_rules import RULES

KIND = "TopologyPolicy"


def read_policies(text: str, *, name: str = "policy") -> tuple[TopologyPolicy, ...]:
    """The policies of a text: one document, several, or lists of policies (also `kind: List`).

    Args:
        text: YAML, of which JSON is a part.
        name: the file's name, for messages.

    Raises:
        UsageError: the text is no such thing; the message begins with `name:line:`.
    """
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{name}{_place(error)}: this is not YAML: {_problem(error)}") from error
    entries = [entry for document in documents for entry in _entries(_Spot(name, document))]
    if not entries:
        raise UsageError(f"{name}: a {KIND} is wanted, and the file holds nothing")
    policies = tuple(_policy(entry) for entry in entries)
    seen: set[str] = set()
    for entry, policy in zip(entries, policies, strict=True):
        if policy.name in seen:
            entry.refuse("metadata.name", "a name of its own", f"a second {policy.name!r}")
        seen.add(policy.name)
    return policies


def read_policy(text: str, *, name: str = "policy") -> TopologyPolicy:
    """The one policy of a text; see `read_policies`.

    Raises:
        UsageError: also where the text holds several.
    """
    policies = read_policies(text, name=name)
    if len(policies) > 1:
        found = ", ".join(policy.name for policy in policies)
        raise UsageError(f"{name}: one {KIND} is wanted, and the file holds {found}")
    return policies[0]


@dataclass(frozen=True, slots=True)
class _Spot:
    """A node of the YAML tree, the file it is in and the path of keys that leads to it."""

    file: str
    node: yaml.Node | None
    path: str = ""

    def refuse(self, key: str, wanted: str, found: object) -> NoReturn:
        """Say what was wanted here and what was found."""
        line = f":{self.node.start_mark.line + 1}" if self.node else ""
        where = ".".join(part for part in (self.path, key) if part) or "document"
        raise UsageError(f"{self.file}{line}: {where}: {wanted} is wanted, found {found}")

    def mapping(self, required: Collection[str], optional: Collection[str] = ()) -> "_Keys":
        """The keys of a mapping, which has all that are required and none that are unknown."""
        if not isinstance(self.node, yaml.MappingNode):
            self.refuse("", "a mapping", _described(self.node))
        keys: dict[str, _Spot] = {}
        allowed = (*required, *optional)
        for key_node, value in self.node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            spot = _Spot(self.file, value, f"{self.path}.{key}" if self.path else key)
            if key in keys:
                _Spot(self.file, key_node, self.path).refuse(key, "each key once", "it twice")
            if allowed and key not in allowed:
                _Spot(self.file, key_node, self.path).refuse(
                    "", _one_of(allowed), f"the key {key!r}{_meant(key, allowed)}"
                )
            keys[key] = spot
        for key in required:
            if key not in keys:
                self.refuse(key, "this key", "nothing")
        return keys

    def items(self) -> "list[_Spot]":
        """The entries of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.refuse("", "a list", _described(self.node))
        return [
            _Spot(self.file, node, f"{self.path}[{place}]")
            for place, node in enumerate(self.node.value)
        ]

    def text(self) -> str:
        """A scalar as it is written, and not empty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag.endswith(":null"):
            self.refuse("", "a value", _described(self.node))
        return str(self.node.value)

    def number(self) -> float:
        """A finite number."""
        written = self.text()
        try:
            value = float(written)
        except ValueError:
            self.refuse("", "a number", repr(written))
        if not isfinite(value):
            self.refuse("", "a finite number", repr(written))
        return value

    def word(self, allowed: Collection[str]) -> str:
        """One of some words."""
        written = self.text()
        if written not in allowed:
            self.refuse("", _one_of(allowed), f"{written!r}{_meant(written, allowed)}")
        return written


_Keys = Mapping[str, _Spot]


def _entries(document: _Spot) -> list[_Spot]:
    """The policies of a document: itself, or the items of a list; an empty document has none."""
    if document.node is None or document.node.tag.endswith(":null"):
        return []
    if isinstance(document.node, yaml.SequenceNode):
        return document.items()
    keys = document.mapping(())
    if "kind" in keys and keys["kind"].text() == "List":
        return keys["items"].items() if "items" in keys else []
    return [document]


def _policy(entry: _Spot) -> TopologyPolicy:
    keys = entry.mapping(("apiVersion", "kind", "metadata", "spec"))
    keys["apiVersion"].word((API_VERSION,))
    keys["kind"].word((KIND,))
    metadata = keys["metadata"].mapping(())
    if "name" not in metadata:
        keys["metadata"].refuse("name", "this key", "nothing")
    spec = keys["spec"].mapping(("affinityRules",), ("constraints",))
    rules = tuple(_rule(spot) for spot in spec["affinityRules"].items())
    if not rules:
        spec["affinityRules"].refuse("", "at least one rule", "none")
    types = [rule.type for rule in rules]
    for spot, kind in zip(spec["affinityRules"].items(), types, strict=True):
        if types.count(kind) > 1:
            spot.refuse("type", "each rule once", f"{kind!r} {types.count(kind)} times")
    constraints = spec["constraints"].items() if "constraints" in spec else []
    return TopologyPolicy(
        metadata["name"].text(), rules, tuple(_constraint(spot) for spot in constraints)
    )


def _rule(spot: _Spot) -> AffinityRule:
    keys = spot.mapping(("type", "weight"))
    weight = keys["weight"].number()
    if weight < 0:
        keys["weight"].refuse("", "a number that is 0 or more", f"{weight:g}")
    return AffinityRule(keys["type"].word(RULES), weight)


def _constraint(spot: _Spot) -> Constraint:
    keys = spot.mapping(("key", "operator"), ("value", "values"))
    key, operator = keys["key"].word(FACTS), keys["operator"].word(OPERATORS)
    given = [name for name in ("value", "values") if name in keys]
    if operator in WITHOUT_VALUES:
        if given:
            keys[given[0]].refuse("", f"no value with {operator}", "one")
        return Constraint(key, operator)
    if len(given) != 1:
        spot.refuse("value", "one of value and values", "both" if given else "neither")
    spots = _values(keys[given[0]])
    if not spots or (operator in COMPARISONS and len(spots) != 1):
        wanted = "one number" if operator in COMPARISONS else "at least one value"
        keys[given[0]].refuse("", f"{wanted} with {operator}", len(spots))
    if operator in COMPARISONS:
        spots[0].number()
    return Constraint(key, operator, tuple(value.text() for value in spots))


def _values(spot: _Spot) -> Sequence[_Spot]:
    return spot.items() if isinstance(spot.node, yaml.SequenceNode) else [spot]


def _described(node: yaml.Node | None) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return repr(node.value) if node is not None and node.value else "nothing"


def _one_of(words: Collection[str]) -> str:
    listed = sorted(words)
    return listed[0] if len(listed) == 1 else f"one of {', '.join(listed)}"


def _meant(word: str, allowed: Collection[str]) -> str:
    close = get_close_matches(word, list(allowed), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _problem(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0]
