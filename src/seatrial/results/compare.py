"""Two sides of a comparison, row by row: each metric of each case that both or one of them has.

    comparison = compare_sides(base, other)
    comparison.rows           # worse and better, the largest first; unclear, same, ..., missing

Which cases are one row ``studies.pairing`` says; each row is compared by ``statistics.two_sample``,
and all of them together by ``statistics.together``.
"""

import math
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import chain, groupby
from operator import attrgetter
from statistics import geometric_mean, median
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.grouping import grouped
from seatrial.judge.promises import Beside
from seatrial.judge.statistics import two_samples
from seatrial.judge.statistics.sequential import FEW, Row, beside, judged
from seatrial.judge.statistics.significance import CONFIDENCE, clean_runs_needed, twice
from seatrial.judge.statistics.two_samples import ALMOST, MIN_RELATIVE_CHANGE
from seatrial.model.figures import place_of
from seatrial.results import case_figures
from seatrial.results.best import edges_of
from seatrial.results.case_figures import (
    ELAPSED,
    NUMBERS,
    CaseRuns,
    GivenFigure,
    Kind,
    excluded_of,
    following,
    metrics_of,
    parameters_of,
    require_known,
)
from seatrial.results.references import promised_of
from seatrial.results.selection import CasePair, Side, cases_of, pair
from seatrial.units import (
    NO_DIRECTION,
    better_by,
    better_of,
    count,
    listed,
    sign_of,
    unfit_of,
)

# ---- cures ---------------------------------------------------------------------------------------
#
# Cases that failed at times on one side and never on the other: are they cured?
#
# for one in cures_of(paired.pairs):
#     one.failed, one.runs, one.clean, one.needed      # 3 of 60 failed; 80 clean runs; it takes 217


class Cure(Struct, frozen=True):
    """A case of whose ``runs`` some ``failed`` on the first side, and none of the ``clean`` ones on
    the second; ``needed``: how many clean ones show with 95 % that failures are rarer."""

    case: str
    failed: int
    runs: int
    clean: int
    needed: int

    @property
    def shown(self) -> bool:
        return self.clean >= self.needed

    def words(self, first: str, second: str) -> str:
        """Return a sentence; the sides are named as given."""
        more = "that shows it" if self.shown else f"it takes {self.needed} to show it"
        return (
            f"{self.case}: {self.failed} of {self.runs} runs of {first} failed, none of "
            f"{self.clean} of {second}: cured? {more} (95 %)"
        )


def cures_of(pairs: Iterable[CasePair]) -> list[Cure]:
    """Return a row for each case that failed on the first side alone, and ran on the second."""
    found = []
    for both in pairs:
        (failed, runs), (still, clean) = _counts(both.first), _counts(both.second)
        if failed and clean and not still:
            found.append(Cure(both.name, failed, runs, clean, clean_runs_needed(failed, runs)))
    return found


def _counts(cases: Sequence[CaseRuns]) -> tuple[int, int]:
    """Return how many runs failed, and how many there are."""
    failed = sum(excluded_of(cases).values())
    return failed, failed + sum(len(case.runs) for case in cases)


# ---- comparison ----------------------------------------------------------------------------------
#
# A comparison of two sides, as data: its rows, their samples, the means over them.


State = Literal["better", "worse", "same", "unclear", "given", "not compared", "missing"]


class Sample(Struct, frozen=True):
    """One side of a row: the figures of ``n`` runs whose answer was right; the other runs, by their
    verdict. ``median`` is None of none. ``given`` are figures that somebody else gave: then ``n``
    counts measurements that are not ours."""

    n: int
    median: float | None
    excluded: dict[str, int] = {}
    given: list[GivenFigure] = []
    #: what was promised of the median
    promised: Beside = UNSET


class BestAt(Struct, frozen=True):
    """Where the best case of a range lies, how many cases of it have a figure, and why a better one
    may lie beyond: ``nodes=160 is the largest with a figure``."""

    at: dict[str, str]
    tried: int
    edges: list[str] = []

    @property
    def words(self) -> str:
        at = " ".join(f"{name}={value}" for name, value in self.at.items())
        edges = f" ({'; '.join(self.edges)}: the best may lie beyond)" if self.edges else ""
        return f"its best of {self.tried} at {at}{edges}"


