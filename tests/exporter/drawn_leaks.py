"""What a terminal shows of leaks, by way of the exporter's page."""

import io
import json

from rich.console import Console

from seedance_obs.exporter.leaks_page import leaks_page
from seedance_obs.exporter.view import LeakView
from seedance_obs.leaks.report.drawing import LeakReport
from seedance_obs.leaks.report.page import read_page
from tests.exporter.leak_views import NOW, node_view


def drawn(leaks: LeakView, *, columns: int = 80, idle_draw_known: int = 8, **probe: object) -> str:
    """The report; `probe` is what else the page tells of the probe."""
    page = json.loads(leaks_page(node_view(leaks, idle_draw_known=idle_draw_known), NOW))
    page["probe"] |= probe
    console = Console(file=io.StringIO(), width=columns, highlight=False)
    console.print(LeakReport(read_page(page)), crop=False)
    return console.file.getvalue()
