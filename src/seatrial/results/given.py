"""Figures that others gave, beside what was measured here: marked, converted, and never judged.

    for entry in entries_of(case, "create"):
        beside = in_kind(entry, ("create", "ops/s", "higher"))
        beside.value, beside.told, beside.reason

A given figure stands beside measured ones in the same unit. It is in no median, interval, verdict
or choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.identifiers import case_name
from seatrial.results.store import queries
from seatrial.results.store.by_case import CaseRuns, GivenFigure, Kind, by_case
from seatrial.results.store.schema import Store
from seatrial.units import converted, direction_text, show_converted

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
    def origin(self) -> str:
        """Where it comes from: ``Rosa: CUG 2013, Fig. 3, 2013-05``."""
        return ": ".join(filter(None, (self.system, ", ".join(filter(None, self._where)))))

    @property
    def _where(self) -> tuple[str, str]:
        return self.source or self.trial, self.date


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
    own = {name: value for name, value in given.parameters.items() if name not in left_out}
    if untold := [name for name in like.key_parameters if name not in {*own, *left_out}]:
        return f"without {', '.join(untold)}"
    for name in ("toolchain", "stage"):
        if name not in left_out and (value := given.attribute(name)):
            own[name] = value
    differ = [f"{name}={value}" for name, value in own.items() if like.attribute(name) != value]
    return f"with {', '.join(differ)}" if differ else ""


def best_given(entries: Iterable[GivenEntry], better: str) -> Iterator[GivenEntry]:
    """Yield of the entries of each setting the best one, and each that cannot be compared."""
    sign = -1 if better == "lower" else 1
    groups: dict[tuple[str, ...], list[GivenEntry]] = {}
    for entry in entries:
        if entry.reason:
            yield entry
        else:
            groups.setdefault(tuple(entry.values.values()), []).append(entry)
    for group in groups.values():
        yield replace(max(group, key=lambda one: sign * one.value), tried=len(group))


def conversions(entries: Iterable[GivenEntry]) -> list[str]:
    """Return what was converted, one of each pair of units and metric."""
    first: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.told:
            first.setdefault((entry.metric, entry.told.split(" = ")[0].split(" ")[-1]), entry.told)
    return list(first.values())
