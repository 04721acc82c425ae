"""A checkpoint that is not one is refused with a sentence."""

import json

import pytest

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import Holder
from seedance_obs.errors import SeedanceError
from tests.attribution.board_scripts import GAP_US, LINKS, played, seen

A = Holder("a", 1, 0.5, 10, LINKS)


def kept():
    ticks = [seen(0, 0, A), seen(1, 300, A, traffic={"nvlink": 10}), seen(2, 300, A)]
    return json.loads(json.dumps(played(ticks).as_state()))


def places(table, path=()):
    for key, value in table.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


@pytest.mark.parametrize("path", list(places(kept())), ids=".".join)
def test_a_value_of_another_kind_is_named_and_refused(path):
    state = table = kept()
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = ["neither", "table", "nor", "number"]
    with pytest.raises(SeedanceError, match=f"{path[-1]!r} should be"):
        BoardAccount.from_state(state, gap_us=GAP_US)


@pytest.mark.parametrize(
    "row",
    [[], [1] * 7, [1, 2, 3, 4, 5, 6.5, {}], [1, 2, 3, 4, 5, {}], [1, 2, 3, 4, 5, 6, {"x": ""}]],
)
def test_a_balance_of_another_form_is_refused(row):
    state = kept()
    state["balances"]["a"] = row
    with pytest.raises(SeedanceError, match="should be"):
        BoardAccount.from_state(state, gap_us=GAP_US)


def test_a_table_that_is_missing_is_refused():
    with pytest.raises(SeedanceError, match="should be a table, not None"):
        BoardAccount.from_state({}, gap_us=GAP_US)


def size(value) -> int:
    return sum(map(size, value.values())) if isinstance(value, dict) else 1


def test_births_and_deaths_leave_nothing_behind():
    account, sizes = BoardAccount(gap_us=GAP_US, floor_watts=70.0), []
    for second in range(600):
        pods = [Holder(f"pod-{n}", 1, 0.3, 1, LINKS) for n in (second, second + 1)]
        traffic = {"nvlink": 10**6 + second}
        account.advance(seen(second, second * 300_001, *pods, parts=3, traffic=traffic))
        account.forget(f"pod-{second - 3}")
        sizes.append(size(account.as_state()))
    assert max(sizes[300:]) <= max(sizes[:300])


def test_all_that_was_counted_is_kept():
    account = BoardAccount.from_state(kept(), gap_us=GAP_US)
    balance = account.forget("a")
    assert (balance.active_mj, balance.active_us, balance.reserved_us) == (300, 10**6, 10**6)
    assert balance.memory_byte_us == 20_000_000
    assert balance.link_bytes == {"NV18": 10}
    assert account.estimators()["exclusive"] == 300
