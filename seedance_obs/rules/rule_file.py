"""Rule files as written: each rule with the lines that its parts stand on."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from seedance_obs.errors import UsageError
from seedance_obs.rules.expression import Node, parse
from seedance_obs.rules.finding import Finding


@dataclass(frozen=True, slots=True)
class Rule:
    """A recording rule or an alert; `lines` says where parts such as labels.severity begin."""

    file: Path
    name: str
    alert: bool
    tree: Node
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    lines: Mapping[str, int]
    expr_lines: tuple[str, ...] = field(default=(), repr=False)

    def finding(self, sentence: str, *, part: str = "", word: str = "") -> Finding:
        """What is wrong with it, at a part of it or at the first line of its query with a word."""
        line = self.lines.get(part, self.lines[""])
        if word:
            start = self.lines["expr"]
            line = next(
                (start + n for n, text in enumerate(self.expr_lines) if word in text), start
            )
        return Finding(self.file, line, self.name, sentence)


def rule_files(folder: Path) -> tuple[Path, ...]:
    """The rule files of a folder: *.rules.yml.

    Raises:
        UsageError: the folder cannot be read, or has none.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: a folder with rule files is wanted, and this is none")
    found = tuple(sorted({*folder.glob("*.rules.yml"), *folder.glob("*.rules.yaml")}))
    if not found:
        raise UsageError(f"{folder}: no *.rules.yml is in this folder")
    return found


def misnamed_files(folder: Path) -> list[Finding]:
    """Other files of the folder that hold groups of rules: nobody looks at them."""
    others = {*folder.glob("*.yml"), *folder.glob("*.yaml")} - {*rule_files(folder)}
    return [
        Finding(file, 1, "", "it has groups of rules and is not looked at: name it *.rules.yml")
        for file in sorted(others)
        if re.search("^groups:", file.read_text("utf-8", errors="replace"), flags=re.MULTILINE)
    ]


def read_rules(file: Path) -> tuple[list[Rule], list[Finding]]:
    """The rules of a file that can be read, and what is wrong with the others or the file."""
    try:
        text = file.read_text(encoding="utf-8")
        document = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        return [], [Finding(file, 1, "", f"it cannot be read: {error}")]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        return [], [Finding(file, line, "", "this is not YAML: " + _short(error))]
    rules: list[Rule] = []
    findings: list[Finding] = []
    for node in _rule_nodes(document):
        try:
            rules.append(_rule(file, node, text.splitlines()))
        except ValueError as error:
            line = node.start_mark.line + 1
            findings.append(Finding(file, line, _name(node), f"it cannot be read: {error}"))
    if not rules and not findings:
        hint = ": rules are in groups, not in a spec" if "spec" in _children(document) else ""
        findings.append(Finding(file, 1, "", f"it holds no rules{hint}"))
    return rules, findings


def _short(error: yaml.YAMLError) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]


def _rule_nodes(document: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    for group in _items(_children(document).get("groups")):
        for rule in _items(_children(group).get("rules")):
            if isinstance(rule, yaml.MappingNode):
                yield rule


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _children(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): value for key, value in node.value}


def _texts(node: yaml.Node | None) -> dict[str, str]:
    return {name: str(value.value) for name, value in _children(node).items()}


def _name(node: yaml.MappingNode) -> str:
    texts = _texts(node)
    return texts.get("alert") or texts.get("record") or ""


def _rule(file: Path, node: yaml.MappingNode, text: list[str]) -> Rule:
    children = _children(node)
    expr = children.get("expr")
    if expr is None or not _name(node):
        raise ValueError("a rule has an expr and is called alert or record")
    return Rule(
        file=file,
        name=_name(node),
        alert="alert" in children,
        tree=parse(str(expr.value)),
        labels=_texts(children.get("labels")),
        annotations=_texts(children.get("annotations")),
        lines=_lines(node, children),
        expr_lines=tuple(text[expr.start_mark.line : expr.end_mark.line + 1]),
    )


def _lines(node: yaml.MappingNode, children: Mapping[str, Any]) -> dict[str, int]:
    lines = {"": node.start_mark.line + 1}
    for name, child in children.items():
        lines[name] = child.start_mark.line + 1
        for inner, value in _children(child).items():
            lines[f"{name}.{inner}"] = value.start_mark.line + 1
    return lines
