"""What the dashboards cost a real Prometheus that holds 1,000 nodes of 8 GPUs, and to build.

    python -m tests.bench.dashboards [--nodes 1000] [--scrape-seconds 15]

Every panel is asked for as Grafana asks when a dashboard is opened: with its own time range, all
clusters, and one node where nodes are drawn one by one. The fleet is that of tests.bench.rules,
with the series that panels read as well; queries are sent one after the other, each three times,
and the median counts. The budgets are two seconds a query, two seconds to build all dashboards, and
eight queries a panel.
"""

import argparse
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from seedance_obs.assets import assets_folder
from seedance_obs.dashboards.build import dashboards
from seedance_obs.dashboards.check.queries import tree
from seedance_obs.rules.expression import selectors
from seedance_obs.rules.rule_file import read_rules, rule_files
from tests.bench.fleet_page import Fleet, node_page
from tests.bench.fleet_past import past_of_rules
from tests.bench.rules import names_read, say
from tests.bench.thousand_nodes import HOUR_SECONDS, RULE_SECONDS, fleet_server
from tests.dashboards.every_panel import panels_of, planned
from tests.dashboards.grafana_queries import Asked
from tests.dashboards.grafana_variables import DEFAULT, EVERY_CLUSTER, filled, queried
from tests.dashboards.history import History

BUDGET_SECONDS = 2.0
MOST_QUERIES = 8
TIMES = 3
SLOWEST = 5
ROUNDS_OF_RULES = 2


def asked_at_first(history: History) -> Iterator[tuple[str, Asked]]:
    """Every query of every panel when its dashboard is opened, with the panel's name."""
    for file, dashboard in dashboards().items():
        choice = filled(dashboard, history, cluster=EVERY_CLUSTER, how_many=DEFAULT)
        for panel in planned(file, dashboard, choice, history):
            assert len(panel.queries) <= MOST_QUERIES, panel.panel["title"]
            for query in panel.queries:
                yield f"{file}: {panel.panel['title']}", query


def names_shown(built: Iterable[Mapping[str, Any]]) -> set[str]:
    """The series that dashboards read, in panels and to fill variables."""
    queries = [
        target["expr"] for each in built for panel in panels_of(each) for target in panel["targets"]
    ]
    variables = [each["query"]["query"] for one in built for each in queried(one)]
    queries += [re.sub(r"label_values\((.+), \w+\)", r"\1", each) for each in variables]
    return {each.name for query in queries for each in selectors(tree(query))}


def seconds_of(query: Asked, history: History) -> float:
    """How long the server takes to answer a query, with the way there and back."""
    taken = []
    for _ in range(TIMES):
        begun = time.monotonic()
        if query.instant:
            history.instant(query.expr, query.end)
        else:
            history.range(query.expr, query.start, query.end, query.step_s)
        taken.append(time.monotonic() - begun)
    return median(taken)


def main() -> int:
    """Measure, print, and say by the exit code whether all is within budget."""
    asked = arguments()
    begun = time.monotonic()
    built = dashboards()
    building = time.monotonic() - begun
    files = rule_files(assets_folder("alerts"))
    rules = [rule for file in files for rule in read_rules(file)[0]]
    names = names_read(rules) | names_shown(built.values())
    page = [each for each in node_page() if each.name in names]
    fleet = Fleet(page, asked.nodes, asked.scrape_seconds)
    past = past_of_rules(rules, fleet, rule_seconds=RULE_SECONDS, hour_seconds=HOUR_SECONDS)
    say(f"{fleet.nodes:,} nodes of {len(page):,} series, every {fleet.scrape_seconds} s")
    with fleet_server(fleet, past) as server:
        server.load_rules(files)
        time.sleep(ROUNDS_OF_RULES * RULE_SECONDS)
        end = time.time() // 60 * 60
        history = History(server.url, end - HOUR_SECONDS, end)
        found = sorted(
            ((seconds_of(query, history), name) for name, query in asked_at_first(history)),
            reverse=True,
        )
        say(f"  peak memory {server.peak_bytes() / 2**30:.1f} GiB")
    for seconds, name in found[:SLOWEST]:
        say(f"  {seconds:7.3f} s  {name}" + ("   TOO SLOW" if seconds > BUDGET_SECONDS else ""))
    say(f"  {len(found)} queries; all dashboards are built in {building:.2f} s")
    return 1 if found[0][0] > BUDGET_SECONDS or building > BUDGET_SECONDS else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--scrape-seconds", type=int, default=15)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
