"""PromQL that gives an answer the shape that a panel needs."""


def with_label(expr: str, label: str, text: str, source: str = "", pattern: str = "") -> str:
    """The query with a label set to a text, everywhere or where `source` matches a pattern."""
    return f'label_replace({expr},\n"{label}", "{text}", "{source}", "{pattern}")'


def joined(expr: str, label: str, separator: str, *sources: str) -> str:
    """The query with a label made of others."""
    names = ", ".join(f'"{source}"' for source in sources)
    return f'label_join({expr},\n"{label}", "{separator}", {names})'


def columns(**exprs: str) -> str:
    """One query that answers with a table: a series for each cell, its column in the label `stat`.

    In this shape a column keeps its name and its type whatever else is missing, which the answers
    of several queries, joined in Grafana, do not. Cells whose labels do not contradict each other
    share a row, so a metric's own name has to go.
    """
    cells = (with_label(expr, "stat", name) for name, expr in exprs.items())
    return with_label("\nor\n".join(cells), "__name__", "")


def gpu_name(expr: str, label: str, source: str = "gpu") -> str:
    """The query with a GPU's name, "GPU 07", in a label: Grafana sorts by text, so it is padded."""
    padded = with_label(expr, label, "GPU $1", source, "(.+)")
    return with_label(padded, label, "GPU 0$1", source, "([0-9])")


def band(expr: str) -> str:
    """The query with a label `band` of node and GPU, which Prometheus sorts series by."""
    return joined(gpu_name(expr, "band"), "band", " ", "instance", "band")


def over_time_hours(expr: str) -> str:
    """What a rate that is recorded each minute adds up to in the time range: units times hours."""
    return f"(sum_over_time({expr}[$__range]) / 60)"


def largest(expr: str, label: str, count: int) -> str:
    """The same series at every moment: those that are the largest over the whole time range."""
    return f"topk({count}, sum by ({label}) (sum_over_time({expr}[$__range] @ end())))"


def with_others(expr: str, label: str, count: int) -> str:
    """Sums by a label, the smaller ones as one, so that they still add up to all of it."""
    each, top = f"sum by ({label}) ({expr})", largest(expr, label, count)
    others = with_label(f"sum({each} unless on ({label}) {top})", label, "all others")
    return f"({each} and on ({label}) {top})\nor\n{others}"
