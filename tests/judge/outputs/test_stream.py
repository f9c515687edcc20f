from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.judge.outputs.stream import parse
from tests.judge.helpers import DATA, only_golden

TEXT = (DATA / "stream.out").read_text()


def test_the_figures_of_a_real_output() -> None:
    figures = msgspec.json.format(msgspec.json.encode(parse(TEXT)), indent=1) + b"\n"
    only_golden(figures, DATA / "stream.json")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Solution Validates", "", "closing line 'Solution Validates' is missing"),
        ("Solution Validates", "Failed Validation on array a[]", "'Failed Validation'"),
        ("Add: ", "Adder: ", "'Add' is missing"),
        ("Scale:", "Copy:", "'Copy' twice"),
        ("5693.6", "nan", "'nan' is not a finite number"),
        ("5693.6", "******", "is not a number"),
        ("     0.023418     0.021076     0.028006", "", "'Triad' is missing, or not whole"),
        ("0.022140\n", "0.022140 ", "'Copy' is missing, or not whole"),
    ],
)
def test_what_is_refused(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(ValueError, match=said):
        parse(TEXT.replace(old, new))


def test_two_runs_in_one_output_are_refused() -> None:
    with pytest.raises(ValueError, match="'Copy' twice"):
        parse(TEXT + TEXT)


@given(st.integers(0, TEXT.index("Solution Validates") + 17))
def test_a_truncated_output_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=r"missing|whole"):
        parse(TEXT[:length])


@given(st.integers(0, len(TEXT)), st.text(max_size=20))
def test_a_damaged_output_gives_four_finite_figures_or_a_value_error(at: int, junk: str) -> None:
    try:
        figures = parse(TEXT[:at] + junk + TEXT[at:])
    except ValueError:
        return
    assert [figure.name for figure in figures] == ["copy", "scale", "add", "triad"]
