"""What container runtimes write down of a container: OCI annotations, docker's and podman's own.

containerd and CRI-O keep the OCI configuration (`config.json`) of what they run, with annotations
under `io.kubernetes.cri.` and `io.kubernetes.cri-o.`; docker keeps `config.v2.json` with labels
under `io.kubernetes.` where a kubelet drives it; containers/storage, below podman and CRI-O, keeps
one list `containers.json`. A pod's labels are on its sandbox only, and not at all with containerd.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any  # JSON that another program wrote

from seedance_obs.sources.small_files import read_bytes

_LARGEST_BYTES = 4 * 2**20
_CONTAINERD = (
    "run/containerd",
    "run/k3s/containerd",
    "run/k0s/containerd",
    "var/snap/microk8s/common/run/containerd",
)
_STORAGE = ("run/containers/storage", "var/lib/containers/storage")


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """Who a container is; what nobody wrote down is empty. Without a pod, `container` names it."""

    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    container: str = ""
    image: str = ""
    pod_labels: tuple[tuple[str, str], ...] = ()


def by_containerd(root: str, container_id: str) -> ContainerFacts | None:
    """By containerd, whose own namespaces (`k8s.io`, `default`) are folders; None: not its own."""
    for state in _CONTAINERD:
        tasks = f"{root}/{state}/io.containerd.runtime.v2.task"
        for namespace in _folders(tasks):
            found = _annotations(f"{tasks}/{namespace}/{container_id}/config.json")
            if found is not None:
                return _facts(
                    found,
                    namespace="io.kubernetes.cri.sandbox-namespace",
                    pod="io.kubernetes.cri.sandbox-name",
                    pod_uid="io.kubernetes.cri.sandbox-uid",
                    container=("io.kubernetes.cri.container-name", "nerdctl/name"),
                    image="io.kubernetes.cri.image-name",
                )
    return None


def by_crio(root: str, container_id: str) -> ContainerFacts | None:
    """By CRI-O, the pod's labels from its sandbox; None where it does not know the container."""
    found = _storage_annotations(root, container_id)
    if found is None or found.get("io.container.manager", "cri-o") != "cri-o":
        return None
    sandbox = found.get("io.kubernetes.cri-o.SandboxID", "")
    of_pod = _storage_annotations(root, sandbox) if _is_name(sandbox) else None
    return _facts(
        found,
        namespace="io.kubernetes.pod.namespace",
        pod="io.kubernetes.pod.name",
        pod_uid="io.kubernetes.pod.uid",
        container="io.kubernetes.container.name",
        image="io.kubernetes.cri-o.ImageName",
        labels=_strings(_parsed((of_pod or {}).get("io.kubernetes.cri-o.Labels", ""))),
    )


def by_docker(root: str, container_id: str) -> ContainerFacts | None:
    """By docker: a pod's container where a kubelet started it, else the container's own name."""
    whole = _docker(root, container_id)
    if whole is None:
        return None
    labels, name = _docker_labels(whole), whole.get("Name")
    own = name.removeprefix("/") if isinstance(name, str) else ""
    sandbox = labels.get("io.kubernetes.sandbox.id", "")
    of_pod = _docker(root, sandbox) if _is_name(sandbox) else None
    image = _mapping(whole.get("Config")).get("Image")
    return _facts(
        {**labels, "name": own, "image": image if isinstance(image, str) else ""},
        namespace="io.kubernetes.pod.namespace",
        pod="io.kubernetes.pod.name",
        pod_uid="io.kubernetes.pod.uid",
        container=("io.kubernetes.container.name", "name"),
        image="image",
        labels=_docker_labels(of_pod or {}),
    )


def by_podman(root: str, container_id: str) -> ContainerFacts | None:
    """By the list of containers/storage: the name and the image; None where it is not in there."""
    for storage in _STORAGE:
        listed = _json(f"{root}/{storage}/overlay-containers/containers.json")
        for entry in listed if isinstance(listed, list) else ():
            known = _mapping(entry)
            if known.get("id") == container_id:
                about = _strings(_parsed(known.get("metadata")))
                return ContainerFacts(
                    container=about.get("name", ""), image=about.get("image-name", "")
                )
    return None


def _facts(
    found: Mapping[str, str],
    *,
    namespace: str,
    pod: str,
    pod_uid: str,
    container: str | tuple[str, str],
    image: str,
    labels: Mapping[str, str] | None = None,
) -> ContainerFacts:
    names = (container,) if isinstance(container, str) else container
    return ContainerFacts(
        namespace=found.get(namespace, ""),
        pod=found.get(pod, ""),
        pod_uid=found.get(pod_uid, ""),
        container=next((found[name] for name in names if found.get(name)), ""),
        image=found.get(image, ""),
        pod_labels=_users_own(labels or {}),
    )


def _users_own(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A pod's labels without those that the kubelet adds for the runtime."""
    runtime = ("io.kubernetes.", "annotation.", "io.cri-containerd.")
    return tuple(sorted(item for item in labels.items() if not item[0].startswith(runtime)))


def _storage_annotations(root: str, container_id: str) -> dict[str, str] | None:
    for storage in _STORAGE:
        folder = f"{root}/{storage}/overlay-containers/{container_id}"
        found = _annotations(f"{folder}/userdata/config.json")
        if found is not None:
            return found
    return None


def _annotations(file: str) -> dict[str, str] | None:
    whole = _json(file)
    return _strings(_mapping(whole).get("annotations")) if isinstance(whole, dict) else None


def _docker(root: str, container_id: str) -> dict[str, Any] | None:
    whole = _json(f"{root}/var/lib/docker/containers/{container_id}/config.v2.json")
    return whole if isinstance(whole, dict) else None


def _docker_labels(whole: Mapping[str, Any]) -> dict[str, str]:
    return _strings(_mapping(whole.get("Config")).get("Labels"))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> dict[str, str]:
    return {key: text for key, text in _mapping(value).items() if isinstance(text, str)}


def _is_name(text: str) -> bool:
    """Whether text that another program wrote may name a folder."""
    return text.isalnum() and text.isascii()


def _json(file: str) -> object:
    """What a file holds; None where it is missing, unreadable, too large or no JSON."""
    raw = read_bytes(file, _LARGEST_BYTES + 1)
    return None if raw is None or len(raw) > _LARGEST_BYTES else _parsed(raw)


def _parsed(text: object) -> object:
    if not isinstance(text, str | bytes):
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _folders(folder: str) -> Iterator[str]:
    try:
        yield from sorted(os.listdir(folder))
    except OSError:
        return
