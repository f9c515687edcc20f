"""A system's score by its formula, with its parts first: a score hides them.

    score = score_of(wanted, side, size)
    score.parts, score.value, score.reason

The formulas are in ``studies.formulas``. Where a part has no figure there is no score: a benchmark
that failed is not left out of a mean.
"""

import math
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import harmonic_mean, median
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.judge.outputs.io500 import BANDWIDTH, METADATA
from seatrial.judge.statistics.sequential import judged
from seatrial.judge.statistics.two_samples import RatioEstimate, Verdict
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import Duration, FileModel, Scalar, doc
from seatrial.model.identifiers import show
from seatrial.results.case_figures import (
    CaseRuns,
    causes,
    differing,
    excluded_of,
    figures_of,
    metrics_of,
)
from seatrial.results.selection import Side
from seatrial.units import NO_DIRECTION, better_of, direction_text, show_unit, unfit, unfit_of

# ---- score file ----------------------------------------------------------------------------------
#
# ``score.yaml``: which figures make a system's score, and how.
#
# wanted = load_score(Path("score.yaml")) # InvalidFiles, all faults with their lines


Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
ScoreName = Literal["ssp", "ssi", "hpl", "hpcg", "graph500", "io500"]


class ScoreTerm(FileModel, frozen=True):
    """One benchmark of a score: whose figures, and what the formula needs of it."""

    test: Annotated[str, doc("name of the test in its suite")]
    metric: Annotated[str, doc("its metric; elapsed: the time of the script")] = "elapsed"
    where: Annotated[dict[str, Scalar], doc("parameters that the case must have; others: any")] = {}
    toolchain: Annotated[str | None, doc("name or pattern of the toolchain; default: any")] = None
    work: Annotated[Positive | None, doc("ssp: the reference count of operations")] = None
    count: Annotated[Count | None, doc("nodes (or cores) that it ran on; default: the case's")] = (
        None
    )
    weight: Annotated[float, doc("ssi: its weight in the mean", gt=0)] = 1.0
    capability: Annotated[
        float, doc("ssi: how many times the reference problem it solves", gt=0)
    ] = 1.0
    reference: Annotated[Positive | None, doc("ssi: its figure on the reference system")] = None
    reference_count: Annotated[Count | None, doc("ssi: nodes that it ran on there")] = None
    order: Annotated[
        float | str | None,
        doc("hpl: order of the matrix, or the parameter that it is"),
    ] = None


class ScorePhase(FileModel, frozen=True):
    """A part of a system's life in which it has one size."""

    phase: Annotated[str, doc("name of the phase")]
    duration: Annotated[Duration, doc("how long it lasts, such as 180d")]
    size: Annotated[Count | None, doc("nodes (or cores) of the system then; default: size")] = None


class ScoreFile(FileModel, frozen=True):
    """A ``score.yaml``."""

    score: Annotated[ScoreName, doc("which formula")]
    parts: Annotated[dict[str, ScoreTerm], doc("its benchmarks, by name")]
    about: Annotated[str, doc("one sentence: what is scored")] = ""
    unit: Annotated[str, doc("ssp: unit of work, such as Tflop")] = "Tflop"
    per: Annotated[Literal["node", "core"], doc("what is counted")] = "node"
    size: Annotated[Count | None, doc("nodes (or cores) of the system; default: the machine's")] = (
        None
    )
    reference_size: Annotated[
        Count | None, doc("ssi: nodes (or cores) of the reference system")
    ] = None
    peak: Annotated[
        Positive | None,
        doc("hpl, hpcg: the peak in the metric's unit, to show a share of it"),
    ] = None
    phases: Annotated[list[ScorePhase], doc("ssp: phases in order, one for each trial named")] = []


# Keys that mean something for some scores alone.
_PART_OF: dict[str, tuple[str, ...]] = {
    "work": ("ssp",),
    "weight": ("ssi",),
    "capability": ("ssi",),
    "reference": ("ssi",),
    "reference_count": ("ssi",),
    "order": ("hpl",),
    "count": ("ssp", "ssi"),
}
_ROOT_OF: dict[str, tuple[str, ...]] = {
    "unit": ("ssp",),
    "per": ("ssp", "ssi"),
    "size": ("ssp", "ssi"),
    "reference_size": ("ssi",),
    "peak": ("hpl", "hpcg"),
    "phases": ("ssp",),
}
_NEEDED: dict[str, tuple[str, ...]] = {"ssp": ("work",), "ssi": ("reference", "reference_count")}


