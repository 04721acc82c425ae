"""Saves one state after another until it is killed, and says on its output which are saved."""

import os
import sys
from pathlib import Path
from typing import Any

from seedance_obs.exporter.checkpoint import Checkpoint

REPEATS = 200_000  # so long that a kill often comes in the middle of a write


def state_of(number: int) -> dict[str, Any]:
    """A state that shows at every place which one it is."""
    return {"number": number, "everywhere": f"{number:08d}" * REPEATS}


def main() -> None:
    """Save, acknowledge, and go on."""
    checkpoint = Checkpoint(Path(sys.argv[1]), boot_id=sys.argv[2])
    number = int(sys.argv[3])
    while True:
        checkpoint.save(state_of(number))
        os.write(1, b"%d\n" % number)
        number += 1


if __name__ == "__main__":
    main()
