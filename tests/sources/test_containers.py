"""Containers and pods by the files that kubelets and runtimes leave on a host."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from seedance_obs.sources.cgroup_tree import CgroupTree, first_processes
from seedance_obs.sources.container_config import ContainerFacts
from seedance_obs.sources.containers import Containers

CID = "b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2"
SANDBOX = "1f04600dc6949359da68eee5fe7c4069706a567c07d1ef89fe3bbfdeac7a6dca"
UID = "72f7f152-440c-66ac-9084-e0fc1d8a910c"
OTHER = "2c48913c-b29f-11e7-9350-020968147796"
TRAINER = ContainerFacts("ml", "train-0", UID, "trainer", "registry.example/train:1")

CONTAINERD = {
    "io.kubernetes.cri.container-type": "container",
    "io.kubernetes.cri.container-name": "trainer",
    "io.kubernetes.cri.image-name": "registry.example/train:1",
    "io.kubernetes.cri.sandbox-id": SANDBOX,
    "io.kubernetes.cri.sandbox-name": "train-0",
    "io.kubernetes.cri.sandbox-namespace": "ml",
    "io.kubernetes.cri.sandbox-uid": UID,
}
CRIO = {
    "io.container.manager": "cri-o",
    "io.kubernetes.container.name": "trainer",
    "io.kubernetes.cri-o.ContainerType": "container",
    "io.kubernetes.cri-o.ImageName": "registry.example/train:1",
    "io.kubernetes.cri-o.Labels": json.dumps({"io.kubernetes.container.name": "trainer"}),
    "io.kubernetes.cri-o.SandboxID": SANDBOX,
    "io.kubernetes.pod.name": "train-0",
    "io.kubernetes.pod.namespace": "ml",
    "io.kubernetes.pod.uid": UID,
}
KUBELET_LABELS = {
    "io.kubernetes.container.name": "trainer",
    "io.kubernetes.docker.type": "container",
    "io.kubernetes.pod.name": "train-0",
    "io.kubernetes.pod.namespace": "ml",
    "io.kubernetes.pod.uid": UID,
    "io.kubernetes.sandbox.id": SANDBOX,
    "annotation.io.kubernetes.container.hash": "4689db3",
}


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def oci(root: Path, folder: str, annotations: Mapping[str, str]) -> Path:
    whole = {"ociVersion": "1.0.2", "annotations": annotations, "linux": {}}
    return write(root, f"{folder}/config.json", json.dumps(whole))


def task(state: str, namespace: str, container_id: str = CID) -> str:
    return f"{state}/io.containerd.runtime.v2.task/{namespace}/{container_id}"


def storage(container_id: str, base: str = "run") -> str:
    return f"{base}/containers/storage/overlay-containers/{container_id}/userdata"


def docker(root: Path, container_id: str, name: str, image: str, labels: Mapping[str, str]) -> Path:
    whole = {"ID": container_id, "Name": name, "Config": {"Image": image, "Labels": labels}}
    return write(
        root, f"var/lib/docker/containers/{container_id}/config.v2.json", json.dumps(whole)
    )


@pytest.mark.parametrize(
    "state",
    [
        "run/containerd",
        "run/k3s/containerd",
        "run/k0s/containerd",
        "var/snap/microk8s/common/run/containerd",
    ],
)
def test_containerd_names_pod_container_and_image(tmp_path: Path, state: str) -> None:
    oci(tmp_path, task(state, "k8s.io"), CONTAINERD)
    assert Containers(tmp_path).container(CID) == TRAINER


def test_a_container_that_nerdctl_started_has_its_name(tmp_path: Path) -> None:
    oci(tmp_path, task("run/containerd", "default"), {"nerdctl/name": "llama"})
    assert Containers(tmp_path).container(CID) == ContainerFacts(container="llama")


def test_crio_tells_a_pods_labels_by_its_sandbox(tmp_path: Path) -> None:
    labels = {"team": "vision", "app": "train", "io.kubernetes.pod.uid": UID}
    oci(tmp_path, storage(CID), CRIO)
    oci(tmp_path, storage(SANDBOX), {"io.kubernetes.cri-o.Labels": json.dumps(labels)})
    found = Containers(tmp_path).container(CID)
    assert found.pod_labels == (("app", "train"), ("team", "vision"))
    assert (found.namespace, found.pod, found.pod_uid) == ("ml", "train-0", UID)
    assert (found.container, found.image) == ("trainer", "registry.example/train:1")


@pytest.mark.parametrize("labels", ["", "{", "[1]", "null", '{"a": 1}'])
def test_labels_of_a_sandbox_that_are_broken_cost_only_themselves(
    tmp_path: Path, labels: str
) -> None:
    oci(tmp_path, storage(CID), CRIO)
    oci(tmp_path, storage(SANDBOX), {"io.kubernetes.cri-o.Labels": labels})
    assert Containers(tmp_path).container(CID) == TRAINER


def test_docker_names_the_pod_that_a_kubelet_runs_by_it(tmp_path: Path) -> None:
    docker(tmp_path, CID, "/k8s_trainer_train-0_ml_0", "registry.example/train:1", KUBELET_LABELS)
    sandbox = {"team": "vision", "io.kubernetes.docker.type": "podsandbox"}
    docker(tmp_path, SANDBOX, "/k8s_POD_train-0_ml_0", "pause:3.9", sandbox)
    found = Containers(tmp_path).container(CID)
    assert found == ContainerFacts(
        "ml", "train-0", UID, "trainer", "registry.example/train:1", (("team", "vision"),)
    )


def test_a_plain_docker_container_has_its_own_name(tmp_path: Path) -> None:
    oci(tmp_path, task("run/containerd", "moby"), {})  # docker's containerd says nothing
    docker(tmp_path, CID, "/jupyter", "jupyter/gpu:2", {"maintainer": "anna"})
    expected = ContainerFacts(container="jupyter", image="jupyter/gpu:2")
    assert Containers(tmp_path).container(CID) == expected


def test_podman_tells_name_and_image_by_its_list(tmp_path: Path) -> None:
    oci(tmp_path, storage(CID, "var/lib"), {"io.container.manager": "libpod"})
    about = {"image-name": "quay.io/ai/serve:1", "name": "serve", "created-at": 1711141194}
    listed = [
        {"id": SANDBOX},
        "odd",
        {"id": CID, "names": ["serve"], "metadata": json.dumps(about)},
    ]
    write(
        tmp_path,
        "var/lib/containers/storage/overlay-containers/containers.json",
        json.dumps(listed),
    )
    expected = ContainerFacts(container="serve", image="quay.io/ai/serve:1")
    assert Containers(tmp_path).container(CID) == expected


def test_a_log_link_names_a_container_whose_runtime_cannot_be_read(tmp_path: Path) -> None:
    logs = tmp_path / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / f"train-0_ml_train-er-{CID}.log").symlink_to("/nowhere/0.log")
    (logs / "noise.log").touch()
    expected = ContainerFacts(namespace="ml", pod="train-0", container="train-er")
    assert Containers(tmp_path).container(CID) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '{"annotations": 5}',
        '{"annotations": {"a": 1}}',
        "\x00",
        "[" * 9999,
    ],
)
def test_a_broken_file_costs_only_what_it_knew(tmp_path: Path, text: str) -> None:
    write(tmp_path, task("run/containerd", "k8s.io") + "/config.json", text)
    oci(tmp_path, storage(CID), CRIO)
    assert Containers(tmp_path).container(CID) == TRAINER


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Config": []}', '{"Name": 1, "Config": null}'])
def test_a_broken_docker_file_says_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, f"var/lib/docker/containers/{CID}/config.v2.json", text)
    assert Containers(tmp_path).container(CID) == ContainerFacts()


def test_a_file_too_large_for_a_configuration_is_not_read(tmp_path: Path) -> None:
    padded = {"annotations": CONTAINERD, "padding": "x" * (4 * 2**20)}
    write(tmp_path, task("run/containerd", "k8s.io") + "/config.json", json.dumps(padded))
    assert Containers(tmp_path).container(CID) == ContainerFacts()


@pytest.mark.parametrize("container_id", ["", "..", "../../etc", "a/b"])
def test_what_is_no_container_id_names_no_file(tmp_path: Path, container_id: str) -> None:
    oci(tmp_path, task("run/containerd", "k8s.io", "x"), CONTAINERD)
    oci(tmp_path, "run/containerd/io.containerd.runtime.v2.task", CONTAINERD)
    assert Containers(tmp_path).container(container_id) == ContainerFacts()


def test_a_known_container_is_remembered_and_an_unknown_one_asked_again(tmp_path: Path) -> None:
    containers = Containers(tmp_path)
    assert containers.container(CID) == ContainerFacts()
    file = oci(tmp_path, task("run/containerd", "k8s.io"), CONTAINERD)
    assert containers.container(CID) == TRAINER
    file.unlink()
    assert containers.container(CID) == TRAINER


def test_the_memory_of_containers_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seedance_obs.sources.containers._KEPT", 2)
    containers = Containers(tmp_path)
    files = [oci(tmp_path, task("run/containerd", "k8s.io", f"c{n}"), CONTAINERD) for n in range(3)]
    assert [containers.container(f"c{n}") for n in range(3)] == [TRAINER] * 3
    for file in files:
        file.unlink()
    assert containers.container("c0") == ContainerFacts()  # the oldest was let go
    assert containers.container("c2") == TRAINER


def test_a_pod_goes_by_the_folder_of_its_logs(tmp_path: Path) -> None:
    (tmp_path / f"var/log/pods/ml_train-0_{UID}/trainer").mkdir(parents=True)
    (tmp_path / f"var/log/pods/{OTHER}").mkdir()  # as kubelets before 1.14 named it
    containers = Containers(tmp_path)
    assert containers.pod(UID) == ("ml", "train-0")
    assert containers.pod(OTHER) is None


def test_a_restarted_pod_of_the_same_name_has_another_uid(tmp_path: Path) -> None:
    logs = tmp_path / "var/log/pods"
    (logs / f"ml_train-0_{UID}").mkdir(parents=True)
    containers = Containers(tmp_path)
    assert containers.pod_uids("ml", "train-0") == {UID}
    (logs / f"ml_train-0_{OTHER}").mkdir()
    os.utime(logs, ns=(1, 1))
    assert containers.pod_uids("ml", "train-0") == {UID, OTHER}
    (tmp_path / f"sys/fs/cgroup/memory/kubepods/burstable/pod{OTHER}").mkdir(parents=True)
    assert containers.pod_uids("ml", "train-0") == {OTHER}  # the first one's logs alone are left
    assert containers.pod_uids("ml", "train-1") is None


def test_without_a_folder_of_logs_nobody_knows_a_pods_uids(tmp_path: Path) -> None:
    assert Containers(tmp_path).pod_uids("ml", "train-0") is None
    assert Containers(tmp_path).pod(UID) is None


UID_ = UID.replace("-", "_")
POD_FOLDERS = [
    f"kubepods/burstable/pod{UID}",
    f"kubepods/besteffort/pod{UID}",
    f"kubepods/pod{UID}",
    f"kubelet/kubepods/besteffort/pod{UID}",
    f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice",
    f"kubepods.slice/kubepods-pod{UID_}.slice",
    f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice"
    f"/kubelet-kubepods-besteffort-pod{UID_}.slice",
    f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UID_}.slice",
]


@pytest.mark.parametrize("tree", ["", "memory", "pids", "systemd", "unified"])
@pytest.mark.parametrize("folder", POD_FOLDERS)
def test_a_pod_lives_while_it_has_a_cgroup(tmp_path: Path, tree: str, folder: str) -> None:
    cgroups = tmp_path / "sys/fs/cgroup"
    pod = cgroups / tree / folder
    pod.mkdir(parents=True)
    if not tree:
        (cgroups / "cgroup.controllers").touch()
    containers = Containers(tmp_path)
    assert containers.pod_alive(UID) is True
    assert containers.pod_alive(OTHER) is False
    pod.rmdir()
    assert containers.pod_alive(UID) is False


def test_where_no_pods_cgroups_can_be_seen_nobody_knows_whether_one_lives(tmp_path: Path) -> None:
    assert Containers(tmp_path).pod_alive(UID) is None
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "")
    (tmp_path / "sys/fs/cgroup/system.slice").mkdir()
    assert Containers(tmp_path).pod_alive(UID) is None


@pytest.mark.parametrize("path", ["/..", "/a/../../../etc", "", "/", "/missing"])
def test_a_path_out_of_the_tree_names_no_cgroup(tmp_path: Path, path: str) -> None:
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "")
    (tmp_path / "etc").mkdir()
    assert CgroupTree(tmp_path).folder(path) is None


def test_the_first_processes_of_a_cgroup_are_the_lowest_of_each_inside(tmp_path: Path) -> None:
    write(tmp_path, "pod/cgroup.procs", "")
    write(tmp_path, "pod/a/cgroup.procs", "".join(f"{pid}\n" for pid in range(200, 100, -1)))
    write(tmp_path, "pod/b/init/cgroup.procs", "0\n7\nodd\n99999999999\n")
    assert first_processes(str(tmp_path / "pod")) == [*range(101, 105), 7]
    assert first_processes(str(tmp_path / "gone")) == []