def load_score(path: Path) -> ScoreFile:
    """Read and check a score.yaml. Raises InvalidFiles with all faults, UsageError where there is
    no such file."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; name a score.yaml (see `seatrial schema score`)")
    return load_checked(path, ScoreFile, _check)


def _check(wanted: ScoreFile, location: Location) -> None:
    kind = wanted.score
    _check_keys(kind, location, _ROOT_OF)
    if kind == "ssi" and not location.given("reference_size"):
        location.fault("is missing; ssi needs the size of the reference system", "reference_size")
    if not wanted.parts:
        location.fault("has no part; name a test for each", "parts")
    if kind not in ("ssp", "ssi") and len(wanted.parts) > 1:
        location.fault(f"{kind} has one part, not {len(wanted.parts)}", "parts")
    for name in wanted.parts:
        _check_part(kind, location.inside("parts", name))
    names = [each.phase for each in wanted.phases]
    for i, phase in enumerate(wanted.phases):
        if phase.phase in names[:i]:
            location.fault(f"{phase.phase!r} is there twice", "phases", i, "phase")


def _check_part(kind: str, location: Location) -> None:
    _check_keys(kind, location, _PART_OF)
    for key in _NEEDED.get(kind, ()):
        if not location.given(key):
            location.fault(f"is missing; {kind} needs it", key)


def _check_keys(kind: str, location: Location, kinds_of: Mapping[str, Sequence[str]]) -> None:
    """Report the keys that mean nothing for a kind of score."""
    for key, kinds in kinds_of.items():
        if kind not in kinds and location.given(key):
            location.fault(f"means nothing for {kind}; it is for {', '.join(kinds)}", key)


# ---- formulas ------------------------------------------------------------------------------------
#
# The formulas of well-known scores, as functions of plain numbers, each with its source.
#
# ssp([rate(1065, 2048, 92.4), ...], 6384) # Tflop/s of a system of 6,384 nodes


def rate(work: float, count: float, time: float) -> float:
    """SSP's rate of one benchmark on each node (or core): P = F / (n t), with F a fixed reference
    count of operations, n nodes and t seconds (Kramer, Shalf, Strohmaier: The NERSC Sustained
    System Performance Metric, LBNL-58868, 2005). MiniFE on Hopper: 1065 Tflop on 2,048 nodes in
    92.4 s are 0.00563 Tflop/s a node."""
    return work / (count * time)


def ssp(rates: Sequence[float], size: float) -> float:
    """SSP = N (P_1 P_2 ... P_M)^(1/M), with N nodes (or cores) of the system (LBNL-58868)."""
    return size * weighted_mean(rates, [1.0] * len(rates))


def over_time(values: Sequence[float], durations: Sequence[float]) -> float:
    """What a system delivers over its phases: the sum of SSP_k dt_k, so that what comes late counts
    for less (LBNL-58868)."""
    return math.fsum(value * time for value, time in zip(values, durations, strict=True))


def utilisation(count: float, size: float, reference_count: float, reference_size: float) -> float:
    """SSI's U = (n_ref / n) (N / N_ref): how many more of the problem the system holds at a time
    (Austin et al.: A Metric for Evaluating Supercomputer Performance in the Era of Extreme
    Heterogeneity, PMBS 2018)."""
    return reference_count / count * size / reference_size


def ssi(gains: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted geometric mean of c U S, with c the capability, U the utilisation and S the
    speed-up t_ref / t, or FOM / FOM_ref (Austin et al., PMBS 2018)."""
    return weighted_mean(gains, weights)


def hpl_rate(order: float, time: float) -> float:
    """Flop/s of HPL: N^2 (2/3 N + 3/2) / t (Petitet, Whaley, Dongarra, Cleary: HPL 2.0)."""
    return order * order * (2 / 3 * order + 3 / 2) / time


def graph500(teps: Sequence[float]) -> float:
    """The harmonic mean of traversed edges a second (Graph500 specification 2.0)."""
    return harmonic_mean(teps)


