"""Judge several comparisons of two samples together: of many rows some differ by chance.

    found = judged([(first, second, "lower"), (third, fourth, "higher")], least=0.02)
    found[0].verdict, found[0].why

Each row is compared by ``two_sample.compare``. Of those that are told to differ, the ones stand
that a false discovery rate of 5 % leaves (Benjamini and Hochberg 1995), and where figures are few,
noise of any shape, too (``multiple_testing.unshuffled``). A row alone has the verdict of that rule.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.statistics import two_sample
from seatrial.statistics.multiple_testing import student_p, unshuffled
from seatrial.statistics.sample_sizes import twice
from seatrial.statistics.significance import confirmed
from seatrial.statistics.two_sample import MIN_RELATIVE_CHANGE, RatioEstimate
from seatrial.units import Better

FEW = 8  # figures of a side, below which two modes may well pass for a difference

Row = tuple[Sequence[float], Sequence[float], Better]


def judged(rows: Sequence[Row], least: float = MIN_RELATIVE_CHANGE) -> list[RatioEstimate]:
    """Return the comparison of each row, with its verdict among all of them."""
    alone = [_with_least_p(two_sample.compare(*row, least), row) for row in rows]
    tested = [i for i, one in enumerate(alone) if one.p is not None]
    told = [i for i in tested if alone[i].told]
    stand = {told[i] for i in confirmed([alone[i].p or 0.0 for i in told], len(tested))}
    few = [i for i in tested if _least_n(rows[i]) < FEW]
    stand -= _by_chance(rows, few, stand, least)
    why = f"among {len(tested)} rows chance may make such a difference: repeat"
    return [
        replace(one, verdict="unclear", why=why, needed=twice(_least_n(rows[i])))
        if one.told and i not in stand
        else one
        for i, one in enumerate(alone)
    ]


def _by_chance(rows: Sequence[Row], few: Sequence[int], stand: set[int], least: float) -> set[int]:
    """Return the rows of few figures that stand, and whose difference noise of any shape makes."""
    places = [place for place, i in enumerate(few) if i in stand]
    if not places:
        return set()
    kept = unshuffled([rows[i][:2] for i in few], places, least)
    return {few[place] for place in places} - {few[place] for place in kept}


def _with_least_p(one: RatioEstimate, row: Row) -> RatioEstimate:
    """Return a comparison that tells a difference with the p-value of Welch's test, where it is
    smaller: that of ranks cannot be small for few figures."""
    student = student_p(*row[:2]) if one.told else None
    return one if student is None else replace(one, p=min(student, one.p or 1.0))


def _least_n(row: Row) -> int:
    return min(len(row[0]), len(row[1]))
