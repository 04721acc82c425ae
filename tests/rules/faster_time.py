"""The shipped rules and routing in a time that runs so many times as fast.

Where a node's clock runs `factor` times as fast as Prometheus's, every second that the rules speak
of lasts 1/factor of one. That is a change of unit and nothing else:

- a duration (a range, an offset, `for`, `interval`, what Alertmanager waits) is divided by it;
- what PromQL gives per second (`rate`, `irate`, `deriv`) is divided by it, since the counters run
  that much faster, and `increase` stays what it is;
- the clock (`time()`, `timestamp(...)`) is what the nodes' clocks show at that moment.

Thresholds, labels, aggregations and comparisons stay as they are shipped, so the rules see what
they would see of a fleet that is watched for `factor` times as long.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

UNITS_MS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
    "y": 31_536_000_000,
}
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
      | (?P<duration>(?:\d+(?:ms|[smhdwy]))+\b)
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>:?[A-Za-z_][\w:]*)
      | (?P<other>\s+|.)""",
    re.VERBOSE | re.DOTALL,
)
PER_SECOND = ("rate", "irate", "deriv")
UNKNOWN = ("predict_linear", "holt_winters", "hour", "minute", "day_of_week", "month")


@dataclass(frozen=True)
class Pace:
    """How much faster, and what the nodes' clocks show when Prometheus's shows 0."""

    factor: int
    nodes_at_zero: float = 0.0

    def duration(self, text: str) -> str:
        """A duration of that many times less; to the millisecond, at least one."""
        parts = re.findall(r"(\d+)(ms|[smhdwy])", text)
        milliseconds = sum(int(number) * UNITS_MS[unit] for number, unit in parts)
        return f"{max(1, round(milliseconds / self.factor))}ms" if milliseconds else text

    def expression(self, text: str) -> str:
        """The same query in the nodes' time.

        Raises:
            NotImplementedError: it uses a function that depends on time in a way unknown here.
        """
        return "".join(self._pieces(tokens(text)))

    def _pieces(self, found: list[tuple[str, str]]) -> Iterator[str]:
        at = 0
        while at < len(found):
            kind, text = found[at]
            call = kind == "name" and found[at + 1 : at + 2] == [("other", "(")]
            if call and text in UNKNOWN:
                raise NotImplementedError(f"how does {text}() change with the unit of time?")
            if call and text == "time":
                yield f"({self.factor} * time() + {self.nodes_at_zero!r})"
                at = _end_of_call(found, at)
            elif call and text == "timestamp":
                end = _end_of_call(found, at)
                inner = "".join(self._pieces(found[at + 1 : end]))
                yield f"({self.factor} * {text}{inner} + {self.nodes_at_zero!r})"
                at = end
            elif call and text in PER_SECOND:
                end = _end_of_call(found, at)
                inner = "".join(self._pieces(found[at + 1 : end]))
                yield f"({text}{inner} / {self.factor})"
                at = end
            else:
                yield self.duration(text) if kind == "duration" else text
                at += 1

    def rules(self, text: str) -> str:
        """A rule file in the nodes' time."""
        document = yaml.safe_load(text)
        for group in document["groups"]:
            if "interval" in group:
                group["interval"] = self.duration(group["interval"])
            for rule in group["rules"]:
                rule["expr"] = self.expression(str(rule["expr"]))
                for key in rule.keys() & {"for", "keep_firing_for"}:
                    rule[key] = self.duration(rule[key])
        return yaml.safe_dump(document, sort_keys=False, width=1000)

    def routing(self, text: str, receivers_at: str) -> str:
        """Alertmanager's file in the nodes' time, with its webhooks at another address."""
        document = yaml.safe_load(text)
        self._quicken(document["route"])
        for receiver in document["receivers"]:
            for webhook in receiver.get("webhook_configs", []):
                webhook["url"] = receivers_at + "/" + receiver["name"]
        return yaml.safe_dump(document, sort_keys=False)

    def _quicken(self, route: dict[str, object]) -> None:
        for key in ("group_wait", "group_interval", "repeat_interval"):
            if key in route:
                route[key] = self.duration(str(route[key]))
        children = route.get("routes", [])
        assert isinstance(children, list)
        for child in children:
            self._quicken(child)


def tokens(text: str) -> list[tuple[str, str]]:
    """The parts of a query, each with its kind: text, duration, number, name or other."""
    return [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text)]


def _end_of_call(found: list[tuple[str, str]], at: int) -> int:
    """Past the closing parenthesis of the call whose name is at `at`."""
    depth = 0
    for place in range(at + 1, len(found)):
        depth += {("other", "("): 1, ("other", ")"): -1}.get(found[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError("a parenthesis is not closed")


def write_rules(alerts: Path, folder: Path, pace: Pace) -> None:
    """Every rule file of a folder, in the nodes' time, below another."""
    folder.mkdir(exist_ok=True)
    for file in sorted(alerts.glob("*.rules.yml")):
        (folder / file.name).write_text(pace.rules(file.read_text()))


def unit_test(text: str, pace: Pace, rule_folder: Path) -> str:
    """A file of promtool's unit tests in that time, of the rule files in a folder."""
    quoted = re.sub(r"(values: )([^'\"\n}]+)", r"\1'\2'", text)  # 0x60 is no number there
    document = yaml.safe_load(quoted)
    document["rule_files"] = [str(rule_folder / Path(f).name) for f in document["rule_files"]]
    for key in ("evaluation_interval",):
        if key in document:
            document[key] = pace.duration(document[key])
    for test in document["tests"]:
        _quicken_test(test, pace)
    return yaml.safe_dump(document, sort_keys=False, width=1000)


def _quicken_test(test: dict[str, object], pace: Pace) -> None:
    if "interval" in test:
        test["interval"] = pace.duration(str(test["interval"]))
    for key in ("alert_rule_test", "promql_expr_test"):
        cases = test.get(key, [])
        assert isinstance(cases, list)
        for case in cases:
            assert isinstance(case, Mapping)
            case["eval_time"] = pace.duration(str(case["eval_time"]))  # type: ignore[index]
            if "expr" in case:
                case["expr"] = pace.expression(str(case["expr"]))  # type: ignore[index]
