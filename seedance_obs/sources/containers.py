"""Who a container is and which pods there are, from files on the host; no runtime is asked.

The kubelet names the folder of a pod's logs `<namespace>_<pod>_<uid>` and links each container's
log as `<pod>_<namespace>_<container>-<id>.log`; what runtimes write is in `container_config`.
Each file is optional: one that is missing, unreadable or broken costs what it alone knew.
"""

import os
from collections.abc import Callable
from pathlib import Path

from seedance_obs.sources.cgroup_tree import CgroupTree
from seedance_obs.sources.container_config import (
    ContainerFacts,
    by_containerd,
    by_crio,
    by_docker,
    by_podman,
)

_READERS = (by_containerd, by_crio, by_docker, by_podman)
_NOTHING = ContainerFacts()
_KEPT = 4096


class Containers:
    """The containers and pods of a host, read under its root, such as `/host`."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._tree = CgroupTree(root)
        self._known: dict[str, ContainerFacts] = {}
        self._pods = _Names(self._root / "var/log/pods", _pod_of_folder)
        self._logs = _Names(self._root / "var/log/containers", _container_of_log)

    def container(self, container_id: str) -> ContainerFacts:
        """Who a container is, empty where no file tells; remembered once something is known."""
        if not container_id.isalnum():
            return _NOTHING
        known = self._known.get(container_id)
        if known is None:
            known = self._read(container_id)
            if known != _NOTHING:
                self._known[container_id] = known
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
        return known

    def pod(self, uid: str) -> tuple[str, str] | None:
        """Namespace and name of a pod by its UID; None where the host has no logs of it."""
        found = self._pods.of(uid)
        return (found[0], found[1]) if found else None

    def pod_uids(self, namespace: str, pod: str) -> frozenset[str] | None:
        """The UIDs of the pods of this name that are here now; there may be two for a while.

        A pod whose cgroup has gone is left out, though its logs may stay for long: none are left
        of one that has ended. None where there are no logs of such a pod, or no telling.
        """
        logged = self._pods.named((namespace, pod))
        if not logged:
            return None
        return frozenset(uid for uid in logged if self.pod_alive(uid) is not False)

    def pod_alive(self, uid: str) -> bool | None:
        """Whether a cgroup of the pod exists; None where no pods' cgroups can be seen."""
        return self._tree.pod_alive(uid)

    def _read(self, container_id: str) -> ContainerFacts:
        for read in _READERS:
            found = read(str(self._root), container_id)
            if found is not None and found != _NOTHING:
                return found
        logged = self._logs.of(container_id)
        return ContainerFacts(*_in_order(logged)) if logged else _NOTHING


class _Names:
    """What the names in a folder say, each by an id in it; listed again when the folder changed."""

    def __init__(self, folder: Path, read: Callable[[str], tuple[str, tuple[str, ...]]]) -> None:
        self._folder = folder
        self._read = read
        self._changed_ns = -1
        self._by_id: dict[str, tuple[str, ...]] | None = None
        self._ids: dict[tuple[str, ...], set[str]] = {}

    def of(self, name_id: str) -> tuple[str, ...] | None:
        self._refresh()
        if name_id not in (self._by_id or {}):
            # Two changes within one tick of the file system's clock leave the same mark.
            self._refresh(again=True)
        return (self._by_id or {}).get(name_id)

    def named(self, words: tuple[str, ...]) -> set[str] | None:
        self._refresh()
        if words not in self._ids:
            self._refresh(again=True)
        return None if self._by_id is None else self._ids.get(words, set())

    def _refresh(self, *, again: bool = False) -> None:
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns
            if changed_ns == self._changed_ns and not again:
                return
            names = os.listdir(self._folder)
        except OSError:
            self._by_id, self._ids, self._changed_ns = None, {}, -1
            return
        self._changed_ns = changed_ns
        self._by_id = dict(filter(_has_id, map(self._read, names)))
        self._ids = {}
        for name_id, words in self._by_id.items():
            self._ids.setdefault(words, set()).add(name_id)


def _has_id(found: tuple[str, tuple[str, ...]]) -> bool:
    return bool(found[0])


def _pod_of_folder(name: str) -> tuple[str, tuple[str, ...]]:
    """UID, and namespace and name, of `<namespace>_<pod>_<uid>`; none of the three holds a `_`."""
    words = tuple(name.split("_"))
    return (words[2], words[:2]) if len(words) == 3 else ("", ())


def _container_of_log(name: str) -> tuple[str, tuple[str, ...]]:
    """Id, and pod, namespace and container, of `<pod>_<namespace>_<container>-<id>.log`."""
    stem, _, container_id = name.removesuffix(".log").rpartition("-")
    words = tuple(stem.split("_"))
    return (container_id, words) if len(words) == 3 else ("", ())


def _in_order(logged: tuple[str, ...]) -> tuple[str, str, str, str]:
    pod, namespace, container = logged
    return namespace, pod, "", container
