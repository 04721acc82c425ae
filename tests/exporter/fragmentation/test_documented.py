"""What METRICS.md says of fragmentation is of series that there are."""

import re

from seedance_obs.exporter.collectors.fragmentation import FragmentationCollector
from seedance_obs.exporter.view import FragmentationView, FreeGpus, NodeView
from seedance_obs.metrics_page import FRAGMENTATION
from tests.exporter.fragmentation.located import located


def test_every_series_that_the_text_names_is_shown():
    free = FreeGpus(1.0, 1, gang={1: 1}, island={"numa_node": 1})
    view = NodeView("n", gpus=(located(),), fragmentation=FragmentationView(free=free))
    shown = {family.name for family in FragmentationCollector().collect(view, 0.0)}
    named = set(re.findall(r"seedance_\w+", FRAGMENTATION))
    assert len(named) == 6
    assert named <= shown
