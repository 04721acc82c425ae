"""Cgroup paths as kubelets, container runtimes, Slurm and systemd write them."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.sources.cgroup_path import CgroupFacts, read_cgroup_path

CID = "b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2"
NODE = "93529524695bb00d91c1f6dba692ea8d3550c3b94fb2463af7bc9ec82f992d26"
UID = "72f7f152-440c-66ac-9084-e0fc1d8a910c"
UID_ = UID.replace("-", "_")
HASH = "2732ca68f6358eba7703fb6f82a25c94"  # of a static pod's manifest


def said(path: str) -> dict[str, object]:
    """What a path says, without what it does not say and without the owner's own path."""
    facts = dataclasses.asdict(read_cgroup_path(path))
    return {
        name: value for name, value in facts.items() if name != "path" and value not in ("", None)
    }


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods/burstable/pod{UID}/{CID}",
        f"/kubepods/besteffort/pod{UID}/{CID}",
        f"/kubepods/pod{UID}/{CID}",  # guaranteed
        f"/kubepods/pod{UID_}/{CID}",
        f"/kubepods/kubepods/besteffort/pod{UID}/{CID}",  # Docker Desktop
        f"/kubelet/kubepods/besteffort/pod{UID}/{CID}",
        f"/docker/{NODE}/kubepods/besteffort/pod{UID}/{CID}",  # kind with cgroup v1
        f"/actions_job/{NODE}/kubepods/burstable/pod{UID}/{CID}",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
        f"/cri-containerd-{CID}.scope",
        f"/kubepods.slice/kubepods-pod{UID_}.slice/crio-{CID}.scope",
        f"/kubepods.slice/kubepods-pod{UID_}.slice/crio-{CID}.scope/container",
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/crio-{CID}",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID}.slice"
        f"/docker-{CID}.scope",
        f"/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{CID}",
        f"/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{CID}",
        f"/kuberuntime.slice/containerd.service/kubepods-pod{UID_}.slice:cri-containerd:{CID}",
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice"
        f"/kubelet-kubepods-besteffort-pod{UID_}.slice/cri-containerd-{CID}.scope",
        f"/system.slice/docker-{NODE}.scope/kubelet.slice/kubelet-kubepods.slice"
        f"/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod{UID_}.slice"
        f"/cri-containerd-{CID}.scope",  # kind with cgroup v2
        f"/kubepods/burstable/pod{UID}/{CID}/docker/{NODE}",  # docker in a pod
        f"/../../../burstable/pod{UID}/{CID}",  # seen from another cgroup namespace
        f"/kubepods/pod{UID}/{CID} (deleted)",
    ],
)
def test_a_pods_container_is_found_with_every_driver_and_nesting(path: str) -> None:
    facts = read_cgroup_path(path)
    assert (facts.pod_uid, facts.container_id) == (UID, CID)


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods/burstable/pod{HASH}/{CID}",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{HASH}.slice"
        f"/cri-containerd-{CID}.scope",
    ],
)
def test_a_static_pod_goes_by_the_hash_of_its_file(path: str) -> None:
    assert said(path) == {"pod_uid": HASH, "container_id": CID}


def test_a_monitor_of_a_container_belongs_to_the_pod_but_is_not_the_container() -> None:
    pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
    assert said(f"{pod}/crio-conmon-{CID}.scope") == {"pod_uid": UID}
    assert said(f"/machine.slice/libpod-conmon-{CID}.scope") == {}


@pytest.mark.parametrize(
    "path",
    [
        f"/docker/{CID}",
        f"/docker-{CID}",
        f"/system.slice/docker-{CID}.scope",
        f"/system.slice/system.slice:docker:{CID}",
        f"/docker/{CID}/docker/{NODE}",  # docker in docker
        f"/docker/{CID}/system.slice/nginx.service",  # systemd in docker
        f"/machine.slice/libpod-{CID}.scope",
        f"/machine.slice/libpod-{CID}.scope/container",
        f"/libpod_parent/libpod-{CID}",
        f"/default/{CID}",
        f"/default/{CID}/init.scope",
        f"/k8s.io/{CID}",
        f"/system.slice/nerdctl-{CID}.scope",
        f"/containerd/{CID}",
        f"/ecs/0410eff2-7e59-4111-823e-1e0d98ef7f30/{CID}",
        f"/../crio-{CID}.scope",
    ],
)
def test_a_container_outside_pods_is_found_with_every_runtime(path: str) -> None:
    assert said(path) == {"container_id": CID}


@pytest.mark.parametrize(
    "inner",
    [
        f"user.slice/libpod-{CID}.scope/container",
        f"user.slice/nerdctl-{CID}.scope",
        f"user.slice/user.slice:libpod:{CID}",
    ],
)
def test_a_users_own_container_tells_the_user(inner: str) -> None:
    path = f"/user.slice/user-1000.slice/user@1000.service/{inner}"
    expected = {"container_id": CID, "login_uid": 1000}
    assert said(path) == expected


