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


def balance_as_state(balance: Balance) -> list[object]:
    """A balance as a row: its integers in the order of `Balance`, and its table of link bytes.

    There may be a thousand, written every second: names in each would be half of the file.
    """
    return [
        balance.active_mj,
        balance.reserved_mj,
        balance.shapley_mj,
        balance.active_us,
        balance.reserved_us,
        balance.memory_byte_us,
        dict(balance.link_bytes),
    ]


def balance_from(state: State, key: str) -> Balance:
    """The balance under a key."""
    row = state.get(key)
    if not isinstance(row, list) or list(map(type, row)) != [*[int] * 6, dict]:
        raise _wrong(key, "six integers and a table", row)
    active_mj, reserved_mj, shapley_mj, active_us, reserved_us, memory_byte_us, links = row
    return Balance(
        active_mj=active_mj,
        reserved_mj=reserved_mj,
        shapley_mj=shapley_mj,
        active_us=active_us,
        reserved_us=reserved_us,
        memory_byte_us=memory_byte_us,
        link_bytes=Counter(wholes({key: links}, key)),
    )


def _wrong(key: str, wanted: str, found: object) -> SeedanceError:
    return SeedanceError(f"the kept account's {key!r} should be {wanted}, not {found!r}")
