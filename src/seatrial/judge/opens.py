"""Declared against measured open files of the runs of a test.

    compare("cm4", 200, [440.0, 450.0, 460.0]).sentence
    # "cm4: declared 200 opens, measured 450 (2.25 x, median of 3 runs): ..."

Throttles with a target, safe loads and placement go by what a plan declares (``opens``). What runs
had is measured where the machine's file says how (``file_use.every``), as their figure
``open_files``: the most files at one look, so a lower bound.
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

from seatrial.units import count, show_number

OPEN_FILES = "open_files"  # the figure
FACTOR = 2.0  # by which a declaration is wrong

State = Literal["right", "too low", "too high", "not measured"]


class OpensCheck(NamedTuple):
    """What a test declares, and what its runs had (``measured``: their median; None: unknown)."""

    test: str
    declared: float
    measured: float | None
    highest: float | None
    runs: int

    @property
    def factor(self) -> float | None:
        """How many times as many files the runs had open; None where that is no number."""
        if self.measured is None or not self.declared:
            return None
        return self.measured / self.declared

    @property
    def state(self) -> State:
        if self.measured is None:
            return "not measured"
        if self.measured > FACTOR * self.declared or self.measured == FACTOR * self.declared > 0:
            return "too low"
        return "too high" if self.measured * FACTOR <= self.declared else "right"

    @property
    def is_wrong(self) -> bool:
        """Whether the declaration is far off."""
        return self.state in ("too low", "too high")

    @property
    def words(self) -> str:
        """Both numbers, in words: ``declared 200 opens, measured 450 (2.25 x)``."""
        declared = f"declared {show_number(self.declared)} opens"
        if self.measured is None:
            return f"{declared}, not measured"
        times = "" if self.factor is None else f" ({show_number(self.factor)} x)"
        return f"{declared}, measured {show_number(self.measured)}{times}"

    @property
    def sentence(self) -> str:
        """The numbers of a test, and what to do where the declaration is wrong or unknown."""
        lead = f"{self.test}: {self.words}"
        if self.measured is None:
            return f"{lead}: give the machine's file file_use: {{every: 10s}} to know"
        lead += f", the median of {count(self.runs, 'run')}"
        if not self.is_wrong:
            return lead
        return f"{lead}: the declaration is {self.state}; give the test opens: {self.measured:g}"


def compare(test: str, declared: float, measured: Sequence[float]) -> OpensCheck | None:
    """Return the check of a test; None where it declares nothing and nothing was measured."""
    if not declared and not any(measured):
        return None
    if not measured:
        return OpensCheck(test, declared, None, None, 0)
    return OpensCheck(test, declared, median(measured), max(measured), len(measured))
