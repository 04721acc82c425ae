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


def places(
    columns: Mapping[str, float], nodes: Callable[[Sequence[str]], str], key: str = "kind"
) -> dict[str, str]:
    """Cells that tell where nodes are: each column of them is spread over the height.

    `columns` are the values of the label `key` with the column's distance from the middle, and
    `nodes` gives the nodes of some of them. Prometheus cannot count its rows, so
    `transformations.spread` multiplies a row's number by `slot` and adds `top`; where `bend` is
    not 0, it bends the column.
    """
    order = sorted(columns)
    x = "\nor\n".join(f"0 * ({nodes([name])}) + {columns[name]}" for name in order)
    every = nodes(order)
    slot = f"{HEIGHT} / count by ({key}) ({every})"
    top = f"(0.5 - ({_before(order, nodes, key)})) * on ({key}) ({slot}) - {HEIGHT / 2}"
    at = f"0 * ({every}) + on ({key}) group_left ()"
    cells = {"left": x, "slot": f"{at} ({slot})", "top": f"{at} ({top})"}
    return {**cells, "bend": f"0 * ({every})"}


def _before(order: Sequence[str], nodes: Callable[[Sequence[str]], str], key: str) -> str:
    """How many nodes are in the columns before each, as rows are sorted by `key`."""
    counts = ["vector(0)"]
    counts += [f"(count({nodes(order[:at])}) or vector(0))" for at in range(1, len(order))]
    return " or ".join(
        with_label(count, key, name) for name, count in zip(order, counts, strict=True)
    )


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
