"""The checkpoint form of accounts: plain values of JSON, read back with every type checked."""

from collections import Counter
from collections.abc import Hashable, Mapping

from seedance_obs.attribution.tick import Balance
from seedance_obs.errors import SeedanceError

State = Mapping[str, object]


def whole(state: State, key: str) -> int:
    """The integer under a key.

    Raises:
        SeedanceError: there is none; so do the other readers here.
    """
    value = state.get(key)
    if not isinstance(value, int):
        raise _wrong(key, "an integer", value)
    return value


def number(state: State, key: str) -> float:
    """The number under a key."""
    value = state.get(key)
    if not isinstance(value, int | float):
        raise _wrong(key, "a number", value)
    return value


def text(state: State, key: str) -> str:
    """The text under a key."""
    value = state.get(key)
    if not isinstance(value, str):
        raise _wrong(key, "a text", value)
    return value


def table(state: State, key: str) -> State:
    """The table under a key."""
    value = state.get(key)
    if not isinstance(value, dict):
        raise _wrong(key, "a table", value)
    return value


def optional_whole(state: State, key: str) -> int | None:
    """The integer under a key, None where it is null."""
    return None if state.get(key) is None else whole(state, key)


def optional_table(state: State, key: str) -> State | None:
    """The table under a key, None where it is null."""
    return None if state.get(key) is None else table(state, key)


def numbers(state: State, key: str) -> dict[Hashable, float]:
    """The table of numbers under a key."""
    inner = table(state, key)
    return {name: number(inner, name) for name in inner}


def wholes(state: State, key: str) -> dict[str, int]:
    """The table of integers under a key."""
    inner = table(state, key)
    return {name: whole(inner, name) for name in inner}


def balance_as_state(balance: Balance) -> dict[str, object]:
    """A balance as a table of plain values."""
    return {
        "active_mj": balance.active_mj,
        "reserved_mj": balance.reserved_mj,
        "shapley_mj": balance.shapley_mj,
        "active_us": balance.active_us,
        "reserved_us": balance.reserved_us,
        "memory_byte_us": balance.memory_byte_us,
        "link_bytes": dict(balance.link_bytes),
    }


def balance_from(state: State, key: str) -> Balance:
    """The balance under a key."""
    inner = table(state, key)
    return Balance(
        active_mj=whole(inner, "active_mj"),
        reserved_mj=whole(inner, "reserved_mj"),
        shapley_mj=whole(inner, "shapley_mj"),
        active_us=whole(inner, "active_us"),
        reserved_us=whole(inner, "reserved_us"),
        memory_byte_us=whole(inner, "memory_byte_us"),
        link_bytes=Counter(wholes(inner, "link_bytes")),
    )


def _wrong(key: str, wanted: str, found: object) -> SeedanceError:
    return SeedanceError(f"the kept account's {key!r} should be {wanted}, not {found!r}")
