"""Figures that others gave, beside what was measured here: marked, converted, and never judged.

    for entry in entries_of(case, "create"):
        beside = in_kind(entry, ("create", "ops/s", "higher"))
        beside.value, beside.told, beside.reason

A given figure stands beside measured ones in the same unit. It is in no median, interval, verdict
or choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.grouping import grouped
from seatrial.model.identifiers import case_name
from seatrial.results.case_figures import (
    CaseRuns,
    GivenFigure,
    Kind,
    along,
    by_case,
    differing,
    figures_of,
    kind_of,
)
from seatrial.results.selection import Side
from seatrial.results.sizes import by_label
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.units import converted, direction_text, show_converted, sign_of, times_as_good

NOT_RANKED = "nothing was measured here, and given figures are not ranked"


class GivenEntry(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A figure that somebody else gave, in the unit of the measured ones where it has one of that
    dimension. ``n`` counts their measurements."""

    system: str
    test: str
    case: str
    #: the trial of the figures
    trial: str
    metric: str
    unit: str
    better: str
    value: float
    n: int
    sd: float | None = None
    least: float | None = None
    greatest: float | None = None
    source: str = ""
    #: a year, a month or a day; "" where that is not known
    date: str = ""
    #: of what settings are over
    values: dict[str, str] = {}
    #: where it lies in a range of which it is the best, as far as that is told
    at: dict[str, str] = {}
    #: of how many given figures it is the best
    tried: int = 1
    #: its speed over that of the best measured one
    ratio: float | None = None
    #: how it was converted: ``1 GB/s = 1000 MB/s``
    told: str = ""
    #: why it is not set beside measured ones
    reason: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        return self.metric, self.unit


def apart(cases: Iterable[CaseRuns]) -> tuple[list[CaseRuns], list[CaseRuns]]:
    """Return the cases that were measured, and those whose figures were given."""
    split: tuple[list[CaseRuns], list[CaseRuns]] = ([], [])
    for one in cases:
        split[bool(one.given)].append(one)
    return split


def given_cases(store: Store) -> list[CaseRuns]:
    """Return all cases of which somebody gave figures, the oldest import first."""
    trials = [trial for trial in queries.trials(store) if trial.given]
    return [one for one in by_case(store, trials[::-1]) if one.given]


def entries_of(case: CaseRuns, metric: str) -> list[GivenEntry]:
    """Return the given figures of a case in a metric, as they were given."""
    return [
        _entry(case, kind, figure)
        for kind, figures in case.given.items()
        if kind[0] == metric
        for figure in figures
    ]


def name_of(case: CaseRuns) -> str:
    """Return the name of a given case as people read it."""
    return case_name(case.test, case.parameters, case.toolchain, "", case.stage)


def _entry(case: CaseRuns, kind: Kind, figure: GivenFigure) -> GivenEntry:
    return GivenEntry(
        system=figure.system or case.machine,
        test=case.test,
        case=name_of(case),
        trial=case.trial,
        metric=kind[0],
        unit=kind[1],
        better=kind[2],
        value=figure.value,
        n=figure.n,
        sd=figure.sd,
        least=figure.least,
        greatest=figure.greatest,
        source=figure.source,
        date=figure.date,
    )


def in_kind(entry: GivenEntry, kind: Kind) -> GivenEntry:
    """Return an entry in the unit of measured figures. One of another dimension or direction stays
    as it is, with the reason."""
    _, unit, better = kind
    factor = converted(1, entry.unit, unit)
    if factor is None:
        units = f"{entry.unit or 'no unit'} is not converted into {unit or 'no unit'}"
        return replace(entry, reason=f"not compared: {units}")
    if better and entry.better not in ("", better):
        directions = f"{direction_text(entry.better)}, and {direction_text(better)} where measured"
        return replace(entry, reason=f"not compared: {directions}")
    told = show_converted(entry.value, entry.unit, unit) if entry.unit != unit else ""
    sd, least, greatest = (
        None if value is None else value * factor
        for value in (entry.sd, entry.least, entry.greatest)
    )
    return replace(
        entry,
        unit=unit,
        better=better or entry.better,
        value=entry.value * factor,
        sd=sd,
        least=least,
        greatest=greatest,
        told=told,
    )


def kind_of_given(cases: Sequence[CaseRuns], metric: str) -> Kind:
    """Return the metric as given figures alone have it: the unit of the first of them, and the
    direction of the first that has one."""
    kinds = [kind for one in cases for kind in one.given if kind[0] == metric]
    unit = next((kind[1] for kind in kinds), "")
    return metric, unit, next((kind[2] for kind in kinds if kind[2]), "")


