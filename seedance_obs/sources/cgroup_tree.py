"""The cgroups of a host as folders under any root: which hierarchies and pods there are, who runs.

Cgroup v2 is one tree at `/sys/fs/cgroup`, v1 has a tree for each controller there, a hybrid host
both.
"""

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from seedance_obs.sources.small_files import read_text

# The v1 trees that the kubelet, container runtimes and Slurm fill; of equal ones the first.
_V1 = ("memory", "pids", "devices", "freezer", "cpu,cpuacct", "cpu", "systemd")
_DEPTH = 4  # job, step, user, task
_FOLDERS = 32
_PIDS_OF_FOLDER = 4
_DEPTH_OF_ALL = 16  # a container may have systemd, and its users' containers, inside
_FOLDERS_OF_ALL = 1024
_MOST_PROCESSES = 65_536


def hierarchies(top: str, controllers: Iterable[str] | None = None) -> tuple[str, ...]:
    """Where a host's cgroup hierarchies are mounted, given its `/sys/fs/cgroup`.

    Args:
        top: The folder; on a host with cgroup v2 alone it is the one hierarchy.
        controllers: The v1 trees that are wanted, in this order; the unified tree of a hybrid host
            comes after them. None: the top, and every tree below it by name.
    """
    if os.path.exists(f"{top}/cgroup.controllers"):
        return (top,)
    if controllers is None:
        return (top, *_children(top))
    trees = (f"{top}/{name}" for name in (*controllers, "unified"))
    return tuple(tree for tree in trees if os.path.isdir(tree)) or (top,)


class CgroupTree:
    """The cgroups under a host root, such as `/host`."""

    def __init__(self, root: str | Path) -> None:
        self._root = os.path.join(root, "sys/fs/cgroup")

    def folder(self, path: str) -> str | None:
        """The folder of a cgroup by its path; None where this host shows no such cgroup."""
        return next(self.folders(path), None)

    def folders(self, path: str) -> Iterator[str]:
        """The folders of a cgroup in every hierarchy that has one of its path."""
        inner = path.strip("/")
        if not inner or ".." in inner.split("/"):
            return iter(())
        folders = (f"{tree}/{inner}" for tree in hierarchies(self._root, _V1))
        return filter(os.path.isdir, folders)

    def pod(self, uid: str) -> str | None:
        """The folder of a pod, by the layouts of both of the kubelet's cgroup drivers."""
        return next(self.pods(uid), None)

    def pods(self, uid: str) -> Iterator[str]:
        """The folders of a pod in every hierarchy that has one."""
        if not uid or not uid.replace("-", "").isalnum():
            return iter(())
        folders = (folder for top in self._pods() for folder in _of_pod(top, uid))
        return filter(os.path.isdir, folders)

    def pod_alive(self, uid: str) -> bool | None:
        """Whether the pod has a cgroup now; None where no pods' cgroups can be seen."""
        if self.pod(uid) is not None:
            return True
        return False if any(map(_listable, self._pods())) else None

    def _pods(self) -> Iterator[str]:
        """The folders that hold all pods; a kubelet with a root of its own (kind) has its name."""
        for tree in hierarchies(self._root, _V1):
            for parent, prefix in (("", ""), ("kubelet.slice", "kubelet-"), ("kubelet", "")):
                for name in (f"{prefix}kubepods.slice", "kubepods"):
                    folder = os.path.join(tree, parent, name)
                    if os.path.isdir(folder):
                        yield folder


def first_processes(folder: str) -> list[int]:
    """Pids likely to be the oldest of a cgroup and those inside it; empty where unreadable.

    Every cgroup inside gives its lowest pids only: a runtime starts first what lives longest (the
    pause process of a pod, the batch script of a job), and a workload may have thousands.
    """
    inside = _inside(folder, depth=_DEPTH, most=_FOLDERS)
    lowest = (sorted(pids)[:_PIDS_OF_FOLDER] for pids in map(_pids, inside))
    return list(itertools.chain.from_iterable(lowest))


def all_processes(folder: str) -> frozenset[int]:
    """The pids of a cgroup and of those inside it; empty where unreadable.

    Not those of a pid namespace that this reader does not see, nor what is nested or multiplied
    beyond what a workload has any use for.
    """
    inside = _inside(folder, depth=_DEPTH_OF_ALL, most=_FOLDERS_OF_ALL)
    pids = itertools.chain.from_iterable(map(_pids, inside))
    return frozenset(itertools.islice(pids, _MOST_PROCESSES))


def _inside(folder: str, *, depth: int, most: int) -> list[str]:
    """A cgroup and those inside it, the outer before the inner."""
    found = level = [folder]
    for _ in range(depth):
        inner = itertools.chain.from_iterable(map(_children, level))
        level = list(itertools.islice(inner, most - len(found)))
        found = [*found, *level]
    return found


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _pids(folder: str) -> set[int]:
    """The processes of one cgroup; one whose pid namespace this reader does not see reads 0."""
    words = (read_text(f"{folder}/cgroup.procs") or "").split()
    return {int(w) for w in words if w.isdecimal() and w.isascii() and len(w) < 11} - {0}


def _of_pod(top: str, uid: str) -> Iterator[str]:
    for quality in ("burstable", "besteffort", ""):
        yield os.path.join(top, quality, f"pod{uid}")
        slices = os.path.basename(top).removesuffix(".slice") + (quality and f"-{quality}")
        name = f"{slices}-pod{uid.replace('-', '_')}.slice"
        yield os.path.join(top, f"{slices}.slice" if quality else "", name)


def _listable(folder: str) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)
