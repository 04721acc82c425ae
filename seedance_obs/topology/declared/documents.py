"""What each document declares: from mappings to nodes, and what is wrong with them."""

from collections.abc import Iterator

from seedance_obs.topology.declared.edges import EdgeReader
from seedance_obs.topology.declared.findings import Findings, shown
from seedance_obs.topology.declared.graph import DeclaredGraph
from seedance_obs.topology.declared.located import Mapped, described
from seedance_obs.topology.declared.text import read_documents
from seedance_obs.topology.kubernetes import (
    API_VERSION,
    GROUP,
    NAME_RULE,
    NAMESPACE_RULE,
    is_label_key,
    is_label_value,
    is_name,
    is_namespace,
)

NODE_KINDS = ("ResourceNode", "JobVertex")
OTHER_KINDS = frozenset({"TopologyPolicy"})  # ours, and read by others
DEFAULT_NAMESPACE = "default"


class DocumentReader:
    """Reads files into a graph."""

    def __init__(self, graph: DeclaredGraph, findings: Findings) -> None:
        self._graph = graph
        self._findings = findings
        self._edges = EdgeReader(graph, findings)

    def read(self, file: str, data: bytes) -> None:
        """Add what a file declares.

        Raises:
            UsageError: the file is neither YAML nor JSON.
        """
        self._graph.files.append(file)
        for line, document in read_documents(file, data, self._note_repeated_key):
            for at, item in self._items(line, document):
                self._read_object(at, item)

    def _items(self, line: int, document: object) -> Iterator[tuple[int, object]]:
        """The objects of a List, or the document itself; nothing of an empty document."""
        if document is None:
            return
        kind = document.get("kind") if isinstance(document, Mapped) else None
        is_list = isinstance(kind, str) and kind.endswith("List")
        if not isinstance(document, Mapped) or not is_list:
            yield line, document
        elif isinstance(items := document.get("items"), list):
            yield from ((getattr(item, "line", line), item) for item in items)
        elif items is not None:
            self._add("document", line, f"items: a list is wanted, found {described(items)}")

    def _read_object(self, line: int, value: object) -> None:
        if not isinstance(value, Mapped):
            self._add("document", line, f"a mapping is wanted, found {described(value)}")
            return
        version, kind = value.get("apiVersion"), value.get("kind")
        if version == API_VERSION and kind in NODE_KINDS:
            self._read_node(str(kind), value)
        elif not isinstance(version, str) or not isinstance(kind, str):
            missing = "kind" if isinstance(version, str) else "apiVersion"
            wanted = f"{missing}: a text is wanted, found {described(value.get(missing))}"
            self._add("document", line, wanted)
        elif version.partition("/")[0] != GROUP:
            left = f"{shown(kind)} of {shown(version)} is not a topology and was left out"
            self._add("foreign-document", line, left)
        elif kind not in OTHER_KINDS:
            wanted = f"{API_VERSION} with kind {' or '.join(NODE_KINDS)} is wanted"
            self._add("unknown-kind", line, f"{wanted}, found {shown(version)} {shown(kind)}")

    def _read_node(self, kind: str, value: Mapped) -> None:
        metadata = value.get("metadata")
        if not isinstance(metadata, Mapped):
            wanted = f"metadata: a mapping is wanted, found {described(metadata)}"
            self._add("document", value.line, wanted)
            return
        name = self._name(metadata)
        if name is None:
            return
        node = self._graph.node(name)
        if self._graph.declared(node):
            self._report_second(kind, node, metadata.line)
            return
        self._graph.declare(node, kind, metadata.line)
        self._read_labels(node, metadata)
        self._edges.read(node, value)

    def _name(self, metadata: Mapped) -> str | None:
        name, namespace = metadata.get("name"), metadata.get("namespace")
        namespace = DEFAULT_NAMESPACE if namespace is None else namespace
        line = metadata.line
        for key, text, legal, rule in (
            ("name", name, is_name, NAME_RULE),
            ("namespace", namespace, is_namespace, NAMESPACE_RULE),
        ):
            if not isinstance(text, str):
                self._add("name", line, f"metadata.{key}: a text is wanted, {_quote_hint(text)}")
            elif not legal(text):
                wanted = f"metadata.{key}: {rule} are wanted, found {shown(text)}"
                self._add("name", line, wanted, shown(text))
        both = isinstance(name, str) and isinstance(namespace, str)
        return f"{namespace}/{name}" if both else None

    def _report_second(self, kind: str, node: int, line: int) -> None:
        name, first = self._graph.names[node], self._graph.kinds[node]
        file, first_line = self._graph.node_place(node)
        self._findings.add(
            "duplicate-node",
            (self._graph.files[-1], line),
            f"{kind} {shown(name)} has the name of the {first} at {file}:{first_line}: an edge "
            "could mean either; this one's edges were not read",
            names=(shown(name),),
            related=((file, first_line),),
        )

    def _read_labels(self, node: int, metadata: Mapped) -> None:
        labels = metadata.get("labels")
        if labels is None:
            return
        if not isinstance(labels, Mapped):
            wanted = f"metadata.labels: a mapping is wanted, found {described(labels)}"
            self._add("label", metadata.line, wanted)
            return
        kept = {}
        for key, value in labels.items():
            if not is_label_key(key):
                self._add("label", labels.line, f"{shown(key)} is not a label's key")
            elif not isinstance(value, str):
                wanted = f"label {shown(key)}: a text is wanted, {_quote_hint(value)}"
                self._add("label", labels.line, wanted)
            elif not is_label_value(value):
                wanted = "at most 63 of A-Z, a-z, 0-9, '.', '_' and '-' are wanted"
                found = f"label {shown(key)}: {wanted}, found {shown(value)}"
                self._add("label", labels.line, found)
            else:
                kept[key] = value
        if kept:
            self._graph.labels[node] = kept

    def _note_repeated_key(self, line: int, key: str) -> None:
        self._add("duplicate-key", line, f"the key {shown(key)} occurs twice in one mapping")

    def _add(self, rule: str, line: int, message: str, *names: str) -> None:
        self._findings.add(rule, (self._graph.files[-1], line), message, names=names)


def _quote_hint(value: object) -> str:
    hint = " (put it in quotes)" if isinstance(value, bool | int | float) else ""
    return f"found {described(value)}{hint}"
