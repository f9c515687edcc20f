"""The results of judging a run: figures of merit, and findings against it.

number("1.5D+03")                      # 1500.0, as Fortran prints it
MetricValue("triad", 5693.6, "MB/s", "higher")
Finding(codes.WRONG_ANSWER, "stdout does not contain 'Solution Validates'")
"""

import re
from typing import NamedTuple

from msgspec import Struct

from seatrial.escaping import plain_line
from seatrial.model.codes import Code
from seatrial.units import Direction

ELAPSED = "elapsed"
"""A metric of every run: the seconds of its script, lower is better. A figure of that name that the
test gives itself takes its place."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][-+]?[0-9]+)?")
# Fortran's E and D leave the letter out where the exponent has three digits: 0.1234567-104. A range
# such as 0.25-128, and a version such as 2.28-151, have fewer decimals.
_WITHOUT_LETTER = re.compile(r"([-+]?[0-9]?\.[0-9]{3,})([-+][1-9][0-9]{2})")
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf|infinity)(?:\(\w*\))?", re.IGNORECASE)
_LONGEST_NUMBER = 100


class MetricValue(Struct, frozen=True, omit_defaults=True):
    """A measured figure of merit. The values of a reference are there where one applies."""

    name: str
    #: Finite, and in ``unit``.
    value: float
    unit: str
    better: Direction
    #: None if the reference has only bounds.
    reference: float | None = None
    #: The bounds in the same unit; None: unbounded.
    low: float | None = None
    high: float | None = None
    #: The distance from the reference's value, negative below.
    percent: float | None = None
    #: What distinguishes figures of one name in an output, such as a message size.
    labels: dict[str, int | str] = {}

    @property
    def full_name(self) -> str:
        """The name with its labels, under which it is a metric: ``latency{bytes=8}``."""
        bound = ",".join(f"{name}={value}" for name, value in self.labels.items())
        return f"{self.name}{{{bound}}}" if bound else self.name


class Finding(NamedTuple):
    """One finding against a run, as a sentence, and the verdict that follows."""

    code: Code
    text: str


def number(text: str) -> float:
    """Return the value of a number as C and Fortran print it, with an exponent of E or D, or of
    three digits without a letter. Raises ValueError, with the reason, for anything else: commas,
    nan, infinity."""
    if _NOT_FINITE.fullmatch(text[:_LONGEST_NUMBER]):
        raise ValueError(f"{shown(text)} is not a finite number")
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"{shown(text)} is not a number")
    written = _WITHOUT_LETTER.sub(r"\1e\2", text) if _WITHOUT_LETTER.fullmatch(text) else text
    if not _NUMBER.fullmatch(written):
        raise ValueError(f"{shown(text)} is not a number")
    value = float(written.replace("D", "e").replace("d", "e"))
    if abs(value) == float("inf"):
        raise ValueError(f"{shown(text)} is not a finite number")
    return value


def shown(text: str, longest: int = 60) -> str:
    """Return text in quotes for a sentence: bounded, with control characters escaped."""
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    quote = '"' if "'" in cut and '"' not in cut else "'"
    return f"{quote}{plain_line(cut)}{quote}"
