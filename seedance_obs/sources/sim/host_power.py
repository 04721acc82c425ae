"""What the CPU packages and the memory of a simulated host draw: idle and per busy core."""

from collections.abc import Iterator
from dataclasses import dataclass

from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.programs import busy_seconds

PACKAGE_IDLE_WATTS, PACKAGE_WATTS_PER_CORE = 58.0, 4.2
DRAM_IDLE_WATTS, DRAM_WATTS_PER_CORE = 9.0, 0.6


@dataclass(frozen=True, slots=True)
class Zone:
    """A RAPL zone as Linux shows it, and where its counter wraps."""

    path: str  # below the control type `intel-rapl`
    name: str
    range_uj: int
    joules: float  # since boot


def zones(machine: Machine, t: float) -> Iterator[Zone]:
    """Each package with its memory below it; busy cores are spread evenly over the packages."""
    up, busy = machine.uptime_s + t, busy_seconds(machine, t)
    for package in range(machine.rapl_packages):
        core_seconds = busy / machine.rapl_packages
        path = f"intel-rapl:{package}"
        yield Zone(
            path,
            f"package-{package}",
            262_143_328_850,
            PACKAGE_IDLE_WATTS * up + PACKAGE_WATTS_PER_CORE * core_seconds,
        )
        yield Zone(
            f"{path}/{path}:0",
            "dram",
            65_712_999_613,
            DRAM_IDLE_WATTS * up + DRAM_WATTS_PER_CORE * core_seconds,
        )
