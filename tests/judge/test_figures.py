from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial.model.figures import number, shown
from seatrial.units import unfit_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5D+03", 1500),
        ("-.5e-1", -0.05),
        ("+12.", 12),
        ("0.6133d0", 0.6133),
        ("007", 7),
        ("0.1234567-104", 0.1234567e-104),
        ("-0.2500+101", -0.25e101),
        (".125+100", 0.125e100),
        ("1.0E-104", 1e-104),
    ],
)
def test_numbers_of_c_and_fortran(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "1,234.5",
        "1_000",
        "",
        "12s",
        "****",
        "٣",
        "0x10",
        "1e",
        " 1",
        "0.5-128",
        "10.125-128",
        "0.25-128",
        "2.28-151",
        "0.125-99",
        "0.125-1000",
        "1-104",
        "0.125-104-104",
    ],
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number(text)


@pytest.mark.parametrize(
    "text", ["nan", "-NaN", "inf", "+Infinity", "nan(0x8)", "1e999", "0.125+400"]
)
def test_what_is_not_finite(text: str) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        number(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_prints_is_read_back(value: float) -> None:
    assert number(repr(value)) == value
    assert number(repr(value).replace("e", "D")) == value


@given(st.text())
@example("9" * 1_000_000)
def test_any_text_is_a_finite_number_or_a_value_error(text: str) -> None:
    try:
        assert math.isfinite(number(text))
    except ValueError as error:
        assert len(str(error)) < 300


@given(st.text(max_size=200))
def test_shown_text_is_bounded_and_printable(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown("x" * len(text), 60)) <= 62


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], ""),
        ([1.0, 0.0, -3.0, 1e150, 1e-150], ""),
        ([1.0, math.nan], "1 of 2 figures: not a finite number"),
        ([math.nan, 1.0, 2.0], "1 of 3 figures: not a finite number"),
        ([1.0, math.inf, -math.inf], "2 of 3 figures: not a finite number"),
        ([1e308, -1e308, 1.0], "2 of 3 figures: beyond 1e+150, as no measurement is"),
        ([5e-324, 1.0], "1 of 2 figures: below 1e-150, as no measurement is"),
    ],
)
def test_what_cannot_be_judged(values: list[float], said: str) -> None:
    assert unfit_of(values) == said


def test_text_in_a_sentence_is_bounded() -> None:
    assert shown("x" * 60) == "'" + "x" * 60 + "'"
    assert shown("x" * 61) == "'" + "x" * 57 + "...'"
    assert shown("\x1b[2J") == r"'\x1b[2J'"
