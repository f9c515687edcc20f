"""Quantities as people write them, and as they are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.units import (
    bytes_of,
    seconds,
    show_bytes,
    show_change,
    show_number,
    show_seconds,
    times_as_good,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (90, 90), (0.5, 0.5), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1h 30m", 5400),
        ("2d", 172800), ("500ms", 0.5), ("1.5h", 5400), (" 5m ", 300),
        # as Slurm reads them
        ("10:00", 600), ("01:30:00", 5400), ("1-12", 129600), ("1-00:30", 88200),
        ("2-01:00:05", 176405),
    ],
)  # fmt: skip
def test_durations(text: str | float, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "5", "m", "5 minutes", "5mm", "-5m", "1:2:3", "1:2", "5m later", "٣m", "x" * 999,
        "1h" * 99, 0, -1, True, 10**12, "99999d", "0s", float("nan"), float("inf"), "1e3s",
    ],
)  # fmt: skip
def test_what_is_no_duration(text: str | float) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (0, 0), (4096, 4096), ("4096", 4096), ("64MiB", 64 << 20), ("64M", 64 << 20),
        ("64MB", 64_000_000), ("64 MB", 64_000_000), ("1.5k", 1536), ("1KiB", 1024),
        ("1kB", 1000), ("2GB", 2 * 10**9), ("1TiB", 1 << 40), ("1P", 1 << 50), ("7B", 7),
    ],
)  # fmt: skip
def test_sizes(text: str | int, value: int) -> None:
    assert bytes_of(text) == value


@pytest.mark.parametrize(
    "text", ["", "M", "64MBit", "-1", -1, "1 2", True, "9" * 70, "1e3", "64mb", "٣k"]
)
def test_what_is_no_size(text: str | int) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        bytes_of(text)


@given(st.text() | st.text("0123456789:.-smhdkMGiB ", max_size=12))
def test_any_text_is_a_quantity_or_is_refused(text: str) -> None:
    for read in (seconds, bytes_of):
        try:
            assert read(text) >= 0
        except ValueError as error:
            assert "is not a" in str(error)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00123, "1.23 ms"), (1.26, "1.26 s"), (9.99, "9.99 s"), (9.996, "10.0 s"),
        (59.9, "59.9 s"), (60, "1 m 0 s"), (3599.6, "1 h 0 m"), (5400, "1 h 30 m"),
        (90000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_durations_shown(value: float, text: str) -> None:
    assert show_seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (5 << 40, "5.0 TiB")],
)  # fmt: skip
def test_sizes_shown(value: float, text: str) -> None:
    assert show_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (5694.4, "5694"), (0.42134, "0.4213"), (12345678.0, "1.235e+07"),
        (9.99e-4, "9.990e-04"), (-2.5, "-2.5"), (999.96, "1000"),
    ],
)  # fmt: skip
def test_numbers_shown(value: float, text: str) -> None:
    assert show_number(value) == text


def test_a_change_that_is_rounded_away_has_no_minus() -> None:
    assert [show_change(each) for each in (-0.04, 0.0, -0.06, 12.34)] == [
        "+0.0 %",
        "+0.0 %",
        "-0.1 %",
        "+12.3 %",
    ]


def test_a_figure_is_as_many_times_as_good_as_another() -> None:
    assert times_as_good(4.0, 2.0, "higher") == 2.0
    assert times_as_good(4.0, 2.0, "lower") == 0.5
