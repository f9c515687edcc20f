"""A system's score by its formula, with its parts first: a score hides them.

    score = score_of(wanted, side, size)
    score.parts, score.value, score.why

The formulas are in ``studies.formulas``. Where a part has no figure there is no score: a benchmark
that failed is not left out of a mean.
"""

import math
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from seatrial.lazy import regex
from seatrial.store.by_case import CaseRuns, causes, differing, excluded_of, figures_of
from seatrial.studies.formulas import (
    graph500,
    hpl_rate,
    io500,
    over_time,
    rate,
    ssi,
    ssp,
    utilisation,
)
from seatrial.studies.score_file import ScoreFile, ScoreTerm
from seatrial.studies.selection import Side
from seatrial.suite.case_names import show
from seatrial.units import NO_DIRECTION, direction_text, show_unit, unfit, unfit_of
from seatrial.verify.outputs.io500 import BANDWIDTH, METADATA

DAY = 86400.0

# The units of a rate, as people write them: Gflop/s, GFLOPS, TF/s; TEPS, GTEPS, edges/s.
_OPERATIONS = (regex(r"flop|^[kMGTPE]?F(/s|ps)?$", re.IGNORECASE), "Gflop/s")
_EDGES = (regex(r"teps|edges", re.IGNORECASE), "TEPS")
_RATES = {"hpl": _OPERATIONS, "hpcg": _OPERATIONS, "graph500": _EDGES}


# ---- parts --------------------------------------------------------------------------------


class TermScore(Struct, frozen=True, kw_only=True):
    """A part: its figure (the median of ``n`` runs whose answer was right), and what the formula
    makes of it (``rate``, with ``rate_unit``); None with ``why`` where there is none."""

    part: str
    test: str
    metric: str
    unit: str = ""
    n: int = 0
    excluded: dict[str, int] = {}
    figure: float | None = None
    count: int | None = None
    rate: float | None = None
    rate_unit: str = ""
    why: str = ""
    better: str = ""
    values: list[float] = []


class Score(Struct, frozen=True, kw_only=True):
    """A score with its parts; ``value`` is None where one is missing, and ``why`` says which.
    ``share`` is that of the peak."""

    score: str
    side: str
    parts: list[TermScore]
    value: float | None = None
    unit: str = ""
    size: int | None = None
    share: float | None = None
    why: str = ""


class Phased(Struct, frozen=True, kw_only=True):
    """An SSP over phases: what is delivered in all of their time, and on the average."""

    total: float | None
    unit: str
    average: float | None
    average_unit: str
    days: float
    why: str = ""


def score_of(wanted: ScoreFile, side: Side, machine_size: int | None, phase: int = -1) -> Score:
    """The score of a side. ``machine_size`` is the size of its machine in nodes or cores, as the
    file counts; ``phase`` chooses one, whose size goes first."""
    of_phase = wanted.phases[phase].size if phase >= 0 else None
    size = of_phase or wanted.size or machine_size
    if wanted.score == "io500":
        (term,) = wanted.parts.values()
        phases = (*BANDWIDTH, *METADATA)
        parts = [_phase(replace(term, metric=name), side) for name in phases]
        size = None
    else:
        parts = [_part(wanted, name, part, side, size) for name, part in wanted.parts.items()]
    score = Score(score=wanted.score, side=side.text, parts=parts, size=size)
    if missing := [f"{part.part}: {part.why}" for part in parts if part.rate is None]:
        return replace(score, why=f"there is no score without {'; '.join(missing)}")
    rates = [part.rate for part in parts if part.rate is not None]
    if wanted.score == "io500":
        return replace(score, value=io500(rates[: len(BANDWIDTH)], rates[len(BANDWIDTH) :]))
    if wanted.score == "ssp":
        if size is None:
            return replace(score, why=f"give size, the {wanted.per}s of the system")
        return replace(score, value=ssp(rates, size), unit=f"{wanted.unit}/s")
    if wanted.score == "ssi":
        weights = [part.weight for part in wanted.parts.values()]
        return replace(score, value=ssi(rates, weights), unit="times the reference system")
    share = None if wanted.peak is None else rates[0] / wanted.peak
    return replace(score, value=rates[0], unit=parts[0].rate_unit, size=None, share=share)


