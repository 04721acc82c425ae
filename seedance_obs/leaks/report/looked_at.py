"""How far a page of leaks can be relied on: what the probes looked at, and what not, or not yet."""

from collections.abc import Iterator, Mapping

from seedance_obs.leaks.report.in_words import duration
from seedance_obs.leaks.report.page import LeakPage, ToldWindow
from seedance_obs.leaks.report.terminal_lines import cut
from seedance_obs.leaks.suspect import GPU_KINDS, KINDS, OTHERS_HIDDEN

MOST_CELLS = 30  # of words that others chose
# Why processes could not be read, where the outcome of the probe is no word for people.
UNREAD = {
    "gone": "ended meanwhile",
    "no_permission": "not permitted",
    "hidden": "hidden or ended",
    "fds_unknown": "open files unknown",
    "no_host_pids": "of pids that mean nothing in this container",
}


def counted(number_of: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`, `409 processes`."""
    plural = "" if number_of == 1 else "es" if noun.endswith("s") else "s"
    return f"{number_of:,} {noun}{plural}"


def spoken(name: str) -> str:
    """`memory in use` for `memory_in_use`."""
    return name.replace("_", " ")


def probed(page: LeakPage) -> Iterator[str]:
    """The node, what its last probe read and what it could not, and its idle windows."""
    read, unread = page.processes.get("read", 0), _unread(page)
    among = f"{read:,} of " if unread else ""
    processes = counted(read + sum(unread.values()), "process")
    yield f"{cut(page.node, 40)}: {among}{processes} read {duration(page.age_seconds)} ago"
    if unread:
        yield f"others: {_reasons(unread)}"
    if page.dead_on_gpus:
        yield f"{page.dead_on_gpus:,} ended and still on a GPU"
    if page.watched_seconds is not None and _is_early(page, "fd_growth"):
        yield f"watched for {duration(page.watched_seconds)}"
        yield f"growth of open files is told from {duration(page.judged_after['fd_growth'])} on"
    node, workloads = _windows(page)
    if node is not None:
        yield f"idle window {_state(node)}"
    if workloads:
        yield f"workloads' own: {sum(one.open for one in workloads)} of {len(workloads)} open"


def looked_at(page: LeakPage) -> list[str]:
    """What the last probe has judged."""
    read, found = page.processes.get("read", 0), []
    if read:
        early = _is_early(page, "fd_growth")
        found.append(f"{'limits of ' * early}open files of {counted(read, 'process')}")
        node, workloads = _windows(page)
        judged = sum(_is_judged(page, one) for one in workloads)
        if node is not None and _is_judged(page, node):
            found.append("growth of memory")
        elif judged:
            found.append(f"growth of memory in {judged} of {counted(len(workloads), 'workload')}")
    if page.gpus and not all(_is_early(page, kind) for kind in GPU_KINDS):
        found.append(f"{counted(page.gpus, 'GPU')} and who holds them")
    return found


def not_looked_at(page: LeakPage) -> Iterator[str]:
    """What the last probe has not judged, and why."""
    unread = {why: count for why, count in _unread(page).items() if why != "gone"}
    if unread:
        yield f"{counted(sum(unread.values()), 'process')} ({_reasons(unread)})"
    if page.processes.get(OTHERS_HIDDEN):
        yield "processes of others (this exporter sees its own, or those of its container, alone)"
    elif not unread and not page.processes.get("read"):
        yield "processes (none holds a GPU, or belongs to one that does)"
    if _is_early(page, "fd_growth"):
        yield f"growth of open files (told from {duration(page.judged_after['fd_growth'])} on)"
    yield from _memory_not_judged(page)
    if page.gpus:
        yield from _gpus_not_judged(page)
    else:
        yield "GPUs (none is seen)"
    if page.unjudged:
        kinds = ", ".join(cut(kind, MOST_CELLS) for kind in page.unjudged)
        yield f"{kinds} (the probe failed: see the exporter's log)"


def _memory_not_judged(page: LeakPage) -> Iterator[str]:
    node, workloads = _windows(page)
    needed = duration(page.judged_after.get("anonymous_growth", 0.0))
    if node is not None and node.open:
        if not _is_judged(page, node):
            yield f"growth of memory (told after {needed} of idle time)"
        return
    open_ones = [window for window in workloads if window.open]
    waiting = [window for window in open_ones if not _is_judged(page, window)]
    if waiting:
        where = f"{len(waiting)} of {counted(len(workloads), 'workload')}"
        yield f"growth of memory in {where} (told after {needed} of idle time)"
    why = "" if node is None or not node.reason else f", {cut(spoken(node.reason), MOST_CELLS)}"
    elsewhere = " elsewhere" if open_ones else ""
    yield f"growth of memory{elsewhere} (no idle window{why}; {_last_idle(page)})"


def _gpus_not_judged(page: LeakPage) -> Iterator[str]:
    early: dict[float, list[str]] = {}
    for kind in KINDS:
        if kind in GPU_KINDS and _is_early(page, kind):
            early.setdefault(page.judged_after[kind], []).append(kind)
    for seconds, kinds in sorted(early.items()):
        yield f"{', '.join(kinds)} (told from {duration(seconds)} on)"
    if page.idle_draw_unknown:
        some = f"{page.idle_draw_unknown:,} of {counted(page.gpus, 'GPU')}"
        yield f"spinning (idle draw of {some} not known)"


def _is_early(page: LeakPage, kind: str) -> bool:
    """Whether nothing of a kind can be told yet; nothing is so where nobody says since when."""
    watched = page.watched_seconds
    return watched is not None and watched < page.judged_after.get(kind, 0.0)


def _is_judged(page: LeakPage, window: ToldWindow) -> bool:
    """Whether memory is judged by a window, which takes idle time of its own or the node's."""
    node, _ = _windows(page)
    idle_seconds = max(window.seconds, 0.0 if node is None else node.seconds)
    return window.open and idle_seconds >= page.judged_after.get("anonymous_growth", 0.0)


def _unread(page: LeakPage) -> Mapping[str, int]:
    """Processes that could not be read, by outcome, without those that are told as suspects."""
    counts = {**page.processes, "gone": page.processes.get("gone", 0) - page.dead_on_gpus}
    return {
        outcome: count
        for outcome, count in counts.items()
        if count and outcome not in ("read", OTHERS_HIDDEN)
    }


def _reasons(unread: Mapping[str, int]) -> str:
    """`2 not permitted, 1 ended meanwhile`: the most first."""
    return ", ".join(
        f"{count:,} {cut(UNREAD.get(outcome, spoken(outcome)), 2 * MOST_CELLS)}"
        for outcome, count in sorted(unread.items(), key=lambda item: -item[1])
    )


def _windows(page: LeakPage) -> tuple[ToldWindow | None, list[ToldWindow]]:
    """The node's idle window, and those of workloads."""
    of_node = [window for window in page.windows if not window.workload]
    return (of_node[0] if of_node else None), [one for one in page.windows if one.workload]


def _state(window: ToldWindow) -> str:
    if window.open:
        return "open"
    return f"closed ({cut(spoken(window.reason), MOST_CELLS)})" if window.reason else "closed"


def _last_idle(page: LeakPage) -> str:
    if page.idle_age_seconds is None:
        return "never yet"
    return f"last one {duration(page.idle_age_seconds)} ago"
