"""The results of judging a run: figures of merit, and findings against it.

number("1.5D+03")                      # 1500.0, as Fortran prints it
MetricValue("triad", 5693.6, "MB/s", "higher")
Finding(codes.WRONG_ANSWER, "stdout does not contain 'Solution Validates'")
"""

import math
import re
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from seatrial.escaping import plain_line
from seatrial.model.codes import Code
from seatrial.units import Direction, number_or_size

ELAPSED = "elapsed"
"""A metric of every run: the seconds of its script, lower is better. A figure of that name that the
test gives itself takes its place."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][-+]?[0-9]+)?")
# Fortran's E and D leave the letter out where the exponent has three digits: 0.1234567-104. A range
# such as 0.25-128, and a version such as 2.28-151, have fewer decimals.
_WITHOUT_LETTER = re.compile(r"([-+]?[0-9]?\.[0-9]{3,})([-+][1-9][0-9]{2})")
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf|infinity)(?:\(\w*\))?", re.IGNORECASE)
_LONGEST_NUMBER = 100
_LABELLED = r"([^{]+)\{(\w+=.*)\}"
_NEXT_LABEL = r",(?=\w+=)"


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


class Labelled(NamedTuple):
    """The parts of a metric's full name."""

    name: str
    labels: dict[str, str]

    @classmethod
    def of(cls, full_name: str) -> "Labelled":
        """Return the parts of ``latency{benchmark=MPI Latency,bytes=8}``; a name that is written
        otherwise has no labels."""
        match = re.fullmatch(_LABELLED, full_name, re.DOTALL)
        if not match:
            return cls(full_name, {})
        pairs = (pair.partition("=") for pair in re.split(_NEXT_LABEL, match[2]))
        return cls(match[1], {label: value for label, _, value in pairs})

    def without(self, label: str) -> str:
        """Return the full name without one of its labels."""
        rest = ",".join(f"{name}={value}" for name, value in self.labels.items() if name != label)
        return f"{self.name}{{{rest}}}" if rest else self.name


@lru_cache(maxsize=100_000)
def place_of(full_name: str) -> tuple[object, ...]:
    """Return the key by which the names of metrics are sorted: by name, then by labels, of which
    numbers and sizes (``4KiB``) go by their value."""
    name, labels = Labelled.of(full_name)
    return name, tuple((label, *place_of_value(value)) for label, value in labels.items())


def place_of_value(text: str) -> tuple[bool, float, str]:
    """Return the key by which values are sorted: numbers and sizes by their value, then words."""
    value = number_or_size(text)
    return math.isnan(value), 0.0 if math.isnan(value) else value, text


class Finding(NamedTuple):
    """One finding against a run, as a sentence, and the verdict that follows."""

    code: Code
    text: str


Measured = tuple[list[MetricValue], list[Finding]]
"""The figures of a run, and what is wrong with them."""


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
