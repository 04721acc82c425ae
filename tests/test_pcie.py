import pytest

from seedance_obs.pcie import GIGATRANSFERS, generation, width


@pytest.mark.parametrize("number", GIGATRANSFERS)
def test_a_generation_is_read_in_every_spelling_of_its_speed(number):
    speed = GIGATRANSFERS[number]
    texts = [f"{speed:.1f} GT/s PCIe", f"{speed:.1f} GT/s", f"{speed:g} GT/s", f"{speed:g}GT/s"]
    assert {generation(text) for text in texts} == {number}


@pytest.mark.parametrize("text", ["", "Unknown", "Unknown speed", "7.0 GT/s", "16", "GT/s"])
def test_other_speeds_are_none(text):
    assert generation(text) is None


def test_widths_are_those_that_pcie_has():
    assert [width(text) for text in ("x16", "8", "12", "0", "255", "", "x", "3")] == [
        *(16, 8, 12),
        *[None] * 5,
    ]
