"""The highest activity of boards and of accounts between two probes, and what makes it unknown."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.exporter.leaks.gpu_activity import GpuActivity, board_activity
from tests.exporter.books.boards import board, instance, reading


@dataclass(slots=True)
class On:
    activity: dict[str, float | None] = field(default_factory=dict)


def told(uuid: str, **values: float):
    return board(uuid, readings={name: reading(value) for name, value in values.items()})


def noted(
    *looks: tuple[dict[str, float | None], dict[str, dict[str, float | None]]],
) -> GpuActivity:
    """What is known after looks at boards and at accounts on them."""
    activity = GpuActivity()
    for boards, accounts in looks:
        activity.note(
            [
                told(uuid, **({} if busy is None else {"utilization_ratio": busy}))
                for uuid, busy in boards.items()
            ],
            {account: On(dict(on)) for account, on in accounts.items()},
        )
    return activity


def test_the_highest_counts_whenever_it_was():
    found = noted(
        ({"G0": 0.1, "G1": 0.0}, {"a": {"G0": 0.1}}),
        ({"G0": 0.0, "G1": 0.7}, {"a": {"G0": 0.0}, "b": {"G1": 0.7}}),
        ({"G0": 0.0, "G1": 0.0}, {"a": {"G0": 0.0}, "b": {"G1": 0.0}}),
    )
    assert (found.of_boards(), found.of_account("a")) == (0.7, 0.1)
    assert found.of_account("b") is None, "the first look did not see it"


def test_without_a_look_all_is_unknown_and_without_boards_none_is_active():
    assert GpuActivity().of_boards() is None
    assert noted(({}, {})).of_boards() == 0.0


@pytest.mark.parametrize("on", [{}, {"a": {}}], ids=["gone", "on no board"])
def test_an_account_that_is_on_no_board_is_unknown(on):
    assert noted(({"G0": 0.0}, on)).of_account("a") is None


def test_an_account_is_not_more_active_than_its_board():
    found = noted(({"G0": 0.3, "G1": None}, {"a": {"G0": None}, "b": {"G1": None}}))
    assert found.of_account("a") == 0.3
    assert found.of_account("b") is None


readings = st.dictionaries(
    st.sampled_from(["G0", "G1", "G2"]), st.one_of(st.none(), st.floats(0, 1)), max_size=3
)


@given(st.lists(readings, min_size=1, max_size=8))
def test_a_board_is_known_when_every_look_told_of_it_and_then_by_its_highest(looks):
    found = noted(*((boards, {}) for boards in looks))
    seen = {uuid for look in looks for uuid in look}
    values = [look.get(uuid) for look in looks for uuid in seen]
    expected = None if None in values else max(values, default=0.0)
    assert found.of_boards() == expected
    assert found.boards == seen


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"utilization_ratio": 0.4}, 0.4),
        ({"utilization_ratio": 0.4, "engine_active_ratio": 0.3}, 0.3),
        ({"sm_active_ratio": 0.2}, 0.2),
        ({"memory_busy_ratio": 0.2}, None),
    ],
)
def test_a_board_is_as_active_as_its_account_is_booked_by(values, expected):
    assert board_activity(told("G0", **values)) == expected


def test_a_small_mig_instance_is_judged_by_itself_and_not_by_the_board():
    mig = (instance(1, 1, engine_active_ratio=0.28), instance(2, 4, engine_active_ratio=0.0))
    found = GpuActivity()
    found.note([board("G0", mig=mig, mig_slices=7)], {"a": On({"G0": 0.04}), "b": On({"G0": 0.0})})
    assert found.of_boards() == 0.28
    assert found.of_account("a") == pytest.approx(0.28)
    assert found.of_account("b") == 0.0


def test_an_account_on_a_large_instance_is_not_thought_quieter_than_it_is():
    mig = (instance(1, 1, engine_active_ratio=0.0), instance(2, 4, engine_active_ratio=0.5))
    found = GpuActivity()
    found.note([board("G0", mig=mig, mig_slices=7)], {"a": On({"G0": 0.5 * 4 / 7})})
    assert found.of_account("a") == 1.0


def test_an_account_is_scaled_by_the_slices_of_the_smallest_instance():
    mig = (instance(1, 3, engine_active_ratio=0.5), instance(2, 4, engine_active_ratio=0.0))
    found = GpuActivity()
    found.note([board("G0", mig=mig, mig_slices=7)], {"a": On({"G0": 0.3 * 3 / 7})})
    assert found.of_account("a") == pytest.approx(0.3)


@pytest.mark.parametrize(("own", "expected"), [(None, None), (0.1, 0.2), (0.3, 0.3)])
def test_of_a_mig_board_all_instances_must_be_told_or_it_itself(own, expected):
    mig = (instance(1, 3, engine_active_ratio=0.2), instance(2, 3))
    readings = {} if own is None else {"engine_active_ratio": reading(own)}
    assert board_activity(board("G0", mig=mig, mig_slices=7, readings=readings)) == expected
