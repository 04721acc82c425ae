"""Numbers of suspects as a person reads them, what each kind looks like, and what to do next."""

from collections.abc import Callable, Iterator, Mapping

from seedance_obs.leaks.report.page import ToldSuspect

SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# By kind: what to do next. {pid} is that of the worst process, {gpu} the board's index.
NEXT = {
    "fd_growth": "ls -l /proc/{pid}/fd shows what is left open",
    "fd_near_limit": "ls -l /proc/{pid}/fd; prlimit --pid {pid} --nofile shows the limit",
    "anonymous_growth": "pmap -x {pid} | sort -nk3 | tail, and again later: which one grows?",
    "sparse_residency": "nothing, unless memory is short: grep Vm /proc/{pid}/status",
    "pseudo_idle_context": "ps -o pid,etime,args -p {pid}, then ask its owner to end it",
    "dead_pid_memory": "fuser -v /dev/nvidia* shows who still holds the board",
    "memory_without_process": "fuser -v /dev/nvidia*; if nobody: drain, nvidia-smi -i {gpu} -r",
    "busy_without_process": "nvidia-smi pmon -i {gpu} -c 5; look for other VMs and containers",
    "allocated_without_process": "ask its owner: is it starting, stuck or forgotten?",
    "spinning": "py-spy dump --pid {pid}, then look at the ranks that it waits for",
}
# The same where no process is known.
NEXT_WITHOUT_PID = {
    "pseudo_idle_context": "nvidia-smi -i {gpu} shows who holds it; then ask its owner to end it",
    "spinning": "nvidia-smi pmon -i {gpu} -c 5 shows who keeps it busy; py-spy dump --pid that one",
}
# What a kind begins with that no number says.
_OPENING = {"allocated_without_process": "nothing run on the GPU"}
_HELD = {
    "pseudo_idle_context": "held idle",
    "memory_without_process": "in use",
    "allocated_without_process": "in use",
}
_SAID_UNLESS_ZERO = {"file_bytes", "shared_bytes", "swap_bytes"}
# Said as part of something else, or as the suspect's age.
_TOLD_ELSEWHERE = {
    *("open_fds", "fd_limit", "gpu_memory_bytes"),
    *("power_watts", "idle_watts", "seconds"),
}


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `1 h 52 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"


def size(size_bytes: float) -> str:
    """`3.2 GiB`: of the unit that leaves at most three digits before the point."""
    value, units = size_bytes, iter(SIZES)
    unit = next(units)
    while abs(value) >= 999.5 and unit != SIZES[-1]:
        value, unit = value / 1024, next(units)
    return f"{value:.0f} {unit}" if unit == "B" else f"{number(value)} {unit}"


def number(value: float) -> str:
    """Two digits or more: `9.0`, `48`, `31,200`; smaller than a tenth: one digit, `0.04`."""
    if abs(value) >= 9.95:
        return f"{value:,.0f}"
    if abs(value) >= 0.095 or not value:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.005 else f"{value:.1g}"


def percent(ratio: float) -> str:
    """`96 %`; below ten with a digit after the point."""
    value = ratio * 100
    return f"{value:.0f} %" if abs(value) >= 9.95 or not value else f"{value:.1f} %"


def fds_rate(per_second: float) -> str:
    """`9.0 fds/s`; what is slower than one a second, by the hour."""
    if abs(per_second) >= 1:
        return f"{number(per_second)} fds/s"
    return f"{number(per_second * 3600)} fds/h"


def bytes_rate(per_second: float) -> str:
    """`50 MiB/h`."""
    return f"{size(per_second * 3600)}/h"


def money(value: float, currency: str) -> str:
    """`0.04 EUR/h`; a price without a currency has none to name."""
    shown = f"{value:,.2f}" if value >= 0.005 or not value else f"{value:.1g}"
    return f"{shown} {currency}/h" if currency else f"{shown} per hour"


# Evidence in the order in which it is told.
_WORDS: Mapping[str, Callable[[float], str]] = {
    "growth_fds_per_second": fds_rate,
    "low_water_fds_per_second": lambda value: f"low water {fds_rate(value)}",
    "growth_bytes_per_second": bytes_rate,
    "low_water_bytes_per_second": lambda value: f"low water {bytes_rate(value)}",
    "exhaustion_seconds": lambda value: f"full in {duration(value)}",
    "residency_ratio": lambda value: f"{percent(value)} of anonymous memory resident",
    "anonymous_bytes": lambda value: f"{size(value)} anonymous",
    "resident_bytes": lambda value: f"{size(value)} resident in all",
    "file_bytes": lambda value: f"{size(value)} of files",
    "shared_bytes": lambda value: f"{size(value)} shared",
    "swap_bytes": lambda value: f"{size(value)} swapped out",
    "referenced_ratio": lambda value: f"{percent(value)} used lately",
    "utilization_ratio": lambda value: f"{percent(value)} busy",
    "sm_ratio": lambda value: f"SM {percent(value)}",
    "dram_ratio": lambda value: f"DRAM {percent(value)}",
    "samples": lambda value: f"{value:,.0f} samples",
}


def numbers(suspect: ToldSuspect, currency: str) -> list[str]:
    """What says so, for how long, and what it costs: pieces of one sentence.

    Of several processes it is what they show together, and then the numbers of the worst.
    """
    opening = [_OPENING[suspect.kind]] if suspect.kind in _OPENING else []
    first, *rest = [*opening, *_told(suspect.kind, suspect.evidence)] or ["so"]
    several = len(suspect.processes) > 1
    pieces = [f"{together} together" for together in _told("", suspect.totals) if several]
    pieces += [f"{'the worst ' * several}{first} for {duration(suspect.age_seconds)}", *rest]
    pieces += _power(suspect)
    if suspect.cost_per_hour is not None:
        pieces.append(money(suspect.cost_per_hour, currency))
    if suspect.rule:
        pieces.append(f"by rule {suspect.rule}")
    return pieces


def main_number(kind: str, evidence: Mapping[str, float]) -> str:
    """The number that a process of a kind of suspect is told by; empty where there is none."""
    return next(_told(kind, evidence), "")


def _power(suspect: ToldSuspect) -> Iterator[str]:
    """What it draws by the books.

    Where the board's draw is what makes it suspect, that comes first, beside an idle board's.
    """
    booked, board = suspect.power_watts, suspect.evidence.get("power_watts")
    idle = suspect.evidence.get("idle_watts")
    if board is not None and (idle is not None or booked is None):
        when_idle = "" if idle is None else f" ({number(idle)} W when idle)"
        yield f"board {number(board)} W{when_idle}"
        if booked is not None:
            yield f"of which {number(booked)} W are booked to it"
    elif booked is not None:
        yield f"{number(booked)} W"


def _told(kind: str, told: Mapping[str, float]) -> Iterator[str]:
    """The numbers in words; those that this version has no words for, by their names."""
    if told.get("gpu_memory_bytes"):
        yield f"{size(told['gpu_memory_bytes'])} {_HELD.get(kind, 'held')}"
    open_files = list(_open_files(told))
    if kind == "fd_near_limit":  # here it is what matters; else the growth is
        yield from open_files
    for name, words in _WORDS.items():
        if name in told and (told[name] or name not in _SAID_UNLESS_ZERO):
            yield words(told[name])
    if kind != "fd_near_limit":
        yield from open_files
    for name in sorted(told.keys() - _WORDS.keys() - _TOLD_ELSEWHERE):
        yield f"{name} {told[name]:g}"


def _open_files(told: Mapping[str, float]) -> Iterator[str]:
    is_open, limit = told.get("open_fds"), told.get("fd_limit")
    if is_open is not None and limit:
        yield f"{is_open:,.0f} of {limit:,.0f} open ({percent(is_open / limit)})"
    elif is_open is not None:
        yield f"{is_open:,.0f} open"


def next_step(kind: str, suspect: ToldSuspect) -> str:
    """What to do next about a kind, with the pid and the board of its worst suspect.

    Where that takes a pid and none is known, it is something else, or empty.
    """
    gpu = suspect.gpu if suspect.gpu.isdecimal() else "N"
    if suspect.processes:
        return NEXT.get(kind, "").format(pid=suspect.processes[0].pid, gpu=gpu)
    step = NEXT.get(kind, "")
    if "{pid}" in step:
        step = NEXT_WITHOUT_PID.get(kind, "")
    return step.format(gpu=gpu)
