"""The graph as flat arrays of integers, for graphs of a million edges on a small machine.

An edge takes 17 bytes with its type, file and line. networkx takes over 200 bytes for an edge that
has none of them, and its `find_cycle` is far from linear on a DAG (tests/bench/validator.py).
"""

from array import array
from collections.abc import Mapping

from seedance_obs.topology.declared.findings import Place

AFFINITY, LATENCY_SLA, ANTI_AFFINITY = range(3)
EDGE_TYPES = ("affinity", "latency-sla", "anti-affinity")


class DeclaredGraph:
    """Nodes and edges by number; the numbers of edges are their order in the files.

    A node is named `namespace/name`. It exists from the first time that anybody names it, and is
    declared once it has a line.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.labels: dict[int, Mapping[str, str]] = {}
        self.source = array("i")
        self.target = array("i")
        self.type = array("b")
        self._numbers: dict[str, int] = {}
        self._node_file = array("i")
        self._node_line = array("i")
        self._edge_file = array("i")
        self._edge_line = array("i")

    def node(self, name: str) -> int:
        """The number of a node, which is new where nobody named it before."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
            self.kinds.append("")
            self._node_file.append(0)
            self._node_line.append(0)
        return number

    def declare(self, node: int, kind: str, line: int) -> None:
        """Say what a node is and where the last of the files declares it."""
        self.kinds[node] = kind
        self._node_file[node] = len(self.files) - 1
        self._node_line[node] = line

    def connect(self, source: int, target: int, edge_type: int, line: int) -> None:
        """Add an edge that the last of the files declares."""
        self.source.append(source)
        self.target.append(target)
        self.type.append(edge_type)
        self._edge_file.append(len(self.files) - 1)
        self._edge_line.append(line)

    def declared(self, node: int) -> bool:
        """Whether a node is more than named."""
        return self._node_line[node] > 0

    def node_place(self, node: int) -> Place:
        """The file and line that declare a node."""
        return self.files[self._node_file[node]], self._node_line[node]

    def edge_place(self, edge: int) -> Place:
        """The file and line that declare an edge."""
        return self.files[self._edge_file[edge]], self._edge_line[edge]

    def namespace(self, node: int) -> str:
        """The namespace of a node."""
        return self.names[node].partition("/")[0]
