"""Idle GPUs of real virtual clusters: what idles while work waits is told from what is waste."""

import pytest

from seedance_obs.fragmentation.idle_gpus import IdleGpus, Interval, Kind, idle_gpus
from tests.fragmentation.traces import HELIOS, columns, needs_helios

HOUR = 3600
COLUMNS = ("total_gpu_num", "idle_gpu_num", "pending_gpu_num")


def month(file):
    return idle_gpus(Interval(60, *minute) for minute in columns(file, *COLUMNS))


@pytest.fixture(scope="module")
def clusters() -> dict[str, IdleGpus]:
    files = sorted(HELIOS.glob("vc*.csv.gz"))
    return {file.name.partition("_")[0]: month(file) for file in files}


@needs_helios
def test_a_month_of_idle_gpus_splits_as_published(clusters):
    assert len(clusters) == 11
    idle = sum(cluster.idle_gpu_seconds for cluster in clusters.values())
    waited_for = sum(cluster.while_pending_gpu_seconds for cluster in clusters.values())
    total = sum(cluster.total_gpu_seconds for cluster in clusters.values())
    assert idle / HOUR == pytest.approx(154358.4, abs=0.05)
    assert waited_for / HOUR == pytest.approx(6386.4, abs=0.05)
    assert idle / total == pytest.approx(0.3412, abs=5e-5)


@needs_helios
def test_clusters_that_idle_with_nothing_waiting_are_waste(clusters):
    for name in ("vcira", "vcJkd"):
        assert clusters[name].while_pending_gpu_seconds == 0
        assert clusters[name].kind() is Kind.WASTE
    kinds = {name: cluster.kind() for name, cluster in clusters.items()}
    fragmented = {name for name, kind in kinds.items() if kind is Kind.FRAGMENTATION}
    assert fragmented == {"vc6YE", "vc8Sj"}
    assert kinds["vcgkz"] is Kind.HEADROOM
