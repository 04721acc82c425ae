"""Real processes of this machine that leak, or only look as if, brought to any moment at once.

A scene lasts as long as one likes: `advance(t)` gives its process what it would hold t seconds
after the scene began, so an hour takes as long as its system calls. Time goes forward only.
"""

import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.leaks.puppet import Puppet, puppet, reborn

BEGINS_AT_S = 1200.0  # until then all but the sawtooths are steady, so that they can be watched
HOUR_S = 3600.0
FDS, MOST_FDS = 60, 20_000
ANONYMOUS_BYTES = 40_000_000
MAPPED_BYTES, MAPPED_WITHIN_S = 3_000_000_000, 2700.0
HUGE_BYTES, SHARED_BYTES_PER_H, MOST_SHARED_BYTES = 2**26, 400_000_000, 600_000_000
LIVES, LIFE_S, FDS_PER_LIFE, BYTES_PER_LIFE = 8, 240.0, 2200, 15_000_000

Act = Callable[[Puppet, float], None]  # brings a process to how it is at a time


@dataclass(frozen=True)
class Scene:
    """A process of this machine. `leaks` are the kinds of suspect that it is, sooner or later."""

    name: str
    leaks: frozenset[str]
    pid: int
    advance: Callable[[float], None]


@contextmanager
def scenes(folder: Path, *names: str) -> Iterator[list[Scene]]:
    """The named scenes, or all of them, as they are at 0; their processes end with the block.

    The mapped file is a sparse one in `folder`, and takes 3 GB of page cache; the rest takes less
    than one. Where no pid can be chosen, `rebirth` skips the test.
    """
    with ExitStack() as stack:
        yield [_scene(stack, name, folder) for name in names or SCENES]


def _scene(stack: ExitStack, name: str, folder: Path) -> Scene:
    if name == "rebirth":
        life = stack.enter_context(Rebirth())
        return Scene(name, SCENES[name], life.pid, life.advance)
    process = stack.enter_context(puppet())
    process.fds(FDS)
    process.anon(ANONYMOUS_BYTES)
    act = mapping(folder / "mapped") if name == "mapping" else ACTS[name]
    act(process, 0.0)
    return Scene(name, SCENES[name], process.pid, lambda t: act(process, t))


def _since_begin(t: float) -> float:
    return max(0.0, t - BEGINS_AT_S)


def steady(process: Puppet, t: float) -> None:
    """Hold what it always held."""


def fd_leak(process: Puppet, t: float) -> None:
    """Open nine a second, and one day all that it may."""
    most = min(MOST_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    process.fds(min(most, FDS + int(9 * _since_begin(t))))


def fd_step(process: Puppet, t: float) -> None:
    """Open two thousand at once, and keep them."""
    process.fds(FDS + (2000 if t >= BEGINS_AT_S else 0))


def fd_sawtooth(period_s: float) -> Act:
    """Open ten a second, and close them all so often, as what waits for a collector does."""

    def act(process: Puppet, t: float) -> None:
        process.fds(FDS + int(10 * (t % period_s)))

    return act


def anonymous_growth(process: Puppet, t: float) -> None:
    """Touch fifty more megabytes an hour."""
    process.anon(ANONYMOUS_BYTES + int(50e6 * _since_begin(t) / HOUR_S))


def mapping(file: Path) -> Act:
    """Read its way through a mapped file: what is resident grows, and can be dropped."""
    with file.open("wb") as sparse:
        sparse.truncate(MAPPED_BYTES)

    def act(process: Puppet, t: float) -> None:
        process.map(file, int(MAPPED_BYTES * min(1.0, _since_begin(t) / MAPPED_WITHIN_S)))

    return act


def huge_and_shared(process: Puppet, t: float) -> None:
    """Hold huge pages from some moment on, and fill a shared segment."""
    if t >= BEGINS_AT_S and not process.huge(HUGE_BYTES):
        process.advised(HUGE_BYTES)
    shared = SHARED_BYTES_PER_H * _since_begin(t) / HOUR_S
    process.shm(min(MOST_SHARED_BYTES, int(shared)))


class Rebirth:
    """Processes that each hold more than the one before and are steady, under one and the same pid.

    The eighth lives on: by then descriptors would have grown for longer than a fast rule needs.
    """

    def __init__(self) -> None:
        self._block = ExitStack()
        self._life = 0
        self.pid = 0

    def __enter__(self) -> "Rebirth":
        self._hold(self._block.enter_context(puppet()))
        return self

    def __exit__(self, *exception: object) -> None:
        self._block.close()

    def advance(self, t: float) -> None:
        """Let the process of this moment live, and the one before die."""
        life = min(int(t // LIFE_S), LIVES - 1)
        if life != self._life:
            self._life = life
            self._block.close()
            self._hold(self._block.enter_context(reborn(self.pid)))

    def _hold(self, process: Puppet) -> None:
        self.pid = process.pid
        process.fds(FDS + FDS_PER_LIFE * self._life)
        process.anon(ANONYMOUS_BYTES + BYTES_PER_LIFE * self._life)


ACTS: dict[str, Act] = {
    "steady": steady,
    "fd-leak": fd_leak,
    "fd-step": fd_step,
    "fd-sawtooth-200": fd_sawtooth(200.0),
    "fd-sawtooth-300": fd_sawtooth(300.0),
    "fd-sawtooth-600": fd_sawtooth(600.0),
    "anonymous-growth": anonymous_growth,
    "huge-and-shared": huge_and_shared,
}
_LEAKS = {
    "fd-leak": frozenset({"fd_growth", "fd_near_limit"}),
    "anonymous-growth": frozenset({"anonymous_growth"}),
}
SCENES = {name: _LEAKS.get(name, frozenset()) for name in (*ACTS, "mapping", "rebirth")}
