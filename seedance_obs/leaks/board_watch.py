"""For how long each idle or orphaned use of a board has been so, and which have been so too long.

One rule resets every clock: what a sight of its place does not show begins anew when it is next
shown, and so does everything at a place that was not seen for a while. Time counts between
readings that were seen, never up to now: what nobody looked at proves nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seedance_obs.leaks.board_detectors import (
    DETECTORS,
    BoardLimits,
    Seen,
    evidence_of,
    seconds_needed,
)
from seedance_obs.leaks.board_parts import Parts
from seedance_obs.leaks.board_sight import BoardSight, ContextSight, Place
from seedance_obs.leaks.suspect import Finding
from seedance_obs.process_tree import ProcessName

MOST_OF_THE_TIME = 0.5  # a share of it


@dataclass(slots=True)
class _Spell:
    """How long one thing has been so: from the first sight of it to its latest reading."""

    since: float
    seen: Seen
    samples: int

    @classmethod
    def begin(cls, seen: Seen, at: float) -> "_Spell":
        """See it for the first time; a reading from before says nothing of it."""
        return cls(at, seen, int(seen.at >= at))

    def extend(self, seen: Seen) -> None:
        """See it again; the same reading is not another sample."""
        if seen.at > self.seen.at:
            self.samples += 1
            self.seen = seen

    @property
    def seconds(self) -> float:
        return self.seen.at - self.since


_Spells = dict[tuple[str, object], _Spell]


@dataclass(slots=True)
class _Place:
    """The latest sight of a place and what has been so there, by kind and name."""

    sight: BoardSight
    spells: _Spells


class BoardWatch:
    """Watches boards and MIG instances; not safe for several threads at once."""

    def __init__(self, limits: BoardLimits | None = None) -> None:
        """Judge by these limits, or by the default ones."""
        self._limits = limits or BoardLimits()
        self._places: dict[Place, _Place] = {}

    def note(self, sight: BoardSight) -> None:
        """Take in a sight of one place; of two of one moment, the second counts."""
        before = self._places.get(sight.place)
        if before is None or not self._follows(sight.at, before.sight.at):
            before = _Place(sight, {})
        spells: _Spells = {}
        for kind, detect in DETECTORS.items():
            for seen in detect(sight, self._limits):
                key = (kind, seen.name)
                spell = before.spells.get(key)
                if spell is None:
                    spell = _Spell.begin(seen, sight.at)
                else:
                    spell.extend(seen)
                spells[key] = spell
        self._places[sight.place] = _Place(sight, spells)

    def findings(self, now: float) -> list[Finding]:
        """What has been so for long enough, in a fixed order; forgets places no longer seen.

        A place may have been seen later than `now`: whoever asks may have looked at the clock
        before something else that took a while.
        """
        self._places = {
            name: place
            for name, place in self._places.items()
            if now - place.sight.at <= self._limits.gap_seconds
        }
        parts = Parts([place.sight for place in self._places.values()])
        found = [finding for place in self._places.values() for finding in self._of(place, parts)]
        return sorted(found, key=_position)

    def _follows(self, at: float, before: float) -> bool:
        return 0 <= at - before <= self._limits.gap_seconds

    def _of(self, place: _Place, parts: Parts) -> Iterator[Finding]:
        for (kind, _), spell in place.spells.items():
            if spell.seconds < seconds_needed(kind, self._limits):
                continue
            if kind != "pseudo_idle_context" or spell.samples >= self._limits.context_samples:
                yield _finding(kind, spell, place.sight, parts)


def _finding(kind: str, spell: _Spell, sight: BoardSight, parts: Parts) -> Finding:
    seen = spell.seen
    holders = _holders(seen, sight)
    owners = {context.owner for context in holders}
    process = holders[0] if len(holders) == 1 else None
    evidence = evidence_of(kind, seen, sight)
    if process is not None and process.memory_bytes is not None:
        evidence["gpu_memory_bytes"] = float(process.memory_bytes)
    return Finding(
        kind,
        spell.since,
        process=None if process is None else process.process,
        gpu_uuid=sight.gpu_uuid,
        gpu_instance=sight.gpu_instance,
        account=holders[0].account if holders else seen.account,
        owner=owners.pop() if len(owners) == 1 else "",
        part=parts.of(kind, seen, sight),
        evidence={**evidence, "seconds": spell.seconds, "samples": float(spell.samples)},
    )


def _holders(seen: Seen, sight: BoardSight) -> Sequence[ContextSight]:
    """The processes of what was seen.

    Of what a whole place shows it is the only one that lives there, else the one that alone keeps
    SMs busy for most of the time, else all that live there, or all that are so busy, if they are
    one account's. Nobody else can be told apart.
    """
    if seen.context is not None:
        return [seen.context]
    if seen.account:
        return []
    living = [context for context in sight.contexts or () if context.alive is not False]
    busy = [context for context in living if (context.sm_ratio or 0.0) > MOST_OF_THE_TIME]
    alone = [group for group in (living, busy) if len(group) == 1]
    of_one = [group for group in (living, busy) if len({each.account for each in group}) == 1]
    return next((group for group in (*alone, *of_one)), [])


def _position(finding: Finding) -> tuple[str, int, int, int, int, str]:
    process = finding.process or ProcessName(-1, None)
    return (
        finding.gpu_uuid,
        -1 if finding.gpu_instance is None else finding.gpu_instance,
        list(DETECTORS).index(finding.kind),
        process.pid,
        -1 if process.start_ticks is None else process.start_ticks,
        finding.account,
    )
