"""For how long each idle or orphaned use of a board has been so, and which have been so too long.

One rule resets every clock: what a sight of its place does not show begins anew when it is next
shown, and so does everything at a place that was not seen for a while. Time counts between
readings that were seen, never up to now: what nobody looked at proves nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from seedance_obs.leaks.board_detectors import (
    DETECTORS,
    BoardLimits,
    Seen,
    evidence_of,
    seconds_needed,
)
from seedance_obs.leaks.board_sight import BoardSight, ContextSight
from seedance_obs.leaks.suspect import Finding, ProcessName

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
        self._places: dict[tuple[str, int | None], _Place] = {}

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
        """What has been so for long enough, in a fixed order; forgets places no longer seen."""
        self._places = {
            name: place
            for name, place in self._places.items()
            if self._follows(now, place.sight.at)
        }
        found = [finding for place in self._places.values() for finding in self._of(place)]
        return sorted(found, key=_position)

    def _follows(self, at: float, before: float) -> bool:
        return 0 <= at - before <= self._limits.gap_seconds

    def _of(self, place: _Place) -> Iterator[Finding]:
        for (kind, _), spell in place.spells.items():
            if spell.seconds < seconds_needed(kind, self._limits):
                continue
            if kind != "pseudo_idle_context" or spell.samples >= self._limits.context_samples:
                yield _finding(kind, spell, place.sight)


def _finding(kind: str, spell: _Spell, sight: BoardSight) -> Finding:
    context = _whose(spell.seen, sight)
    evidence = evidence_of(spell.seen, sight)
    return Finding(
        kind,
        spell.since,
        process=None if context is None else context.process,
        gpu_uuid=sight.gpu_uuid,
        gpu_instance=sight.gpu_instance,
        account=spell.seen.account if context is None else context.account,
        owner="" if context is None else context.owner,
        evidence={**evidence, "seconds": spell.seconds, "samples": float(spell.samples)},
    )


def _whose(seen: Seen, sight: BoardSight) -> ContextSight | None:
    """The process of what was seen.

    Of what a whole place shows it is the only one that lives there, else the one that alone keeps
    SMs busy for most of the time.
    """
    if seen.context is not None or seen.account:
        return seen.context
    living = [context for context in sight.contexts or () if context.alive is not False]
    busy = [context for context in living if (context.sm_ratio or 0.0) > MOST_OF_THE_TIME]
    return next((found[0] for found in (living, busy) if len(found) == 1), None)


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
