"""The program of a puppet: one command a line in, one answer a line out, nothing else imported.

It ends with its input, and its children with it.
"""

import mmap
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from typing import TextIO

PAGE, HUGE_PAGE = mmap.PAGESIZE, 2**21
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
SHARED = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
STANDARD_FDS = 3
HUGETLB, MADV_HUGEPAGE = 0x40000, 14  # Linux's MAP_HUGETLB, not in Python 3.11's mmap

opened: list[int] = []
areas: dict[str, list[mmap.mmap]] = {}
files: dict[str, mmap.mmap] = {}  # each keeps a descriptor
read: dict[str, int] = {}
children: dict[str, TextIO] = {}


def fds(count: str) -> str:
    """Open or close as many as are missing or too many, beside what the rest of it takes."""
    wanted = int(count) - STANDARD_FDS - len(children) - len(files)
    if wanted < 0:
        return f"error {int(count) - wanted} are needed"
    while len(opened) > wanted:
        os.close(opened.pop())
    opened.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(wanted - len(opened)))
    return "done"


def hold(name: str, size: int, *, flags: int, unit: int = PAGE, advice: int | None = None) -> str:
    """Hold whole pages, every one touched: add an area, or let go of the latest ones."""
    held, size = areas.setdefault(name, []), size - size % unit
    while sum(map(len, held)) > size:
        held.pop().close()
    missing = size - sum(map(len, held))
    if missing:
        area = mmap.mmap(-1, missing, flags=flags)
        if advice is not None:
            area.madvise(advice)
        area[::PAGE] = bytes(missing // PAGE)
        held.append(area)
    return "done"


def huge(size: str) -> str:
    """Hold pages of hugetlbfs, of which there are as many as root has set aside."""
    try:
        return hold("huge", int(size), flags=PRIVATE | HUGETLB, unit=HUGE_PAGE)
    except OSError:
        return "no"


def map_file(size: str, path: str) -> str:
    """Map all of a file and read its first bytes; the kernel may map some pages beyond."""
    if path not in files:
        with open(path, "rb", 0) as file:
            files[path] = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    area, done = files[path], read.get(path, 0)
    read[path] = end = max(done, len(area) if size == "all" else int(size))
    for start in range(done, end, HUGE_PAGE):
        area[start : min(end, start + HUGE_PAGE) : PAGE]
    return "done"


def fork() -> str:
    """Start a child that runs this program, driven through this process."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs.fileno(), 0)
        os.dup2(theirs.fileno(), 1)
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__])
    theirs.close()
    children[str(pid)] = ours.makefile("rw")
    ours.close()
    return str(pid)


def tell(pid: str, *command: str) -> str:
    """Hand a command on to a child, and its answer back."""
    if pid not in children:
        return "gone"
    print(*command, file=children[pid], flush=True)
    answer = children[pid].readline()
    if not answer:
        children.pop(pid).close()
        os.waitpid(int(pid), 0)
    return answer.strip() or "gone"


def spin(seconds: str) -> str:
    """Use so much CPU time."""
    until = time.process_time() + float(seconds)
    while time.process_time() < until:
        pass
    return "done"


COMMANDS: dict[str, Callable[..., str]] = {
    "fds": fds,
    "anon": lambda size: hold("anon", int(size), flags=PRIVATE),
    "advised": lambda size: hold("advised", int(size), flags=PRIVATE, advice=MADV_HUGEPAGE),
    "shm": lambda size: hold("shm", int(size), flags=SHARED),
    "huge": huge,
    "map": map_file,
    "fork": fork,
    "tell": tell,
    "spin": spin,
    "ready": lambda: "done",
}


def main() -> None:
    """Do what each line says, then see the children off."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for line in iter(sys.stdin.readline, "exit\n"):
        if not line:
            break
        name, *arguments = line.split()
        try:
            answer = COMMANDS[name](*arguments)
        except Exception as error:
            answer = f"error {type(error).__name__}: {error}"
        print(answer, flush=True)
    for pid, channel in children.items():
        channel.close()
        os.waitpid(int(pid), 0)


if __name__ == "__main__":
    main()