class ComparisonRow(Struct, frozen=True, kw_only=True):
    """One metric of one case on both sides."""

    case: str
    test: str
    parameters: dict[str, str]
    metric: str
    unit: str
    better: str
    verdict: State
    first: Sample
    second: Sample
    #: the second median over the first; None where it cannot be had
    ratio: float | None = None
    #: the ends of its interval
    low: float | None = None
    high: float | None = None
    p: float | None = None
    #: by how many per cent of the first the second is better; negative: worse
    better_by: float | None = None
    #: the ends of its interval
    better_from: float | None = None
    better_to: float | None = None
    #: the logarithm of how many times better the second is
    gain: float | None = None
    #: explains what is not plain
    why: str = ""
    #: numbers (nodes, tasks, threads) and builds that the sides do not share
    differs: list[str] = []
    #: runs of each side that may decide a row that is unclear for having too few, or 0
    needed: int = 0
    #: a change of less than this share could not have been seen; None: nothing was compared
    unseen: float | None = None
    #: of sides that are compared by their best over a range: where each has it
    best_at: list[BestAt] = []

    @property
    def range_words(self) -> str:
        """Where each side has its best; "" where they are not compared by that."""
        words = [
            f"{side} has {one.words}"
            for side, one in zip(("the first side", "the second side"), self.best_at, strict=False)
        ]
        return "; ".join(words)


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


# ---- compare -------------------------------------------------------------------------------------


UNDIRECTED = "it has no direction (better: none)"

_ORDER: dict[State, int] = {
    "worse": 0,
    "better": 0,
    "given": 0,
    "unclear": 1,
    "same": 2,
    "not compared": 3,
    "missing": 4,
}

Figures = tuple[list[float], list[float]]


Range = tuple[list[list[float]], list[list[float]]]
"""The figures of all cases of both sides, of which each side has its best, that one first."""


class _Found(NamedTuple):
    """A row, and its figures with their direction where they are to be judged; ``chosen_of`` where
    these are the best of a range."""

    row: ComparisonRow
    figures: Row | None = None
    chosen_of: Range | None = None


def compare_sides(
    first: Side,
    second: Side,
    least: float = MIN_RELATIVE_CHANGE,
    metric: Callable[[str], bool] | None = None,
    across: Sequence[str] = (),
    each_node: bool = False,
    elapsed: bool = False,
    best_of: Sequence[str] = (),
) -> Comparison:
    """Compare the second side with the first. ``least`` is the least effect that matters, as a
    share; ``metric`` chooses metrics by name; ``across`` names parameters that may differ between
    cases that are compared; with ``each_node`` each node is a row of its own; with ``elapsed``, or
    where ``metric`` chooses it, cases that have a figure of merit have their elapsed time, too.
    ``best_of``: each side is compared by the best of its cases that differ in these alone.
    Raises UsageError where no case is on both sides, or no metric is left."""
    range_ = _range_of(cases_of((first, second)), best_of)
    paired = pair(first, second, [*across, *range_], each_node)
    elapsed = elapsed or (metric is not None and metric(ELAPSED[0]))
    found: list[_Found] = []
    without_elapsed = 0
    told: dict[str, None] = {}
    for written in paired.pairs:
        each, changed = _in_one_unit(written)
        told |= dict.fromkeys(changed)
        kinds = _kinds(each)
        if not elapsed and _has_merit(kinds) and kinds.pop(ELAPSED[0], []):
            without_elapsed += 1
        found += _rows(each, kinds, paired.across, least, best_of)
    rows = sorted(_judged(_named(found, metric, paired.pairs), least), key=_place)
    return Comparison(
        first=first.text,
        second=second.text,
        least=least,
        across=[name for name in paired.across if name not in range_],
        rows=rows,
        means=_means(rows),
        notices=[*_notices(first, second), *_of_few(rows), *_of_units(list(told))],
        without_elapsed=without_elapsed,
        cures=cures_of(paired.pairs),
        doubts=_doubts(first, second, rows),
    )


def _named(
    found: list[_Found], metric: Callable[[str], bool] | None, pairs: Sequence[CasePair]
) -> list[_Found]:
    """Return the rows of the metrics that are asked for. Raises UsageError where there are none."""
    chosen = [one for one in found if metric is None or metric(one.row.metric)]
    if not chosen:
        cases = [case for one in pairs for case in (*one.first, *one.second)]
        raise UsageError(f"no such metric; there are {', '.join(metrics_of(cases)) or 'none'}")
    return chosen


def _place(row: ComparisonRow) -> tuple[object, ...]:
    """Return the key by which rows are sorted: the largest difference first."""
    return _ORDER[row.verdict], -abs(row.gain or 0.0), row.case, place_of(row.metric)


