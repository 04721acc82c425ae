"""How long a host's CPUs were busy, and for whom: `/proc/stat`, cgroups, else processes."""

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seedance_obs.sources.cgroup_tree import hierarchies
from seedance_obs.sources.small_files import read_bytes

# The v1 trees that tell the CPU time of a cgroup. A unified one tells it of every cgroup, whether
# or not the controller is enabled in it.
_CPUACCT = ("cpuacct", "cpu,cpuacct")
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # places in the first line of /proc/stat, see proc(5)
_HEAD_BYTES = 4096
_USER, _SYSTEM, _START = 11, 12, 19  # places in /proc/PID/stat after the name
_COUNTED = 8  # guest and guest_nice, which follow, are inside user and nice


@dataclass(frozen=True, slots=True)
class CpuOwner:
    """Where the CPU time of one account is found.

    Attributes:
        cgroup: Its own cgroup, as `/proc/<pid>/cgroup` spells it; empty where it has none of its
            own.
        pids: Its processes, for where the cgroup cannot be read or holds other accounts too.
        began: Whether it began since the read before, so that all its time is of this interval.
    """

    cgroup: str = ""
    pids: tuple[int, ...] = ()
    began: bool = False


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU time since the read before, in microseconds over all CPUs.

    `busy_us` is in every mode but idle, iowait and steal. Steal is in `total_us` alone: what the
    hypervisor took was neither worked here nor idled. An account that nothing could be read of is
    missing in `by_account`.

    Where something ran backwards, began or ended unseen, `busy_us` and `by_account` are the least
    that was used. Then `sure` is False of the host; of an account, `at_most` has what it can have
    used at the most, or lacks it where nobody can tell.
    """

    busy_us: int
    total_us: int
    by_account: Mapping[str, int]
    at_most: Mapping[str, int] = field(default_factory=dict)
    sure: bool = True


class CpuTimes:
    """Reads CPU times under a root such as `/host`; remembers what they were at the last read.

    What is seen for the first time is only noted, unless it `began`. A cgroup that goes costs what
    it used since the last read. Of processes only their own time is taken, not that of children
    they waited for, which would come as one lump when a child ends.
    """

    def __init__(
        self, root: str | Path, *, ticks_per_second: int = os.sysconf("SC_CLK_TCK")
    ) -> None:
        self._proc = os.path.join(root, "proc")
        self._cgroups = str(Path(root) / "sys/fs/cgroup")
        self._tick_us = 1_000_000 // ticks_per_second
        self._trees: tuple[str, ...] = ()
        self._modes: list[int] | None = None
        self._meters: dict[str, dict[Hashable, int]] = {}

    def read(self, owners: Mapping[str, CpuOwner]) -> CpuUse | None:
        """The time since the read before; None at the first, and where `/proc/stat` is unreadable.

        Nothing is lost by a None: the next answer covers the longer time.
        """
        # Owners first, so that what they used is within what the host was busy.
        seen = self._look(owners)
        modes = _modes(f"{self._proc}/stat")
        if modes is None:
            return None
        before, self._modes = self._modes, modes
        meters = self._meters
        kept = {account: meters[account] for account in owners if account in meters}
        self._meters = {**kept, **seen}  # one that is unreadable for a moment loses nothing
        if before is None:
            return None
        spent = [max(0, now - then) for now, then in zip(modes, before, strict=True)]
        total = sum(spent)
        busy = total - spent[_IDLE] - spent[_IOWAIT] - spent[_STEAL]
        by_account = {
            account: _advance(now, meters.get(account, {}), whole=owners[account].began)
            for account, now in seen.items()
        }
        bounds = {
            account: _at_most(now, meters.get(account, {}), whole=owners[account].began)
            for account, now in seen.items()
        }
        return CpuUse(
            busy * self._tick_us,
            total * self._tick_us,
            by_account,
            at_most={account: most for account, most in bounds.items() if most is not None},
            sure=_is_sure(modes, before),
        )

    def _look(self, owners: Mapping[str, CpuOwner]) -> dict[str, dict[Hashable, int]]:
        """What each account shows now, by where it was found."""
        alone = _alone(owner.cgroup for owner in owners.values())
        if alone and not self._trees:
            self._trees = hierarchies(self._cgroups, _CPUACCT)
        seen: dict[str, dict[Hashable, int]] = {}
        told = 0
        for account, owner in owners.items():
            usage = _cgroup_us(self._trees, owner.cgroup) if owner.cgroup in alone else None
            if usage is not None:
                seen[account] = {owner.cgroup: usage}
                told += 1
            elif found := dict(filter(None, map(self._process_us, owner.pids))):
                seen[account] = found
        if told < len(alone):
            self._trees = ()  # where one is missing, look again for what is mounted
        return seen

    def _process_us(self, pid: int) -> tuple[Hashable, int] | None:
        """A process, told from another of its number by its start, and its time.

        A workload may have thousands, so nothing is read or split that is not needed.
        """
        try:
            descriptor = os.open(f"{self._proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            text = os.read(descriptor, _HEAD_BYTES)
            fields = text[text.rindex(b")") + 1 :].split(None, _START + 1)
            ticks = int(fields[_USER]) + int(fields[_SYSTEM])
            return (pid, int(fields[_START])), ticks * self._tick_us
        except (OSError, IndexError, ValueError):
            return None
        finally:
            os.close(descriptor)


def _cgroup_us(trees: Iterable[str], cgroup: str) -> int | None:
    for tree in trees:
        if tree.endswith(_CPUACCT):
            text = _head(f"{tree}{cgroup}/cpuacct.usage").strip()
            usage = int(text) // 1000 if text.isdigit() else None
        else:
            usage = _usage_usec(_head(f"{tree}{cgroup}/cpu.stat"))
        if usage is not None:
            return usage
    return None


def _advance(now: Mapping[Hashable, int], before: Mapping[Hashable, int], *, whole: bool) -> int:
    first = dict.fromkeys(now, 0) if whole else now
    return sum(max(0, used - before.get(place, first[place])) for place, used in now.items())


def _at_most(
    now: Mapping[Hashable, int], before: Mapping[Hashable, int], *, whole: bool
) -> int | None:
    """The most that was used since `before`: all time of a process that was not there then.

    None of an account that is seen for the first time, has lost a process, whose last time nobody
    knows, or has a counter that ran backwards.
    """
    if not (before or whole) or any(now.get(place, -1) < used for place, used in before.items()):
        return None
    return sum(used - before.get(place, 0) for place, used in now.items())


def _is_sure(now: Sequence[int], before: Sequence[int]) -> bool:
    """Whether no busy mode ran backwards; those that are not busy do so on sound kernels."""
    return all(
        mode in (_IDLE, _IOWAIT, _STEAL) or is_now >= was
        for mode, (is_now, was) in enumerate(zip(now, before, strict=True))
    )


def _alone(cgroups: Iterable[str]) -> set[str]:
    """The cgroups that hold no other of these, and are one account's."""
    # With a closing slash a cgroup sorts right before those inside it.
    paths = sorted(f"{cgroup}/" for cgroup in cgroups if _is_own(cgroup))
    following = [*paths[1:], ""]
    return {
        path[:-1]
        for previous, path, following_path in zip(["", *paths], paths, following, strict=False)
        if path != previous and not following_path.startswith(path)
    }


def _is_own(cgroup: str) -> bool:
    """Whether it can be a workload's: not the root, nor a path seen from inside a container."""
    return cgroup.startswith("/") and len(cgroup) > 1 and ".." not in cgroup.split("/")


def _modes(file: str) -> list[int] | None:
    """Clock ticks by mode; modes that an old kernel does not tell are 0."""
    fields = _head(file).partition(b"\n")[0].split()
    numbers = fields[1 : 1 + _COUNTED]
    if fields[:1] != [b"cpu"] or len(numbers) <= _IDLE:
        return None
    if not all(number.isdigit() for number in numbers):
        return None
    return [*map(int, numbers), *[0] * (_COUNTED - len(numbers))]


def _usage_usec(text: bytes) -> int | None:
    for line in text.splitlines():
        name, _, value = line.partition(b" ")
        if name == b"usage_usec" and value.isdigit():
            return int(value)
    return None


def _head(file: str) -> bytes:
    """The beginning of a file, which has all that is wanted; nothing where it cannot be read."""
    return read_bytes(file, _HEAD_BYTES) or b""
