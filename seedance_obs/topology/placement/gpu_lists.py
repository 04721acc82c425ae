"""Which GPUs a person means by `0,1,5`, `0-3`, a name, a UUID or a PCI address."""

import re
from collections.abc import Sequence

from seedance_obs.errors import UsageError
from seedance_obs.identity import canonical_bus_id
from seedance_obs.topology.model import Topology
from seedance_obs.topology.naming import number_list

RANGE = re.compile(r"(\d+)-(\d+)")
MOST_IN_A_RANGE = 1024


def named_gpus(topology: Topology, text: str, *, option: str) -> tuple[str, ...]:
    """The names of the GPUs that a comma-separated list means, each once, in the list's order.

    Args:
        topology: the host.
        text: indexes, ranges of indexes, device names, UUIDs or PCI addresses; `GPU3` is the GPU
            of index 3 where none has that very name. Case is no matter.
        option: what the list was given for, for messages.

    Raises:
        UsageError: an entry means no GPU, a range goes downwards, or there is no entry.
    """
    meant = _meant(topology)
    names: dict[str, None] = {}
    for entry in _entries(text):
        key = canonical_bus_id(entry) or entry.lower()
        if key not in meant:
            raise UsageError(f"{option}: {_why_none(topology, entry)}")
        names[meant[key]] = None
    if not names:
        raise UsageError(f"{option}: a list of GPUs such as 0,1,5 or 0-3 is wanted, found nothing")
    return tuple(names)


def _meant(topology: Topology) -> dict[str, str]:
    """The name of a GPU by all that it may be called; what it is really called comes first."""
    meant: dict[str, str] = {}
    for gpu in topology.gpus:
        keys = [gpu.name, gpu.uuid, gpu.bus_id]
        if gpu.index is not None:
            keys.append(str(gpu.index))
        for key in keys:
            if isinstance(key, str):
                meant.setdefault(key.lower(), gpu.name)
    for gpu in topology.gpus:
        if gpu.index is not None:
            meant.setdefault(f"gpu{gpu.index}", gpu.name)
    return meant


def _why_none(topology: Topology, entry: str) -> str:
    found = RANGE.fullmatch(entry)
    if found and int(found[2]) < int(found[1]):
        return f"{entry!r}: a range goes upwards, such as {found[2]}-{found[1]}"
    gpus = shown_gpus(topology, [gpu.name for gpu in topology.gpus])
    return f"{entry!r} is no GPU here; the GPUs are {gpus or 'none'}"


def _entries(text: str) -> list[str]:
    entries: list[str] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        found = RANGE.fullmatch(entry)
        first, last = map(int, found.groups()) if found else (0, 0)
        if found and first <= last < first + MOST_IN_A_RANGE:
            entries += map(str, range(first, last + 1))
        else:
            entries.append(entry)
    return entries


def shown_gpus(topology: Topology, names: Sequence[str]) -> str:
    """GPUs as a person would list them: `0-3,6` by index, or by name where one has no index."""
    indexes = {topology.by_name[name].index for name in names}
    numbers = frozenset(index for index in indexes if index is not None)
    return ",".join(names) if len(numbers) < len(names) else number_list(numbers) or ""
