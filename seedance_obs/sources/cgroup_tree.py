"""The cgroups of a host as folders under any root: which pods there are, who runs in one.

Cgroup v2 is one tree at `/sys/fs/cgroup`, v1 has a tree for each controller there, a hybrid host
both.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from seedance_obs.sources.small_files import read_text

# The v1 trees that the kubelet, container runtimes and Slurm fill; of equal ones the first.
_V1 = ("memory", "pids", "devices", "freezer", "cpu,cpuacct", "cpu", "systemd")
_DEPTH = 4  # job, step, user, task
_FOLDERS = 32
_PIDS_OF_FOLDER = 4


class CgroupTree:
    """The cgroups under a host root, such as `/host`."""

    def __init__(self, root: str | Path) -> None:
        self._root = os.path.join(root, "sys/fs/cgroup")

    def folder(self, path: str) -> str | None:
        """The folder of a cgroup by its path; None where this host shows no such cgroup."""
        inner = path.strip("/")
        if not inner or ".." in inner.split("/"):
            return None
        folders = (os.path.join(tree, inner) for tree in self._trees())
        return next((folder for folder in folders if os.path.isdir(folder)), None)

    def pod(self, uid: str) -> str | None:
        """The folder of a pod, by the layouts of both of the kubelet's cgroup drivers."""
        if not uid or not uid.replace("-", "").isalnum():
            return None
        folders = (folder for top in self._pods() for folder in _of_pod(top, uid))
        return next((folder for folder in folders if os.path.isdir(folder)), None)

    def pod_alive(self, uid: str) -> bool | None:
        """Whether the pod has a cgroup now; None where no pods' cgroups can be seen."""
        if self.pod(uid) is not None:
            return True
        return False if any(map(_listable, self._pods())) else None

    def _trees(self) -> Iterator[str]:
        if os.path.exists(os.path.join(self._root, "cgroup.controllers")):
            yield self._root
            return
        yield from (os.path.join(self._root, name) for name in (*_V1, "unified"))

    def _pods(self) -> Iterator[str]:
        """The folders that hold all pods; a kubelet with a root of its own (kind) has its name."""
        for tree in self._trees():
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
    return list(itertools.chain.from_iterable(map(_lowest_pids, _inside(folder))))


def _inside(folder: str) -> list[str]:
    """A cgroup and those inside it, the outer before the inner."""
    found = level = [folder]
    for _ in range(_DEPTH):
        level = [inner for outer in level for inner in _children(outer)][:_FOLDERS]
        found = [*found, *level]
    return found[:_FOLDERS]


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _lowest_pids(folder: str) -> list[int]:
    text = read_text(f"{folder}/cgroup.procs") or ""
    # A process of a pid namespace that this reader does not see is listed as 0.
    pids = {
        int(word) for word in text.split() if word.isdecimal() and word.isascii() and len(word) < 11
    }
    return sorted(pids - {0})[:_PIDS_OF_FOLDER]


def _of_pod(top: str, uid: str) -> Iterator[str]:
    for quality in ("burstable", "besteffort", ""):
        yield os.path.join(top, quality, f"pod{uid}")
        slices = os.path.basename(top).removesuffix(".slice") + (quality and f"-{quality}")
        name = f"{slices}-pod{uid.replace('-', '_')}.slice"
        yield os.path.join(top, f"{slices}.slice" if quality else "", name)


def _listable(folder: str) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)
