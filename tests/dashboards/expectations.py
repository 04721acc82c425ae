"""Where a panel may show nothing, or something of a fleet that has no GPU: exceptions, by title."""

FLEET = "fleet-overview.json"
LEAKS = "leaks-and-idle.json"
WORKLOAD = "workload.json"
EXPORTER = "exporter-health.json"
HEALTH = "gpu-health.json"
SENSITIVITY = "topology-sensitivity.json"
TOPOLOGY = "gpu-utilization-topology-view.json"

# In no fleet of the history.
WITHOUT_A_FLEET = {
    (EXPORTER, "Where do two sources disagree?"),
    (SENSITIVITY, "Who is slowed down on what?"),  # a score is proven after two hours
}

# Columns that only faults fill which no fleet has.
WITHOUT_A_FAULT = {
    (EXPORTER, "Which exporter is in trouble?"): {"collectors_broken"},
    (EXPORTER, "Where do two sources disagree?"): {"apart"},
    (HEALTH, "Which GPU is ill?"): {"fabric_ill", "pcie_degraded", "remap_failed"},
    (SENSITIVITY, "Who is slowed down on what?"): {"tenant\\segment_kind", "worst"},
}

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
    (TOPOLOGY, "How busy are the nodes of $domain?"),  # each domain there is on one node
    (EXPORTER, "Which readings are refused?"),
    (HEALTH, "Which GPU is ill?"),
    (HEALTH, "Which XID errors did the driver report?"),
    (HEALTH, "What does the driver ask for?"),
    (HEALTH, "When did XID errors come?"),
    (HEALTH, "Where is memory corrected?"),
    (HEALTH, "Which PCIe links send again?"),
    (SENSITIVITY, "Which workloads could sit better?"),
    (TOPOLOGY, "How busy are the nodes of $domain?"),  # each domain there is on one node
}

# Whatever cluster is chosen: a panel that people know from elsewhere.
OF_ALL_CLUSTERS = {(TOPOLOGY, "How busy is every GPU?")}

# A row for every GPU; of boards cut into instances, what their slices do.
A_ROW_FOR_EACH_GPU = {(TOPOLOGY, "When was every GPU busy?")}

# Of nodes without GPUs: what an exporter says of itself, and of the host.
SHOWN_WITHOUT_GPUS = {
    *OF_ALL_CLUSTERS,
    (EXPORTER, "Exporters up and known"),
    (EXPORTER, "Sources down"),
    (EXPORTER, "Which exporter is in trouble?"),
    (EXPORTER, "When was every source up?"),
    (LEAKS, "Idle nodes"),
    (LEAKS, "Which probes are late?"),
}
