"""Whose series a query asks for: the chosen clusters, nodes, domains and tenants."""

FLEET = 'job="gpu",cluster=~"$cluster"'
RECORDED = 'cluster=~"$cluster"'  # by a rule that leaves no job
CHOSEN = f'{FLEET},instance=~"$node"'
TENANT = f'{FLEET},tenant=~"$tenant"'
BY_NODE = "by (cluster, instance)"
SAME_NODE = "on (cluster, instance)"
SAME_GPU = "on (cluster, instance, gpu_uuid)"

ALERT = 'alertname=~"Seedance.+",cluster=~"$cluster"'
FIRING = f'ALERTS{{{ALERT},alertstate="firing"}}'

RECORDED_TENANT = f'{RECORDED},tenant=~"$tenant"'
# One of a tenant; where none is chosen, none: series without a workload are not meant.
ONE_WORKLOAD = 'tenant=~"$tenant",workload="$workload",workload!=""'
OF_WORKLOAD = f"{FLEET},{ONE_WORKLOAD}"
ON_ITS_NODES = f'{FLEET},instance=~"$its_node"'
