"""A host made up at random, and the ways in which its matrix may reach a reader."""

import re
from dataclasses import dataclass, field
from itertools import combinations

from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, Absent, PcieLevel, Topology

WORDS = ("PIX", "PXB", "PHB", "NODE", "SYS")
NIC_NAMES = ("mlx5_bond_0", "rocep49s0", "irdma0", "bnxt_re0", "hfi1_0", "ibp12s0", "roceo1")
CPU_LISTS = ("0", "0-7", "12-23,36-47", "0-55,112-167", "1-1,3-3", "6,14,22,30", "")
GRACE_LIST = "3,5-11"  # a node with CPUs, and a GPU's memory without its first node
NODE_LISTS = ("0", "1", "12", "0-3", GRACE_LIST, "N/A", "")
OWN_NODES = ("4", "12", "28", "N/A")
COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
LEGEND = (
    "",
    "Legend:",
    "",
    "  X    = Self",
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes",
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges",
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
    "  PXB  = Connection traversing multiple PCIe bridges",
    "  PIX  = Connection traversing at most a single PCIe bridge",
    "  NV#  = Connection traversing a bonded set of # NVLinks",
)


@dataclass
class Host:
    """What the matrix is to say: words by pair, affinity texts by GPU, RDMA names by NIC."""

    gpus: list[str]
    nics: list[str]
    words: dict[tuple[str, str], str]
    affinity: dict[str, tuple[str, str, str]]
    generation: int = 3  # how many affinity columns
    legend: dict[str, str] = field(default_factory=dict)
    spoilt: dict[tuple[str, str], str] = field(default_factory=dict)  # junk by row and column

    @property
    def names(self) -> list[str]:
        return self.gpus + self.nics

    def word(self, one: str, other: str) -> str:
        if one == other:
            return " X "
        return self.words.get((one, other)) or self.words[other, one]


@st.composite
def hosts(draw, *, most_gpus: int = 12, full: bool = False) -> Host:
    """A host; `full` leaves no affinity cell empty."""
    gpus = [f"GPU{number}" for number in range(draw(st.integers(1, most_gpus)))]
    if draw(st.booleans()):
        nics = [f"NIC{number}" for number in range(draw(st.integers(0, 4)))]
        legend = {nic: f"mlx5_{9 + number}" for number, nic in enumerate(nics)}
    else:
        nics = draw(st.lists(st.sampled_from(NIC_NAMES), unique=True, max_size=3))
        legend = {}
    links = st.one_of(st.sampled_from(WORDS), st.sampled_from(["NV1", "NV2", "NV12", "NV18"]))
    words = {}
    for one, other in combinations(gpus + nics, 2):
        words[one, other] = draw(st.sampled_from(WORDS) if other in nics else links)
    affinity = {
        gpu: (
            draw(st.sampled_from(CPU_LISTS[: -1 if full else None])),
            draw(st.sampled_from(NODE_LISTS[: -1 if full else None])),
            draw(st.sampled_from(OWN_NODES)),
        )
        for gpu in gpus
    }
    return Host(gpus, nics, words, affinity, draw(st.integers(0, 3)), legend)


def rows_of(host: Host) -> list[list[str]]:
    """The header and the rows as nvidia-smi puts them between its tabs."""
    columns = list(COLUMNS[: host.generation])
    rows = [["", *host.names, *columns]]
    for name in host.names:
        row = [
            name,
            *(host.spoilt.get((name, other), host.word(name, other)) for other in host.names),
        ]
        if name in host.affinity:
            cells = list(host.affinity[name][: host.generation])
            row += [*cells[:2], "", cells[2]] if host.generation == 3 else cells
        else:
            row += [""] * (host.generation + (host.generation == 3))
        rows.append(row)
    return rows


def with_tabs(host: Host) -> list[str]:
    return ["\t".join(row) for row in rows_of(host)]


def with_blanks(host: Host) -> list[str]:
    """As a terminal shows the tabs and a mouse copies them."""
    return [line.expandtabs(8).rstrip() for line in with_tabs(host)]


def with_narrow_columns(host: Host) -> list[str]:
    """Columns two blanks apart, as authors set them by hand."""
    header, *rows = rows_of(host)
    if host.generation == 3:  # there is no free cell where nothing comes from tabs
        rows = [[*row[: len(header) - 1], *row[len(header) :]] for row in rows]
    rows = [header, *rows]
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def with_glued_header(host: Host) -> list[str]:
    """The header's separators lost on the way; RDMA names glued together cannot be told apart."""
    if not host.legend:
        host.nics = []
        host.words = {pair: word for pair, word in host.words.items() if pair[1] in host.gpus}
    header, *rows = with_tabs(host)
    return [header.replace("\t", ""), *rows]


