"""The published traces that the tests here read; what needs them is skipped where they are not."""

import csv
import gzip
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean

import pytest

from seedance_obs.fragmentation.request import WHOLE_GPU, FreeNode, Request
from tests.fragmentation.placing import Node, Pod

SHARED = Path(os.environ.get("SEEDANCE_SHARED") or Path(__file__).parents[3] / "shared")
OPENB = SHARED / "data" / "traces" / "openb"
HELIOS = SHARED / "data" / "traces" / "helios_earth"
SNAPSHOT = OPENB / "derived_snapshot_random_seed42_80pct.csv"
NODES = OPENB / "openb_node_list_gpu_node.csv"
needs_openb = pytest.mark.skipif(not OPENB.is_dir(), reason="the shared data set is not here")
needs_helios = pytest.mark.skipif(not HELIOS.is_dir(), reason="the shared data set is not here")


def rows(file: Path) -> Iterator[dict[str, str]]:
    content = file.read_bytes()
    text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
    yield from csv.DictReader(text.splitlines())


def columns(file: Path, *names: str) -> Iterator[tuple[float, ...]]:
    """Some columns of a large file, as numbers."""
    header, *lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    places = [header.split(",").index(name) for name in names]
    for line in lines:
        cells = line.split(",")
        yield tuple(float(cells[place]) for place in places)


def pod_file(workload: str) -> Path:
    return OPENB / f"openb_pod_list_{workload}.csv.gz"


@cache
def pods(workload: str) -> tuple[Pod, ...]:
    found = []
    for row in rows(pod_file(workload)):
        models = frozenset(filter(None, row.get("gpu_spec", "").split("|")))
        request = Request(int(row["num_gpu"]), int(row["gpu_milli"]), int(row["cpu_milli"]), models)
        found.append(Pod(request, int(row["memory_mib"])))
    return tuple(found)


def requests(workload: str) -> list[Request]:
    return [pod.request for pod in pods(workload)]


def empty_nodes() -> list[Node]:
    return [
        Node(
            [WHOLE_GPU] * int(row["gpu"]),
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            row["model"],
        )
        for row in rows(NODES)
    ]


@cache
def snapshot() -> tuple[tuple[FreeNode, float], ...]:
    """Each node of the state that was derived by random placement, and its fragment."""
    found = []
    for row in rows(SNAPSHOT):
        gpus = (row[f"gpu{gpu}_milli_free"] for gpu in range(8))
        free = tuple(int(float(gpu)) for gpu in gpus if gpu)
        node = FreeNode(free, int(float(row["cpu_milli_free"])), row["model"])
        found.append((node, float(row["frag_milli"])))
    return tuple(found)


def authors_mean(policy: str, load: int) -> float:
    """Fragmented GPUs, in per cent of all, in the authors' runs on their default workload."""
    found = [
        float(row[str(load)])
        for row in rows(OPENB / "authors_analysis_frag_discrete.csv.gz")
        if (row["workload"], row["sc_policy"]) == ("openb_pod_list_default", policy)
    ]
    assert len(found) == 10
    return mean(found)
