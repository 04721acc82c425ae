import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, FabricMembership, PcieLink
from seedance_obs.topology.readers import smi_query
from tests.topology import index_of_samples as index

ZERO = "0" * 32
CLUSTER = "dc6e40c4-d722-4357-9ba6-5291dd461278"

TWO_GPUS = f"""\
==============NVSMI LOG==============

Attached GPUs                             : 2
GPU 00000008:06:00.0
    Product Name                          : NVIDIA GB200
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    GPU UUID                              : GPU-5269b708-678a-b1a8-60f0-C90406537486
    PCI
        Bus Id                            : 00000008:06:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 6
                Current                   : 5
                Device Current            : 5
                Device Max                : 6
                Host Max                  : 5
            Link Width
                Max                       : 16x
                Current                   : 8x
    Fabric
        State                             : Completed
        Status                            : Success
        CliqueId                          : 32766
        ClusterUUID                       : {CLUSTER}
        Health
            Summary                       : Limited Capacity
            Bandwidth                     : Degraded
            Route Recovery in progress    : False
            Route Unhealthy               : True
            Access Timeout Recovery       : N/A
            Incorrect Configuration       : Insufficient Nvlinks
GPU 00000009:06:00.0
    Product Name                          : NVIDIA GB200
    GPU UUID                              : ERR!
    Fabric
        State                             : In Progress
        Status                            : N/A
        CliqueId                          : N/A
        ClusterUUID                       : N/A
    Processes                             : None
"""


def sample(file: str):
    reading = smi_query.read(index.text_of(f"other/{file}"))
    (gpu,) = reading.topology.gpus
    assert reading.format == "nvidia-smi-q"
    return gpu, reading


@index.needs_samples
def test_every_report_and_excerpt_is_recognised():
    files = {file for file in index.others() if file.startswith("nvidia-smi-q")}
    assert len(files) == 5
    for file in index.others():
        assert smi_query.recognises(index.text_of(f"other/{file}")) == (file in files)


@index.needs_samples
def test_a_machine_without_a_rack_completes_its_fabric_with_a_zero_uuid():
    assert "Completed/Success with zero ClusterUUID" in index.others()["nvidia-smi-q-h200.txt"]
    gpu, reading = sample("nvidia-smi-q-h200.txt")
    assert gpu.fabric == FabricMembership(3, 0, cluster_uuid=ZERO, clique_id=0)
    assert gpu.pcie == PcieLink(generation=5, width=16, generation_max=5, width_max=16)
    assert (gpu.name, gpu.index, gpu.model) == ("GPU0", 0, "NVIDIA H200")
    assert reading.topology.domains == {}
    assert reading.warnings == ()


@index.needs_samples
def test_a_gpu_with_mig_is_one_device():
    assert "MIG enabled" in index.others()["nvidia-smi-q-h100-mig.txt"]
    gpu, _ = sample("nvidia-smi-q-h100-mig.txt")
    assert gpu.mig is True
    assert gpu.bus_id == "0000:00:09.0"


@index.needs_samples
def test_the_slower_of_device_and_host_is_the_best_a_link_can_be():
    assert "current 1, device max 4, host max 5" in index.others()["nvidia-smi-q-rtx4080s.txt"]
    gpu, _ = sample("nvidia-smi-q-rtx4080s.txt")
    assert gpu.pcie == PcieLink(generation=1, width=16, generation_max=4, width_max=16)
    assert gpu.fabric is UNSUPPORTED
    assert gpu.mig is UNSUPPORTED


@index.needs_samples
def test_an_excerpt_of_an_unhealthy_fabric_still_names_its_rack():
    gpu, reading = sample("nvidia-smi-q-fabric-gb200-unhealthy-excerpt.txt")
    assert gpu.fabric.healthy is False
    assert (gpu.fabric.state, gpu.fabric.status, gpu.fabric.faults) == (3, 0, ())
    assert (gpu.name, gpu.index, gpu.bus_id) == ("GPU0", None, UNKNOWN)
    assert reading.topology.domains == {"GPU0": f"{CLUSTER}.2"}
    assert len(reading.warnings) == 1


@index.needs_samples
def test_an_excerpt_of_a_fabric_without_resources_names_no_rack():
    gpu, reading = sample("nvidia-smi-q-fabric-insufficient-resources-excerpt.txt")
    assert gpu.fabric == FabricMembership(3, 23, cluster_uuid=ZERO, clique_id=0)
    assert reading.topology.domains == {}


