"""The part of a description about what runs: workloads, and what each does to GPUs and host."""

from collections.abc import Mapping

from seedance_obs.sources.sim.description import Section
from seedance_obs.sources.sim.kinds import KINDS
from seedance_obs.sources.sim.machine import (
    GHOST,
    GUISES,
    HOLDER,
    ZOMBIE,
    Held,
    HostUse,
    PodNames,
    Workload,
)

_NO_USE = ((1.0, 0.0),)


def read_workload(index: int, section: Section) -> Workload:
    """One entry of `workloads`."""
    kind = section.text("kind")
    if kind not in KINDS:
        section.reject("kind", f"one of {', '.join(sorted(KINDS))} is wanted, found {kind!r}")
    duration_s = section.optional_number("duration_s", low=0.1)
    repeat_every_s = section.optional_number("repeat_every_s", low=0.1)
    if repeat_every_s is not None and (duration_s is None or duration_s > repeat_every_s):
        section.reject("repeat_every_s", "a duration_s that is no longer is wanted beside it")
    guise = section.optional_text("guise") or ""
    _check_guise(section, guise, duration_s, repeat_every_s)
    return Workload(
        index=index,
        name=section.text("name"),
        tenant=section.text("tenant"),
        kind=kind,
        devices=_held(section),
        phases=_NO_USE if guise == HOLDER else _phases(section),
        memory_mib=0 if guise == HOLDER else section.integer("memory_mib", low=1),
        start_s=section.number("start_s", 0.0),
        duration_s=duration_s,
        repeat_every_s=repeat_every_s,
        intensity=section.number("intensity", 1.0, high=1.0),
        share=section.number("share", 1.0, low=0.01, high=1.0),
        load_s=section.number("load_s", 0.0),
        stagger_s=section.number("stagger_s", 0.0),
        pod=None if guise == GHOST else _pod(section),
        guise=guise,
        host=HostUse() if guise == GHOST else _host_use(section),
    )


def _check_guise(
    section: Section, guise: str, duration_s: float | None, repeat_every_s: float | None
) -> None:
    if guise and guise not in GUISES:
        section.reject("guise", f"one of {', '.join(GUISES)} is wanted, found {guise!r}")
    if guise == ZOMBIE and (duration_s is None or repeat_every_s is not None):
        section.reject("guise", f"a {ZOMBIE} wants a duration_s, and no repeat_every_s")


def _host_use(section: Section) -> HostUse:
    usual = HostUse()
    return HostUse(
        fds=section.integer("fds", usual.fds, low=3),
        fds_per_s=section.number("fds_per_s", usual.fds_per_s),
        fds_reset_s=section.optional_number("fds_reset_s", low=1.0),
        fd_limit=section.integer("fd_limit", usual.fd_limit, low=3),
        anonymous_mb=section.number("anonymous_mb", usual.anonymous_mb),
        anonymous_mb_per_h=section.number("anonymous_mb_per_h", usual.anonymous_mb_per_h),
        file_mb=section.number("file_mb", usual.file_mb),
        shared_mb=section.number("shared_mb", usual.shared_mb),
        swapped_mb=section.number("swapped_mb", usual.swapped_mb),
        data_mb=section.optional_number("data_mb"),
    )


def _held(section: Section) -> tuple[Held, ...]:
    boards = tuple(Held(gpu) for gpu in section.integers("gpus"))
    held = boards + tuple(
        _mig_place(section, index, text)
        for index, text in enumerate(section.texts("mig_instances"))
    )
    if not held or len(set(held)) != len(held):
        section.reject("gpus", "at least one device, and each only once, is wanted")
    return held


def _mig_place(section: Section, index: int, text: str) -> Held:
    gpu, _, instance = text.partition("/")
    if not (gpu.isdecimal() and instance.isdecimal()):
        section.reject(
            f"mig_instances[{index}]", f"GPU and MIG index as '0/2' are wanted, found {text!r}"
        )
    return Held(int(gpu), int(instance))


def _phases(section: Section) -> tuple[tuple[float, float], ...]:
    phases: list[tuple[float, float]] = []
    for index, item in enumerate(section.list_of("phases", "a list of [seconds, activity]")):
        found = _burst(item) if isinstance(item, Mapping) else [_phase(item)]
        known = [phase for phase in found if phase is not None]
        if not known or len(known) < len(found):
            section.reject(
                f"phases[{index}]",
                "[seconds above 0, activity from 0 to 1], or {times: N, of: [such, ...]}, is "
                f"wanted, found {item!r}",
            )
        phases += known
    if not phases:
        section.reject("phases", "at least one [seconds, activity] is wanted")
    return tuple(phases)


def _burst(item: Mapping[object, object]) -> list[tuple[float, float] | None]:
    """Phases that come several times in a row; empty where it is no such thing."""
    times, of = item.get("times"), item.get("of")
    if item.keys() != {"times", "of"} or not isinstance(of, list):
        return []
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= 10_000:
        return []
    return [_phase(phase) for phase in of] * times


def _phase(item: object) -> tuple[float, float] | None:
    if not isinstance(item, list) or len(item) != 2:
        return None
    if any(isinstance(part, bool) or not isinstance(part, int | float) for part in item):
        return None
    seconds, activity = float(item[0]), float(item[1])
    return (seconds, activity) if 0 < seconds < 1e9 and 0 <= activity <= 1 else None


def _pod(section: Section) -> PodNames | None:
    pod = section.section("pod")
    if pod is None:
        return None
    names = PodNames(pod.text("namespace"), pod.text("name"), pod.text("container"))
    pod.close()
    return names
