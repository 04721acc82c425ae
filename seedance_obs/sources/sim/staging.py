"""Changes to a tree of files that a reader sees whole or not at all."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType


class Staging:
    """Prepares everything in `ROOT/.staging` and moves it into place by one rename.

    What a killed writer left there is cleared.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / ".staging"
        self._made = 0

    def __enter__(self) -> "Staging":
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder)

    def file(self, name: str, text: str) -> None:
        """Write or replace a file, by its name below the root; one that says so already stays."""
        place = self._place(name)
        if place.is_file() and place.read_text() == text:
            return
        fresh = self._fresh()
        fresh.write_text(text)
        os.replace(fresh, place)

    def folder(
        self, name: str, files: Mapping[str, str], fill: Callable[[Path], None] | None = None
    ) -> None:
        """Make a folder that holds these files, and what `fill` puts there before it is seen."""
        fresh = self._fresh()
        fresh.mkdir()
        for file, text in files.items():
            (fresh / file).write_text(text)
        if fill is not None:
            fill(fresh)
        fresh.rename(self._place(name))

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link."""
        fresh = self._fresh()
        fresh.symlink_to(target)
        os.replace(fresh, self._place(name))

    def remove(self, name: str) -> None:
        """Take away a file, a link or a whole folder."""
        (self._root / name).rename(self._fresh())

    def _place(self, name: str) -> Path:
        place = self._root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _fresh(self) -> Path:
        self._made += 1
        return self._folder / str(self._made)
