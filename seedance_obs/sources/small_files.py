"""Reads small files that another program or the kernel may take away at any moment.

A descriptor alone costs a third of what a file object does, and these are read every second.
"""

import os

_PIECE_BYTES = 16_384


def read_bytes(file: str, most_bytes: int | None = None) -> bytes | None:
    """What a file holds, or the first of it; None where it cannot be read, or went meanwhile."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):  # a path from another program may hold a zero byte
        return None
    pieces: list[bytes] = []
    left = _PIECE_BYTES if most_bytes is None else most_bytes
    try:
        while left > 0 and (piece := os.read(descriptor, min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece) if most_bytes is not None else 0
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def read_text(file: str, most_bytes: int | None = None) -> str | None:
    """The same as text; bytes that are none are replaced."""
    raw = read_bytes(file, most_bytes)
    return None if raw is None else raw.decode("utf-8", errors="replace")