# ---- rows ---------------------------------------------------------------------------------


def _kinds(pair: CasePair) -> dict[str, list[Kind]]:
    """The metrics of a case on either side, by name."""
    kinds: dict[str, dict[Kind, None]] = {}
    given: set[Kind] = set()
    for case in (*pair.first, *pair.second):
        given |= case.given.keys()
        for kind in case.values:
            kinds.setdefault(kind[0], {})[kind] = None
    return {name: _directed(list(found), given) for name, found in kinds.items()}


def _in_one_unit(pair: CasePair) -> tuple[CasePair, list[str]]:
    """Return a pair whose given figures are in the unit of those that were measured, or else of the
    first that was given; and what was converted."""
    units = _units_of([*pair.first, *pair.second])
    changed = [
        [case_figures.given_in(case, units) for case in side] for side in (pair.first, pair.second)
    ]
    first, second = ([case for case, _ in side] for side in changed)
    told = [text for side in changed for _, texts in side for text in texts]
    return pair._replace(first=first, second=second), told


def _units_of(cases: Sequence[CaseRuns]) -> dict[str, str]:
    """Return the unit of each metric: of the first figure that was measured, else that was
    given."""
    measured = (kind for case in cases for kind in case.values if kind not in case.given)
    given = (kind for case in cases for kind in case.given)
    units: dict[str, str] = {}
    for name, unit, _ in chain(measured, given):
        units.setdefault(name, unit)
    return units


def _of_units(told: Sequence[str]) -> list[str]:
    """Return that given figures were converted."""
    return [f"given figures in the unit of the others: {listed(told, 3)}"] if told else []


def _directed(kinds: list[Kind], given: set[Kind]) -> list[Kind]:
    """Put kinds that differ in their direction alone, because a given figure has none, behind the
    one that has it."""
    known = {(name, unit) for name, unit, better in kinds if better}
    bare = [kind for kind in kinds if kind in given and not kind[2] and kind[:2] in known]
    return [kind for kind in kinds if kind not in bare] + bare


def _has_merit(kinds: dict[str, list[Kind]]) -> bool:
    """Whether a metric besides the elapsed time has a direction."""
    named = [kind for name, found in kinds.items() if name != ELAPSED[0] for kind in found]
    return any(better in ("higher", "lower") for _, _, better in named)


def _rows(
    pair: CasePair,
    kinds: dict[str, list[Kind]],
    crossed: Sequence[str],
    least: float,
    best_of: Sequence[str],
) -> list[_Found]:
    """A row for each metric of a case, with its figures."""
    found = []
    for each in kinds.values() or [[ELAPSED]]:
        if best_of and each[0][2] in ("higher", "lower"):
            found.append(_row_of_range(pair, each, crossed, least, best_of))
        else:
            found.append(_row(pair, each, least, _differing(pair, crossed)))
    return found


def _row(pair: CasePair, kinds: list[Kind], least: float, differs: list[str]) -> _Found:
    """The row of one metric: of several ``kinds`` where its unit or direction differ."""
    metric, unit, better = kinds[0]
    one, other = (case_figures.figures_of(cases, kinds) for cases in (pair.first, pair.second))
    unfit = unlike = ""
    if one and other:
        unfit = unfit_of([*one, *other])
        unlike = "" if unfit else _unlike(kinds)
        verdict: State = "not compared"
        reason = unfit or unlike or _undirected(pair, better)
    else:
        verdict, reason = "missing", _missing((pair.first, pair.second), (one, other))
    comparable = not (unfit or unlike)
    row = ComparisonRow(
        case=pair.name,
        test=(pair.first or pair.second)[0].test,
        parameters=pair.parameters,
        metric=metric,
        unit="" if unlike else unit,
        better=better,
        verdict=verdict,
        first=_sample(one, pair.first, kinds, comparable=comparable),
        second=_sample(other, pair.second, kinds, comparable=comparable),
        why=reason,
        differs=differs,
    )
    if reason:
        return _Found(row)
    if row.first.given or row.second.given:
        return _Found(_beside_given(row, one, other, least))
    return _Found(row, (one, other, better_of(better)))


def _unlike(kinds: Sequence[Kind]) -> str:
    """Return how the units or directions of a metric differ; "" if they do not. A given figure may
    have no direction."""
    one_unit = len({unit for _, unit, _ in kinds}) == 1
    return case_figures.unlike([kind for kind in kinds if kind[2]] if one_unit else kinds)


