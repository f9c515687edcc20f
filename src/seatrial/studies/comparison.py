"""A comparison of two sides, as data: its rows, their samples, the means over them."""

import math
from typing import Literal

from msgspec import Struct

from seatrial.statistics.two_sample import ALMOST
from seatrial.store.by_case import GivenFigure
from seatrial.studies.cures import Cure

State = Literal["better", "worse", "same", "unclear", "given", "not compared", "missing"]


class Sample(Struct, frozen=True):
    """One side of a row: the figures of ``n`` runs whose answer was right; the other runs, by their
    verdict. ``median`` is None of none. ``given`` are figures that somebody else gave: then ``n``
    counts measurements that are not ours."""

    n: int
    median: float | None
    excluded: dict[str, int] = {}
    given: list[GivenFigure] = []


class ComparisonRow(Struct, frozen=True, kw_only=True):
    """One metric of one case on both sides. ``ratio`` is the second median over the first, ``low``
    and ``high`` the ends of its interval; None where they cannot be had. ``better_by`` is by how
    many per cent of the first the second is better (negative: worse), ``better_from`` and
    ``better_to`` the ends of its interval. ``gain`` is the logarithm of how many times better the
    second is. ``why`` explains what is not plain; ``differs`` tells
    of numbers (nodes, tasks, threads) and builds that the sides do not share. ``needed`` is how
    many runs of each side may decide a row that is unclear for having too few, or 0; ``unseen``:
    a change of less than this share could not have been seen, None where nothing was compared."""

    case: str
    test: str
    parameters: dict[str, str]
    metric: str
    unit: str
    better: str
    verdict: State
    first: Sample
    second: Sample
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    better_by: float | None = None
    better_from: float | None = None
    better_to: float | None = None
    gain: float | None = None
    why: str = ""
    differs: list[str] = []
    needed: int = 0
    unseen: float | None = None


class Mean(Struct, frozen=True):
    """The geometric mean of how many times better the second side is, over the rows of a metric
    that have a ratio, ``unclear`` of them without a clear one; ``without`` counts the rows that
    have none."""

    metric: str
    ratios: int
    mean: float
    without: int
    unclear: int = 0


class Comparison(Struct, frozen=True):
    """The rows of two sides, the largest difference first. ``across`` are the attributes that the
    cases were compared across; ``notices`` are what else a person should know;
    ``without_elapsed`` counts the cases whose elapsed time is left out; ``cures`` are cases that
    failed on the first side alone. ``doubts`` are reasons for which the sides could not be compared
    as a whole, though nothing may be worse."""

    first: str
    second: str
    least: float
    across: list[str]
    rows: list[ComparisonRow]
    means: list[Mean]
    notices: list[str]
    without_elapsed: int = 0
    cures: list[Cure] = []
    doubts: list[str] = []

    def count(self, verdict: State) -> int:
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def undecided(self) -> list[ComparisonRow]:
        """The rows that could not have shown a change that matters."""
        return [row for row in self.rows if row.needed or self._hides(row)]

    def _hides(self, row: ComparisonRow) -> bool:
        unseen = math.inf if row.unseen is None else row.unseen
        return row.verdict == "unclear" and unseen > self.least * ALMOST

    @property
    def answered(self) -> bool:
        """Whether some row was compared."""
        return any(row.verdict not in ("not compared", "missing") for row in self.rows)

    @property
    def unanswered(self) -> list[ComparisonRow]:
        """The rows in which one side has no right answer where the other has one."""
        return [row for row in self.rows if is_unanswered(row)]


def is_unanswered(row: ComparisonRow) -> bool:
    """Return whether one side of a row has no right answer where the other has one."""
    sides = ((row.first, row.second), (row.second, row.first))
    return any(one.n and not other.n and other.excluded for one, other in sides)