def over_phases(wanted: ScoreFile, scores: Sequence[Score]) -> Phased:
    """SSP over the file's phases, of which each has its score."""
    times = [phase.duration.seconds for phase in wanted.phases]
    days = math.fsum(times) / DAY
    phases = zip(wanted.phases, scores, strict=True)
    missing = [phase.phase for phase, one in phases if one.value is None]
    total = average = None
    if not missing:
        total = over_time([one.value or 0.0 for one in scores], [time / DAY for time in times])
        average = total / days
    return Phased(
        total=total,
        unit=f"{wanted.unit}/s days",
        average=average,
        average_unit=f"{wanted.unit}/s",
        days=days,
        why=f"there is no score of phase {', '.join(missing)}" if missing else "",
    )


def _part(wanted: ScoreFile, name: str, part: ScoreTerm, side: Side, size: int | None) -> TermScore:
    term, members, better, values = _measured(name, part, side)
    if term.figure is None:
        return term
    if wanted.score == "graph500" and min(values) > 0:
        term = replace(term, figure=graph500(values))
    figure = term.figure or 0.0
    try:
        if not figure > 0:
            raise ValueError(f"its figure is {figure:g}, and a score is of figures above 0")
        kind = (term.unit, better)
        rated, rate_unit, count = _rated(wanted, part, members, figure, kind, size)
        if odd := unfit(rated):
            raise ValueError(f"its rate is {rated:g}: {odd}")
    except ValueError as error:
        return replace(term, why=str(error))
    return replace(term, rate=rated, rate_unit=rate_unit, count=count)


def _rated(
    wanted: ScoreFile,
    part: ScoreTerm,
    members: Sequence[CaseRuns],
    figure: float,
    kind: tuple[str, str],
    size: int | None,
) -> tuple[float, str, int | None]:
    """What the formula makes of a figure, its unit, and the nodes (or cores) it was made on."""
    unit, better = kind
    if wanted.score == "ssp":
        _require_seconds(part, unit, "ssp divides work by time")
        count = _count(wanted, part, members)
        return rate(part.work or math.nan, count, figure), f"{wanted.unit}/s/{wanted.per}", count
    if wanted.score == "ssi":
        count = _count(wanted, part, members)
        if size is None:
            raise ValueError(f"give size, the {wanted.per}s of the system")
        there = part.reference or math.nan
        if better == NO_DIRECTION:
            raise ValueError(f"{part.metric} has no direction (better: none); name another")
        speed = figure / there if better == "higher" else there / figure
        used = (part.reference_count or 1, wanted.reference_size or 1)
        return part.capability * utilisation(count, size, *used) * speed, "c U S", count
    if wanted.score == "hpl" and part.order is not None:
        _require_seconds(part, unit, "with order, hpl's rate is computed from its time")
        return hpl_rate(_order(part, members), figure) / 1e9, "Gflop/s", None
    if better != "higher":
        raise ValueError(f"{part.metric} is no rate: {direction_text(better)}; name a rate")
    rates, example = _RATES[wanted.score]
    if not rates.search(unit):
        said = show_unit(unit, "{}") or "no unit"
        text = f"{part.metric} is in {said}, and {wanted.score} is a rate such as {example}"
        raise ValueError(f"{text}: name that metric, or give it its unit")
    return figure, unit, None


def _require_seconds(part: ScoreTerm, unit: str, why: str) -> None:
    if unit != "s":
        raise ValueError(f"{part.metric} is in {unit or 'no unit'}; {why}: name one in s")


