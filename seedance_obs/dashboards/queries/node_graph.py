"""What every node graph needs of PromQL: where its nodes are, and how its edges look.

Coordinates are pixels from the middle of the panel. Grafana's own layouts move nodes about as
answers change, and pile up what belongs into a column until nothing can be read.
"""

from collections.abc import Callable, Mapping, Sequence

from seedance_obs.dashboards.queries.shape import with_label
from seedance_obs.dashboards.theme import LINK_LOADS, LINK_WRONG

HEIGHT = 740
# A link of 32 GB/s is as thick as a line, and every doubling adds one; arrows grow with it.
THINNEST_BYTES_PER_SECOND, THICKEST = 16e9, 6


def places(columns: Mapping[str, float], nodes: Callable[[Sequence[str]], str]) -> dict[str, str]:
    """Cells that tell where nodes are: each column of them is spread over the height.

    `columns` are the values of the nodes' label `kind` with how far right of the middle they are,
    and `nodes` gives the nodes of some kinds. PromQL cannot number its rows, so the last steps are
    those of `transformations.spread`: a node's row, counted from the first of its column, times
    `slot` is how far down it is; where `bend` is not 0, it bends the column.
    """
    order = sorted(columns)
    every = nodes(order)
    before = ["vector(0)"]
    before += [f"(count({nodes(order[:at])}) or vector(0))" for at in range(1, len(order))]
    first = dict(zip(order, before, strict=True))
    right = {kind: f"vector({x})" for kind, x in columns.items()}
    at = f"0 * ({every}) + on (kind) group_left ()"
    return {
        "left": f"{at} ({_by_kind(right)})",
        "slot": f"{at} ({HEIGHT} / count by (kind) ({every}))",
        "shift": f"0.5 + 0 * ({every}) - on (kind) group_left () ({_by_kind(first)})",
        "bend": f"0 * ({every})",
    }


def _by_kind(numbers: Mapping[str, str]) -> str:
    return " or ".join(with_label(number, "kind", kind) for kind, number in numbers.items())


def thickness(bytes_per_second: str) -> str:
    """How thick an edge is drawn, in pixels."""
    return f"clamp(log2(({bytes_per_second}) / {THINNEST_BYTES_PER_SECOND}), 1, {THICKEST})"


def colored(edges: str, labels: str, *, load: str, wrong: str, classes: Mapping[str, str]) -> str:
    """Edges, each 1 and with a `color`: what is wrong with them, else their load, else their class.

    `load` is a ratio, `classes` are colours by the label `kind`; all have the same labels.
    """
    loaded = f'count_values by ({labels}) ("percent", round(100 * ({load})))'
    for color, percent in LINK_LOADS.items():
        loaded = with_label(loaded, "color", color, "percent", percent)
    of_class = f"0 * ({edges}) + 1"
    for kind, color in classes.items():
        of_class = with_label(of_class, "color", color, "kind", kind)
    broken = with_label(f"0 * ({wrong}) + 1", "color", LINK_WRONG)
    every = f"{broken}\nor on ({labels}) {loaded}\nor on ({labels}) {of_class}"
    return f"max by ({labels}, color) ({every})"
