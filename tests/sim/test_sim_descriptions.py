"""A description is either a machine or one sentence that says what is wrong where."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from one_gpu import ONE_GPU, WORKLOAD

from seedance_obs.errors import UsageError
from seedance_obs.sources.sim.fleet import DEMO_FLEET, load_machine, machine_names, open_sim
from seedance_obs.sources.sim.loading import parse_machine, read_machine

GPU = ONE_GPU["gpus"][0]
HOLDER = {"name": "job", "tenant": "vision", "kind": "training", "gpus": [0], "guise": "holder"}
POD = {"namespace": "n", "name": "p", "container": "c"}


def changed(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(ONE_GPU) | changes


def with_job(**changes: Any) -> dict[str, Any]:
    return changed(workloads=[WORKLOAD | changes])


def with_gpu(**changes: Any) -> dict[str, Any]:
    return changed(gpus=[GPU | changes])


BAD = {
    "not a mapping": ([1, 2], "the top: a mapping is wanted"),
    "unknown key": (changed(colour="red"), "colour: unknown key"),
    "unknown key below": (with_gpu(colour="red"), r"gpus\[0\].colour: unknown key"),
    "missing name": ({"memory_gib": 4}, "name: missing, text is wanted"),
    "name is a number": (changed(name=7), "name: text is wanted.*found 7"),
    "driver is a number": (changed(driver_version=580.1), "driver_version: text is wanted"),
    "memory is text": (changed(memory_gib="64"), "memory_gib: a whole number"),
    "memory is true": (changed(memory_gib=True), "memory_gib: a whole number"),
    "flag is text": (changed(kubernetes="yes"), "kubernetes: true or false"),
    "numa is text": (changed(numa_cpus="0-7"), "numa_cpus: a list of texts"),
    "numa has a number": (changed(numa_cpus=[7]), r"numa_cpus\[0\]: text is wanted"),
    "interval is zero": (changed(dcgm_interval_s=0), "dcgm_interval_s: a number from 0.1"),
    "interval is infinite": (changed(dcgm_interval_s=float("inf")), "dcgm_interval_s: a number"),
    "gpus is a mapping": (changed(gpus=GPU), "gpus: a list of mappings"),
    "unknown model": (with_gpu(model="h900"), r"gpus\[0\].model: one of h100"),
    "odd address": (with_gpu(pci="18:00.0"), r"gpus\[0\].pci: an address such as"),
    "upper-case address": (with_gpu(pci="0000:1B:00.0"), r"gpus\[0\].pci: an address"),
    "no host bridge": (with_gpu(path=["0000:15:01.0"]), r"gpus\[0\].path: the bridges"),
    "numa node unknown": (with_gpu(numa=3), "numa_cpus: 0000:18:00.0 is on NUMA node 3"),
    "gpus out of order": (changed(gpus=[GPU | {"pci": "0000:1a:00.0"}, GPU]), "gpus: GPUs in the"),
    "no driver": (changed(driver_version=None), "driver_version: a driver is wanted"),
    "mig elsewhere": (
        changed(mig=[{"gpu": 4, "profile": "1g.10gb", "gpu_instance": 1}]),
        "mig: a GPU of this machine",
    ),
    "mig profile": (
        changed(mig=[{"gpu": 0, "profile": "9g.1gb", "gpu_instance": 1}]),
        "found '9g.1gb' under mig",
    ),
    "link to nowhere": (changed(nvlinks=[{"gpus": [0, 1], "links": 1}]), "nvlinks: there is no"),
    "link to itself": (changed(nvlinks=[{"gpus": [0, 0], "links": 1}]), "two different GPUs"),
    "too many links": (changed(hidden_nvswitches={"links": 19}), "GPU 0 has 18 links, 19 are"),
    "remote type": (
        changed(hidden_nvswitches={"links": 1, "remote_type": 7}),
        "hidden_nvswitches.remote_type",
    ),
    "fabric uuid": (
        changed(fabric={"cluster_uuid": "zz", "clique_id": 0, "state": 3}),
        "fabric.cluster_uuid: 32 lower-case",
    ),
    "inactive link that is not wired": (with_gpu(inactive_links=[0]), "GPU 0 has 0 wired links"),
    "peer to peer": (changed(p2p="maybe"), "p2p: one of ok, chipset_not_supported"),
    "memory nodes": (changed(numa_memory_nodes=[2, 3]), "numa_memory_nodes: 1 nodes, one a GPU"),
    "unknown kind": (with_job(kind="mining"), r"workloads\[0\].kind: one of inference"),
    "unknown tenant": (with_job(tenant="nobody"), "workloads: job: nobody is not under tenants"),
    "no device": (with_job(gpus=[]), r"workloads\[0\].gpus: at least one device"),
    "device twice": (with_job(gpus=[0, 0]), r"workloads\[0\].gpus: at least one device"),
    "gpu as text": (with_job(gpus=["0"]), r"gpus\[0\]: a whole number"),
    "no such gpu": (with_job(gpus=[5]), "workloads: job: there is no GPU 5"),
    "mig place": (with_job(gpus=[], mig_instances=["0-1"]), r"mig_instances\[0\]: GPU and MIG"),
    "mig on a whole board": (with_job(gpus=[], mig_instances=["0/1"]), "0 MIG instances"),
    "no phases": (with_job(phases=[]), r"workloads\[0\].phases: at least one"),
    "phase of nothing": (with_job(phases=[[0, 0.5]]), r"phases\[0\]: \[seconds above 0"),
    "activity above 1": (with_job(phases=[[1, 1.5]]), r"phases\[0\]: \[seconds above 0"),
    "burst of nothing": (with_job(phases=[{"times": 3, "of": []}]), r"phases\[0\]: .*times: N"),
    "burst without times": (with_job(phases=[{"of": [[1, 1]]}]), r"phases\[0\]: .*times: N"),
    "burst of no times": (with_job(phases=[{"times": 0, "of": [[1, 1]]}]), r"phases\[0\]"),
    "burst of a bad phase": (with_job(phases=[{"times": 2, "of": [[1, 7]]}]), r"phases\[0\]"),
    "burst with more": (with_job(phases=[{"times": 2, "of": [[1, 1]], "at": 3}]), r"phases\[0\]"),
    "phase of text": (with_job(phases=[["1", 1]]), r"phases\[0\]: \[seconds above 0"),
    "repeat without end": (with_job(repeat_every_s=5), "repeat_every_s: a duration_s"),
    "repeat too soon": (with_job(duration_s=6, repeat_every_s=5), "repeat_every_s: a duration_s"),
    "share above 1": (with_job(share=1.5), r"workloads\[0\].share: a number from 0.01 to 1"),
    "pod without name": (with_job(pod={"namespace": "a"}), r"workloads\[0\].pod.name: missing"),
    "unknown guise": (with_job(guise="vampire"), r"guise: one of zombie, ghost, holder"),
    "zombie for ever": (with_job(guise="zombie"), "guise: a zombie wants a duration_s"),
    "zombie again": (
        with_job(guise="zombie", duration_s=2, repeat_every_s=3),
        "guise: a zombie wants a duration_s, and no repeat",
    ),
    "holder without kubernetes": (
        changed(workloads=[HOLDER | {"pod": POD}]),
        "job: a holder wants a pod, and kubernetes: true",
    ),
    "holder without pod": (
        changed(kubernetes=True, workloads=[HOLDER]),
        "job: a holder wants a pod",
    ),
    "holder with memory": (
        changed(kubernetes=True, workloads=[HOLDER | {"pod": POD, "memory_mib": 5}]),
        r"workloads\[0\].memory_mib: unknown key",
    ),
    "ghost with a pod": (with_job(guise="ghost", pod=POD), r"workloads\[0\].pod: unknown key"),
    "ghost with files": (with_job(guise="ghost", fds=9), r"workloads\[0\].fds: unknown key"),
    "too few descriptors": (with_job(fds=2), r"fds: a whole number of at least 3"),
    "descriptors that go": (with_job(fds_per_s=-1), r"fds_per_s: a number from 0"),
    "room beside a zombie": (
        changed(
            workloads=[
                WORKLOAD | {"guise": "zombie", "duration_s": 5, "memory_mib": 50_000},
                WORKLOAD | {"name": "other", "start_s": 9, "memory_mib": 50_000},
            ]
        ),
        "memory of job and other exceeds 80996 MiB on GPU 0",
    ),
    "fault without gpu": (changed(faults=[{"at_s": 1, "xid": 79}]), r"faults\[0\].gpu: a GPU"),
    "switch elsewhere": (changed(faults=[{"at_s": 1, "nvswitch": 0}]), "there is no NVSwitch 0"),
    "switch with an error": (
        changed(faults=[{"at_s": 1, "nvswitch": 0, "xid": 74}]),
        r"faults\[0\].nvswitch: an NVSwitch is down from at_s to until_s",
    ),
    "GPU that comes back": (
        changed(faults=[{"at_s": 1, "gpu": 0, "lost": True, "until_s": 2}]),
        r"faults\[0\].until_s: only an NVSwitch",
    ),
    "a wish of no driver": (
        changed(faults=[{"at_s": 1, "gpu": 0, "recovery_action": "prayer"}]),
        r"faults\[0\].recovery_action: one of none, gpu_reset",
    ),
    "fault elsewhere": (changed(faults=[{"at_s": 1, "gpu": 9, "xid": 79}]), "there is no GPU 9"),
    "memory overflows": (with_job(memory_mib=90_000), "memory of job exceeds 80996 MiB on GPU 0"),
    "shares overflow": (
        changed(workloads=[WORKLOAD, WORKLOAD | {"name": "other"}]),
        "shares on GPU 0 exceed 1 when job and other",
    ),
    "name twice": (
        changed(workloads=[WORKLOAD | {"share": 0.5}, WORKLOAD | {"share": 0.5}]),
        "workloads: job is there twice",
    ),
    "based on nothing": (changed(based_on="nothing"), "based_on: the name of a description"),
}


@pytest.mark.parametrize(("value", "sentence"), BAD.values(), ids=BAD.keys())
def test_a_bad_description_is_refused_with_file_and_key(value: object, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^node.yaml: .*{sentence}"):
        parse_machine(value, file="node.yaml")


def test_a_burst_is_its_phases_so_many_times() -> None:
    phases = [[2, 0.5], {"times": 3, "of": [[0.05, 1], [0.1, 0]]}]
    (job,) = parse_machine(with_job(phases=phases), file="f").workloads
    assert job.phases == ((2, 0.5), *[(0.05, 1), (0.1, 0)] * 3)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"duration_s": 5}, {"start_s": 5}),
        ({"start_s": 9}, {"duration_s": 9}),
        (
            {"duration_s": 3, "repeat_every_s": 10},
            {"duration_s": 4, "repeat_every_s": 10, "start_s": 3},
        ),
    ],
)
def test_workloads_that_take_turns_may_each_have_the_whole_board(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    turns = [WORKLOAD | first, WORKLOAD | second | {"name": "other"}]
    assert len(parse_machine(changed(workloads=turns), file="f").workloads) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"duration_s": 5}, {"start_s": 4.5}),
        ({"duration_s": 5, "repeat_every_s": 10}, {"start_s": 6, "duration_s": 1}),
        (
            {"duration_s": 3, "repeat_every_s": 10},
            {"duration_s": 4, "repeat_every_s": 10, "start_s": 7.5},
        ),
    ],
)
def test_workloads_that_may_meet_may_not(first: dict[str, Any], second: dict[str, Any]) -> None:
    meeting = [WORKLOAD | first, WORKLOAD | second | {"name": "other"}]
    with pytest.raises(UsageError, match="exceed 1"):
        parse_machine(changed(workloads=meeting), file="f")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"a: [1", "is not YAML"), (b"\xff\xfe", "cannot be read"), (b"", "a mapping is wanted")],
)
def test_a_file_that_holds_no_description(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "node.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        load_machine(tmp_path / "node.yaml")


def test_a_description_can_build_on_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("name: base\nmemory_gib: 4\ntenants: {a: 1}\n")
    (tmp_path / "node.yaml").write_text("based_on: base\nname: node\n")
    machine = read_machine(tmp_path / "node.yaml")
    assert (machine.name, machine.memory_gib, machine.tenants) == ("node", 4, {"a": 1})


def test_every_shipped_machine_bears_its_file_name() -> None:
    assert {load_machine(name).name for name in machine_names()} == set(machine_names())
    assert set(DEMO_FLEET) < set(machine_names())


def test_the_demo_fleet_has_four_tenants_idle_boards_and_one_fault() -> None:
    fleet = [load_machine(name) for name in DEMO_FLEET]
    tenants = {workload.tenant for machine in fleet for workload in machine.workloads}
    assert tenants == {"vision", "speech", "risk", "research"}
    assert [(f.at_s, f.gpu, f.xid, f.lost) for m in fleet for f in m.faults] == [
        (12, 5, 79, False),
        (13, 5, None, True),
    ]
    uuids = {m.gpu_uuid(gpu.index) for m in fleet for gpu in m.gpus}
    assert len(uuids) == 24


@pytest.mark.parametrize("name", ["nothing", "h100-nvswitch.txt", "/no/such/file.yaml"])
def test_an_unknown_machine_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(name)):
        load_machine(name)


@pytest.mark.parametrize("spec", ["h100-nvswitch@", "@12", "h100-mig@nan"])
def test_an_epoch_is_a_time(spec: str) -> None:
    with pytest.raises(UsageError, match="NAME_OR_PATH@UNIX_SECONDS"):
        open_sim(spec)


def test_a_simulation_without_an_epoch_begins_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 5000.0)
    now, then = open_sim("gh200"), open_sim("gh200@5000")
    monkeypatch.setattr("time.time", lambda: 5003.0)
    for library in (now, then):
        library.call("nvmlInit")
    call = ("nvmlDeviceGetTotalEnergyConsumption", "gpu0")
    assert now.call(*call) == then.call(*call)


def test_a_simulation_runs_on_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    library = open_sim("a100-pcie@1000.5")
    monkeypatch.setattr("time.time", lambda: 1020.5)
    library.call("nvmlInit")
    assert library.call("nvmlDeviceGetUUID", "gpu0") == library.machine.gpu_uuid(0)
    monkeypatch.setattr("time.time", lambda: 1000.5)
    before = library.call("nvmlDeviceGetTotalEnergyConsumption", "gpu0")
    monkeypatch.setattr("time.time", lambda: 1001.5)
    after = library.call("nvmlDeviceGetTotalEnergyConsumption", "gpu0")
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert 40_000 < after - before < 300_000
