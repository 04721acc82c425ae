"""What people do with workload series in PromQL works on a fleet, not only on one node.

The recorded machines share GPU UUIDs and run workloads of the same names, as one Slurm job on many
nodes does.
"""

ENERGY = "seedance_workload_gpu_energy_joules_total"


def by_node(prometheus, expr: str) -> dict[str, float]:
    return {
        sample["metric"]["instance"]: float(sample["value"][1])
        for sample in prometheus.instant(expr)
    }


def test_energy_joins_with_names_on_every_node_and_loses_nothing(prometheus):
    on = "on (instance, workload, tenant) group_left (kind, namespace, pod)"
    named = by_node(prometheus, f"sum by (instance) ({ENERGY} * {on} seedance_workload_info)")
    alone = by_node(prometheus, f"sum by (instance) ({ENERGY})")
    assert len(alone) > 5
    assert named == alone


def test_tenants_and_estimators_add_up_to_each_other_on_every_board(prometheus):
    apart = (
        "sum by (instance, gpu_uuid) (seedance_tenant_gpu_energy_joules_total)"
        " - sum by (instance, gpu_uuid) (seedance_gpu_attributed_energy_joules_total)"
    )
    samples = prometheus.instant(apart)
    assert len(samples) > 50
    assert all(abs(float(sample["value"][1])) < 1e-6 for sample in samples)
