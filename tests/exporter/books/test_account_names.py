"""An account's name tells who pays and for what, whatever both are called."""

from hypothesis import example, given
from hypothesis import strategies as st

from seedance_obs.attribution.host import SYSTEM
from seedance_obs.attribution.tenants import TenantRules
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED
from seedance_obs.exporter.books.account_names import account_name, tenant_of, workload_of
from seedance_obs.workload import Workload


@given(st.builds(Workload, st.just("pod"), st.text(), st.integers(), namespace=st.text()))
@example(Workload("service", "user@1001.service/a.service", 5, namespace="faculty/physics"))
@example(Workload("service", "a\x1fb.service", 5, user="c\x1fd"))
def test_a_tenant_and_a_workload_are_told_again(workload):
    tenant = TenantRules().tenant_of(workload)
    account = account_name(tenant, workload.key)
    assert (tenant_of(account), workload_of(account)) == (tenant, workload.key)


def test_what_is_nobodys_work_goes_by_its_own_name():
    for nobody in (UNALLOCATED, UNOBSERVED, SYSTEM):
        assert (tenant_of(nobody), workload_of(nobody)) == (nobody, "")
