"""Which workloads may hold GPU memory and wait for work: servers that are kept warm."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from seedance_obs.errors import UsageError
from seedance_obs.workload import Workload

FIELDS = ("namespace", "pod", "container", "image", "user", "slurm_account", "tenant", "comm")


class WarmServers:
    """The allow-list of `leaks.warm_servers`: one entry that matches is enough.

    Raises:
        UsageError: an entry is not of the form FIELD=PATTERN.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._patterns = [_read(entry) for entry in entries]

    def admits(self, workload: Workload | None, tenant: str, comm: str) -> bool:
        """Whether a process of this name, workload and tenant may hold memory and wait.

        What is not known, an empty text, matches nothing.
        """
        own = {"tenant": tenant, "comm": comm}
        texts = {field: own.get(field) or getattr(workload, field, "") for field in FIELDS}
        return any(
            texts[field] != "" and fnmatchcase(texts[field], pattern)
            for field, pattern in self._patterns
        )


def _read(entry: str) -> tuple[str, str]:
    field, _, pattern = (part.strip() for part in entry.partition("="))
    if field not in FIELDS or not pattern:
        raise UsageError(
            f"leaks.warm_servers entry {entry!r}: wanted FIELD=PATTERN, for example "
            f"namespace=serving or image=*vllm*, with a field of {', '.join(FIELDS)}"
        )
    return field, pattern
