from math import inf, isclose, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.attribution.least_squares import (
    condition_number,
    inverse,
    nonnegative,
    variances,
)

VALUES = st.integers(-20, 20).map(float)


@st.composite
def problems(draw):
    """Observations A x = b of up to 6 unknowns, as rows of A and b; columns may depend."""
    unknowns = draw(st.integers(1, 6))
    row = st.lists(VALUES, min_size=unknowns, max_size=unknowns)
    rows = draw(st.lists(row, min_size=1, max_size=9))
    return rows, draw(st.lists(VALUES, min_size=len(rows), max_size=len(rows)))


def normal_equations(rows, values):
    columns = list(zip(*rows, strict=True))
    gram = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in columns] for a in columns]
    return gram, [sum(x * y for x, y in zip(a, values, strict=True)) for a in columns]


def squares(rows, values, answer):
    return sum(
        (value - sum(a * x for a, x in zip(row, answer, strict=True))) ** 2
        for row, value in zip(rows, values, strict=True)
    )


@given(problems())
def test_the_answer_meets_the_conditions_of_an_optimum(problem):
    gram, moments = normal_equations(*problem)
    answer = nonnegative(gram, moments)
    size = max(1.0, *map(abs, moments))
    assert min(answer) >= 0
    for row, moment, value in zip(gram, moments, answer, strict=True):
        gain = moment - sum(g * x for g, x in zip(row, answer, strict=True))
        assert gain <= 1e-6 * size
        assert abs(gain) <= 1e-6 * size or value == 0


@given(problems(), st.lists(st.floats(0, 5), min_size=6, max_size=6))
def test_no_other_allowed_answer_leaves_less(problem, other):
    rows, values = problem
    answer = nonnegative(*normal_equations(rows, values))
    least = squares(rows, values, answer)
    assert least <= squares(rows, values, other[: len(answer)]) * (1 + 1e-9) + 1e-6


def test_an_optimum_inside_is_the_ordinary_one():
    assert nonnegative([[2.0, 1.0], [1.0, 3.0]], [5.0, 10.0]) == pytest.approx([1.0, 3.0])


def test_what_would_be_negative_is_zero_and_the_rest_is_solved_without_it():
    assert nonnegative([[1.0, 0.5], [0.5, 1.0]], [2.0, 0.5]) == [2.0, 0.0]


def test_equal_columns_are_no_error():
    answer = nonnegative([[4.0, 4.0], [4.0, 4.0]], [8.0, 8.0])
    assert sum(answer) == pytest.approx(2.0)


def test_nothing_to_solve_for_and_columns_of_zeros_have_the_answer_zero():
    assert nonnegative([], []) == []
    assert nonnegative([[0.0, 0.0], [0.0, 1.0]], [0.0, 3.0]) == [0.0, 3.0]


def test_the_condition_number_does_not_depend_on_the_scale_of_columns():
    one = condition_number([[1.0, 0.5], [0.5, 1.0]])
    assert one == pytest.approx(3.0)  # |G| = 1.5, |G^-1| = 2
    assert condition_number([[1e6, 0.5], [0.5, 1e-6]]) == pytest.approx(one)


def test_dependent_columns_have_an_infinite_condition_number_and_no_inverse():
    gram = [[1.0, 2.0], [2.0, 4.0]]
    assert condition_number(gram) == inf
    assert condition_number([[0.0, 0.0], [0.0, 1.0]]) == inf
    assert inverse(gram) is None
    assert variances(gram, [[1.0, 0.0]]) is None


def test_the_variance_of_a_direction_is_its_square_by_the_inverse():
    gram = [[4.0, 2.0], [2.0, 3.0]]
    direction = [1.0, -1.0]
    inverted = inverse(gram)
    assert inverted is not None
    expected = sum(direction[i] * inverted[i][j] * direction[j] for i in range(2) for j in range(2))
    (found,) = variances(gram, [direction]) or [0.0]
    assert isclose(found, expected)
    assert isclose(sqrt(found), sqrt(11 / 8))
