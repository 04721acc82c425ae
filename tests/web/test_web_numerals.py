"""What people read adds up, and says no more than is known."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.web.numerals import (
    addends,
    decimals_for,
    duration,
    energy_unit,
    fixed,
    percent,
    power_unit,
    significant,
)
from seedance_obs.web.palette import GREY, OKABE_ITO, YELLOW, tenant_colours

amounts = st.floats(min_value=0, max_value=1e9)
names = st.sets(st.text(min_size=1, max_size=8).filter(lambda name: name != "unallocated"))


def shown(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


@given(st.lists(amounts, min_size=1, max_size=40), st.integers(0, 4))
def test_shown_cells_add_up_to_the_shown_total(values: list[float], decimals: int) -> None:
    cells = [shown(cell) for cell in addends(values, decimals)]
    exact = sum(map(Decimal, values), Decimal())
    assert abs(sum(cells) - exact) <= Decimal("0.5").scaleb(-decimals)


@given(st.lists(amounts, min_size=1, max_size=40), st.integers(0, 4))
def test_no_cell_is_a_whole_unit_off(values: list[float], decimals: int) -> None:
    for value, cell in zip(values, addends(values, decimals), strict=True):
        assert abs(shown(cell) - Decimal(value)) < Decimal(1).scaleb(-decimals)


def test_thirds_add_up_to_one() -> None:
    assert addends([1 / 3, 1 / 3, 1 / 3], 1) == ["0.4", "0.3", "0.3"]


def test_an_unknown_cell_is_a_dash_and_counts_for_nothing() -> None:
    assert addends([1.5, math.nan, None, 2.5], 1) == ["1.5", "–", "–", "2.5"]  # noqa: RUF001 - the page's dash


def test_fixed_groups_digits_and_has_a_true_minus() -> None:
    assert fixed(14920.56, 1) == "14,920.6"
    assert fixed(-1234.5, 1) == "−1,234.5"  # noqa: RUF001 - the page's minus
    assert fixed(None, 1) == "–"  # noqa: RUF001 - the page's dash


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (7.2, "7.20"), (431.4, "431"), (12345.6, "12,346")],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0 %"), (0.0001, "< 0.1 %"), (0.831, "83.1 %"), (0.9999, "> 99.9 %"), (1, "100.0 %")],
)
def test_what_is_not_quite_all_or_nothing_never_reads_so(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("total", "decimals"), [(0, 1), (0.5, 4), (6, 3), (248.1, 1), (14920.6, 0)]
)
def test_a_total_shows_four_significant_digits(total: float, decimals: int) -> None:
    assert decimals_for(total) == decimals


def test_units_grow_with_the_amount() -> None:
    assert energy_unit(3.5e6)[0] == "Wh"
    assert energy_unit(3.6e6) == ("kWh", 3.6e6)
    assert energy_unit(3.6e10)[0] == "MWh"
    assert power_unit(999) == ("W", 1.0)
    assert power_unit(9_999_000)[0] == "kW"


def test_durations_use_the_largest_unit_that_fits() -> None:
    assert [duration(s) for s in (15, 360, 10080, 172_800)] == ["15 s", "6 min", "2.8 h", "2 d"]


@given(names)
def test_no_two_of_seven_tenants_share_a_colour(tenants: set[str]) -> None:
    colours = tenant_colours(tenants)
    assert colours.pop("unallocated") == GREY
    assert set(colours) == tenants
    assert set(colours.values()) <= {*OKABE_ITO, YELLOW}
    assert len(set(colours.values())) == min(len(tenants), 7)


def test_a_tenant_alone_has_the_colour_it_has_among_others() -> None:
    together = tenant_colours(["vision", "speech", "unallocated"])
    assert tenant_colours(["vision"])["vision"] == together["vision"]
