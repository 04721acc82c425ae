"""Reads what NVIDIA's nccl-tests and AMD's rccl-tests print, whatever stands between the lines.

Lines may carry what mpirun, srun or a launcher puts before them, NCCL's own log may run between and
inside them, one text may hold several runs, and a run may have been cut short.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seedance_obs.collectives.collective import Collective
from seedance_obs.collectives.nccl_tests_rows import RowReader, Sample, layout_of

PREFIX = re.compile(r"^.*?<std(?:out|err)>:|^\s*\d+:(?=\s)")
NOT_OURS = ("alltoallv", "hypercube")  # programs that measure what `Collective` does not have
PROGRAM = re.compile(r"\b(" + "|".join((*Collective, *NOT_OURS)) + r")_perf(?:_mpi)?\b")
TOOL = re.compile(r"\b((?:nccl|rccl)-tests)\b:?\s+version:?\s+(\S+)", re.I)
LIBRARY_CODE = re.compile(r"\b[nr]ccl-library=(\d+)")
LIBRARY = re.compile(r"\b[NR]CCL version ?:? (\d+\.\d+\.\d+)")
# What a run says first, in this order, each once.
OPENINGS = (
    re.compile(r"#\s*[nr]ccl-tests version"),
    re.compile(r"#\s*Collective test starting"),
    re.compile(r"#\s*nThread \d+"),
)
DEVICE = re.compile(
    r"#\s+Rank\s+(?P<rank>\d+)\s+(?:Group\s+(?P<group>\d+)\s+)?Pid\s+\d+\s+on\s+(?P<host>\S+)"
    r"\s+device\s+\d+\s+\[[^\]]*\]\s*(?P<model>.*?)\s*$"
)
AVERAGE = re.compile(r"#\s*Avg bus bandwidth\s*:\s*([\d.]+(?:e[+-]?\d+)?)")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one test; what the text does not say is None.

    Attributes:
        collective: What was measured.
        gpus: How many took part; None where the ranks listed are not 0, 1, 2, ... each once, or
            where they are split into groups that run side by side.
        nodes: On how many hosts; None where `gpus` is.
        gpu_model: The name of the GPUs; None where they are not all alike.
        tool: Which program measured, with its version.
        library: The version of NCCL or RCCL.
        samples: The rows in order.
        average_bus_bandwidth: The mean `busbw` that the run states at its end, in bytes per second.
        complete: Whether the run came to its end.
    """

    collective: Collective | None
    gpus: int | None
    nodes: int | None
    gpu_model: str | None
    tool: str | None
    library: str | None
    samples: tuple[Sample, ...]
    average_bus_bandwidth: float | None
    complete: bool


def read_runs(text: str) -> tuple[Run, ...]:
    """The runs in a text, in order; those without a single time are left out.

    Which test it was is told by the run itself or, of versions that do not say, by the latest
    command line before it. A text without headings is read as if it had the usual ones.
    """
    runs = []
    reading = _Reading()
    for line in text.splitlines():
        if reading.ends_before(line):
            runs.append(reading.run())
            reading = _Reading(reading.latest_program)
        reading.read(line)
    runs.append(reading.run())
    return tuple(run for run in runs if run.samples)


@dataclass(frozen=True, slots=True)
class _Device:
    rank: int
    group: str | None
    host: str
    model: str


class _Reading:
    """One run as far as it has been read."""

    def __init__(self, program: Collective | None = None) -> None:
        self.latest_program = self._program = program
        self._tool: str | None = None
        self._library: str | None = None
        self._rows = RowReader()
        self._earlier: list[Sample] = []
        self._devices: list[_Device] = []
        self._opened = -1  # how far of OPENINGS
        self._average: float | None = None

    def ends_before(self, line: str) -> bool:
        """Whether a line opens another run: it is one that this run has got past."""
        opening = _opening(line)
        return opening is not None and (opening <= self._opened or self._has_rows())

    def read(self, line: str) -> None:
        payload = PREFIX.sub("", line)
        layout = layout_of(payload.partition("#")[2].split())
        if layout is not None:
            self._rows.finish()
            self._earlier += self._rows.samples
            self._rows = RowReader(layout)
        elif not self._comment(payload):
            self._rows.read(payload)
        self._names(payload)

    def run(self) -> Run:
        self._rows.finish()
        gpus, nodes = _ranks(self._devices)
        models = {device.model for device in self._devices}
        return Run(
            collective=self._program,
            gpus=gpus,
            nodes=nodes,
            gpu_model=(models.pop() or None) if len(models) == 1 else None,
            tool=self._tool,
            library=self._library,
            samples=(*self._earlier, *self._rows.samples),
            average_bus_bandwidth=self._average,
            complete=self._average is not None,
        )

    def _has_rows(self) -> bool:
        return bool(self._earlier or self._rows.samples)

    def _comment(self, line: str) -> bool:
        """Reads a line that a run prints behind a `#`; whether it is one that is known."""
        opening = _opening(line)
        if opening is not None:
            self._opened = opening
        elif found := DEVICE.search(line):
            self._devices.append(
                _Device(int(found["rank"]), found["group"], found["host"], found["model"])
            )
        elif found := AVERAGE.search(line):
            self._average = float(found[1]) * 1e9
        else:
            return False
        return True

    def _names(self, line: str) -> None:
        if found := PROGRAM.search(line):
            self.latest_program = None if found[1] in NOT_OURS else Collective(found[1])
            if not self._has_rows():
                self._program = self.latest_program
        if found := TOOL.search(line):
            self._tool = f"{found[1].lower()} {found[2]}"
        if found := LIBRARY_CODE.search(line):
            self._library = _version(int(found[1]))
        elif found := LIBRARY.search(line):
            self._library = found[1]


def _opening(line: str) -> int | None:
    found = (place for place, opening in enumerate(OPENINGS) if opening.search(line))
    return next(found, None)


def _ranks(devices: Sequence[_Device]) -> tuple[int | None, int | None]:
    """GPUs and nodes; unknown where ranks are missing or doubled, as of a build without MPI."""
    ranks = sorted(device.rank for device in devices)
    one_group = len({device.group for device in devices}) == 1
    if not one_group or ranks != list(range(len(ranks))):
        return None, None
    return len(ranks), len({device.host for device in devices})


def _version(code: int) -> str | None:
    """Of NCCL_VERSION_CODE, which has had two digits for the minor part since 2.9."""
    major, rest = divmod(code, 10_000) if code >= 10_000 else divmod(code, 1000)
    return f"{major}.{rest // 100}.{rest % 100}" if major else None
