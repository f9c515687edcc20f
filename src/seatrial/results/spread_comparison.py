"""Whether the figures of one side vary more than those of another, row by row.

    for row in compare_spreads(base, other).rows:
        row.verdict, row.ratio, row.low, row.high     # "less steady", 3.0, 1.9, 4.6

Cases are paired as for a comparison of medians; each row is judged by ``statistics.spread_ratio``,
all of them together by ``statistics.multiple_testing``.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.statistics.significance import confirmed
from seatrial.judge.statistics.two_samples import LEAST, RECOMMENDED, compare_spread
from seatrial.results.case_figures import ELAPSED, CaseRuns, Kind, differing, figures_of, metrics_of
from seatrial.results.selection import CasePair, Side, cases_of, pair
from seatrial.units import NO_DIRECTION, unfit_of

SpreadVerdict = Literal["less steady", "steadier", "unclear", "not compared"]
_ORDER: dict[SpreadVerdict, int] = {
    "less steady": 0,
    "steadier": 1,
    "unclear": 2,
    "not compared": 3,
}


class SpreadRow(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """One metric of one case. ``first`` and ``second`` are the robust deviations as shares of the
    medians, ``ratio`` the second over the first, ``low`` and ``high`` its interval."""

    case: str
    metric: str
    n: tuple[int, int]
    first: float | None = None
    second: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    verdict: SpreadVerdict = "not compared"
    reason: str = ""


class SpreadComparison(Struct, frozen=True):
    """The rows of two sides, what changed first; ``across`` as for a comparison of medians."""

    first: str
    second: str
    across: list[str]
    rows: list[SpreadRow]

    def count(self, verdict: SpreadVerdict) -> int:
        return sum(row.verdict == verdict for row in self.rows)


def compare_spreads(
    first: Side,
    second: Side,
    metric: Callable[[str], bool] | None = None,
    across: Sequence[str] = (),
    each_node: bool = False,
) -> SpreadComparison:
    """Compare the spread of the second side with that of the first. Raises UsageError where no case
    is on both sides, or no metric is left."""
    paired = pair(first, second, across, each_node)
    rows = [row for each in paired.pairs for row in _rows(each, metric)]
    if not rows:
        known = ", ".join(metrics_of(cases_of((first, second)))) or "none"
        raise UsageError(f"no such metric on both sides; there are {known}")
    ps = {place: row.p for place, row in enumerate(rows) if row.p is not None}
    places = list(ps)
    stand = {places[i] for i in confirmed([*ps.values()], len(ps))} if ps else set()
    judged = [_judged(row, i in stand) for i, row in enumerate(rows)]
    judged.sort(key=lambda row: (_ORDER[row.verdict], row.p or 1.0, row.case, row.metric))
    return SpreadComparison(first.text, second.text, paired.across, judged)


def _rows(pair: CasePair, metric: Callable[[str], bool] | None) -> list[SpreadRow]:
    first, second = (
        {kind for case in cases for kind in case.values} for cases in (pair.first, pair.second)
    )
    kinds = sorted(first & second)
    chosen = _of_merit(kinds) if metric is None else [each for each in kinds if metric(each[0])]
    return [_row(pair, kind) for kind in chosen]


def _of_merit(kinds: list[Kind]) -> list[Kind]:
    """Return the figures of merit among metrics; all where there is none."""
    merit = [kind for kind in kinds if kind != ELAPSED and kind[2] != NO_DIRECTION]
    return merit or kinds


def _row(pair: CasePair, kind: Kind) -> SpreadRow:
    one, other = (figures_of(cases, [kind]) for cases in (pair.first, pair.second))
    row = SpreadRow(case=pair.name, metric=kind[0], n=(len(one), len(other)))
    if reason := _unlike(pair.first) or _unlike(pair.second) or unfit_of([*one, *other]):
        return replace(row, reason=reason)
    if min(row.n) < LEAST:
        reason = f"fewer than {LEAST} figures tell nothing of a spread: --repeat {RECOMMENDED}"
        return replace(row, reason=reason)
    if min(*one, *other) <= 0:
        return replace(row, reason="a relative spread is of figures above 0")
    found = compare_spread(one, other)
    reason = "" if found.ratio is not None else "more than half of a side's figures are equal"
    return replace(row, **found._asdict(), reason=reason)


def _unlike(cases: Sequence[CaseRuns]) -> str:
    if any(case.given for case in cases):
        return "figures that others gave have no spread of ours"
    names = differing(cases)
    return f"several cases, which differ in {names}" if names else ""


def _judged(row: SpreadRow, stands: bool) -> SpreadRow:
    if row.first is None or row.second is None:
        return row
    if not stands:
        return replace(row, verdict="unclear")
    return replace(row, verdict="less steady" if row.second > row.first else "steadier")
