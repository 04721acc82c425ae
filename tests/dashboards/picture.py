"""Pictures of the dashboards, drawn from the frames that Grafana's data engine makes.

python -m tests.dashboards.picture --out DIR [--fleet calm] [--only FILE]
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from seedance_obs.dashboards.build import dashboards
from tests.dashboards.every_panel import Drawn, every_panel, panels_of
from tests.dashboards.fleets import CLUSTERS
from tests.dashboards.grafana_engine import HARNESS
from tests.dashboards.grafana_variables import FIRST, HOW_MANY
from tests.dashboards.history import LASTS_S, History, simulated_history

PAGE = HARNESS / "picture" / "page.html"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZE = {"width": 1600, "height": 900}
CALLED = {
    "fleet-overview.json": "fleet",
    "gpu-utilization-topology-view.json": "topology-view",
    "topology-sensitivity.json": "sensitivity",
}


def pictures(history: History, out: Path, *, fleet: str, how_many: str, only: str) -> list[Path]:
    """A picture of every dashboard, or of one, for a fleet and one or all of its nodes."""
    files = {file: each for file, each in dashboards().items() if only in file}
    drawn = every_panel(files, history, [(fleet, how_many)])
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = chromium.new_page(viewport=SIZE)
        page.goto(PAGE.as_uri())
        taken = [_picture(page, out, file, each, drawn) for file, each in files.items()]
        chromium.close()
    return taken


def _picture(
    page: Page, out: Path, file: str, dashboard: Mapping[str, Any], drawn: list[Drawn]
) -> Path:
    path = out / f"{CALLED.get(file, file.removesuffix('.json'))}.png"
    mine = [each for each in drawn if each.file == file]
    chosen = {name: ", ".join(each) for name, each in mine[0].choice.chosen.items()}
    content = {
        "title": dashboard["title"],
        "choice": "    ".join(f"{name}: {text or 'none'}" for name, text in chosen.items()),
        "items": list(_items(dashboard, mine)),
    }
    page.evaluate("drawDashboard", content)
    page.screenshot(path=path, full_page=True)
    return path


def _items(dashboard: Mapping[str, Any], drawn: list[Drawn]) -> Iterator[dict[str, Any]]:
    shown = {panel["id"] for panel in panels_of(dashboard)}
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield {"panel": panel, "drawings": [{}]}
        elif panel["id"] in shown:
            mine = [each for each in drawn if each.panel["id"] == panel["id"]]
            yield {"panel": panel, "drawings": [_drawing(each) for each in mine]}


def _drawing(drawn: Drawn) -> dict[str, Any]:
    """Zoomed in to the history, which is shorter than what a dashboard shows at first."""
    end = drawn.window.end
    return {
        "title": _titled(drawn),
        "empty": drawn.empty,
        "frames": [frame for frame in drawn.frames if frame["fields"]],
        "numbers": drawn.numbers,
        "from": (end - LASTS_S) * 1000,
        "to": end * 1000,
    }


def _titled(drawn: Drawn) -> str:
    title = drawn.panel["title"]
    for name, values in drawn.choice.chosen.items():
        title = title.replace(f"${name}", " + ".join(values))
    return title


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the dashboards of a simulated fleet.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fleet", choices=CLUSTERS, default="calm")
    parser.add_argument("--how-many", choices=HOW_MANY, default=FIRST)
    parser.add_argument("--only", default="", help="part of a file name")
    args = parser.parse_args()
    chosen = {"fleet": args.fleet, "how_many": args.how_many, "only": args.only}
    with tempfile.TemporaryDirectory() as folder, simulated_history(Path(folder)) as history:
        for path in pictures(history, args.out, **chosen):
            print(path)


if __name__ == "__main__":
    main()
