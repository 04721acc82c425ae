"""The tenant rules of a file that is read again when it changes.

Editors and kubelets replace a file in their own ways: they write it anew in place, move another
over it, or swing a link (a ConfigMap's `..data`). The file behind the path is told from the one of
before by device, inode, size and times. A changed file is read once it has stayed as it is from
one look to the next, so that one being written is left alone.
"""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

from seedance_obs.attribution.tenant_reading import read_tenant_rules
from seedance_obs.attribution.tenants import TenantRules
from seedance_obs.errors import UsageError

LARGEST_BYTES = 2**20

LOG = logging.getLogger(__name__)

_Stamp = tuple[int, ...]


class TenantFile:
    """The rules of one file; those of before stay while it is gone or broken.

    Attributes:
        fault: What is wrong with the file now; empty while nothing is.
        loaded_at: Unix seconds when the rules in use were read; None where there is no file.
        reloads: How often a changed file was taken since the start.
    """

    def __init__(self, path: Path | None, *, clock: Callable[[], float]) -> None:
        """Read the file for the first time.

        Args:
            path: The file; None: the rules without any file, for good.
            clock: Unix seconds.

        Raises:
            UsageError: there is no such file, or it holds no valid rules.
        """
        self.fault = ""
        self.loaded_at: float | None = None
        self.reloads = 0
        self._path = path
        self._clock = clock
        self._rules = TenantRules()
        self._seen = self._taken = _Stamp()  # at the last look, and of the last that was read
        if path is not None:
            self._seen = self._taken = _stamp(path)
            self._rules = _parse(path, _content(path)[0])
            self.loaded_at = clock()

    def rules(self) -> TenantRules:
        """The rules in force; looks for a changed file first, and never raises for one."""
        if self._path is not None:
            try:
                self._look(self._path)
            except UsageError as error:
                self._note_fault(str(error))
        return self._rules

    def _look(self, path: Path) -> None:
        before = self._seen
        self._seen = _Stamp()
        try:
            self._seen = _stamp(path)
        except UsageError:
            self._taken = _Stamp()  # what comes back is read again
            raise
        if self._seen == before != self._taken:
            self._take(path)

    def _take(self, path: Path) -> None:
        content, stamp = _content(path)
        if stamp != self._seen:
            return
        self._taken = stamp  # also if it is broken: the same content stays so
        self._rules = _parse(path, content)
        self.loaded_at = self._clock()
        self.reloads += 1
        LOG.info("event=tenant_rules_reloaded file=%s rules=%d", path, len(self._rules.rules))
        self._note_fault("")

    def _note_fault(self, fault: str) -> None:
        if fault == self.fault:
            return
        if fault:
            LOG.warning("event=tenant_rules_kept file=%s fault=%r", self._path, fault)
        else:
            LOG.info("event=tenant_rules_recovered file=%s", self._path)
        self.fault = fault


def _content(path: Path) -> tuple[bytes, _Stamp]:
    """What a file holds, and which file that was when it had been read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES + 1), _stamp_of(os.fstat(file.fileno()))
    except OSError as error:
        raise UsageError(f"cannot read the tenant rules {path}: {error.strerror}") from error


def _parse(path: Path, content: bytes) -> TenantRules:
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{path}: {LARGEST_BYTES} bytes at most are wanted, and it holds more")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this is not UTF-8: {error}") from error
    return read_tenant_rules(text, name=str(path))


def _stamp(path: Path) -> _Stamp:
    try:
        found = os.stat(path)
    except OSError as error:
        raise UsageError(f"cannot read the tenant rules {path}: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"cannot read the tenant rules {path}: it is not a file")
    return _stamp_of(found)


def _stamp_of(found: os.stat_result) -> _Stamp:
    # The time of the last change of the inode too: a file may be given back its old mtime, and
    # one that could not be read may be made readable.
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
