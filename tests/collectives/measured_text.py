"""Renders what nccl-tests print, version by version, from times that are known."""

from dataclasses import dataclass, field, replace

GPU = "NVIDIA H200"


@dataclass(frozen=True)
class Printed:
    """A run to be rendered; `times` maps sizes in bytes to microseconds out of and in place."""

    program: str = "all_reduce_perf"
    hosts: tuple[str, ...] = ("one",)
    gpus_per_host: int = 8
    times: dict[int, tuple[float, float]] = field(default_factory=dict)
    columns: tuple[str, ...] = ("redop", "root")
    wrong: str = "#wrong"
    counts: tuple[str, str] = ("0", "0")
    groups: bool = True
    says_program: bool = True
    blocks: int = 2
    after_block: tuple[str, ...] = ()
    ending: bool = True
    time: str = "time"

    def but(self, **changes):
        return replace(self, **changes)


def measured(sizes, *, latency_us=20.0, gbps=300.0):
    return {
        size: (
            round(latency_us + size / gbps / 1e3, 2),
            round(0.9 * (latency_us + size / gbps / 1e3), 2),
        )
        for size in sizes
    }


def rendered(run: Printed) -> str:
    return "\n".join([*head(run), heading(run), *rows(run), *foot(run)]) + "\n"


def head(run):
    if run.says_program:
        yield "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807"
        yield f"# Collective test starting: {run.program}"
    else:
        yield f"$ mpirun -np 8 ./build/{run.program} -b 8 -e 1G -f 2"
    yield "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20"
    yield "#"
    yield "# Using devices"
    group = "Group  0 " if run.groups else ""
    for rank in range(len(run.hosts) * run.gpus_per_host):
        host, device = divmod(rank, run.gpus_per_host)
        where = f"on {run.hosts[host]:>10} device {device:2} [0000:{device:02x}:00]"
        yield f"#  Rank {rank:2} {group}Pid {100 + rank:6} {where} {GPU}"
    yield "#"


def heading(run):
    block = (run.time, "algbw", "busbw", run.wrong, *run.after_block)
    units = "#        (B)    (elements)      (us)  (GB/s)  (GB/s)"
    names = ("size", "count", "type", *run.columns, *block * run.blocks)
    return "#   " + "   ".join(names) + "\n" + units


def rows(run):
    for size, times in run.times.items():
        yield "".join((preamble(run, size), *blocks(run, size, times)))


def preamble(run, size):
    left = {"redop": "sum", "root": "-1"}
    behind = "".join(f"{left[name]:>8}" for name in run.columns)
    return f"{size:12}  {size // 4:12}  {'float':>8}{behind}"


def blocks(run, size, times):
    for time, wrong in list(zip(times, run.counts, strict=True))[: run.blocks]:
        gbps = size / max(time, 0.01) / 1e3
        more = "".join(f"  {number:>7}" for number, _ in enumerate(run.after_block))
        yield f"  {shortened(time):>7}  {gbps:6.2f}  {gbps:6.2f}  {wrong:>5}{more}"


def shortened(time):
    return f"{time:.2f}" if time < 10_000 else f"{time:.0f}" if time < 1e7 else f"{time:.1e}"


def foot(run):
    if run.ending:
        yield "# Out of bounds values : 0 OK"
        yield "# Avg bus bandwidth    : 122.073 "
        yield "#"
