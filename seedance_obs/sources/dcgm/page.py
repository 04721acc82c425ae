"""A dcgm-exporter page of any age, as readings.

The page is text in Prometheus' format with habits of its own: labels changed their spelling over
the years, a split GPU repeats the board's values on every MIG instance, a shared one repeats them
for every pod, numbers that mean "none" leak through, and nothing escapes a quote in a pod's name.
So every line is judged alone, and one that cannot be trusted costs only itself.
"""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from seedance_obs.identity import canonical_uuid
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.dcgm.board import SENTINEL_TEXTS, Board, Instance, label
from seedance_obs.sources.dcgm.fields import FIELD_OF, VERSION_LABELS, XID_NAMES, Field, Scope
from seedance_obs.sources.dcgm.sample_line import (
    metric_name,
    read_labels,
    read_number,
    split_sample,
)
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot

DROP_REASONS = {
    "sentinel": "DCGM's number or text for no reading",
    "out_of_range": "a number that no such device can show",
    "malformed": "not a sample line",
    "truncated": "the page ended inside it",
    "no_identity": "names no GPU, or a MIG instance without a number",
    "duplicate": "contradicts an earlier line about the same thing",
    "not_measured": "a number where nothing was measured: memory at 0 degrees (no sensor), "
    "utilisation of a MIG instance, one sharing pod's part of a GPU",
}

# int32, fp64 and int64 blanks: each is a base and the three values after it. The last are
# compared by range because a float holds them only to the nearest 1024.
_SENTINEL_RUNS = (2147483632, 140737488355328)
_SENTINELS_FROM = 9.2e18

_OTHER_DEVICES = ("nvlink", "nvswitch", "cpu", "cpucore")
# Of a shared GPU (label `vgpu`) these two are, by version, one pod's part or the board's value.
_PER_POD = ("utilization_ratio", "memory_used_bytes")
_XID_MAX = 9999
_KNOWN = FIELD_OF.keys() | set(XID_NAMES)
_ELSEWHERE = ""  # the outcome of a row that is about another kind of device


@dataclass(frozen=True, slots=True)
class DcgmPage:
    """What one page says. `last_xids` is the sticky last XID codes on a GPU's rows, 0 for none."""

    gpus: tuple[GpuReadings, ...]
    versions: Mapping[str, str]
    dropped: Mapping[str, int]
    last_xids: Mapping[str, AbstractSet[int]]

    @property
    def complete(self) -> bool:
        """Whether the page was read to its end."""
        return "truncated" not in self.dropped


def read_page(text: str, *, taken_at: float, source: str = "dcgm") -> SourceSnapshot:
    """A page's readings in base units; never raises. A single page holds no XID events.

    Args:
        text: the page.
        taken_at: when it was read, in monotonic seconds.
        source: the name the snapshot carries.
    """
    page = parse_page(text)
    return SourceSnapshot(
        source, taken_at, gpus=page.gpus, versions=page.versions, dropped=page.dropped
    )


def parse_page(text: str, *, cut: bool = False) -> DcgmPage:
    """A page's readings and its sticky XID codes; `cut` says that its end is missing."""
    reader = _PageReader()
    lines = text.split("\n")
    last = lines.pop()
    for line in lines:
        reader.read_line(line.rstrip("\r"))
    # Half a number looks like a number: without its line end the last line says nothing.
    if cut or (last and not last.startswith("#")):
        reader.dropped["truncated"] += 1
    return reader.page()


@dataclass(frozen=True, slots=True)
class _Subject:
    """What the labels of a row say it is about; `shared` marks one of several pods on a GPU."""

    board: Board
    instance: Instance | None
    shared: bool


class _Unusable(Exception):  # noqa: N818 - an outcome of a line, not an error
    """A line that says nothing we may use; the text is the reason it is counted under."""


