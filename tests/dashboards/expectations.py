"""Where a panel may show nothing, or something of a fleet that has no GPU: exceptions, by title."""

FLEET = "fleet-overview.json"
TOPOLOGY = "gpu-utilization-topology-view.json"

# In no fleet of the history.
WITHOUT_A_FLEET: set[tuple[str, str]] = set()

# In the calm cluster, as nothing there is wrong.
EMPTY_IN_CALM = {
    (FLEET, "What is firing?"),
    (TOPOLOGY, "How busy are the nodes of $domain?"),  # each domain there is on one node
}

# Whatever cluster is chosen: a panel that people know from elsewhere.
OF_ALL_CLUSTERS = {(TOPOLOGY, "How busy is every GPU?")}

# Of nodes without GPUs: what an exporter says of itself, and of the host.
SHOWN_WITHOUT_GPUS: set[tuple[str, str]] = {*OF_ALL_CLUSTERS}
