"""What FGD takes on 1,213 nodes and 35 classes, beside the definition as a person would write it.

Run by hand from the root of the repository: `python -m tests.bench.fragmentation`. The nodes are
made up: 1,213 of 1 to 8 GPUs, in part held, no two alike. The budget is 50 ms.
"""

import random
from collections.abc import Callable
from time import perf_counter

from seedance_obs.fragmentation.fgd import fragments_by_cause
from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import FreeNode, Request

NODES, CLASSES, ROUNDS = 1213, 35, 7


def best_milliseconds(work: Callable[[], object]) -> float:
    """The fastest of a few rounds, which other load disturbs least."""
    times = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return 1000 * min(times)


def naive(nodes: list[FreeNode], mix: Mix) -> float:
    """Every node against every request."""
    found = 0.0
    for node in nodes:
        free = sum(node.gpu_milli)
        for request, weight in mix:
            fitting = sum(gpu >= request.gpu_milli for gpu in node.gpu_milli)
            if not request.gpus or fitting < request.gpus or request.cpu_milli > node.cpu_milli:
                found += weight * free
            else:
                found += weight * sum(gpu for gpu in node.gpu_milli if gpu < request.gpu_milli)
    return found


def main() -> None:
    """Print both times and their ratio."""
    lot = random.Random(7)
    nodes = [
        FreeNode(
            tuple(
                lot.choice((0, 1000, lot.randrange(1000))) for _ in range(lot.choice((1, 2, 4, 8)))
            ),
            lot.randrange(128_000),
        )
        for _ in range(NODES)
    ]
    sizes = [lot.randrange(100, 1001, 10) for _ in range(CLASSES)]
    mix = Mix.of(
        [Request(lot.choice((0, 1, 1, 1, 2, 8)), size, lot.randrange(64_000)) for size in sizes],
        percent_kept=100,
    )
    ours = best_milliseconds(lambda: fragments_by_cause(nodes, mix))
    theirs = best_milliseconds(lambda: naive(nodes, mix))
    total = sum(map(sum, fragments_by_cause(nodes, mix)))
    assert abs(total - naive(nodes, mix)) < 1e-6 * total
    print(f"{NODES} nodes, {len(mix)} classes: {ours:.1f} ms of 50; naive {theirs:.1f} ms")
    print(f"ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
