"""Quantities of ``run``: a fixed number, or an expression over parameters and facts.

tasks = quantity("2 * node.cores", "tasks", whole)
tasks({"node.cores": 4})                # 8
"""

import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from seatrial.lazy import regex
from seatrial.suite.expressions import ExpressionError, compile_expression
from seatrial.units import bytes_of

MAX_PIECES = 100_000
DEFAULT = "default"  # the word for what a missing key says
PIECE = "piece"  # the parameter that has the number of a piece

Names = Mapping[str, Any]
Quantity = Callable[[Names], Any]

# A unit stands by itself, or right behind a number.
_SIZE = regex(r"(.*(?:\s|\)|(?<![A-Za-z_.\d])\d+\.?\d*))([kKMGTP]i?B|B|[kKMGTP])", re.DOTALL)


def quantity(written: int | float | str, key: str, convert: Callable[[Any], Any]) -> Quantity:
    """Return a function from names to a quantity of ``run``: a fixed one, or the converted value of
    an expression. It raises ExpressionError with the key of the quantity."""
    try:
        fixed = convert(written)
        return lambda names: fixed
    except ValueError:
        expression = compile_expression(str(written))

    def value_of(names: Names) -> Any:
        value = expression.evaluate(names, "run", key)
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            message = f"{written!r} gives {reprlib.repr(value)}: {error}"
            raise ExpressionError(message, "run", key) from None

    return value_of


def whole(value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError("it must be a whole number")
    if value < least:
        raise ValueError(f"it must be at least {least}")
    return int(value)


def whole_or_none(value: Any) -> int:
    return whole(value, 0)


def pieces(value: Any) -> int:
    number = whole(value)
    if number > MAX_PIECES:
        raise ValueError(f"it must be at most {MAX_PIECES}")
    return number


def memory(written: int | str) -> Quantity:
    """Return a function from names to bytes, for a size whose number may be an expression:
    ``16GiB``, ``2 * size MiB``. Raises ExpressionError, also for a text without a unit."""
    number, unit = split_size(written)
    scale = bytes_of(f"1{unit}")

    def in_bytes(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ValueError("it must be a number above 0")
        return round(value * scale)

    try:
        fixed = in_bytes(float(number))
    except ValueError:
        return quantity(number, "memory", in_bytes)
    return lambda names: fixed


def split_size(written: int | str) -> tuple[str, str]:
    """Return the number or expression of a size, and its unit. Raises ExpressionError."""
    found = _SIZE.fullmatch(str(written).strip())
    if found is None:
        raise ExpressionError(f"{str(written)!r} has no unit; write e.g. 16GiB, or 2 * size GiB")
    return found[1].rstrip(), found[2]
