"""Where a panel may show nothing, or something of a fleet that has no GPU: exceptions, by title."""

FLEET = "fleet-overview.json"
LEAKS = "leaks-and-idle.json"
WORKLOAD = "workload.json"
TOPOLOGY = "gpu-utilization-topology-view.json"

# In no fleet of the history.
WITHOUT_A_FLEET: set[tuple[str, str]] = set()

# In the calm cluster, as nothing there is wrong.
EMPTY_IN_CALM = {
    (FLEET, "What is firing?"),
    (LEAKS, "What suspects cost an hour"),
    (LEAKS, "Since when are there suspects?"),
    (LEAKS, "How many GPUs do they take?"),
    (LEAKS, "What do they cost an hour?"),
    (LEAKS, "Which GPUs are held, lost or kept busy for nothing?"),
    (LEAKS, "Whose open files and memory grow?"),
    (LEAKS, "Which workloads do nothing at all?"),
    # The first workload has no limits, and is on a node where nothing tells SM activity.
    (WORKLOAD, "How much of its GPUs does its work fill?"),
    (WORKLOAD, "What may it use?"),
    (WORKLOAD, "What in it may leak?"),
}

# Whatever cluster is chosen: a panel that people know from elsewhere.
OF_ALL_CLUSTERS = {(TOPOLOGY, "How busy is every GPU?")}

# A row for every GPU that reports how busy it is, as boards cut into instances do not.
A_ROW_FOR_EACH_GPU = {(TOPOLOGY, "When was every GPU busy?")}

# Of nodes without GPUs: what an exporter says of itself, and of the host.
SHOWN_WITHOUT_GPUS: set[tuple[str, str]] = {
    *OF_ALL_CLUSTERS,
    (LEAKS, "Idle nodes"),
    (LEAKS, "Which probes are late?"),
}