def test_a_container_in_a_service_names_both() -> None:
    assert said(f"/system.slice/app.service/libpod-payload-{CID}") == {
        "container_id": CID,
        "unit": "app.service",
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/lxc.payload.web-01", "web-01"),
        ("/lxc.payload.101/system.slice/postfix.service", "101"),
        ("/system.slice/lxc.payload.web-01.scope", "web-01"),
        ("/lxc/101/ns/init.scope", "101"),
        ("/lxc.payload/dev", "dev"),
    ],
)
def test_an_lxc_container_goes_by_its_name(path: str, name: str) -> None:
    assert said(path) == {"container_id": name}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/slurm/uid_1000/job_42/step_0/task_0",
            {"slurm_job": "42", "slurm_uid": 1000},
        ),
        (
            "/slurm/uid_2101171/job_280678/step_interactive/task_0",
            {"slurm_job": "280678", "slurm_uid": 2101171},
        ),
        ("/slurm_gpu01/uid_0/job_7", {"slurm_job": "7", "slurm_uid": 0}),
        (
            "/system.slice/slurmstepd.scope/job_42/step_batch/user/task_0",
            {"slurm_job": "42"},
        ),
        (
            "/system.slice/slurmstepd.scope/job_42/step_extern/user/task_special",
            {"slurm_job": "42"},
        ),
        (
            "/system.slice/gx10-ac12_slurmstepd.scope/job_12/step_batch/slurm",
            {"slurm_job": "12"},
        ),
        (
            "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0",  # Slurm 25.11
            {"slurm_job": "s5K1KKYAYG5D00"},
        ),
        ("/system.slice/slurmstepd.scope/system", {}),  # slurmstepd itself
        ("/user.slice/job_42/step_0", {}),  # no Slurm above it
        ("/system.slice/slurmstepd.scope/job_bad", {}),
    ],
)
def test_a_slurm_job_is_found_with_both_cgroup_versions(
    path: str, expected: dict[str, object]
) -> None:
    assert said(path) == expected


def test_a_container_that_a_job_started_is_the_jobs() -> None:
    facts = read_cgroup_path(f"/system.slice/slurmstepd.scope/job_42/step_0/user/libpod-{CID}")
    assert (facts.slurm_job, facts.container_id) == ("42", CID)
    assert facts.path == "/system.slice/slurmstepd.scope/job_42"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/system.slice/ollama.service", {"unit": "ollama.service"}),
        ("/system.slice/system-vllm.slice/vllm@8000.service", {"unit": "vllm@8000.service"}),
        (r"/system.slice/my\x2djupyter.service/kernel", {"unit": "my-jupyter.service"}),
        ("/system.slice/caf\\xc3\\xa9.service", {"unit": "café.service"}),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/notebook.service",
            {
                "unit": "user@1000.service/notebook.service",
                "login_uid": 1000,
            },
        ),
        (
            "/user.slice/user-1000.slice/session-c3.scope",
            {"login_uid": 1000},
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/tmux-spawn-36fb.scope",
            {"login_uid": 1000},
        ),
    ],
)
def test_services_and_sessions_go_by_their_units(path: str, expected: dict[str, object]) -> None:
    assert said(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/../../..",
        "//////",
        "/init.scope",
        "/kubepods/burstable",
        "/kubepods/podinfo/abc",
        f"/kubepods/pod{UID}x/abc",
        f"/kubepods/pod{HASH}ff/abc",
        "/docker/abc123",
        f"/docker/{CID}0",
        f"/docker/{CID.upper()}",
        "/lxc.monitor.web-01",
        "/machine.slice/machine-qemu\\x2d1\\x2dguest.scope",
    ],
)
def test_a_path_of_an_unknown_shape_says_nothing(path: str) -> None:
    assert said(path) == {}


@pytest.mark.parametrize(
    ("path", "own"),
    [
        (f"/kubepods/burstable/pod{UID}/{CID}/init", f"/kubepods/burstable/pod{UID}"),
        ("/slurm/uid_1/job_42/step_0/task_0", "/slurm/uid_1/job_42"),
        (f"/system.slice/docker-{CID}.scope/a/b", f"/system.slice/docker-{CID}.scope"),
        ("/system.slice/a.service/b", "/system.slice/a.service"),
        ("/user.slice/user-1.slice/session-2.scope", "/user.slice/user-1.slice/session-2.scope"),
        (f"/../../pod{UID}/{CID}", f"/pod{UID}"),
        ("/", "/"),
    ],
)
def test_all_processes_of_a_workload_have_the_same_cgroup_of_its_own(path: str, own: str) -> None:
    assert read_cgroup_path(path).path == own


NAMES = st.one_of(
    st.text(),
    st.sampled_from(
        ["..", ".", "kubepods", f"pod{UID}", CID, "slurm", "job_1", "step_", "uid_9", "lxc", ":"]
    ),
    st.from_regex(r"[a-z]*-?pod[0-9a-f_-]*(\.slice)?(:[a-z]*:[0-9a-f]*)?"),
    st.from_regex(r"\\x[0-9a-f]{2}\.service"),
)


@given(st.one_of(st.text(), st.lists(NAMES).map("/".join)))
def test_any_text_is_read_without_an_error(path: str) -> None:
    facts = read_cgroup_path(path)
    assert isinstance(facts, CgroupFacts)
    assert facts.path.startswith("/")
    assert ".." not in facts.path.split("/")
