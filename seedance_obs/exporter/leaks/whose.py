"""From findings to suspects: whose a finding is, and which findings are one and the same."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from pathlib import Path
from typing import NamedTuple

from seedance_obs.exporter.books.account_names import tenant_of, workload_of
from seedance_obs.exporter.leaks.costs import sum_known
from seedance_obs.leaks.suspect import KINDS, Finding, Suspect
from seedance_obs.process_tree import ProcessName, Sandbox
from seedance_obs.sources.procfs import read_process, user_name
from seedance_obs.sources.sandbox import Sandboxes, tree_of

# By what the worst suspect of a kind is told; the longest lasting where a kind is not here.
WEIGHTS = {
    "fd_growth": "growth_fds_per_second",
    "fd_near_limit": "open_fds",
    "anonymous_growth": "growth_bytes_per_second",
    "sparse_residency": "resident_bytes",
    "pseudo_idle_context": "gpu_memory_bytes",
    "dead_pid_memory": "gpu_memory_bytes",
    "memory_without_process": "gpu_memory_bytes",
}
STILL_WORST = 0.8  # of the weight of the worst one: whoever was the worst before still is

MOST_SANDBOXES = 6  # that are told of one suspect

Started = tuple[int, int | None]  # a process by its pid and start
Found = tuple[Finding, Sandbox | None]
Draw = Callable[[Finding], tuple[float | None, float | None]]


class Group(NamedTuple):
    """What findings of one suspect have in common."""

    kind: str
    gpu_uuid: str
    gpu_instance: int | None
    tree: Started | None
    account: str


@dataclass(frozen=True, slots=True)
class _Before:
    """A suspect as the last probe told it."""

    started_unix: float
    worst: Started | None
    user: str
    cgroup: str


class Whose:
    """Names suspects, and remembers since when each has been one."""

    def __init__(
        self, sandboxes: Sandboxes, *, root: str | Path, wall: Callable[[], float]
    ) -> None:
        self._sandboxes = sandboxes
        self._root = root
        self._wall = wall
        self._before: dict[Group, _Before] = {}
        # Where suspects ran when they were first seen: a parent that ends renames nobody.
        self._places: dict[Started, Sandbox] = {}

    def suspects(
        self, findings: Iterable[Finding], *, draw_of: Draw, now: float
    ) -> tuple[Suspect, ...]:
        """The suspects, kind by kind, the worst of each first.

        `draw_of` tells the watts that a finding costs and its part of its board.
        """
        self._sandboxes.refresh()
        places, self._places = self._places, {}
        groups: defaultdict[Group, list[Found]] = defaultdict(list)
        for finding in findings:
            sandbox = self._sandbox(finding.process, places)
            groups[_group(finding, sandbox)].append((finding, sandbox))
        found = {
            group: self._suspect(group, members, draw_of, now) for group, members in groups.items()
        }
        self._before = {
            group: _Before(
                suspect.started_unix,
                _started(suspect.finding.process),
                suspect.user,
                suspect.cgroup,
            )
            for group, suspect in found.items()
        }
        return tuple(sorted(found.values(), key=_rank))

    def _sandbox(
        self, process: ProcessName | None, before: Mapping[Started, Sandbox]
    ) -> Sandbox | None:
        """Where a process runs; None where nobody can look, or another has its pid by now."""
        if process is None or process.start_ticks is None:
            return None
        name = (process.pid, process.start_ticks)
        known = self._places.get(name) or before.get(name)
        sandbox = known or self._sandboxes.of(process.pid)
        if sandbox is None or sandbox.chain[0].start_ticks != process.start_ticks:
            return None
        self._places[name] = sandbox
        return sandbox

    def _user_and_cgroup(self, finding: Finding, before: _Before | None) -> tuple[str, str]:
        """Whose a process is and where; of the same one as before that is known."""
        process = finding.process
        if process is None or process.start_ticks is None:
            return "", ""
        if before is not None and before.worst == _started(process):
            return before.user, before.cgroup
        found = read_process(f"{self._root}/proc", process.pid)
        if found is None or found.start_ticks != process.start_ticks:
            return "", ""
        return user_name(self._root, found.uid), found.cgroup or ""

    def _suspect(
        self, group: Group, members: Sequence[Found], draw_of: Draw, now: float
    ) -> Suspect:
        before = self._before.get(group)
        ordered = _worst_first(members, before.worst if before else None)
        finding, sandbox = ordered[0]
        account = finding.owner or finding.account
        since = min(each.since for each, _ in members)
        draws = [draw_of(each) for each, _ in members]
        processes = (each.process for each, _ in ordered)
        user, cgroup = self._user_and_cgroup(finding, before)
        return Suspect(
            name=_name(group),
            finding=finding,
            processes=tuple(dict.fromkeys(filter(None, processes))),
            findings=tuple(each for each, _ in ordered),
            sandbox=sandbox,
            sandboxes=tuple(where for _, where in ordered[:MOST_SANDBOXES] if where),
            workload=workload_of(account),
            tenant=tenant_of(account),
            started_unix=before.started_unix if before else self._wall() - (now - since),
            power_watts=sum_known([watts for watts, _ in draws]),
            gpu_share=sum_known([share for _, share in draws]),
            user=user,
            cgroup=cgroup,
        )


def _group(finding: Finding, sandbox: Sandbox | None) -> Group:
    tree = tree_of(sandbox) if sandbox else finding.process
    place = (finding.gpu_uuid, finding.gpu_instance)
    return Group(finding.kind, *place, _started(tree), finding.account)


def _started(process: ProcessName | None) -> Started | None:
    return None if process is None else (process.pid, process.start_ticks)


def _worst_first(members: Sequence[Found], worst_before: Started | None) -> list[Found]:
    """One finding of each process: the first of its rules, so that they take no turns.

    For the same reason the worst stays so until another is clearly worse.
    """
    of_process: dict[Started | None, Found] = {}
    for found in members:
        of_process.setdefault(_started(found[0].process), found)
    ordered = sorted(of_process.values(), key=_weight, reverse=True)
    kept = of_process.get(worst_before)
    if kept is not None and _weight(kept)[0] >= STILL_WORST * _weight(ordered[0])[0]:
        ordered.remove(kept)
        ordered.insert(0, kept)
    return ordered


def _weight(found: Found) -> tuple[float, float]:
    finding = found[0]
    return finding.evidence.get(WEIGHTS.get(finding.kind, ""), 0.0), -finding.since


def _rank(suspect: Suspect) -> tuple[int, float, float, str]:
    weight, age = _weight((suspect.finding, None))
    return list(KINDS).index(suspect.finding.kind), -weight, -age, suspect.name


def _name(group: Group) -> str:
    """Kind, place and tree or account, to be read; then what tells all groups apart."""
    place = group.gpu_uuid
    if group.gpu_instance is not None:
        place += f":{group.gpu_instance}"
    holder = group.account
    if group.tree is not None:
        holder = "-".join(str(each) for each in group.tree if each is not None)
    digest = blake2s(repr(tuple(group)).encode(), digest_size=4).hexdigest()
    return re.sub(r"[^\w.:-]", "_", "-".join(filter(None, (group.kind, place, holder, digest))))
