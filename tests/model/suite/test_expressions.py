"""Expressions: values, bounds, and what is refused, never with anything but ExpressionError."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.expressions import ExpressionError, compile_expression

NAMES = {"a": 4, "t": "text", "node.cores": 8, "flag": True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * a", 9),
        ("7 // 2 - 7 % 4", 0),
        ("2 ** 10", 1024),
        ("4 / 2", 2),
        ("5 / 2", 2.5),
        ("-a", -4),
        ("not flag", False),
        ("1 < a <= 4", True),
        ("t == 'text' and a in [1, 4]", True),
        ("a not in (1, 2) or false", True),
        ("min(a, 2)", 2),
        ("max([1, node.cores], 3)", 8),
        ("floor(2.5) + ceil(2.5) + round(2.4)", 7),
        ("sqrt(17)", 4),
        ("  a  ", 4),
        ("1_000 + 0x10", 1016),
        ("true", True),
    ],
)
def test_values(text: str, value: Any) -> None:
    result = compile_expression(text).evaluate(NAMES)
    assert (type(result), result) == (type(value), value)


def test_names_that_an_expression_uses() -> None:
    assert compile_expression("a + node.cores * min(b, 1)").names == {"a", "b", "node.cores"}


@pytest.mark.parametrize(
    "text",
    [
        "", "a +", "import os", "a; b", "__import__('os')", "a.b.c", "[x for x in a]", "lambda: 1",
        "f'{a}'", "a[0]", "range(*a)", "min(key=1)", "a @ 2", "a << 2", "b'x'", "None", "...", "1j",
        "9" * 400, "1e999", "(" * 300, "-" * 400 + "1", "[" * 100 + "]" * 100, "a is 1", "x" * 501,
        "open('x')", "(a := 1)", "\0", "a\\", "'\ud800'",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo(3)", "foo is not a function; range, powers_of_two, min, max, floor, ceil, round, "),
        ("a.b.c", "only facts such as node.cores have a dot"),
        ("1 & 2", "the operations are + - * / // % **"),
        ("a is b", "the comparisons are == != < <= > >= in, not in"),
        ("None", "None is not a number or a text"),
        ("a[0]", "'a[0]' is not allowed here; arithmetic, comparisons, names, and range, "),
        ("~a", "'~a' is not allowed here; "),
        ("min(key=1)", "'min(key=1)' is not allowed here; "),
        ("-" * 60 + "1", f"{'-' * 60 + '1'!r} is nested too deeply"),
        ("min()", "'min()': min and max need at least one value"),
        ("max([])", "'max([])': min and max need at least one value"),
        ("range()", "'range()': range takes one to three numbers: range(a, b)"),
        ("range(1, 2, 3, 4)", "'range(1, 2, 3, 4)': range takes one to three numbers: "),
    ],
)
def test_a_mistake_has_its_own_remedy(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_expression(text).evaluate(NAMES)
    assert str(raised.value).startswith(reason)


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0", "a // 0", "a % 0", "t + 1", "t * 3", "[1] * 9", "flag + 1", "9 ** 9 ** 9",
        "(-8) ** 0.5", "0 ** -1", "10 ** 15 * 10", "range(10 ** 9)", "range(1, 5, 0)", "range()",
        "range(1.5)", "sqrt(-1)", "sqrt(1, 2)", "min()", "max([])", "powers_of_two()", "a < t",
        "1 in a", "b", "-t", "10.0 ** 15 * 2.0", "(10 ** 15) ** 60",
    ],
)  # fmt: skip
def test_what_has_no_value_is_an_error_that_names_the_expression(text: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_expression(text).evaluate(NAMES)
    assert repr(text) in str(raised.value)


_PIECES = ["a", "t", "node.cores", "node", ".", "1", "0", "2.5", "'x'", "range", "min", "(", ")",
           "[", "]", ",", "+", "-", "**", "/", "//", "%", "<", "==", " in ", " not ", " and ",
           " or ", " if ", " else ", "*", "=", ":", "\\", "9" * 30]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_any_text_has_a_value_or_an_expression_error(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        compile_expression(text).evaluate(NAMES)
