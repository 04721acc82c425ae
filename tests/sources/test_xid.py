"""The XID table as those on call use it."""

import pytest

from seedance_obs.sources import xid


@pytest.mark.parametrize(
    ("code", "name", "loud"),
    [
        (13, "application", "info"),
        (31, "application", "info"),
        (43, "application", "info"),
        (45, "consequence", "info"),
        (48, "memory", "critical"),
        (63, "contained", "info"),
        (64, "memory", "critical"),
        (74, "nvlink", "warning"),
        (79, "bus", "critical"),
        (92, "contained", "info"),
        (94, "contained", "info"),
        (95, "memory", "critical"),
        (119, "driver", "critical"),
        (145, "nvlink", "warning"),
        (154, "unclassified", "warning"),  # says "see action", be it none
        (167, "unclassified", "warning"),  # no action is named
        (171, "unclassified", "warning"),  # a detail of 48, which pages
        (4242, "unclassified", "warning"),
        (0, "unclassified", "warning"),
        (-1, "unclassified", "warning"),
    ],
)
def test_codes_are_routed(code: int, name: str, loud: str) -> None:
    assert (xid.classify(code), xid.severity(code)) == (name, loud)


def test_no_code_is_in_two_classes() -> None:
    codes = [code for group in xid.CODES.values() for code in group]
    assert len(codes) == len(set(codes))
    assert all(1 <= code <= 172 for code in codes)


def test_every_class_has_a_severity_and_is_explained() -> None:
    assert xid.SEVERITY.keys() == {*xid.CODES, xid.UNCLASSIFIED}
    assert set(xid.SEVERITY.values()) == {"info", "warning", "critical"}
    for name in xid.SEVERITY:
        assert f"- `{name}`:" in (xid.__doc__ or "")
