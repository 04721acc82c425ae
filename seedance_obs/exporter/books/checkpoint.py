"""The accounts on disk, so that an exporter that was killed goes on where it stood."""

import contextlib
import errno
import json
import logging
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

LOG = logging.getLogger(__name__)
VERSION = 1
Opened = TypeVar("Opened")
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)  # a quarter faster


class Checkpoint:
    """One JSON file, replaced as a whole.

    The state of another boot is worth nothing: counters and the monotonic clock began anew. That
    is also why nothing is flushed to the disk: what a killed process wrote is in the page cache,
    and what takes that away is a reboot.

    Args:
        file: Where it is kept, in a folder that exists; None: nowhere.
        boot_id: The boot this is; where that is unknown (empty), nothing is kept or taken.
    """

    def __init__(self, file: Path | None, *, boot_id: str) -> None:
        self._file = file
        self._boot_id = boot_id
        self.fault = ""  # why the last state could not be saved, for an operator

    @property
    def kept(self) -> bool:
        """Whether anything is kept at all."""
        return self._file is not None

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace what is kept by `state`, plain values of JSON.

        A full disk or a read-only folder costs the checkpoint only: what was kept stays, `fault`
        says why, and the next call tries again.
        """
        if self._file is None:
            return
        if not self._boot_id:
            self._note("the host's boot id cannot be read, so no state is kept: check node.root")
            return
        kept = {"version": VERSION, "boot_id": self._boot_id, "state": state}
        try:
            _replace(self._file, _ENCODER.encode(kept).encode())
        except OSError as error:
            why = error.strerror or str(error)
            self._note(f"{self._file} cannot be written ({why}): the accounts outlive no restart")
        else:
            self._note("")

    def load(self) -> Mapping[str, Any] | None:
        """What this boot last saved; None where there is none, and the log says why.

        A file that is broken is set aside as `.broken`, one that a newer version wrote as `.newer`.
        """
        if self._file is None:
            return None
        try:
            text = _whole(self._file)
        except FileNotFoundError:
            LOG.info("event=checkpoint_absent file=%s", self._file)
            return None
        except OSError as error:
            LOG.warning("event=checkpoint_unreadable file=%s error=%r", self._file, error.strerror)
            return None
        try:
            version, boot, state = _opened(text)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            _set_aside(self._file, "broken", f"not a state file ({type(error).__name__})")
            return None
        if version > VERSION:
            _set_aside(self._file, "newer", f"version {version}, this one writes {VERSION}")
            return None
        if not self._boot_id or boot != self._boot_id:
            LOG.info("event=checkpoint_of_another_boot file=%s boot_id=%r", self._file, boot)
            return None
        return state

    def go_on(self, opened: Callable[[Mapping[str, Any] | None], Opened]) -> Opened:
        """Open from what this boot last saved, or anew (None) where there is nothing to go on from.

        A state that `opened` cannot take as a whole is set aside as `.broken`: whatever it holds,
        it would stop every start from now on.
        """
        state = self.load()
        if state is not None and self._file is not None:
            try:
                return opened(state)
            except Exception as error:
                _set_aside(self._file, "broken", f"not a state of this exporter: {error!r:.200}")
        return opened(None)

    def _note(self, fault: str) -> None:
        if fault and fault != self.fault:
            LOG.warning("event=checkpoint_failed fault=%r", fault)
        elif self.fault and not fault:
            LOG.info("event=checkpoint_recovered file=%s", self._file)
        self.fault = fault


def _whole(file: Path) -> bytes:
    """The bytes of a regular file; nothing else may hold the start up.

    Raises:
        OSError: there is none, or it cannot be read.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return opened.read()


def _set_aside(file: Path, suffix: str, why: str) -> None:
    LOG.warning("event=checkpoint_%s file=%s reason=%r", suffix, file, why)
    with contextlib.suppress(OSError):
        os.replace(file, f"{file}.{suffix}")


def _opened(text: bytes) -> tuple[int, str, Mapping[str, Any]]:
    kept = json.loads(text)
    version, boot, state = kept["version"], kept["boot_id"], kept.get("state")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError(f"version is {version!r}")
    if version <= VERSION and not isinstance(state, dict):
        raise ValueError("there is no state in it")
    return version, boot, state or {}


def _replace(file: Path, text: bytes) -> None:
    """Write beside the file and rename, so that a reader and a crash meet the old or the new one.

    Raises:
        OSError: it could not be written; the file is as it was.
    """
    beside = f"{file}.writing"  # one name: what a killed writer left is overwritten by the next
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(beside, flags, 0o600), "wb", buffering=0) as opened:
            _write_all(opened.fileno(), text)
        os.replace(beside, file)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _write_all(descriptor: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
