"""What is remembered of a host's wiring while the driver says less of it, or something else.

One refused call must not rename a series or cut an edge, and a link that is down still has two
ends. Whether a link is up is not remembered: that is for the health of links to read anew.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import GpuPair, GpuPlace, NvLink
from seedance_obs.sources.sysfs import PciFacts
from seedance_obs.topology.model import Absent, Device

Facts = TypeVar("Facts", GpuPlace, PciFacts)
TRANSITIONAL = (1, 2)  # fabric states on the way to completed: not started, in progress


def filled(now: Facts, before: Facts | None) -> Facts:
    """The facts of now, and those of before that now are missing."""
    if before is None:
        return now
    missing = (each.name for each in fields(now) if getattr(now, each.name) is None)
    return replace(now, **{name: getattr(before, name) for name in missing})


class WiringMemory:
    """The wiring of one host over time, by UUID."""

    def __init__(self) -> None:
        self.pairs: dict[frozenset[str], GpuPair] = {}
        self._links: dict[tuple[str, int], NvLink] = {}  # as they were last up
        self._mig: dict[str, bool] = {}
        self._c2c: dict[str, float] = {}  # the most MB/s
        self._domains: dict[str, str] = {}

    def note_pairs(self, pairs: Iterable[GpuPair]) -> None:
        """Keep what was told of each pair; a refused answer takes nothing away."""
        for pair in pairs:
            key = frozenset((pair.uuid, pair.other_uuid))
            before = self.pairs.get(key, pair)
            level = before.level if pair.level is None else pair.level
            self.pairs[key] = replace(pair, level=level, p2p={**before.p2p, **pair.p2p})

    def mig(self, gpu: MergedGpu) -> bool | None:
        """Whether the board is, or last was, in MIG mode."""
        enabled = gpu.value("mig_enabled")
        if enabled is not None:
            self._mig[gpu.uuid] = bool(enabled)
        return self._mig.get(gpu.uuid)

    def link(self, gpu: MergedGpu, link: NvLink) -> NvLink:
        """A link with the far end that it had, where it tells none.

        One that is down keeps its speed too; one that does not say is taken as it was last.
        """
        before = self._links.get((gpu.uuid, link.link))
        if link.active is None:
            return before or link
        if not link.active:
            return link if before is None else replace(before, active=False)
        if link.remote_bus_id is None and before is not None:
            link = replace(link, remote_bus_id=before.remote_bus_id, remote_kind=before.remote_kind)
        self._links[gpu.uuid, link.link] = link
        return link

    def best_c2c(self, uuid: str, mb_per_second: float | None) -> float | None:
        """The most that the C2C links of a board ever carried."""
        if mb_per_second is not None:
            self._c2c[uuid] = max(mb_per_second, self._c2c.get(uuid, 0.0))
        return self._c2c.get(uuid)

    def name_domains(
        self, host: str, found: Mapping[str, str], boards: Sequence[Device]
    ) -> dict[str, str]:
        """The domains under lasting names, by device name.

        GPUs that are one domain now keep the name that most of them had, whichever of them is the
        lowest; no two domains have one name. A board that is lost keeps its own, and so does one
        whose links are down, or cannot be read, but not one in MIG mode. A rack's name goes when
        the rack is left, not while it is being joined.
        """
        before = {
            board.name: self._domains[str(board.uuid)]
            for board in boards
            if str(board.uuid) in self._domains and _may_keep(board, host, self._domains)
        }
        uuids = {board.name: str(board.uuid) for board in boards}
        groups: dict[str, list[str]] = {}
        for name in found.keys() & uuids.keys():
            groups.setdefault(found[name], []).append(name)
        named: dict[str, str] = {}
        for domain, members in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
            names = [domain]
            if domain.startswith(f"{host}."):
                had = Counter(before[name] for name in members if name in before)
                own = (f"{host}.{name.replace(':', '-')}" for name in sorted(members))
                names = [*(name for name, _ in had.most_common()), domain, *own]
            taken = set(named.values())
            kept = next((name for name in names if name not in taken), domain)
            named |= dict.fromkeys(members, kept)
        for board in boards:
            if board.name in before:
                named.setdefault(board.name, before[board.name])
        self._domains.update((uuids[name], domain) for name, domain in named.items())
        return named


def _may_keep(board: Device, host: str, domains: Mapping[str, str]) -> bool:
    if board.mig is True and board.present:
        return False
    if domains[str(board.uuid)].startswith(f"{host}."):
        return True
    fabric = board.fabric
    return isinstance(fabric, Absent) or not board.present or fabric.state in TRANSITIONAL