def io500(bandwidths: Sequence[float], rates: Sequence[float]) -> float:
    """sqrt(BW MD): BW the fourth root of the product of the four IOR phases in GiB/s, MD the eighth
    root of that of the eight metadata phases in kIOPS (io500.org, rules for submission). Raises
    ValueError where a phase is missing or not above 0."""
    if (len(bandwidths), len(rates)) != (len(BANDWIDTH), len(METADATA)):
        raise ValueError(f"it has {len(bandwidths)} and {len(rates)} phases, not 4 and 8")
    means = (weighted_mean(values, [1.0] * len(values)) for values in (bandwidths, rates))
    return math.sqrt(math.prod(means))


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted geometric mean. Raises ValueError where a value is not above 0."""
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{value:g} is not above 0: a geometric mean has no place for it")
    total = math.fsum(weights)
    pairs = zip(values, weights, strict=True)
    return math.exp(math.fsum(weight * math.log(value) for value, weight in pairs) / total)


# ---- scores --------------------------------------------------------------------------------------


DAY = 86400.0

# The units of a rate, as people write them: Gflop/s, GFLOPS, TF/s; TEPS, GTEPS, edges/s.
_OPERATIONS = (re.compile(r"flop|^[kMGTPE]?F(/s|ps)?$", re.IGNORECASE), "Gflop/s")
_EDGES = (re.compile(r"teps|edges", re.IGNORECASE), "TEPS")
_RATES = {"hpl": _OPERATIONS, "hpcg": _OPERATIONS, "graph500": _EDGES}


# ---- parts --------------------------------------------------------------------------------


class TermScore(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A part of a score."""

    part: str
    test: str
    metric: str
    unit: str = ""
    n: int = 0
    excluded: dict[str, int] = {}
    #: the median of ``n`` runs whose answer was right; None with ``reason`` where there is none
    figure: float | None = None
    count: int | None = None
    #: what the formula makes of the figure, in ``rate_unit``
    rate: float | None = None
    rate_unit: str = ""
    reason: str = ""
    better: str = ""
    values: list[float] = []


