"""How long the best and worst set take, cold and kept, beside a plain itertools search.

Run by hand from the root of the repository: `python -m tests.bench.placement`.
"""

import sys
from collections.abc import Callable
from itertools import combinations
from time import perf_counter

from seedance_obs.topology.bandwidth import PathModel
from seedance_obs.topology.model import Topology
from seedance_obs.topology.placement.placements import Placements
from tests.topology.hosts_by_hand import dgx1, nvswitch, pcie_box

ROUNDS = 5


def best_seconds(work: Callable[[], object]) -> float:
    """The fastest of a few rounds, which other load disturbs least."""
    times = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def naive(topology: Topology, size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every set, every pair of it, looked up once and compared as a person would write it."""
    model = PathModel(topology)
    names = [gpu.name for gpu in topology.gpus]
    rates = {}
    for one, other in combinations(names, 2):
        rate = model.bandwidth(topology.path(one, other)).bytes_per_second
        rates[one, other] = rate
    numa = {gpu.name: gpu.numa for gpu in topology.gpus}

    def goodness(gpus: tuple[str, ...]) -> tuple[float, float, int]:
        found = [rates[pair] for pair in combinations(gpus, 2)]
        spread = len(frozenset().union(*(numa[gpu] for gpu in gpus)))
        return min(found), sum(found) / len(found), -spread

    every = list(combinations(names, size))
    return max(every, key=goodness), min(every, key=goodness)


def main() -> None:
    """Print a line for each host and size."""
    cases = [
        ("DGX-1 mesh", dgx1(), 4),
        ("NVSwitch of 16", nvswitch(16), 4),
        ("PCIe box of 16", pcie_box(16), 4),
        ("NVSwitch of 16", nvswitch(16), 8),
        ("PCIe box of 16", pcie_box(16), 8),
        ("PCIe box of 20, greedy", pcie_box(20), 10),
    ]
    for name, topology, size in cases:
        cold = best_seconds(lambda: Placements().extremes(topology, size))  # noqa: B023 - called at once
        engine = Placements()
        found = engine.extremes(topology, size)
        kept = best_seconds(lambda: engine.extremes(topology, size))  # noqa: B023 - called at once
        line = f"{name}, {size}: cold {cold * 1e3:.1f} ms, kept {kept * 1e6:.1f} us"
        if found.exact:
            plain = best_seconds(lambda: naive(topology, size))  # noqa: B023 - called at once
            agrees = naive(topology, size) == (found.best.gpus, found.worst.gpus)
            line += f"; itertools {plain * 1e3:.1f} ms, {plain / cold:.1f} x cold"
            line += f", {plain / kept:,.0f} x kept" + ("" if agrees else "; THE TWO DISAGREE")
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
