from __future__ import annotations

import pytest

from seatrial.plugins.importers.results import time_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2021-02-01T00:00:00Z", 1_612_137_600),
        ("2021-02-01 01:00:00+01:00", 1_612_137_600),
        ("1612137600", 1_612_137_600),
        ("1612137600.5", 1_612_137_600.5),
        ("1612137600500", 1_612_137_600.5),
        ("1612137600500000000", 1_612_137_600.5),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert time_of(text) == round(seconds * 1e9)


def test_a_time_without_a_zone_is_of_this_host() -> None:
    assert time_of("20210201") == time_of("2021-02-01T00:00:00")


@pytest.mark.parametrize("text", ["", "soon", "12", "2021-13-01", "nan", "1e30"])
def test_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; write"):
        time_of(text)
