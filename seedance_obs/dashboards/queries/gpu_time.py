"""What GPUs' time went to over the last minutes, as the arcs of a ring.

Of GPU-seconds, not of utilisation: a board in MIG mode has none, and one that is shared belongs to
several. The shares are of what was counted, as rates of new series begin late.
"""

from seedance_obs.dashboards.queries.shape import with_label

ARCS = {
    "active": "arc__busy",
    "reserved": "arc__held_idle",
    "unallocated": "arc__idle",
    "unobserved": "arc__unknown",
}
GPU = "cluster, instance, gpu_uuid"


def seconds(scope: str, states: str = ".+") -> str:
    """GPU-seconds a second, by GPU and state."""
    counter = f'seedance_tenant_gpu_seconds_total{{{scope},state=~"{states}"}}'
    return f"sum by ({GPU}, state) (rate({counter}[$__rate_interval]))"


def ring(counted: str, whose: str) -> str:
    """Shares that add up to 1, of `counted` by state, for whom it has labels of; as columns."""
    shares = f"{counted}\n/ on ({whose}) group_left () (sum by ({whose}) ({counted}) > 0)"
    for state, arc in ARCS.items():
        shares = with_label(shares, "stat", arc, "state", state)
    return with_label(shares, "state", "")
