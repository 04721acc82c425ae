"""A made-up host as files: processes, cgroups and what a runtime wrote of its containers."""

import json
import shutil
from pathlib import Path

BOOT = 1_732_960_000
TICKS = 100  # a second, on every architecture that runs CUDA

UID = "72f7f152-440c-66ac-9084-e0fc1d8a910c"
CID = "b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2"
SIDECAR = "6d1234da0f5aa7fa0ccae4c7d2d109929eb9a81694e6357bcd4547ab3985911b"
POD = (
    f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
)
JOB = "/system.slice/slurmstepd.scope/job_42"


class HostTree:
    """Writes a host with cgroup v2 (or one v1 controller's tree) below a folder."""

    def __init__(self, root: Path, *, v1: str = "") -> None:
        self.root = root
        self.cgroups = root / "sys/fs/cgroup" / v1
        self.cgroups.mkdir(parents=True)
        if not v1:
            (self.cgroups / "cgroup.controllers").write_text("cpu memory pids\n")
        self.write("proc/stat", f"cpu 1 2 3\nbtime {BOOT}\nprocesses 9\n")
        self.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nanna:x:1001:1001::/home/anna:\n")

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def start(
        self,
        pid: int,
        cgroup: str | None,
        *,
        ticks: int = 500,
        group: int | None = None,
        uid: int = 1001,
        environment: tuple[str, ...] = (),
        parent: int = 1,
        session: int | None = None,
        comm: str = "python3 -m",
        flags: int = 0,
        namespaces: tuple[int, int] | None = None,
    ) -> None:
        """Start a process; None keeps it out of cgroup.procs, as if that were unreadable.

        `namespaces` are the inodes of its mount and its network namespace; without, they may not
        be read.
        """
        group = pid if group is None else group
        session = pid if session is None else session
        after = f"0 0 {flags} {' '.join(['0'] * 12)}"
        stat = f"{pid} ({comm}) R {parent} {group} {session} {after} {ticks} 0 0\n"
        self.write(f"proc/{pid}/stat", stat)
        self.write(f"proc/{pid}/status", f"Name:\tpython3\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        self.write(f"proc/{pid}/environ", "\0".join(environment))
        self.write(f"proc/{pid}/cgroup", f"0::{cgroup or '/'}\n")
        for kind, inode in zip(("mnt", "net"), namespaces or (), strict=False):
            link = self.write(f"proc/{pid}/ns/{kind}", "")
            link.unlink()
            link.symlink_to(f"{kind}:[{inode}]")
        if cgroup:
            self.join(pid, cgroup)

    def join(self, pid: int, cgroup: str) -> None:
        folder = self.cgroups / cgroup.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "cgroup.procs").open("a") as procs:
            procs.write(f"{pid}\n")

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / "proc" / str(pid))
        for file in self.cgroups.rglob("cgroup.procs"):
            kept = [line for line in file.read_text().splitlines() if line != str(pid)]
            file.write_text("".join(f"{line}\n" for line in kept))

    def containerd(self, container_id: str, container: str, *, pod: str = "train-0") -> None:
        annotations = {
            "io.kubernetes.cri.container-name": container,
            "io.kubernetes.cri.image-name": "registry.example/train:1",
            "io.kubernetes.cri.sandbox-name": pod,
            "io.kubernetes.cri.sandbox-namespace": "ml",
            "io.kubernetes.cri.sandbox-uid": UID,
        }
        tasks = "run/containerd/io.containerd.runtime.v2.task/k8s.io"
        self.write(f"{tasks}/{container_id}/config.json", json.dumps({"annotations": annotations}))

    def docker(self, container_id: str, name: str, image: str) -> None:
        whole = {"Name": f"/{name}", "Config": {"Image": image, "Labels": {}}}
        folder = f"var/lib/docker/containers/{container_id}"
        self.write(f"{folder}/config.v2.json", json.dumps(whole))