def with_glued_cells(host: Host) -> list[str]:
    """Every second separator between path cells lost."""
    header, *rows = with_tabs(host)
    return [header, *(re.sub(r"([BEYX])[ \t]+(?=NODE|SYS|P[IXH])", r"\1", row) for row in rows)]


def with_escapes(host: Host) -> list[str]:
    header, *rows = with_tabs(host)
    return [f"\t\x1b[4m{header[1:]}\x1b[0m", *rows]


def with_remnants(host: Host) -> list[str]:
    header, *rows = with_blanks(host)
    return [f"        [4m{header.strip()}[0m", *rows]


def with_labels(host: Host) -> list[str]:
    return [f"0: {line}" for line in with_tabs(host)]


def with_prose(host: Host) -> list[str]:
    lines = ["GPU topology of GPU0 and others", "$ nvidia-smi topo -m", *with_tabs(host)]
    return [*(f"    {line}" for line in lines), "", "GPU0 and GPU1 talk over NODE, says GPU7."]


TAB_STYLES = (with_tabs, with_glued_header, with_escapes, with_labels, with_prose)
BLANK_STYLES = (with_blanks, with_narrow_columns, with_remnants)
LOSSY_STYLES = (with_blanks, with_narrow_columns, with_remnants, with_glued_cells)


def text_of(host: Host, style, *, legend: bool = True, newline: str = "\n") -> str:
    lines = style(host)
    if legend:
        nics = [f"  {nic}: {label}" for nic, label in host.legend.items()]
        lines = [*lines, *LEGEND, *(["", "NIC Legend:", "", *nics] if nics else [])]
    return newline.join([*lines, ""])


def number_set(text: str) -> frozenset[int] | Absent:
    if text in ("", "N/A"):
        return UNKNOWN
    parts = [part.partition("-") for part in text.split(",")]
    return frozenset(
        number for low, _, high in parts for number in range(int(low), int(high or low) + 1)
    )


def domains_of(host: Host) -> dict[str, str]:
    """By walking the links from the lowest GPU up."""
    domains: dict[str, str] = {}
    for first in host.gpus:
        todo = [first] if first not in domains else []
        while todo:
            gpu = todo.pop()
            for other in host.gpus:
                if other != gpu and host.word(gpu, other).startswith("NV"):
                    domains[gpu] = first
                    if other not in domains:
                        todo.append(other)
    return domains


def truth(host: Host) -> dict[tuple[str, ...], object]:
    """Every value that a reading may hold, by what it is of."""
    facts: dict[tuple[str, ...], object] = {}
    for gpu, texts in host.affinity.items():
        cpus, near, own = (*texts[: host.generation], "", "", "")[:3]
        node = number_set(own)
        memory = min(node) if isinstance(node, frozenset) else UNKNOWN
        numa = number_set(near)
        if near == GRACE_LIST and isinstance(memory, int):
            numa = frozenset({3})
        facts[gpu, "cpus"], facts[gpu, "numa"] = number_set(cpus), numa
        facts[gpu, "memory_node"] = memory
    for nic in host.nics:
        facts[nic, "label"] = host.legend.get(nic, nic)
    for (one, other), word in host.words.items():
        nvlinks = int(word[2:]) if word.startswith("NV") else 0
        facts[one, other, "nvlinks"] = nvlinks
        facts[one, other, "pcie"] = UNKNOWN if nvlinks else PcieLevel[word]
    facts.update({(gpu, "domain"): name for gpu, name in domains_of(host).items()})
    return facts


def told(topology: Topology) -> dict[tuple[str, ...], object]:
    """The same of what was read."""
    facts: dict[tuple[str, ...], object] = {}
    for gpu in topology.gpus:
        facts[gpu.name, "cpus"], facts[gpu.name, "numa"] = gpu.cpus, gpu.numa
        facts[gpu.name, "memory_node"] = gpu.memory_node
    for device in set(topology.devices) - set(topology.gpus):
        facts[device.name, "label"] = device.label or UNKNOWN
    for path in topology.paths:
        facts[path.source, path.target, "nvlinks"] = path.nvlinks
        facts[path.source, path.target, "pcie"] = path.pcie
    facts.update({(gpu, "domain"): name for gpu, name in topology.domains.items()})
    return facts


def untrue(host: Host, topology: Topology) -> dict[tuple[str, ...], tuple[object, object]]:
    """What was read and is neither true nor UNKNOWN."""
    right = truth(host)
    return {
        key: (value, right.get(key))
        for key, value in told(topology).items()
        if value is not UNKNOWN and value != right.get(key)
    }