def test_each_gpu_has_its_own_facts():
    reading = smi_query.read(TWO_GPUS)
    first, second = reading.topology.gpus
    assert (first.name, first.index, first.bus_id) == ("GPU0", 0, "0008:06:00.0")
    assert first.uuid == "GPU-5269b708-678a-b1a8-60f0-c90406537486"
    assert first.pcie == PcieLink(generation=5, width=8, generation_max=5, width_max=16)
    assert first.mig is False
    assert first.fabric == FabricMembership(
        state=3,
        status=0,
        cluster_uuid=CLUSTER.replace("-", ""),
        clique_id=32766,
        healthy=False,
        faults=(
            "degraded_bandwidth",
            "route_unhealthy",
            "incorrect_configuration_insufficient_nvlinks",
        ),
    )
    assert (second.name, second.index, second.uuid) == ("GPU1", 1, UNKNOWN)
    assert second.bus_id == "0009:06:00.0"
    assert second.pcie == PcieLink()
    assert second.fabric == FabricMembership(2)
    assert second.mig is UNKNOWN
    assert reading.topology.domains == {"GPU0": f"{CLUSTER}.32766"}
    assert reading.warnings == ()


@pytest.mark.parametrize("change", [str.expandtabs, lambda text: text.replace("\n", "\r\n")])
def test_line_ends_and_tabs_do_not_matter(change):
    tabs = TWO_GPUS.replace("    ", "\t")
    assert smi_query.read(change(TWO_GPUS)) == smi_query.read(change(tabs))
    assert smi_query.read(change(tabs)).topology == smi_query.read(TWO_GPUS).topology


def test_an_indented_report_is_the_same_report():
    indented = "".join(f"    {line}\n" for line in TWO_GPUS.splitlines())
    assert smi_query.read(indented) == smi_query.read(TWO_GPUS)


def test_the_index_of_one_gpu_out_of_many_is_not_known():
    reading = smi_query.read(TWO_GPUS.replace(": 2\n", ": 8\n"))
    assert [gpu.index for gpu in reading.topology.gpus] == [None, None]
    assert reading.warnings == ("GPUs in the text: 2, of 8; their index is not known",)


def test_a_state_that_nobody_knows_is_named():
    reading = smi_query.read("Fabric\n    State    : Dreaming\n    Status   : Success\n")
    assert reading.topology.gpus[0].fabric is UNKNOWN
    assert any("'Dreaming'" in warning for warning in reading.warnings)


def test_a_text_of_something_else_is_empty_with_one_warning():
    reading = smi_query.read("GPU 0: NVIDIA H100 (UUID: GPU-1)\n")
    assert reading.topology.devices == ()
    assert reading.warnings == ("there is no GPU of nvidia-smi -q in the text",)


@given(st.integers(0, len(TWO_GPUS)))
def test_a_cut_report_holds_no_untrue_value(end):
    whole = smi_query.read(TWO_GPUS).topology
    for gpu in smi_query.read(TWO_GPUS[:end]).topology.gpus:
        right = whole.by_name[gpu.name]
        for fact in ("uuid", "bus_id", "model", "mig"):
            assert getattr(gpu, fact) in (UNKNOWN, getattr(right, fact))
        assert gpu.index in (None, right.index)
        assert gpu.pcie.width in (UNKNOWN, right.pcie.width)
        assert gpu.pcie.generation in (UNKNOWN, right.pcie.generation)
        if gpu.fabric is not UNKNOWN:
            assert gpu.fabric.state == right.fabric.state
            assert gpu.fabric.cluster_uuid in (UNKNOWN, right.fabric.cluster_uuid)
            assert set(gpu.fabric.faults) <= set(right.fabric.faults)


def test_the_text_names_where_it_ends():
    warnings = smi_query.read(TWO_GPUS[: TWO_GPUS.index("Success") + 3]).warnings
    assert any("in the middle of 'Status'" in warning for warning in warnings)


@given(st.text(), st.text(st.sampled_from("GPU 0:.Fabricnstate\n\t")))
def test_no_text_raises(text, near):
    for each in (text, near):
        reading = smi_query.read(each)
        assert reading.topology.devices or reading.warnings