class Score(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A score with its parts; ``value`` is None where one is missing, and ``reason`` says which.
    ``share`` is that of the peak."""

    score: str
    side: str
    parts: list[TermScore]
    value: float | None = None
    unit: str = ""
    size: int | None = None
    share: float | None = None
    reason: str = ""


class Phased(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """An SSP over phases: what is delivered in all of their time, and on the average."""

    total: float | None
    unit: str
    average: float | None
    average_unit: str
    days: float
    reason: str = ""


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
    if missing := [f"{part.part}: {part.reason}" for part in parts if part.rate is None]:
        return replace(score, reason=f"there is no score without {'; '.join(missing)}")
    return _valued(wanted, score, [part.rate for part in parts if part.rate is not None])


def _valued(wanted: ScoreFile, score: Score, rates: Sequence[float]) -> Score:
    """Return a score with the value that its formula makes of the rates of all parts."""
    if wanted.score == "io500":
        return replace(score, value=io500(rates[: len(BANDWIDTH)], rates[len(BANDWIDTH) :]))
    if wanted.score == "ssp":
        if score.size is None:
            return replace(score, reason=f"give size, the {wanted.per}s of the system")
        return replace(score, value=ssp(rates, score.size), unit=f"{wanted.unit}/s")
    if wanted.score == "ssi":
        weights = [part.weight for part in wanted.parts.values()]
        return replace(score, value=ssi(rates, weights), unit="times the reference system")
    share = None if wanted.peak is None else rates[0] / wanted.peak
    unit = score.parts[0].rate_unit
    return replace(score, value=rates[0], unit=unit, size=None, share=share)


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
        reason=f"there is no score of phase {', '.join(missing)}" if missing else "",
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
        return replace(term, reason=str(error))
    return replace(term, rate=rated, rate_unit=rate_unit, count=count)


def _speed(part: ScoreTerm, figure: float, better: str) -> float:
    """Return how many times as fast as the reference system a figure is."""
    if better == NO_DIRECTION:
        raise ValueError(f"{part.metric} has no direction (better: none); name another")
    reference = part.reference or math.nan
    return figure / reference if better == "higher" else reference / figure


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
        speed = _speed(part, figure, better)
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


def _require_seconds(part: ScoreTerm, unit: str, reason: str) -> None:
    if unit != "s":
        raise ValueError(f"{part.metric} is in {unit or 'no unit'}; {reason}: name one in s")


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
    members, reason = _members(part, side)
    kinds = {kind for one in members for kind in one.values if kind[0] == part.metric}
    values = figures_of(members, kinds)
    excluded = excluded_of(members)
    term = TermScore(part=name, test=part.test, metric=part.metric, excluded=excluded)
    if not reason and len(kinds) > 1:
        reason = f"{part.metric} differs in unit or direction among its runs"
    if not reason and not values:
        reason = _no_figure(part, members, excluded)
    if reason := reason or unfit_of(values):
        return replace(term, reason=reason), members, "", values
    ((_, unit, better),) = kinds
    middle = median(values)
    term = replace(term, unit=unit, n=len(values), figure=middle, better=better, values=values)
    return term, members, better, values


def _no_figure(part: ScoreTerm, members: Sequence[CaseRuns], excluded: dict[str, int]) -> str:
    known = metrics_of(members)
    if known:
        return f"{part.test} has no metric {part.metric}; it has {', '.join(known[:20])}"
    return f"no right answer: {causes(excluded)}" if excluded else "no run of it is over"


def _members(part: ScoreTerm, side: Side) -> tuple[list[CaseRuns], str]:
    """The cases that a part is of; and what is wrong where these are none or several."""
    members = [one for one in side.cases if one.test == part.test]
    if not members:
        tests = ", ".join(sorted(side.all_of("test"))[:20])
        return [], f"there is no test {part.test}; there are {tests}"
    wanted = {(key, show(value)) for key, value in part.where.items()}
    toolchain = "*" if part.toolchain is None else part.toolchain
    members = [one for one in members if wanted <= one.parameters.items()]
    fitting = [one for one in members if fnmatchcase(one.toolchain, toolchain)]
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
        return replace(term, reason=f"it is in {term.unit or 'no unit'}, not {expected}")
    if not term.figure > 0:
        reason = f"it is {term.figure:g}; a phase that did nothing makes the run invalid"
        return replace(term, reason=reason)
    return replace(term, rate=term.figure, rate_unit=term.unit)


# ---- score change --------------------------------------------------------------------------------
#
# From one score to another: by how much it changed, with its interval, and each part's factor.
#
#     change = score_change(wanted, before, after)
#     change.ratio, change.low, change.high      # 1.003, 0.998, 1.008
#     change.parts[0].factor                     # 1.3: this part is 1.3 times as good
#
# A score is a product of powers of its parts' rates, and the logarithm of its change a weighted
# sum of theirs. Its interval is made of the parts' own, which are those of a comparison, by the
# recovery of variances (MOVER: Zou and Donner 2008): parts are measured by themselves.


class PartFactor(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """How many times as good a part is, with the ends of its 95 % interval; None where it cannot be
    had. ``verdict`` is that of a comparison of its figures, among those of all parts."""

    part: str
    factor: float
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "unclear"
    reason: str = ""


class ScoreChange(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """How many times as high the score of the second side is; ``of_size``: the part of it that the
    size of the system is. ``ratio`` is None where a side has no score."""

    first: str
    second: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    of_size: float = 1.0
    parts: list[PartFactor] = []
    reason: str = ""


def score_change(wanted: ScoreFile, first: Score, second: Score) -> ScoreChange:
    """Return the change from one side to another."""
    change = ScoreChange(first=first.side, second=second.side)
    if missing := [one.side for one in (first, second) if one.value is None]:
        return replace(change, reason=f"there is no score of {' and '.join(missing)}")
    pairs = list(zip(first.parts, second.parts, strict=True))
    rows = [(one.values, other.values, better_of(one.better)) for one, other in pairs]
    parts = [_factor(*pair, one) for pair, one in zip(pairs, judged(rows), strict=True)]
    low, high = _ends(parts, _weights(wanted))
    ratio = (second.value or 0.0) / (first.value or 1.0)
    return replace(
        change,
        ratio=ratio,
        low=None if low is None else ratio / low,
        high=None if high is None else ratio * high,
        of_size=second.size / first.size if first.size and second.size else 1.0,
        parts=parts,
    )


def _factor(one: TermScore, other: TermScore, found: RatioEstimate) -> PartFactor:
    """Return the factor of a part: that of its rates, with the interval of its figures."""
    factor = (other.rate or 0.0) / (one.rate or 1.0)
    low = high = None
    if found.ratio and found.low and found.high and math.isfinite(found.high):
        low, high = found.low / found.ratio, found.high / found.ratio
        if one.better == "lower":
            low, high = 1 / high, 1 / low
        low, high = factor * low, factor * high
    return PartFactor(
        part=one.part, factor=factor, low=low, high=high, verdict=found.verdict, reason=found.reason
    )


def _ends(
    parts: Sequence[PartFactor], weights: Sequence[float]
) -> tuple[float | None, float | None]:
    """Return by which factors the ends of the score's interval are below and above it; None where a
    part has no interval."""
    below = above = 0.0
    for part, weight in zip(parts, weights, strict=True):
        if part.low is None or part.high is None:
            return None, None
        below += (weight * math.log(part.factor / part.low)) ** 2
        above += (weight * math.log(part.high / part.factor)) ** 2
    return math.exp(math.sqrt(below)), math.exp(math.sqrt(above))


def _weights(wanted: ScoreFile) -> list[float]:
    """Return the power of each part in the score."""
    if wanted.score == "io500":
        halves = ([0.5 / len(each)] * len(each) for each in (BANDWIDTH, METADATA))
        return [weight for half in halves for weight in half]
    weights = [part.weight if wanted.score == "ssi" else 1.0 for part in wanted.parts.values()]
    return [weight / math.fsum(weights) for weight in weights]
