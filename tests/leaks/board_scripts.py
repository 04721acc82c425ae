"""Made-up sights of a board: one that shows a kind of suspect, and ones that do not."""

from dataclasses import replace

from seedance_obs.leaks.board_detectors import BoardLimits, seconds_needed
from seedance_obs.leaks.board_sight import BoardSight, ContextSight
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.suspect import Finding
from seedance_obs.process_tree import ProcessName

GIB = 2**30
LIMITS = BoardLimits()
PROCESS = ProcessName(4711, 90_000, "python")


def context(**more) -> ContextSight:
    """A living process that holds 4 GiB and does nothing, of which the driver tells apart."""
    given = {"memory_bytes": 4 * GIB, "sm_ratio": 0.0, "dram_ratio": 0.0, "alive": True}
    return ContextSight(**{"process": PROCESS, "account": "team\x1fpod-a", **given, **more})


def board(*contexts: ContextSight, **more) -> BoardSight:
    return BoardSight(**{"gpu_uuid": "GPU-1", "at": 0.0, "contexts": contexts, **more})


SPIN = {"utilization_ratio": 1.0, "power_watts": 120.0, "idle_watts": 70.0, "limit_watts": 700.0}

# By kind: what shows it, and what looks nearly like it and must not be taken for it.
SHOWN: dict[str, BoardSight] = {
    "pseudo_idle_context": board(context()),
    "dead_pid_memory": board(context(alive=False)),
    "memory_without_process": board(memory_used_bytes=4 * GIB),
    "busy_without_process": board(utilization_ratio=0.5),
    "allocated_without_process": board(idle_holders=("team\x1fpod-a",)),
    "spinning": board(context(sm_ratio=1.0), **SPIN),
}

NOT_SHOWN: dict[str, dict[str, BoardSight]] = {
    "pseudo_idle_context": {
        "computes": board(context(sm_ratio=0.01)),
        "copies": board(context(dram_ratio=0.01)),
        "encodes or decodes": board(context(video_ratio=0.01)),
        "holds a residue": board(context(memory_bytes=512 * 2**20 - 1)),
        "memory unknown": board(context(memory_bytes=None)),
        "activity unknown": board(context(sm_ratio=None)),
        "only memory activity known": board(context(sm_ratio=None, dram_ratio=0.0)),
        "warm": board(context(warm=True)),
        "dead": board(context(alive=False)),
        "gone": board(),
        "list unknown": board(contexts=None),
        "another start": board(context(process=replace(PROCESS, start_ticks=90_001))),
        "start unknown": board(context(process=replace(PROCESS, start_ticks=None))),
    },
    "dead_pid_memory": {
        "alive": board(context(alive=True)),
        "nobody can tell": board(context(alive=None)),
        "holds a residue": board(context(alive=False, memory_bytes=2**20)),
        "memory unknown": board(context(alive=False, memory_bytes=None)),
        "gone": board(),
        "list unknown": board(contexts=None),
    },
    "memory_without_process": {
        "a process": board(context(memory_bytes=None), memory_used_bytes=4 * GIB),
        "residue": board(memory_used_bytes=512 * 2**20 - 1),
        "memory unknown": board(),
        "list unknown": board(memory_used_bytes=4 * GIB, contexts=None),
    },
    "busy_without_process": {
        "a process": board(context(), utilization_ratio=0.5),
        "hardly busy": board(utilization_ratio=0.09, sm_active_ratio=0.0),
        "activity unknown": board(),
        "list unknown": board(utilization_ratio=0.5, contexts=None),
    },
    "allocated_without_process": {
        "runs something": board(context()),
        "another holder": board(idle_holders=("team\x1fpod-b",)),
        "list unknown": board(idle_holders=("team\x1fpod-a",), contexts=None),
    },
    "spinning": {
        "draws": board(**{**SPIN, "power_watts": 133.0}),
        "not fully used": board(**{**SPIN, "utilization_ratio": 0.98}),
        "use unknown": board(**{**SPIN, "utilization_ratio": None}),
        "draw unknown": board(**{**SPIN, "power_watts": None}),
        "idle draw unknown": board(**{**SPIN, "idle_watts": None}),
        "limit unknown": board(**{**SPIN, "limit_watts": None}),
    },
}


def needed(kind: str, limits: BoardLimits = LIMITS) -> float:
    return seconds_needed(kind, limits)


def played(watch: BoardWatch, sight: BoardSight, times) -> BoardWatch:
    """The watch after it was shown one sight at each of these times."""
    for at in times:
        watch.note(replace(sight, at=float(at)))
    return watch


def found(watch: BoardWatch, now: float, kind: str) -> list[Finding]:
    return [finding for finding in watch.findings(now) if finding.kind == kind]
