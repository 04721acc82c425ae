import pytest

from seedance_obs.topology.shown_text import as_written, folded, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpu-7 [x] é 日本", "gpu-7 [x] é 日本"),
        ("a\tb\nc\r", "a b c "),
        ("\x1b[31m\x07\x9b", "\ufffd[31m\ufffd\ufffd"),
        ("\u202egnp\u200b\udc80", "\ufffdgnp\ufffd\ufffd"),
        ("a\u2028b", "a b"),
    ],
)
def test_only_what_a_terminal_acts_on_is_replaced(text, shown):
    assert printable(text) == shown
    assert as_written(text).plain == shown


@pytest.mark.parametrize(
    ("pieces", "width", "lines"),
    [
        (["free: 2-3,5,8-9"], 15, ["free: 2-3,5,8-9"]),
        (["free: 2-3,5,8-9"], 12, ["free: 2-3,5,", "  8-9"]),
        (["2-3,", "5 "], 4, ["2-3,", "  5"]),
        (["slowest 4.0  ", "mean 5.0  "], 12, ["slowest 4.0", "  mean 5.0"]),
        (["slowest 4.0  ", "mean 5.0  "], 80, ["slowest 4.0  mean 5.0"]),
        (["a much-too-long-word"], 6, ["a", "  much-too-long-word"]),
        (["日本日本 日"], 10, ["日本日本", "  日"]),
        ([""], 10, [""]),
    ],
)
def test_lines_break_between_pieces_and_then_at_blanks_and_after_commas(pieces, width, lines):
    assert folded(pieces, width, indent="  ").split("\n") == lines