def _order(part: ScoreTerm, members: Sequence[CaseRuns]) -> float:
    if not isinstance(part.order, str):
        return float(part.order or 0)
    values = {member.parameters.get(part.order, "") for member in members}
    try:
        (text,) = values
        order = float(text)
    except ValueError:
        said = ", ".join(sorted(values - {""})) or "no value"
        raise ValueError(f"order: {part.order} has {said}; one number is needed") from None
    if not order > 0:
        raise ValueError(f"order: {part.order} is {text}; it must be above 0")
    return order


def _count(wanted: ScoreFile, part: ScoreTerm, members: Sequence[CaseRuns]) -> int:
    if part.count is not None:
        return part.count
    counts = {
        one.nodes if wanted.per == "node" else (one.tasks or 0) * (one.threads or 0)
        for one in members
    }
    known = {count for count in counts if count}
    if len(known) != 1:
        said = ", ".join(map(str, sorted(known))) or "an unknown number of"
        raise ValueError(f"its cases ran on {said} {wanted.per}s; give count, or choose by where")
    return known.pop()


def _measured(
    name: str, part: ScoreTerm, side: Side
) -> tuple[TermScore, list[CaseRuns], str, list[float]]:
    """A part with the median of its figures, or with what is wrong; its cases, the direction and
    the figures."""
    members, why = _members(part, side)
    kinds = {kind for one in members for kind in one.values if kind[0] == part.metric}
    values = figures_of(members, kinds)
    excluded = excluded_of(members)
    term = TermScore(part=name, test=part.test, metric=part.metric, excluded=excluded)
    if not why and len(kinds) > 1:
        why = f"{part.metric} differs in unit or direction among its runs"
    if not why and not values:
        why = _no_figure(part, members, excluded)
    if why := why or unfit_of(values):
        return replace(term, why=why), members, "", values
    ((_, unit, better),) = kinds
    middle = median(values)
    term = replace(term, unit=unit, n=len(values), figure=middle, better=better, values=values)
    return term, members, better, values


def _no_figure(part: ScoreTerm, members: Sequence[CaseRuns], excluded: dict[str, int]) -> str:
    known = sorted({kind[0] for one in members for kind in one.values})
    if known:
        return f"{part.test} has no metric {part.metric}; it has {', '.join(known[:20])}"
    return f"no right answer: {causes(excluded)}" if excluded else "no run of it is over"


def _members(part: ScoreTerm, side: Side) -> tuple[list[CaseRuns], str]:
    """The cases that a part is of; and what is wrong where these are none or several."""
    members = [one for one in side.cases if one.test == part.test]
    if not members:
        tests = ", ".join(sorted(side.all_of("test"))[:20])
        return [], f"there is no test {part.test}; there are {tests}"
    bound = {key: show(value) for key, value in part.where.items()}
    fitting = [
        one
        for one in members
        if all(one.parameters.get(key) == value for key, value in bound.items())
        and (part.toolchain is None or fnmatchcase(one.toolchain, part.toolchain))
    ]
    if not fitting:
        return [], f"no case of {part.test} has the parameters and toolchain of this part"
    if names := differing(fitting, "toolchain", "stage"):
        return [], f"several cases of {part.test} fit, which differ in {names}; choose by where"
    return fitting, ""


def _phase(part: ScoreTerm, side: Side) -> TermScore:
    """One of the twelve phases of IO500."""
    term, *_ = _measured(part.metric, part, side)
    if term.figure is None:
        return term
    expected = "GiB/s" if part.metric in BANDWIDTH else "kIOPS"
    if term.unit != expected:
        return replace(term, why=f"it is in {term.unit or 'no unit'}, not {expected}")
    if not term.figure > 0:
        why = f"it is {term.figure:g}; a phase that did nothing makes the run invalid"
        return replace(term, why=why)
    return replace(term, rate=term.figure, rate_unit=term.unit)
