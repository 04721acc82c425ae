"""Reads the public trace of a Stable-Diffusion serving fleet: GPU use and memory of each pod.

Its steps are of 57 s, some are missing; the values of one moment lie apart in two files, with
their columns in different orders.
"""

import csv
import gzip
import os
import re
from dataclasses import dataclass
from pathlib import Path

SHARED = Path(os.environ.get("SEEDANCE_SHARED") or Path(__file__).parents[3] / "shared")
TRACES = SHARED / "data/traces"
STEP_SECONDS = 57.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One pod at one moment; `at` in seconds, `utilization_ratio` 0 to 1."""

    at: float
    pod: str
    utilization_ratio: float
    memory_bytes: int | None


def samples() -> list[Sample]:
    """All samples of GPU use, with the memory held then, in order of time."""
    used = _column("pod_gpu_memory_used_bytes_anon")
    return [
        Sample(at, pod, percent / 100, round(used[at, pod]) if (at, pod) in used else None)
        for (at, pod), percent in sorted(_column("pod_gpu_duty_cycle_anon").items())
    ]


def _column(name: str) -> dict[tuple[float, str], float]:
    with gzip.open(TRACES / "genai26" / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        return {
            (float(row["timestamp_anon"]), row["container_ip"]): float(row["value"])
            for row in csv.DictReader(file)
        }


def reference_percents() -> list[str]:
    """Mean use, samples at 0, memory-time at 0, zero samples that hold 1 GiB, as published."""
    readme = (TRACES / "README.md").read_text("utf-8")
    (row,) = (line for line in readme.splitlines() if line.startswith("| genai26: GPU util mean;"))
    return re.findall(r"\d+\.\d+(?= %)", row)
