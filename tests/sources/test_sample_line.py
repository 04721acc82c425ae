"""Our line splitter against prometheus-client's parser, and where it is stricter on purpose."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.sources.dcgm.sample_line import (
    metric_name,
    read_labels,
    read_number,
    split_sample,
)

# Names that begin with two underscores are reserved, and prometheus-client refuses some of them.
label_names = st.from_regex(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
label_values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
numbers = st.one_of(st.integers(-(2**64), 2**64), st.floats(allow_nan=False))


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(st.dictionaries(label_names, label_values, max_size=5), numbers)
def test_well_formed_lines_are_read_as_prometheus_reads_them(
    labels: dict[str, str], number: float
) -> None:
    inside = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    line = f"family{{{inside}}} {number}"
    (family,) = text_string_to_metric_families(line + "\n")
    (sample,) = family.samples
    split = split_sample(line)
    assert split is not None
    name, label_text, value = split
    assert (name, read_labels(label_text)) == (sample.name, sample.labels)
    assert read_number(value) == pytest.approx(sample.value, rel=1e-15)


def test_the_printed_form_decides_the_type() -> None:
    assert type(read_number("1")) is int
    assert type(read_number("1.000000")) is float
    assert type(read_number("1e3")) is float
    assert math.isnan(read_number("NaN") or 0.0)


@pytest.mark.parametrize("text", ["", "1_0", "0x1", "1e", "infinity", "٣", "1.2.3", "--1"])
def test_text_that_is_no_number_is_none(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize("line", ["", "a", "a{", 'a{b="c"}', "{} 1", "1a 1", 'a{b="c"} 1 2 3'])
def test_lines_that_are_no_sample_are_none(line: str) -> None:
    assert split_sample(line) is None


def test_a_name_is_found_where_a_line_begins_with_one() -> None:
    assert metric_name("up 1") == "up"
    assert metric_name("9up 1") is None
