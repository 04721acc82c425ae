"""The history that the dashboards' panels are drawn from is what it says it is."""

from tests.dashboards.history import History


def test_every_cluster_was_scraped_to_the_end(history: History) -> None:
    assert history.label_values("up", "cluster") == sorted(history.clusters)
