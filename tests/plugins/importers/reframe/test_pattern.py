from __future__ import annotations

import re

import pytest

from seatrial.plugins.importers.reframe.texts import with_one_group


@pytest.mark.parametrize(
    ("pattern", "tag", "one"),
    [
        (r"a (\S+)", 1, r"a (\S+)"),
        (r"(a|b) (?P<x>\d)", "x", r"(?:a|b) (\d)"),
        (r"(a|b) (?P<x>\d)", 1, r"(a|b) (?:\d)"),
        (r"\d+", 0, r"(\d+)"),
        (r"\((\d)\)[(]", 1, r"\((\d)\)[(]"),
        (r"[](](\d)", 1, r"[](](\d)"),
        (r"(?:a)(?=b)(b)", 1, r"(?:a)(?=b)(b)"),
    ],
)
def test_one_group(pattern: str, tag: object, one: str) -> None:
    assert with_one_group(pattern, tag) == one
    assert re.compile(one).groups == 1


@pytest.mark.parametrize(
    ("pattern", "tag", "why"),
    [
        ("(a", 1, "is no pattern"),
        ("(a)", 2, "has no group 2"),
        ("(a)", "x", "has no group 'x'"),
        (r"(a)\1", 1, "refers to its groups"),
    ],
)
def test_refused(pattern: str, tag: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        with_one_group(pattern, tag)