def _undirected(pair: CasePair, better: str) -> str:
    """Return why it cannot be said which side of a row is better; "" if it can."""
    if better == NO_DIRECTION:
        return UNDIRECTED
    if better not in ("higher", "lower"):
        return "it is not known whether higher or lower is better"
    return _mixed(pair.first, "the first side") or _mixed(pair.second, "the second side")


def _sample(
    own: list[float], cases: list[CaseRuns], kinds: list[Kind], *, comparable: bool
) -> Sample:
    given = [figure for case in cases for kind in kinds for figure in case.given.get(kind, ())]
    n = len(own) - len(given) + sum(figure.n for figure in given)
    middle = median(own) if own and comparable else None
    promised = promised_of(cases, kinds[0], middle)
    return Sample(n, middle, case_figures.excluded_of(cases), given, promised)


def _beside_given(
    row: ComparisonRow, one: list[float], other: list[float], least: float
) -> ComparisonRow:
    """The row of figures that somebody else gave beside others: their ratio, and no verdict. Where
    the others were measured more than once, the interval is theirs alone."""
    found = two_samples.compare(one, other, better_of(row.better), least)
    low = high = None
    both = row.first.given and row.second.given
    if found.ratio is not None and not both and max(len(one), len(other)) > 1:
        # one figure twice is one that does not vary
        low, high = two_samples.interval(
            *(side * 2 if len(side) == 1 else side for side in (one, other))
        )
    found = replace(found, low=low, high=high, p=None, needed=0)
    reason = "" if found.ratio is not None else found.reason
    return replace(_with_ratio(row, found), verdict="given", why=reason)


def _with_ratio(row: ComparisonRow, found: two_samples.RatioEstimate) -> ComparisonRow:
    """The row with the ratio of its sides, and by how much the second is better."""
    direction = better_of(row.better)
    by, low, high = (
        None if ratio is None else better_by(100 * (ratio - 1), direction)
        for ratio in (found.ratio, found.low, found.high)
    )
    return replace(
        row,
        better_by=by,
        better_from=high if direction == "lower" else low,
        better_to=low if direction == "lower" else high,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        gain=found.gain(direction),
    )


# ---- the best over a range -----------------------------------------------------------------------
#
# The best of k noisy cases looks better than it is. So a side is worse only where each of its cases
# is worse than the best one of the other side, among all cases of both, and the interval of the
# ratio holds for each of the pairs that might have been chosen.


def _range_of(cases: Sequence[CaseRuns], best_of: Sequence[str]) -> list[str]:
    """Return the parameters that a range is over, and those that follow from them. Raises
    UsageError for a name that is not known."""
    parameters = parameters_of(cases)
    for name in best_of:
        require_known("--best-of", name, parameters, NUMBERS)
    names = [*best_of, *following(cases, best_of)]
    return [name for name in dict.fromkeys(names) if name in parameters]


def _row_of_range(
    pair: CasePair,
    kinds: list[Kind],
    crossed: Sequence[str],
    least: float,
    best_of: Sequence[str],
) -> _Found:
    """The row of one metric, of which each side has its best case."""
    one, other = (_best_first(side, kinds, best_of) for side in (pair.first, pair.second))
    chosen = pair._replace(first=one[0], second=other[0])
    places = [
        _best_at(chosen, side, kinds, best_of)
        for chosen, known, side in ((*one, pair.first), (*other, pair.second))
        if known
    ]
    differs = [each for each in _differing(chosen, crossed) if each.split(" ")[0] not in best_of]
    found = _row(chosen, kinds, least, differs)
    row = replace(found.row, best_at=places if len(places) == 2 else [])
    return found._replace(row=row, chosen_of=(one[1], other[1]))


def _best_at(
    chosen: list[CaseRuns], side: list[CaseRuns], kinds: list[Kind], best_of: Sequence[str]
) -> BestAt:
    """Return where the chosen case of a side lies."""
    tried = {
        tuple(map(one.attribute, best_of)) for one in side if case_figures.figures_of([one], kinds)
    }
    at = {name: chosen[0].attribute(name) for name in best_of}
    edges = edges_of([dict(zip(best_of, each, strict=True)) for each in tried], at)
    return BestAt(at, len(tried), edges)


