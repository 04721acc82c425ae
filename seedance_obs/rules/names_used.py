"""What a rule refers to is there: series and their labels; what it selects is of our targets."""

from collections.abc import Iterator

from seedance_obs.rules.expression import Aggregation, Node, Selector, selectors, walk
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.labels_left import Labels, labels_left
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries


def unknown_names(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Series that neither the exporters show nor a rule records."""
    for name in sorted({each.name for each in selectors(rule.tree)}):
        if not name:
            yield rule.finding("a selector names no metric: say which", part="expr")
        elif name not in known:
            yield rule.finding(
                f"{name} is in no scrape of exporters/*.prom, and no rule here records it",
                word=name,
            )


def selectors_of_other_jobs(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Our series, but not of the scrape job that they come from: somebody else's, or none."""
    for each in sorted(set(selectors(rule.tree)), key=str):
        jobs = known.scraped[each.name].jobs if each.name in known.scraped else frozenset()
        said = {value for label, how, value in each.matchers if (label, how) == ("job", "=")}
        if jobs and not (said and said <= jobs):
            wanted = " or ".join(f'job="{job}"' for job in sorted(jobs))
            yield rule.finding(f"{each.name} is selected without {wanted}", word=each.name)


def unknown_labels(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Labels to select or to group by which none of the series has."""
    for node in walk(rule.tree):
        wanted, there = _wanted_labels(node, known)
        for label in sorted(wanted - there if there is not None else ()):
            yield rule.finding(
                f"no series here has the label {label}: there are {', '.join(sorted(there or ()))}",
                word=label,
            )


def _wanted_labels(node: Node, known: KnownSeries) -> tuple[frozenset[str], Labels]:
    if isinstance(node, Selector):
        return frozenset(label for label, _, _ in node.matchers), labels_left(node, known)
    if isinstance(node, Aggregation) and not node.without:
        return node.labels, labels_left(node.inner, known)
    return frozenset(), None
