"""Saves one state after another until it is killed, and says on its output which are saved.

Paced, it also says so before each thing that it does to a file, and waits to be told to go on.
"""

import os
import sys
from pathlib import Path
from typing import Any

from seedance_obs.exporter.books.checkpoint import Checkpoint

STEP = b"step\n"
REPEATS = 4000
PIECE_BYTES = 8000


def state_of(number: int) -> dict[str, Any]:
    """A state that shows at every place which one it is."""
    return {"number": number, "everywhere": f"{number:08d}" * REPEATS}


def pace() -> None:
    """Make every change of a file one step, and a write several."""
    write, replace, unlink, opened = os.write, os.replace, os.unlink, os.open

    def step() -> None:
        write(1, STEP)
        os.read(0, 1)

    def paced(act: Any) -> Any:
        def wait_and_act(*args: Any, **options: Any) -> Any:
            step()
            return act(*args, **options)

        return wait_and_act

    os.write = paced(lambda descriptor, data: write(descriptor, data[:PIECE_BYTES]))
    os.replace, os.unlink, os.open = paced(replace), paced(unlink), paced(opened)


def main() -> None:
    """Save, acknowledge, and go on."""
    write = os.write
    file, boot, number, manner = sys.argv[1:]
    checkpoint = Checkpoint(Path(file), boot_id=boot)
    if manner == "paced":
        pace()
    for each in range(int(number), sys.maxsize):
        checkpoint.save(state_of(each))
        write(1, b"%d\n" % each)


if __name__ == "__main__":
    main()
