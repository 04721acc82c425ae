"""Makes a curve of what nccl-tests measured."""

from collections import defaultdict
from statistics import median

from seedance_obs.collectives.calibration import Curve, Origin, Point
from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.collectives.nccl_tests import Run
from seedance_obs.errors import UsageError


def curve_of_run(
    run: Run,
    *,
    collective: Collective | None = None,
    group: Group | None = None,
    link_class: str | None = None,
    measured_at: str | None = None,
    in_place: bool = False,
) -> Curve:
    """The curve of a run, of sizes measured repeatedly the median.

    Sizes of 0 bytes are left out, which is what nccl-tests makes of sizes too small to share out.
    A run that was cut short gives the curve of the sizes it came to.

    Args:
        run: What nccl-tests printed.
        collective: Which test it was, where the run does not say.
        group: Who took part, where the run does not say.
        link_class: The worst link class within a node; runs never say it.
        measured_at: When, in ISO 8601.
        in_place: Whether to take the times within one buffer.

    Raises:
        UsageError: says why no curve can be made of it.
    """
    collective = collective or run.collective
    if collective is None:
        raise UsageError("the run does not say which test it was: give the collective")
    group = group or _group(run)
    wrong = sum(sample.wrong or 0 for sample in run.samples)
    if wrong:
        raise UsageError(f"{wrong} results of the run were wrong: its times mean nothing")
    buffers = "in place" if in_place else "out of place"
    try:
        origin = Origin(run.tool, run.library, run.gpu_model, measured_at, buffers)
        return Curve(collective, group, _points(run, in_place=in_place), link_class, origin)
    except ValueError as error:
        raise UsageError(f"the run of {collective} gives no curve: {error}") from error


def _points(run: Run, *, in_place: bool) -> tuple[Point, ...]:
    times = defaultdict(list)
    for sample in run.samples:
        seconds = sample.in_place_seconds if in_place else sample.out_of_place_seconds
        if seconds is not None and sample.size_bytes > 0:
            times[sample.size_bytes].append(seconds)
    return tuple(Point(size, median(times[size])) for size in sorted(times))


def _group(run: Run) -> Group:
    if run.gpus is None or run.nodes is None:
        wanted = "the run does not say which GPUs took part, each rank once"
        raise UsageError(f"{wanted}: give GPUs and nodes, or build nccl-tests with MPI=1")
    try:
        return Group(run.gpus, run.nodes)
    except ValueError as error:
        raise UsageError(f"the run measures nothing between GPUs: {error}") from error
