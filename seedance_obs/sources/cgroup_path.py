"""What the path of a cgroup says of who runs in it: a pod, a container, a Slurm job, a service.

The names in a path are conventions of the kubelet, of container runtimes, Slurm and systemd, alike
for cgroup v1 and v2. Of nested ones (a container in a container, a cluster in a container) the
outermost pod, job or container counts, for that is the one this host's own files know; only a pod
comes before the container its cluster runs in.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_HEX = "[0-9a-f]"
# The kubelet writes a UID with underscores where systemd reads a dash as a level of slices. Pods
# from a file have the hash of their file as UID.
_POD = re.compile(
    rf"(?:^|-)pod({_HEX}{{8}}(?:[-_]{_HEX}{{4}}){{3}}[-_]{_HEX}{{12}}|{_HEX}{{32}})"
    r"(?=$|\.slice(?:$|:)|:)"
)
_CONTAINER = re.compile(rf"(?:^|[:-])({_HEX}{{64}})(?:\.scope)?$")
_MONITOR = re.compile(r"(?:^|-)conmon-")
_LXC = re.compile(r"lxc\.payload[./](.+)|lxc/(.+)")
_SLURM_ROOT = re.compile(r"slurm|slurm_.+|(?:.+_)?slurmstepd\.scope")
_JOB = re.compile(r"job_(\d{1,10})|(s[0-9A-Z]{13})", re.ASCII)
_SLURM_USER = re.compile(r"uid_(\d{1,10})", re.ASCII)
_LOGIN = re.compile(r"user-(\d{1,10})\.slice", re.ASCII)
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class CgroupFacts:
    r"""Whom a cgroup belongs to; what its path does not say is empty or None.

    Attributes:
        pod_uid: As Kubernetes spells it, with dashes.
        container_id: The runtime's 64 hex digits, or the name of an LXC container.
        slurm_job: The job id, or since Slurm 25.11 its SLUID (`s` and 13 characters).
        slurm_uid: The user that cgroup v1 names above the job.
        unit: The systemd service, its escapes resolved (`\x2d` is a dash). One that a user's own
            service manager runs has the manager before it: `user@1000.service/notebook.service`.
        login_uid: The user in whose slice it is.
        path: The pod's, job's, container's or service's own cgroup, the first of these that there
            is, else the whole path; without the `..` of another cgroup namespace.
    """

    pod_uid: str = ""
    container_id: str = ""
    slurm_job: str = ""
    slurm_uid: int | None = None
    unit: str = ""
    login_uid: int | None = None
    path: str = ""


@lru_cache(maxsize=4096)
def read_cgroup_path(path: str) -> CgroupFacts:
    """What a path from `/proc/PID/cgroup` says; one of an unknown shape says nothing."""
    names = _names(path)
    pod = _first(names, _pod_uid)
    container = _first(names, _container_id, since=pod[0] if pod else 0)
    root = _first(names, _whole(_SLURM_ROOT))
    job = _first(names, _whole(_JOB), since=root[0]) if root else None
    user = _first(names, _whole(_SLURM_USER), since=root[0]) if root else None
    outer = names[: min(found[0] for found in (pod, container, job, (len(names), "")) if found)]
    unit = _unit(outer)
    login = _first(outer, _whole(_LOGIN))
    owner = pod or job or container or unit or (len(names) - 1, "")
    return CgroupFacts(
        pod_uid=_text(pod),
        container_id=_text(container),
        slurm_job=_text(job),
        slurm_uid=_number(user),
        unit=_text(unit),
        login_uid=_number(login),
        path="/" + "/".join(names[: owner[0] + 1]),
    )


_Found = tuple[int, str]  # where among the names, and what


def _names(path: str) -> list[str]:
    # The kernel marks the path of a cgroup that was removed under a dying process.
    names = path.removesuffix(" (deleted)").split("/")
    return [name for name in names if name not in ("", ".", "..")]


def _first(
    names: Sequence[str], read: Callable[[Sequence[str], int], str], *, since: int = 0
) -> _Found | None:
    for place in range(since, len(names)):
        found = read(names, place)
        if found:
            return place, found
    return None


def _pod_uid(names: Sequence[str], place: int) -> str:
    match = _POD.search(names[place])
    return match.group(1).replace("_", "-") if match else ""


def _container_id(names: Sequence[str], place: int) -> str:
    name = names[place]
    match = _CONTAINER.search(name)
    if match:
        return "" if _MONITOR.search(name) else match.group(1)
    lxc = _LXC.fullmatch(name) or _LXC.fullmatch("/".join(names[max(0, place - 1) : place + 1]))
    return (lxc.group(1) or lxc.group(2)).removesuffix(".scope") if lxc else ""


def _whole(pattern: re.Pattern[str]) -> Callable[[Sequence[str], int], str]:
    """A reader that takes a name which matches as a whole: its first group, else all of it."""

    def read(names: Sequence[str], place: int) -> str:
        match = pattern.fullmatch(names[place])
        return next(filter(None, match.groups()), match.group()) if match else ""

    return read


def _unit(names: Sequence[str]) -> _Found | None:
    """The innermost service; a user's service manager alone is a session, not a service."""
    managers = [name for name in names if name.startswith("user@") and name.endswith(".service")]
    for place in range(len(names) - 1, -1, -1):
        name = names[place]
        if name.endswith(".service") and name not in managers:
            return place, "/".join(_unescaped(part) for part in (*managers[:1], name))
    return None


def _unescaped(unit: str) -> str:
    raw = unit.encode("utf-8", errors="replace")
    whole = _ESCAPED.sub(lambda match: bytes.fromhex(match.group(1).decode()), raw)
    return whole.decode("utf-8", errors="replace")


def _text(found: _Found | None) -> str:
    return found[1] if found else ""


def _number(found: _Found | None) -> int | None:
    return int(found[1]) if found else None