def unlike(given: CaseRuns, like: CaseRuns, left_out: Collection[str] = ()) -> str:
    """Return why a given case is none that was measured, apart from what is ``left_out``; "" where
    it is one. Toolchain and stage may be untold, and the system is another one."""
    if given.test != like.test:
        return f"of {given.test}"
    known = {*given.parameters, *left_out}
    if untold := [name for name in like.key_parameters if name not in known]:
        return f"without {', '.join(untold)}"
    told = dict.fromkeys([*given.parameters, *filter(given.attribute, ("toolchain", "stage"))])
    own = {name: given.attribute(name) for name in told if name not in left_out}
    differ = [f"{name}={value}" for name, value in own.items() if like.attribute(name) != value]
    return f"with {', '.join(differ)}" if differ else ""


# ---- over an x -----------------------------------------------------------------------------------


def measured_sides(sides: Sequence[Side]) -> list[Side]:
    """Return the sides without given figures. Raises UsageError where nothing else is there."""
    if not any(side.given for side in sides):
        return list(sides)
    kept = [replace(side, cases=apart(side.cases)[0]) for side in sides]
    kept = [side for side in kept if side.cases]
    if not kept:
        raise UsageError(f"{sides[0].text}: {NOT_RANKED}; name a trial that measured, too")
    return kept


def over_x(sides: Sequence[Side], x: str, metrics: Collection[str]) -> list[GivenEntry]:
    """Return the given figures of some metrics over an x, such as nodes or a label of figures, each
    beside the measured one of its case at that x."""
    every = apart(one for side in sides for one in side.cases)
    members, given = (by_label(cases, x) for cases in every)
    follow = {x, *along(members, [x], [x])}
    return [
        entry
        for one in given
        for metric in metrics
        for entry in _over(one, x, metric, [m for m in members if not unlike(one, m, follow)])
    ]


def _over(one: CaseRuns, x: str, metric: str, like: Sequence[CaseRuns]) -> Iterator[GivenEntry]:
    """Yield the given figures of a case beside measured cases that it is one of."""
    at = one.attribute(x)
    for entry in entries_of(one, metric):
        if not (at and like):
            reason = f"without {x}" if like else "of no case that was measured"
            yield replace(entry, reason=f"not compared: {reason}")
            continue
        beside = in_kind(entry, kind_of(like, metric))
        yield replace(beside, values={x: at}, ratio=_beside_measured(beside, x, at, like))


def _beside_measured(entry: GivenEntry, x: str, at: str, like: Sequence[CaseRuns]) -> float | None:
    """Return how many times as fast as the median of the one measured case at an x."""
    cases = [one for one in like if one.attribute(x) == at]
    own = [one for one in cases if one.machine == entry.system] or cases
    if entry.reason or not own or differing(own, "machine", "toolchain", "stage"):
        return None
    figures = _figures_in(own, *entry.kind)
    middle = median(figures) if figures else 0.0
    if min(middle, entry.value) <= 0:
        return None
    return times_as_good(entry.value, middle, entry.better)


def _figures_in(cases: Sequence[CaseRuns], metric: str, unit: str) -> list[float]:
    """Return the figures of cases in a metric and a unit, whatever their direction."""
    kinds = dict.fromkeys(kind for one in cases for kind in one.values)
    return figures_of(cases, [kind for kind in kinds if kind[:2] == (metric, unit)])


# ---- several of them -----------------------------------------------------------------------------


def best_given(entries: Iterable[GivenEntry], better: str) -> Iterator[GivenEntry]:
    """Yield of the entries of each setting the best one, and each that cannot be compared."""
    entries = list(entries)
    yield from (entry for entry in entries if entry.reason)
    comparable = (entry for entry in entries if not entry.reason)
    for group in grouped(comparable, lambda entry: tuple(entry.values.values())).values():
        best = max(group, key=lambda entry: sign_of(better) * entry.value)
        yield replace(best, tried=len(group))


def best_first(entries: Iterable[GivenEntry], better: str) -> list[GivenEntry]:
    """Return the entries with the best first, and those that cannot be compared last."""
    sign = sign_of(better)
    return sorted(entries, key=lambda entry: (bool(entry.reason), -sign * entry.value))


def conversions(entries: Iterable[GivenEntry]) -> list[str]:
    """Return what was converted, one of each pair of units and metric."""
    first: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.told:
            first.setdefault((entry.metric, entry.told.split(" = ")[0].split(" ")[-1]), entry.told)
    return list(first.values())
