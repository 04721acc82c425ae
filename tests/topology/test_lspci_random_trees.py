"""Random PCI trees, drawn as pciutils draws them, are read back."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.readers.lspci_tree import read_drawing


@dataclass
class Branch:
    """A function of a random tree: a device, or a bridge with the functions on its bus."""

    slot: int
    name: str = ""
    below: "list[Branch] | None" = None
    bus: int = 0
    last: int = 0


def branches(depth: int = 3) -> st.SearchStrategy[list[Branch]]:
    names = st.sampled_from(["NVIDIA Corporation GA100 [A100]", "Mellanox MT1 [ConnectX-7]"])
    leaf = st.builds(lambda name: Branch(0, name), names)
    one = leaf if depth == 0 else st.one_of(leaf, bridge(depth))
    return st.lists(one, max_size=3).map(
        lambda found: [Branch(slot, b.name, b.below) for slot, b in enumerate(found)]
    )


def bridge(depth: int) -> st.SearchStrategy[Branch]:
    return st.deferred(lambda: branches(depth - 1)).map(lambda below: Branch(0, "", below))


def number(found: list[Branch], free: int) -> int:
    """Give each bridge the next free bus, as the firmware does; the next one left."""
    for branch in found:
        if branch.below is not None:
            branch.bus = free
            free = number(branch.below, free + 1)
            branch.last = free - 1
    return free


def address(domain: int, bus: int, slot: int) -> str:
    return f"{domain:04x}:{bus:02x}:{slot:02x}.0"


def leaves(found: list[Branch], domain: int, bus: int, ports=()) -> dict[str, tuple[str, ...]]:
    """What should be read back: every device and its ports."""
    told = {}
    for branch in found:
        name = address(domain, bus, branch.slot)
        if branch.below is None:
            told[name] = ports
        else:
            told |= leaves(branch.below, domain, branch.bus, (*ports, name))
    return told


def drawn(found: list[Branch]) -> list[str]:
    """The functions on one bus as pciutils draws them: one beside `--`, several as branches."""
    if not found:
        return [""]
    if len(found) == 1:
        first, *rest = drawn_function(found[0])
        return [f"--{first}", *(f"  {line}" for line in rest)]
    lines = []
    for branch in found:
        first, *rest = drawn_function(branch)
        last = branch is found[-1]
        lines.append(("\\-" if last else "+-") + first)
        lines += [("  " if last else "| ") + line for line in rest]
    return lines


def drawn_function(branch: Branch) -> list[str]:
    text = f"{branch.slot:02x}.0"
    if branch.below is None:
        return [f"{text}  {branch.name}"]
    span = f"{branch.bus:02x}" + (f"-{branch.last:02x}" if branch.last > branch.bus else "")
    text += f"-[{span}]-"
    first, *rest = drawn(branch.below)
    pad = " " * len(text)
    return [text + "-" + first, *(f"{pad} {line}" for line in rest)]


def drawn_roots(roots: list[tuple[int, list[Branch]]]) -> str:
    lines = []
    for place, (domain, found) in enumerate(roots):
        head = f"[{domain:04x}:00]-"
        first, *rest = drawn(found)
        pad = " " * len(head)
        last = place == len(roots) - 1
        if len(roots) == 1:
            lines += [f"-{head}{first}", *(f" {pad}{line}" for line in rest)]
            continue
        start = "-+-" if place == 0 else " \\-" if last else " +-"
        lines += [f"{start}{head}{first}"]
        lines += [(" " if last else " |") + " " * (2 if last else 1) + pad + line for line in rest]
    return "\n".join(lines) + "\n"


@given(st.lists(branches(), min_size=1, max_size=3), st.booleans())
def test_a_random_tree_that_is_drawn_is_read_back(roots, indented):
    numbered = list(enumerate(roots))
    expected = {}
    for domain, found in numbered:
        number(found, 1)
        expected |= leaves(found, domain, 0)
    text = drawn_roots(numbered)
    if indented:
        text = "".join(f"   {line}\n" for line in text.splitlines())
    drawing = read_drawing(enumerate(text.splitlines()))
    assert {leaf.bus_id: leaf.bus.ports for leaf in drawing.leaves} == expected
    assert drawing.strays == []
