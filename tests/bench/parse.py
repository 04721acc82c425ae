"""How long reading a matrix of `nvidia-smi topo -m` takes, beside a reader that only splits.

The other reader takes the text at its word: it splits every line at tabs or blanks and looks at no
cell. Run by hand from the root of the repository:

    python -m tests.bench.parse [MATRIX ...]

Of several files, the one with the most paths is taken; without any, a made-up host of 8 GPUs and
12 NICs.
"""

import re
import sys
from pathlib import Path

from seedance_obs.topology.formats import read

from tests.bench.placement import best_seconds

GPUS, NICS = 8, 12


def made_up() -> str:
    """A host of two sockets: all GPUs joined, NICs near the GPUs of their own socket."""
    names = [f"GPU{at}" for at in range(GPUS)] + [f"NIC{at}" for at in range(NICS)]
    head = "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    rows = []
    for at, name in enumerate(names):
        cells = [_cell(at, other) for other in range(len(names))]
        socket = at * 2 // GPUS
        affinity = [f"{socket * 56}-{socket * 56 + 55}", str(socket), "N/A"] if at < GPUS else []
        rows.append("\t".join([name, *cells, *affinity]))
    legend = "".join(f"  NIC{at}: mlx5_{at}\n" for at in range(NICS))
    return "\n".join([head, *rows, "", "NIC Legend:", "", legend])


def _cell(at: int, other: int) -> str:
    if at == other:
        return " X "
    if max(at, other) < GPUS:
        return "NV18"
    sockets = {
        place * 2 // GPUS if place < GPUS else (place - GPUS) * 2 // NICS for place in (at, other)
    }
    return "NODE" if len(sockets) == 1 else "SYS"


def split_only(text: str) -> dict[tuple[str, str], str]:
    """The cells by row and column, as far as every line is whole."""
    lines = [re.split(r"\t|\s{2,}", line.strip()) for line in text.splitlines()]
    named = [line for line in lines if re.match(r"GPU\d|NIC\d|mlx", line[0])]
    head, rows = named[0], named[1:]
    return {
        (row[0], column): cell.strip()
        for row in rows
        for column, cell in zip(head, row[1:], strict=False)
    }


def main() -> None:
    """Print the milliseconds of both and their ratio."""
    texts = {name: Path(name).read_text(errors="replace") for name in sys.argv[1:]}
    texts = texts or {f"{GPUS} GPUs and {NICS} NICs, made up": made_up()}
    paths = {name: len(read(text).topology.paths) for name, text in texts.items()}
    name = max(paths, key=lambda name: paths[name])
    text = texts[name]
    ours = best_seconds(lambda: read(text))
    plain = best_seconds(lambda: split_only(text))
    print(f"{name}: {len(text)} characters, {paths[name]} paths")
    print(f"read {ours * 1e3:.2f} ms")
    print(f"split only {plain * 1e3:.3f} ms, so reading takes {ours / plain:.0f} times as long")


if __name__ == "__main__":
    main()