def _best_first(
    side: list[CaseRuns], kinds: list[Kind], best_of: Sequence[str]
) -> tuple[list[CaseRuns], list[list[float]]]:
    """Return the best of the cases of a side that differ in these names, and the figures of all
    that have some, its own first; of a side without a figure all cases, and no figures."""
    groups = grouped(side, lambda one: tuple(map(one.attribute, best_of)))
    known = [
        (cases, figures)
        for cases in groups.values()
        if (figures := case_figures.figures_of(cases, kinds)) and not unfit_of(figures)
    ]
    known.sort(key=lambda pair: -sign_of(kinds[0][2]) * median(pair[1]))
    return (known[0][0] if known else side), [figures for _, figures in known]


def _with_range(row: ComparisonRow, chosen_of: Range, least: float) -> ComparisonRow:
    """Return a judged row of which both figures were chosen as the best of several."""
    one, other = chosen_of
    pairs = len(one) * len(other)
    if pairs == 1 or row.ratio is None:
        return row
    if min(map(len, (one[0], other[0]))) > 1 and min(*one[0], *other[0]) > 0:
        confidence = 1 - (1 - CONFIDENCE) / pairs
        low, high = two_samples.ratio_interval([other[0]], [one[0]], confidence)
        row = _with_ratio(row, two_samples.RatioEstimate(ratio=row.ratio, low=low, high=high))
    if _stands(row, chosen_of, least):
        return row
    reason = f"the sides are the best of {len(one)} and of {len(other)} cases: chance may make it"
    needed = twice(min(len(one[0]), len(other[0])))
    return replace(row, verdict="unclear", why=f"{reason}; repeat", needed=needed)


def _stands(row: ComparisonRow, chosen_of: Range, least: float) -> bool:
    """Return whether a verdict stands, though both figures were chosen."""
    if row.verdict == "same":
        ends = (row.low, row.high)
        return all(end is not None and abs(math.log(end)) <= math.log1p(least) for end in ends)
    if row.verdict not in ("better", "worse"):
        return True
    winner = int(row.verdict == "better")
    samples = {
        f"{side} {place}": figures
        for side, ranges in enumerate(chosen_of)
        for place, figures in enumerate(ranges)
    }
    found = beside(samples, f"{winner} 0", better_of(row.better), least)
    losers = (each for name, each in found.items() if not name.startswith(f"{winner} "))
    return all(each.verdict == "worse" for each in losers)


def _missing(sides: Sequence[list[CaseRuns]], figures: Figures) -> str:
    """Why a side has no figure."""
    texts = []
    for side, cases, values in zip(("first", "second"), sides, figures, strict=True):
        if values:
            continue
        if not cases:
            texts.append(f"the {side} side has no such case, or no run of it is over")
        elif excluded := case_figures.excluded_of(cases):
            texts.append(f"the {side} side has no right answer: {case_figures.causes(excluded)}")
        else:
            texts.append(f"the {side} side has no such metric")
    return "; ".join(texts)


def _mixed(cases: list[CaseRuns], side: str) -> str:
    """Why a side's cases of one row are no single sample: it has several values of a parameter that
    was crossed."""
    names = case_figures.differing(cases)
    return f"{side} has several cases here, which differ in {names}" if names else ""


def _differing(pair: CasePair, crossed: Sequence[str]) -> list[str]:
    """Numbers and defaults that the cases of both sides do not share; that builds differ, where
    neither machine nor toolchain does."""
    texts = _differing_defaults(pair, crossed)
    sides = (pair.first, pair.second)
    for name in NUMBERS:
        numbers = ({getattr(case, name) for case in cases} - {None, 0} for cases in sides)
        if differ := _unshared(*numbers):
            texts.append(f"{name} {differ}")
    builds = ({case.build for case in cases} - {""} for cases in sides)
    if _unshared(*builds) and not {"machine", "toolchain"} & set(crossed):
        texts.append("build")
    return texts


def _differing_defaults(pair: CasePair, crossed: Sequence[str]) -> list[str]:
    texts = []
    for name in dict.fromkeys(n for case in pair.first for n in case.at_default):
        defaults = (
            {case.parameters[name] for case in cases if name in case.at_default}
            for cases in (pair.first, pair.second)
        )
        if name not in crossed and (differ := _unshared(*defaults)):
            texts.append(f"{name}, whose default was {differ}")
    return texts


def _unshared(first: Set[Any], second: Set[Any]) -> str:
    """Return the values of both sides in words; "" where they are the same, or a side has none."""
    if not (first and second) or first == second:
        return ""
    return " and ".join(", ".join(map(str, sorted(side))) for side in (first, second))