class _PageReader:
    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._boards: dict[str, Board] = {}
        self._versions: dict[str, str] = {}
        self._last_xids: dict[str, set[int]] = {}
        # All families repeat the same label text for a GPU, so each is understood once.
        self._subjects: dict[str, _Subject | str] = {}

    def read_line(self, line: str) -> None:
        if not line or line.isspace() or line.startswith("#"):
            return
        name = metric_name(line)
        if name is not None and name not in _KNOWN:
            return
        try:
            self._read_sample(line)
        except _Unusable as outcome:
            if str(outcome) != _ELSEWHERE:
                self.dropped[str(outcome)] += 1

    def page(self) -> DcgmPage:
        boards = sorted(self._boards.values(), key=_page_order)
        return DcgmPage(
            gpus=tuple(board.readings() for board in boards),
            versions=self._versions,
            dropped=dict(self.dropped),
            last_xids=self._last_xids,
        )

    def _read_sample(self, line: str) -> None:
        sample = split_sample(line)
        if sample is None or "\N{REPLACEMENT CHARACTER}" in line:
            raise _Unusable("malformed")
        name, labels, value = sample
        subject = self._subject(labels)
        number = _reading(value)
        if name in XID_NAMES:
            self._keep_xid(subject, number)
        else:
            _keep(subject, FIELD_OF[name], number)

    def _subject(self, text: str) -> _Subject:
        if text not in self._subjects:
            self._subjects[text] = self._understand(text)
        subject = self._subjects[text]
        if isinstance(subject, str):
            raise _Unusable(subject)
        return subject

    def _understand(self, text: str) -> _Subject | str:
        labels = read_labels(text)
        if labels is None:
            return "malformed"
        if any(labels.get(name) for name in _OTHER_DEVICES):
            return _ELSEWHERE
        uuid = canonical_uuid(label(labels, "UUID", "uuid", "gpu_uuid") or "")
        if uuid is None or not uuid.startswith("GPU-"):
            return "no_identity"
        board = self._boards.setdefault(uuid, Board(uuid))
        board.learn(labels)
        for version, names in VERSION_LABELS.items():
            if version not in self._versions and (value := label(labels, *names)):
                self._versions[version] = _version(version, value)
        if not (labels.get("GPU_I_ID") or labels.get("GPU_I_PROFILE")):
            return _Subject(board, None, shared=bool(labels.get("vgpu")))
        instance = _instance(board, labels)
        return _Subject(board, instance, shared=False) if instance else "no_identity"

    def _keep_xid(self, subject: _Subject, number: float) -> None:
        if not 0 <= number <= _XID_MAX or number != int(number):
            raise _Unusable("out_of_range")
        self._last_xids.setdefault(subject.board.uuid, set()).add(int(number))


def _keep(subject: _Subject, known: Field, number: float) -> None:
    value = known.convert(number)
    if not QUANTITIES[known.quantity].admits(value):
        raise _Unusable("out_of_range")
    if _is_hollow(subject, known, value):
        raise _Unusable("not_measured")
    if subject.instance is None:
        kept = subject.board.own.keep(known, value)
    elif known.scope is Scope.EITHER:
        kept = subject.instance.values.keep(known, value)
    else:
        # One board read once per instance, moments apart: not a contradiction.
        kept = subject.board.repeated.keep(known, value) or True
    if not kept:
        raise _Unusable("duplicate")


def _is_hollow(subject: _Subject, known: Field, value: float) -> bool:
    if subject.instance is not None and known.scope is Scope.WHOLE:
        return True
    if subject.shared and known.quantity in _PER_POD:
        return True
    # DCGM passes on an undefined 0 where the driver has no memory sensor (NVIDIA/DCGM#311).
    return known.quantity == "temperature_memory_celsius" and value == 0


def _reading(text: str) -> float:
    """The number a sample shows, in DCGM's unit, when it is a reading and finite."""
    if text.startswith(SENTINEL_TEXTS):
        raise _Unusable("sentinel")
    number = read_number(text)
    if number is None:
        raise _Unusable("malformed")
    if number >= _SENTINELS_FROM or any(0 <= number - base < 4 for base in _SENTINEL_RUNS):
        raise _Unusable("sentinel")
    if not number > -_SENTINELS_FROM:  # also NaN
        raise _Unusable("out_of_range")
    return number


def _instance(board: Board, labels: Mapping[str, str]) -> Instance | None:
    number = labels.get("GPU_I_ID", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 5):
        return None
    instance = board.instances.setdefault(int(number), Instance(int(number)))
    instance.profile = instance.profile or label(labels, "GPU_I_PROFILE")
    return instance


def _version(name: str, value: str) -> str:
    """CUDA's version is one number on the page: 12010 is 12.1."""
    if name == "cuda_version" and value.isascii() and value.isdecimal() and len(value) < 7:
        return f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    return value


def _page_order(board: Board) -> tuple[bool, int, str]:
    return board.index is None, board.index or 0, board.uuid
