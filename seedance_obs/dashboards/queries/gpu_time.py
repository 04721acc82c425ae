"""What GPUs' time went to over the last minutes, as shares that add up to 1.

Of GPU-seconds, not of utilisation: a board in MIG mode has none, and one that is shared belongs to
several. Shares are of what was counted, since the states' rates do not begin at the same moment.
"""

from collections.abc import Callable

BY_GPU = "by (cluster, instance, gpu_uuid)"
KNOWN = "active|reserved|unallocated"


def counted(scope: str, states: str = ".+") -> str:
    """GPU-seconds a second in some states, by GPU."""
    seconds = f'seedance_tenant_gpu_seconds_total{{{scope},state=~"{states}"}}'
    return f"sum {BY_GPU} (rate({seconds}[$__rate_interval]))"


def share(scope: str, states: str) -> str:
    """Share of each GPU's time in some states; none where nothing was counted."""
    return f"{counted(scope, states)} / ({counted(scope)} > 0)"


def ring(of: Callable[[str], str], unknown: str) -> dict[str, str]:
    """The arcs of a node: `of` makes shares of GPUs' time, by state, those of the graph's nodes."""
    return {
        "arc__busy": of("active"),
        "arc__held_idle": of("reserved"),
        "arc__idle": of("unallocated"),
        "arc__unknown": unknown,
    }