def _judged(found: list[_Found], least: float) -> list[ComparisonRow]:
    """Return the rows with their verdicts: of many rows some differ by chance."""
    told = iter(judged([each.figures for each in found if each.figures is not None], least))
    rows = []
    for each in found:
        row = each.row if each.figures is None else _with_verdict(each.row, next(told))
        if each.figures is not None and each.chosen_of is not None:
            row = _with_range(row, each.chosen_of, least)
        rows.append(row)
    return rows


def _with_verdict(row: ComparisonRow, found: two_samples.RatioEstimate) -> ComparisonRow:
    return replace(
        _with_ratio(row, found),
        verdict=found.verdict,
        p=found.p,
        why=found.reason,
        needed=found.needed,
        unseen=found.unseen,
    )


def _least_n(row: ComparisonRow) -> int:
    return min(row.first.n, row.second.n)


# ---- all of it ----------------------------------------------------------------------------


def _means(rows: Sequence[ComparisonRow]) -> list[Mean]:
    """Of each metric with two ratios or more."""
    means = []
    ordered = sorted(rows, key=lambda row: place_of(row.metric))
    for name, found in groupby(ordered, attrgetter("metric")):
        own = list(found)
        related = [row for row in own if row.gain is not None]
        if len(related) > 1:
            mean = geometric_mean([math.exp(row.gain or 0.0) for row in related])
            unclear = sum(row.verdict == "unclear" for row in related)
            means.append(Mean(name, len(related), mean, len(own) - len(related), unclear))
    return means


def _of_few(rows: Sequence[ComparisonRow]) -> list[str]:
    """What a person should know of differences that few runs show."""
    told = [row for row in rows if row.verdict in ("better", "worse")]
    few = sum(_least_n(row) < FEW for row in told)
    if not few:
        return []
    return [
        f"{few} of {len(told)} differences are of fewer than {FEW} runs on a side: where figures "
        "fall into two modes, all of so few may fall into one by chance"
    ]


def _doubts(first: Side, second: Side, rows: Sequence[ComparisonRow]) -> list[str]:
    """Return why the sides could not be compared as a whole: a figure is missing, is in another
    unit or was never measured, or runs are on both sides. Figures that are given lack nothing."""
    lost = 0 if first.given or second.given else sum(map(_is_lost, rows))
    unlike = sum(row.verdict == "not compared" and row.why != UNDIRECTED for row in rows)
    doubts = (
        (lost, "row", "without a figure on the second side"),
        (unlike, "row", "that could not be compared"),
        (_shared(first, second), "run", "on both sides"),
    )
    texts = [f"{count(number, noun)} {words}" for number, noun, words in doubts if number]
    if first.rehearsed or second.rehearsed:
        texts.append("figures of a rehearsal, which were never measured")
    return texts


def _is_lost(row: ComparisonRow) -> bool:
    return row.verdict == "missing" and not row.second.n and not is_unanswered(row)


def _shared(first: Side, second: Side) -> int:
    """Return how many runs are on both sides."""
    runs = [{run for member in side.cases for run in member.runs} for side in (first, second)]
    return len(runs[0] & runs[1])


def _notices(first: Side, second: Side) -> list[str]:
    texts = []
    if shared := _shared(first, second):
        texts.append(f"{shared} of the runs are on both sides: they are compared with themselves")
    texts += dict.fromkeys([*first.unlike, *second.unlike])
    sides = {first.text: first, second.text: second}.values()
    texts += filter(None, map(_waiting, sides))
    if rehearsed := " and ".join(side.text for side in (first, second) if side.rehearsed):
        texts.append(f"{rehearsed}: rehearsed, its figures were never measured")
    if given := " and ".join(side.text for side in (first, second) if side.given):
        texts.append(
            f"{given}: given, not measured; such a row has no verdict, and its interval is of the"
            " measured side alone"
        )
    return texts + [
        f"{side.text}: given figures of {origins}"
        for side in sides
        if (origins := origins_of(side))
    ]


def _waiting(side: Side) -> str:
    """Return how many cases of a side have no run that is over, in words; "" if each has one."""
    number = sum(not (one.values or one.excluded) for one in side.cases)
    return f"{side.text}: {count(number, 'case')} without a run that is over" if number else ""


def origins_of(side: Side) -> str:
    """Return where the given figures of a side come from; "" where that is not told."""
    figures = (f for one in side.cases for own in one.given.values() for f in own)
    told = (", ".join(filter(None, (f.system, f.source, f.date))) for f in figures if f.source)
    origins = list(dict.fromkeys(told))
    return "; ".join([*origins[:3], *([f"{len(origins) - 3} more"] if origins[3:] else [])])
