"""What a rule refers to is there: series, thresholds; and what it selects is of our targets."""

import re
from collections.abc import Iterator

from seedance_obs.rules.expression import Selector, selectors
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries

THRESHOLD = "seedance:threshold"


def unknown_names(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Series that neither the exporters show nor a rule records, and thresholds nobody sets."""
    for each in sorted(set(selectors(rule.tree)), key=str):
        if not each.name:
            yield rule.finding("a selector names no metric: say which", part="expr")
        elif each.name not in known:
            yield rule.finding(
                f"{each.name} is in no scrape of exporters/*.prom, and no rule here records it",
                word=each.name,
            )
        elif each.name == THRESHOLD:
            yield from _missing_thresholds(rule, each, known)


def selectors_of_any_job(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Our series without `job`, which would also take what somebody else's target calls so."""
    names = {
        each.name
        for each in selectors(rule.tree)
        if each.name in known.scraped
        and known.scraped[each.name].ours
        and not any(label == "job" for label, _, _ in each.matchers)
    }
    for name in sorted(names):
        yield rule.finding(f'{name} is selected without a job: add job="gpu"', word=name)


def _missing_thresholds(rule: Rule, used: Selector, known: KnownSeries) -> Iterator[Finding]:
    there = {each.labels.get("of", "") for each in known.recorded[THRESHOLD]}
    for label, how, value in sorted(used.matchers):
        if label != "of" or how not in ("=", "=~"):
            continue
        names = value.split("|") if how == "=~" else [value]
        for name in names:
            if not re.fullmatch(r"[\w-]+", name):  # a pattern that stands for several
                if not any(re.fullmatch(name, each) for each in there):
                    yield rule.finding(f"no threshold's name matches {name!r}", word=THRESHOLD)
            elif name not in there:
                yield rule.finding(f"the threshold {name!r} is set by no rule", word=f"{name}")
