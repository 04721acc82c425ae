"""Root may read everything: tests of what may not be read lay its privileges down."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's privileges, where we are root and may lay them down."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(NOBODY)
    except OSError:
        pytest.skip("root cannot lay down its privileges here")
    try:
        yield
    finally:
        os.seteuid(0)
