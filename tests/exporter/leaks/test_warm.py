import pytest

from seedance_obs.errors import UsageError
from seedance_obs.exporter.leaks.warm import WarmServers
from seedance_obs.workload import Workload

SERVER = Workload("pod", "u1", 1, namespace="serving", pod="llama-0", image="registry/vllm:1")


@pytest.mark.parametrize(
    "entry",
    ["namespace=serving", "image=*vllm*", "pod=llama-?", "tenant=research", "comm=tritonserver"],
)
def test_one_entry_that_matches_admits(entry):
    assert WarmServers(["user=anna", entry]).admits(SERVER, "research", "tritonserver")


@pytest.mark.parametrize("entry", ["namespace=serv", "image=vllm", "comm=python3", "user=*a"])
def test_patterns_match_the_whole_text(entry):
    assert not WarmServers([entry]).admits(SERVER, "research", "tritonserver")


def test_a_process_of_no_known_workload_is_admitted_by_its_name():
    assert WarmServers(["comm=triton*"]).admits(None, "", "tritonserver")
    assert not WarmServers(["namespace=*"]).admits(None, "", "tritonserver")


@pytest.mark.parametrize("entry", ["serving", "namespace=", "colour=red", "=x"])
def test_an_entry_of_another_form_is_refused_with_the_fields(entry):
    with pytest.raises(UsageError, match=r"wanted FIELD=PATTERN.*namespace"):
        WarmServers([entry])
