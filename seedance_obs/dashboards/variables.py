"""The choices at the top of dashboards, the same ones everywhere.

Each is filled from a series that is there whatever a node has: the exporter's own, or what each
workload and each GPU has. Clusters need no label: all of them match where there is none.
"""

from dataclasses import dataclass

from seedance_obs.dashboards.queries.scope import FLEET, OF_WORKLOAD


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice filled by a `label_values(SERIES, LABEL)` query.

    `all_value` stands for all of them in queries; without it their names do, one by one.
    """

    name: str
    label: str
    query: str
    multi: bool = False
    include_all: bool = False
    all_value: str | None = ".*"


CLUSTER = Variable(
    "cluster",
    "Cluster",
    'label_values(seedance_exporter_info{job="gpu"}, cluster)',
    include_all=True,
)
# One node is readable; the dashboards that draw every chosen node start with one.
NODE = Variable(
    "node", "Node", f"label_values(seedance_exporter_info{{{FLEET}}}, instance)", multi=True
)
ANY_NODE = Variable(
    "node",
    "Node",
    f"label_values(seedance_exporter_info{{{FLEET}}}, instance)",
    multi=True,
    include_all=True,
)
TENANT = Variable(
    "tenant",
    "Tenant",
    f"label_values(seedance_tenant_gpu_seconds_total{{{FLEET}}}, tenant)",
    multi=True,
    include_all=True,
)
WORKLOAD = Variable(
    "workload",
    "Workload",
    f'label_values(seedance_workload_info{{{FLEET},tenant=~"$tenant"}}, workload)',
)
# One is readable, as of nodes; what is drawn of each is repeated.
ONE_DOMAIN = Variable(
    "domain",
    "NVLink domain",
    f'label_values(seedance_gpu_info{{{FLEET},nvlink_domain!=""}}, nvlink_domain)',
    multi=True,
)
# By name, so that what a query reads beside the workload is of these nodes alone.
ITS_NODES = Variable(
    "its_node",
    "Its nodes",
    f"label_values(seedance_workload_info{{{OF_WORKLOAD}}}, instance)",
    multi=True,
    include_all=True,
    all_value=None,
)
