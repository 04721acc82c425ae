"""A day of a fleet of three nodes whose tenants come and go, with an outage of one node."""

import math
from collections.abc import Iterator

from hand_made_prometheus import Exposition, Points

from seedance_obs.web.usage import ENERGY_JOULES, GPU_SECONDS, UNALLOCATED

NOW = 1_762_171_200 + 15 * 3600  # 2025-11-04 03:00 UTC
DAY = 86_400
FIRST = NOW - DAY - 7200
OUTAGE = (NOW - 11 * 3600, NOW - 9 * 3600)
TENANTS = ("vision", "speech", "risk", "ads-rank", "research")


def moments() -> list[int]:
    return [*range(FIRST, NOW - 3600, 60), *range(NOW - 3600, NOW + 1, 15)]


def holder(node: int, gpu: int, at: int) -> str:
    """Who holds a GPU: most stay, one of research's arrives half a day ago, some idle."""
    if node == 2 and gpu >= 6:
        return UNALLOCATED
    if node == 1 and gpu >= 5:
        return "research" if at > NOW - 12 * 3600 else UNALLOCATED
    return TENANTS[(node * 8 + gpu) * 4 // 24]


def watts(node: int, gpu: int, at: int) -> float:
    if holder(node, gpu, at) == UNALLOCATED:
        return 70.0
    return 430 + 40 * gpu % 160 + 120 * math.sin((at / 3600 + node * 3 + gpu) / 2.5)


def fleet() -> Exposition:
    rows: Exposition = []
    for node in range(3):
        target = {"job": "gpu", "instance": f"node-{node}"}
        scraped = [at for at in moments() if not (node == 2 and OUTAGE[0] < at < OUTAGE[1])]
        rows.append(("seedance_gpus_expected", target, [(at, 8.0) for at in scraped]))
        start = [(at, FIRST - 5000.0) for at in scraped]
        rows.append(("seedance_exporter_start_time_seconds", target, start))
        for gpu in range(8):
            rows += counters(node, gpu, target | {"gpu": str(gpu)}, scraped)
    return rows


def counters(node: int, gpu: int, labels: dict[str, str], scraped: list[int]) -> Iterator[tuple]:
    """Both counters of one GPU, a series for each tenant that has held it."""
    series: dict[str, tuple[Points, Points]] = {}
    totals: dict[str, list[float]] = {}
    for before, at in zip([FIRST - 60, *scraped], scraped, strict=False):
        tenant = holder(node, gpu, at)
        seconds = totals.setdefault(tenant, [0.0, 0.0])
        seconds[0] += at - before
        seconds[1] += (at - before) * watts(node, gpu, at)
        for name, (held, burned) in totals.items():
            times, energy = series.setdefault(name, ([], []))
            times.append((at, held))
            energy.append((at, burned))
    for name, (times, energy) in series.items():
        yield GPU_SECONDS, labels | {"tenant": name}, times
        yield ENERGY_JOULES, labels | {"tenant": name}, energy
