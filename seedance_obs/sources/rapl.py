"""The energy counters of a host's CPU packages and memory, as Linux's powercap shows them (RAPL).

Zones lie flat in `/sys/class/powercap`, under Intel's name on AMD too: `intel-rapl:0` is a package
(or a die of one, or `psys`, the platform), `intel-rapl:0:0` a part of it. The parts `core` and
`uncore` are inside their package; `dram` is beside it; `psys` holds all of these, where there is
one. `intel-rapl-mmio` shows the same packages through another register and is passed by.

See `Documentation/power/powercap/powercap.rst` in the kernel.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.sources.small_files import read_text

_FOLDER = re.compile(r"intel-rapl:\d+(:\d+)?")
_PACKAGE = re.compile(r"package-(\d+)(-die-\d+)?")
_PSYS = ("psys", "platform")

# The first generations of AMD's EPYC and Threadripper list every die of a package, each with the
# package's own counter. Read right after one another the copies differ by what was burned in
# between; counters of dies that are their own come as close one time in ten thousand.
_MIRROR_UJ = 5_000_000


@dataclass(frozen=True, slots=True)
class RaplZone:
    """One zone's counter.

    Attributes:
        kind: `package`, `dram` or `psys`; what `psys` counts holds the others' and adds to none.
        name: Unique on the host: `package-0`, `package-0-die-1`, `package-0/dram`.
        microjoules: Since some moment before boot, modulo `range_uj`.
        range_uj: Where the counter wraps, None where the kernel does not say.
    """

    kind: str
    name: str
    microjoules: int
    range_uj: int | None


@dataclass(frozen=True, slots=True)
class RaplReading:
    """The zones that could be read; `refused` says why some could not and what to do, else empty.

    A host without RAPL (most virtual machines, ARM) has no zones and refuses nothing.
    """

    zones: tuple[RaplZone, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    kind: str
    name: str
    folder: Path


class Rapl:
    """Reads the zones of the host under a root such as `/host`.

    Zones are looked for until some are found, and again when one is gone: a module was unloaded.
    """

    def __init__(self, root: str | Path) -> None:
        self._powercap = Path(root) / "sys/class/powercap"
        self._places: list[_Place] = []

    def read(self) -> RaplReading:
        """Every zone now; one that does not answer, or answers beyond its range, is left out."""
        if not self._places:
            refused = self._look()
            if refused:
                return RaplReading((), refused)
        zones = []
        refused = ""
        for place in self._places:
            try:
                zone = _read_zone(place)
            except PermissionError:
                refused = self._why_refused(place)
            except FileNotFoundError:
                self._places = []
            except (OSError, ValueError):
                continue
            else:
                zones.append(zone)
        return RaplReading(tuple(zone for zone in zones if zone is not None), refused)

    def _look(self) -> str:
        """Find the zones; a sentence where they are listed but hidden."""
        try:
            folders = sorted(filter(_FOLDER.fullmatch, os.listdir(self._powercap)), key=_numbers)
        except OSError:
            return ""
        names = {folder: _word(self._powercap / folder / "name") for folder in folders}
        places: dict[str, _Place] = {}
        for folder in folders:
            parent = names.get(":".join(folder.split(":")[:2]), "")
            place = _place(names[folder], parent, self._powercap / folder)
            if place:
                # Drivers for two registers of one package may both be loaded.
                places.setdefault(place.name, place)
        self._places = _without_mirrors(list(places.values()))
        if folders and not any(names.values()):
            return (
                f"{self._powercap} lists RAPL zones that are not to be seen: container runtimes "
                "hide them; mount the host's /sys and name its place in node.root"
            )
        return ""

    def _why_refused(self, place: _Place) -> str:
        return (
            f"{place.folder}/energy_uj may not be read: since Linux 5.10 that takes root "
            "(CVE-2020-8694); run as root or with the capability DAC_READ_SEARCH to know the "
            "host's energy"
        )


def _place(name: str, parent: str, folder: Path) -> _Place | None:
    """What a zone is; None for one that is inside another or is not known."""
    if _PACKAGE.fullmatch(name):
        return _Place("package", name, folder)
    if name in _PSYS:
        return _Place("psys", "psys", folder)
    if name == "dram":
        return _Place("dram", f"{parent}/dram" if parent != name else name, folder)
    return None


def _without_mirrors(places: list[_Place]) -> list[_Place]:
    """The places less the dies that show a counter of their package which another die shows."""
    seen: dict[str, list[RaplZone]] = {}
    kept = []
    for place in places:
        match = _PACKAGE.fullmatch(place.name)
        if match is None or match.group(2) is None:
            kept.append(place)
            continue
        try:
            zone = _read_zone(place)
        except (OSError, ValueError):
            zone = None
        shown = seen.setdefault(match.group(1), [])
        if zone is None or not any(_mirrors(zone, other) for other in shown):
            kept.append(place)
        if zone is not None:
            shown.append(zone)
    return kept


def _mirrors(zone: RaplZone, other: RaplZone) -> bool:
    apart = abs(zone.microjoules - other.microjoules)
    if zone.range_uj:
        apart = min(apart, zone.range_uj - apart)
    return apart <= _MIRROR_UJ


def _read_zone(place: _Place) -> RaplZone | None:
    """One zone; None where its counter shows what it cannot hold.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no number.
    """
    microjoules = int((place.folder / "energy_uj").read_bytes())
    text = _word(place.folder / "max_energy_range_uj")
    range_uj = int(text) if text.isdecimal() and int(text) > 0 else None
    if microjoules < 0 or (range_uj is not None and microjoules > range_uj):
        return None
    if range_uj is None and microjoules >= 1 << 63:
        return None
    return RaplZone(place.kind, place.name, microjoules, range_uj)


def _numbers(folder: str) -> list[int]:
    return [int(number) for number in folder.split(":")[1:]]


def _word(file: Path) -> str:
    return (read_text(str(file)) or "").strip()
