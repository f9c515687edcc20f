"""What jobs are charged: the file that says it, and what comes of it for each job, exactly.

    charges = load_charges(Path("charges.yaml"))
    charged = charge(charges, jobs)
    charged.steps.sum()             # in units of the last decimal
    charged.reasons                 # why jobs have no charge: "" where they have one

As at most centres, a charge is what a job held (core-hours or node-hours) times one rate times
factors. Of the rules in ``base`` the first that fits the job gives the rate; of ``factors`` each
that fits multiplies. A job that runs across a date of a rule is cut there, to the second. The
charge of each job is rounded, once, so that sums of jobs in any order are exact.

What is not known is no charge of 0: such a job has a reason in place of its charge.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import Meta

from seatrial.errors import SeatrialError, UsageError, suggest
from seatrial.execute.trial_folder import TrialFolder, known_machine
from seatrial.hooks import value_of
from seatrial.lazy import Bools, Indices, Ints, SmallInts, np
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import FileModel, Name, Quantity, checked, doc
from seatrial.model.machine import Machine
from seatrial.model.moments import zone_of
from seatrial.model.node_set import NodeSet, fold, unfold, unfold_or_empty
from seatrial.model.test import JobOptions
from seatrial.plugins.usage.jobs import NONE, UNFINISHED, Jobs, NodePlaces, UserJob, Words
from seatrial.plugins.usage.keys import UsageSettings
from seatrial.plugins.usage.settings import machine_of
from seatrial.results.case_figures import CaseRuns

# ---- the file ------------------------------------------------------------------------------------

_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_RATIO = re.compile(r"[0-9]{1,9}/[1-9][0-9]{0,8}")
_SURE_DIGITS = 15  # that a float keeps as they are written
_EVER = (-(1 << 61), 1 << 61)  # s


class Factor(Quantity):
    """What is multiplied with: ``0.6``, ``60%`` or ``1/3``, exactly as it is written."""

    form = Annotated[int | float | str, doc("0.6, 60% or 1/3")]
    __slots__ = ("fraction",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        text = str(written).strip()
        number, percent = text.removesuffix("%").rstrip(), text.endswith("%")
        if not (_DECIMAL.fullmatch(number) or (_RATIO.fullmatch(text))):
            raise ValueError(f"{text[:40]!r} is not a factor; write e.g. 0.6, 60% or 1/3")
        if isinstance(written, float) and sum(map(str.isdigit, text)) > _SURE_DIGITS:
            raise ValueError(f"{text} has more digits than a number keeps; put it in quotes")
        self.fraction = Fraction(number) / (100 if percent else 1)


class SiteTime(Quantity):
    """A date or a time of day at the site: ``2012-05-01``, ``2012-05-01T08:00``."""

    form = Annotated[str, doc("2012-05-01, or 2012-05-01T08:00, in time_zone")]
    __slots__ = ("local",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        try:
            self.local = datetime.fromisoformat(str(written))
        except ValueError:
            remedy = "write e.g. 2012-05-01 or 2012-05-01T08:00"
            raise ValueError(f"{str(written)[:40]!r} is no date; {remedy}") from None
        if self.local.microsecond or not 1970 <= self.local.year < 3000:
            raise ValueError(f"{written} is not a whole second between 1970 and 2999")

    def seconds(self, zone: ZoneInfo | None) -> int:
        """Return the seconds since the epoch. A time that clocks skip is that after the change, of
        one that they show twice it is the first."""
        local = self.local if self.local.tzinfo else self.local.replace(tzinfo=zone)
        return int(local.timestamp())


Patterns = str | list[str]
_Count = Annotated[int, Meta(ge=1)]


class SizeRange(FileModel, frozen=True, rename={"least": "from"}):
    """Sizes of jobs between bounds."""

    least: Annotated[_Count | None, doc("this many or more")] = None
    above: Annotated[_Count | None, doc("more than this")] = None
    up_to: Annotated[_Count | None, doc("this many or fewer")] = None
    below: Annotated[_Count | None, doc("fewer than this")] = None

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest size."""
        least = max(self.least or 1, (self.above or 0) + 1)
        return least, min(self.up_to or _EVER[1], (self.below or _EVER[1]) - 1)


class NodeKind(FileModel, frozen=True):
    """Nodes that are charged alike."""

    nodes: Annotated[NodeSet, doc("node set, such as n[001-128]")]
    cores: Annotated[
        int, doc("cores of each; needed where a job has nodes of several kinds; 0: not said", ge=0)
    ] = 0


_RULE_KEYS = {"start": "from", "end": "to", "reason": "why"}


class ChargeRule(FileModel, frozen=True, rename=_RULE_KEYS):
    """Which jobs a rule fits, and when. A key that is not given fits every job."""

    node_kind: Annotated[str, doc("only on nodes of this one of `node_kinds`")] = ""
    nodes: Annotated[SizeRange, doc("only jobs of so many nodes: {above: 682}")] = SizeRange()
    cores: Annotated[SizeRange, doc("only jobs of so many cores: {from: 8193}")] = SizeRange()
    queue: Annotated[Patterns, doc("only jobs of these queues, such as debug or [reg_*, low]")] = ""
    account: Annotated[Patterns, doc("only jobs of these accounts, as patterns")] = ""
    start: Annotated[SiteTime | None, doc("from then on; default: always")] = None
    end: Annotated[SiteTime | None, doc("until just before then; default: for ever")] = None
    reason: Annotated[str, doc("the reason; shown beside the charge of a job")] = ""

    @property
    def jobs(self) -> Mapping[str, Any]:
        """The keys by which it goes but time, with their values."""
        named = ("node_kind", "nodes", "cores", "queue", "account")
        values = {key: getattr(self, key) for key in named}
        return {key: value for key, value in values.items() if value not in ("", SizeRange(), [])}

    def covers(self, other: ChargeRule) -> bool:
        """Return whether it fits all jobs that another one fits, whenever."""
        return all(other.jobs.get(key) == value for key, value in self.jobs.items())

    def span(self, zone: ZoneInfo | None) -> tuple[int, int]:
        """Return from when to before when it holds, in s."""
        return (
            self.start.seconds(zone) if self.start else _EVER[0],
            self.end.seconds(zone) if self.end else _EVER[1],
        )


class BaseRule(ChargeRule, frozen=True, kw_only=True):
    """What a core-hour or node-hour costs. Of several that fit a job the first counts."""

    rate: Annotated[Factor, doc("charge of an hour of one core or node; 0: free")]


class FactorRule(ChargeRule, frozen=True, kw_only=True):
    """A discount, or a dearer queue. All that fit a job are multiplied."""

    factor: Annotated[Factor, doc("what the charge is multiplied with; 0.6 is 40 % off")]


class ChargesFile(FileModel, frozen=True):
    """A ``charges.yaml``."""

    base: Annotated[list[BaseRule], doc("rates; the first that fits a job counts")]
    factors: Annotated[list[FactorRule], doc("each that fits a job multiplies its charge")] = []
    unit: Annotated[
        Literal["core-hours", "node-hours"], doc("what is charged: cores or whole nodes")
    ] = "core-hours"
    time_zone: Annotated[
        str,
        checked(zone_of),
        doc("zone of all dates, also of months: America/Los_Angeles; needed where there are dates"),
    ] = "UTC"
    node_kinds: Annotated[dict[Name, NodeKind], doc("kinds of nodes, by the names in rules")] = {}
    minimum: Annotated[
        Factor, doc("least charge of a job that was not free, such as 0.1; default: none")
    ] = Factor(0)
    decimals: Annotated[
        int, doc("decimals to which the charge of each job is rounded", ge=0, le=6)
    ] = 2
    rounding: Annotated[
        Literal["nearest", "up", "down"], doc("how it is rounded; nearest: a half goes up")
    ] = "nearest"

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone or "UTC")


def load_charges(path: Path) -> ChargesFile:
    """Read and check a charges.yaml. Raises InvalidFiles with all faults, UsageError where there is
    no such file."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; write one (see `seatrial schema charges`)")
    return load_checked(path, ChargesFile, _check)


def _check(charges: ChargesFile, location: Location) -> None:
    if not charges.base:
        location.fault("has no rule; write e.g. [{rate: 1}]", "base")
    if charges.minimum.fraction * 10**charges.decimals % 1:
        text = f"has more than {charges.decimals} decimals, to which charges are rounded"
        location.fault(f"{text}; say `decimals`", "minimum")
    _check_kinds(charges, location)
    for key, rules in (("base", charges.base), ("factors", charges.factors)):
        for i, rule in enumerate(rules):
            _check_rule(rule, charges, location.inside(key, i))
    dated = any(map(_has_local_date, (*charges.base, *charges.factors)))
    if dated and not location.given("time_zone"):
        text = "is missing; rules have dates: name the site's zone, such as Europe/Zurich"
        location.fault(text, "time_zone")
    _check_base(charges.base, charges.zone, location)
    _check_factors(charges.factors, charges.zone, location)


def _has_local_date(rule: ChargeRule) -> bool:
    return any(date is not None and not date.local.tzinfo for date in (rule.start, rule.end))


def _check_kinds(charges: ChargesFile, location: Location) -> None:
    owner: dict[str, str] = {}
    for name, kind in charges.node_kinds.items():
        both = sorted({owner[node] for node in unfold_or_empty(kind.nodes) if node in owner})
        if both:
            text = f"has nodes of {', '.join(both)}; a node has one kind"
            location.fault(text, "node_kinds", name, "nodes")
        owner |= dict.fromkeys(unfold_or_empty(kind.nodes), name)


def _check_rule(rule: ChargeRule, charges: ChargesFile, location: Location) -> None:
    """Add the faults that a rule has by itself."""
    if rule.node_kind and rule.node_kind not in charges.node_kinds:
        near = suggest(rule.node_kind, charges.node_kinds)
        text = f"{rule.node_kind!r} is not among node_kinds; {near or 'name its nodes there'}"
        location.fault(text, "node_kind")
    start, end = rule.span(charges.zone)
    if start >= end:
        location.fault(f"{rule.end} is not after `from`, {rule.start}", "to")
    for key in ("nodes", "cores"):
        size: SizeRange = getattr(rule, key)
        if size.bounds[0] > size.bounds[1] or None not in (size.least, size.above):
            location.fault("has no size between its bounds; give one at each end", key)


def _check_base(rules: Sequence[BaseRule], zone: ZoneInfo, location: Location) -> None:
    """Add a fault for rules that say two things of the same jobs at the same time, for those that
    no job ever reaches, and for times between two rules of the same jobs of which none speaks."""
    for j, rule in enumerate(rules):
        for i, before in enumerate(rules[:j]):
            if text := _clash(rule, before, zone):
                location.fault(f"{text} base[{i}]; of `base` the first that fits counts", "base", j)
                break
    for j, start, end in _holes(rules, zone):
        since, until = (_shown(edge, zone) for edge in (start, end))
        text = f"from {since} to {until} no rule says what these jobs cost; write one"
        location.fault(f"{text} (rate: 0, if they are free)", "base", j, "from")


def _clash(rule: ChargeRule, before: ChargeRule, zone: ZoneInfo) -> str:
    """Return how a rule is at odds with one before it; "" if it is not."""
    (start, end), (since, until) = rule.span(zone), before.span(zone)
    if max(start, since) >= min(end, until) or not before.covers(rule):
        return ""
    if rule.jobs == before.jobs:
        return "is of the same jobs and of times that are those of"
    return "is never reached: its jobs and times are those of" * (since <= start and end <= until)


def _holes(rules: Sequence[BaseRule], zone: ZoneInfo) -> Iterator[tuple[int, int, int]]:
    """Yield times between two rules of the same jobs, with the place of the second one, where no
    other rule covers them all."""
    for j, rule in enumerate(rules):
        start = rule.span(zone)[0]
        ends = [
            each.span(zone)[1]
            for each in rules
            if each.jobs == rule.jobs and each.span(zone)[1] <= start
        ]
        hole = (max(ends, default=start), start)
        others = [each.span(zone) for each in rules if each.covers(rule)]
        if hole[0] < start and not any(a <= hole[0] and start <= b for a, b in others):
            yield j, *hole


def _check_factors(rules: Sequence[FactorRule], zone: ZoneInfo, location: Location) -> None:
    for j, rule in enumerate(rules):
        for i, before in enumerate(rules[:j]):
            (start, end), (since, until) = rule.span(zone), before.span(zone)
            if rule.jobs == before.jobs and max(start, since) < min(end, until):
                text = f"is of the same jobs and times as factors[{i}]: both would be multiplied"
                location.fault(f"{text}; part their dates, or make one of them", "factors", j)


def _shown(second: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(second, zone):%Y-%m-%d %H:%M}".removesuffix(" 00:00")


# ---- the charges of jobs -------------------------------------------------------------------------

NO_CHARGES = "its machine has no charges; name their file there: `usage: {charges: FILE}`"

NEEDED = frozenset(
    {"started", "ended", "asked", "suspended_s", "state", "nodes", "cores", "node_list"}
    | {"queue", "account"}
)
"""The columns of jobs that charges need."""

_NO, _YES, _UNKNOWN = 0, 1, 2
_LARGEST = 1 << 62


class Piece(NamedTuple):
    """Parts of jobs to which the same dates and kind of nodes apply. Arrays are of one length."""

    start: int
    end: int
    kind: str
    #: the places of the jobs
    places: Indices
    seconds: Ints
    #: cores or nodes
    amounts: Ints
    #: rate times factors, and the place of each job's among them
    rates: Sequence[Fraction] = ()
    codes: Indices | Sequence[int] = ()
    #: the rule of ``base``, by its number
    base: SmallInts | Sequence[int] = ()
    #: which jobs each of the ``factors`` fits, by its number; not those that fit none
    factors: Mapping[int, Bools] = {}


class Charged(NamedTuple):
    """What jobs are charged."""

    #: the charge of each job in units of the last decimal; NONE where it has none
    steps: Ints
    decimals: int
    #: why a job has none; "" where it has one
    reasons: Words
    #: parts of jobs, in the order of time
    pieces: Sequence[Piece]
    #: charges before they are rounded, and without the least charge: numerators, and what all are
    #: divided by
    units: Ints
    divisor: int

    def reason(self, place: int) -> str:
        return self.reasons.names[int(self.reasons.codes[place])]

    def exact(self, place: int) -> Fraction:
        """Return the charge of a job before it is rounded, and without the least charge."""
        return Fraction(int(self.units[place]), self.divisor)

    def total(self) -> str:
        """Return the sum of the charges, as people read it."""
        return charge_text(int(self.steps[self.steps != NONE].sum()), self.decimals)


def charge_text(steps: int, decimals: int) -> str:
    """Return a charge with all its decimals."""
    whole, rest = divmod(steps, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}" if decimals else str(whole)


def held_seconds(jobs: Jobs) -> Ints:
    """Return how long each job held its cores; 0 of one that has not ended."""
    held = jobs.seconds_within(*_EVER)
    seconds: Ints = np.where(jobs.numbers["ended"] == NONE, 0, held)
    return seconds


def charge(charges: ChargesFile, jobs: Jobs) -> Charged:
    """Return what each job is charged at its end."""
    reasons = _Reasons(len(jobs))
    pieces = list(_pieces(charges, jobs, reasons))
    units, divisor = _summed(pieces, len(jobs))
    steps = _rounded(units, divisor, charges)
    steps[reasons.codes > 0] = NONE
    return Charged(steps, charges.decimals, reasons.words(), pieces, units, divisor)


class _Reasons:
    """Why jobs have no charge. Of several reasons the first counts."""

    def __init__(self, number: int) -> None:
        self.codes = np.zeros(number, dtype=np.int32)
        self.names = [""]

    def add(self, places: Indices, name: str) -> None:
        places = places[self.codes[places] == 0]
        if len(places):
            if name not in self.names:
                self.names.append(name)
            self.codes[places] = self.names.index(name)

    def words(self) -> Words:
        return Words(self.codes, tuple(self.names))


def _pieces(charges: ChargesFile, jobs: Jobs, reasons: _Reasons) -> Iterator[Piece]:
    """Yield the parts of jobs between two dates of the file, by kind of node."""
    _add_unfinished(jobs, reasons)
    zone = charges.zone
    rules = [*charges.base, *charges.factors]
    spans = [rule.span(zone) for rule in rules]
    edges = sorted({*_EVER, *(edge for span in spans for edge in span)})
    fits = [_fits(rule, jobs) for rule in rules]
    amounts = _Amounts(charges, jobs)
    for start, end in pairwise(edges):
        holds = [since <= start and end <= until for since, until in spans]
        seconds = jobs.seconds_within(start, end)
        places = np.flatnonzero((seconds > 0) & (reasons.codes == 0))
        by_kind = any(rule.node_kind for rule, now in zip(rules, holds, strict=True) if now)
        for kind, amount in amounts.of(by_kind, places, reasons) if len(places) else ():
            here = np.flatnonzero(amount)
            now = [
                fit[places[here]] if holds[i] and rules[i].node_kind in ("", kind) else None
                for i, fit in enumerate(fits)
            ]
            jobs_here = places[here]
            piece = Piece(start, end, kind, jobs_here, seconds[jobs_here], amount[here])
            yield _rated(piece, charges, now, reasons)


def _add_unfinished(jobs: Jobs, reasons: _Reasons) -> None:
    """Add the reasons of jobs that have not ended, or of which that is not known."""
    started, ended = jobs.numbers["started"], jobs.numbers["ended"]
    open_end = (ended == NONE) & jobs.words["state"].are(UNFINISHED)
    reasons.add(np.flatnonzero(open_end), "it has not ended: it is charged then")
    reasons.add(np.flatnonzero((started != NONE) & (ended == NONE)), "its end is not known")
    backwards = (started != NONE) & (ended != NONE) & (ended < started)
    reasons.add(np.flatnonzero(backwards), "it ended before it started, by its record")


def _fits(rule: ChargeRule, jobs: Jobs) -> SmallInts:
    """Return whether a rule fits each job, its kind of node and its time aside: _NO where a key
    does not, else _UNKNOWN where the record does not tell what a key goes by."""
    fit = np.full(len(jobs), _YES, dtype=np.int32)
    for key in ("nodes", "cores"):
        size: SizeRange = getattr(rule, key)
        if size != SizeRange():
            number, (least, most) = jobs.numbers[key], size.bounds
            inside = (number >= least) & (number <= most)
            fit = _both(fit, np.where(number <= 0, _UNKNOWN, np.where(inside, _YES, _NO)))
    for key in ("queue", "account"):
        patterns: Patterns = getattr(rule, key)
        if patterns:
            wanted = [patterns] if isinstance(patterns, str) else patterns
            words = jobs.words[key]
            of_name = [
                _UNKNOWN if not name else int(any(fnmatchcase(name, each) for each in wanted))
                for name in words.names
            ]
            fit = _both(fit, np.array(of_name, dtype=np.int32)[words.codes])
    return fit


def _both(one: SmallInts, other: SmallInts) -> SmallInts:
    """Return whether both hold."""
    no = (one == _NO) | (other == _NO)
    both: SmallInts = np.where(no, _NO, np.maximum(one, other)).astype(np.int32)
    return both


class _Amounts:
    """The cores or nodes of jobs, whole or by kind of node."""

    def __init__(self, charges: ChargesFile, jobs: Jobs) -> None:
        self.jobs = jobs
        self.kinds = charges.node_kinds
        self.by_nodes = charges.unit == "node-hours"
        self.whole = jobs.numbers["nodes" if self.by_nodes else "cores"]
        names = [unfold(kind.nodes) for kind in self.kinds.values()]
        self._places = NodePlaces([name for of_kind in names for name in of_kind])
        self._kind_of = np.repeat(np.arange(len(names)), [len(of_kind) for of_kind in names])

    def of(self, by_kind: bool, places: Indices, reasons: _Reasons) -> Iterator[tuple[str, Ints]]:
        """Yield each kind of node with the amounts of the jobs at these places; "" are nodes of no
        kind. A job of which it is not known has 0 and a reason."""
        what = "nodes" if self.by_nodes else "cores"
        whole = self.whole[places]
        reasons.add(places[whole <= 0], f"its {what} are not known")
        whole = np.maximum(whole, 0)
        if not by_kind:
            yield "", whole
            return
        counts, unknown = self._nodes_by_kind(places)
        amounts = counts if self.by_nodes else self._cores_by_kind(counts, whole)
        unlike = ~unknown & (amounts.sum(axis=1) != whole)
        reasons.add(places[unknown], "a rule goes by node_kind, and its nodes are not known")
        reasons.add(places[unlike], f"its {what} on each kind of node are not known")
        amounts[unknown | unlike] = 0
        yield from zip((*self.kinds, ""), amounts.T, strict=True)

    def _nodes_by_kind(self, places: Indices) -> tuple[Ints, Bools]:
        """Return how many nodes of each kind jobs have, and of which jobs that is not known."""
        lists = self.jobs.words["node_list"]
        used, inverse = np.unique(lists.codes[places], return_inverse=True)
        found = [self._places.of(lists.names[code]) for code in used.tolist()]
        kinds = len(self.kinds)
        rows = np.repeat(np.arange(len(used)), [len(inside) for inside, _ in found])
        inside = np.concatenate([np.zeros(0, np.int64), *(inside for inside, _ in found)])
        cells = rows * (kinds + 1) + self._kind_of[inside]
        counts = np.bincount(cells, minlength=len(used) * (kinds + 1)).reshape(-1, kinds + 1)
        counts[:, kinds] = [total - len(inside) for inside, total in found]
        return counts[inverse], (counts.sum(axis=1) == 0)[inverse]

    def _cores_by_kind(self, counts: Ints, whole: Ints) -> Ints:
        """Return the cores of jobs on each kind of node: all of them where it has one kind, else by
        the cores of a node of each."""
        alone = (counts > 0).sum(axis=1) == 1
        cores = np.array([*(kind.cores for kind in self.kinds.values()), 0], dtype=np.int64)
        split: Ints = np.where(alone[:, None], (counts > 0) * whole[:, None], counts * cores)
        return split


def _rated(
    piece: Piece, charges: ChargesFile, fits: Sequence[SmallInts | None], reasons: _Reasons
) -> Piece:
    """Return a piece with its rates. ``fits``: whether each rule fits its jobs, None where it fits
    none by its time or kind of node."""
    base = _chosen_base(piece, charges, fits, reasons)
    rates = [*(rule.rate.fraction for rule in charges.base), Fraction(0)]  # the last: none fits
    codes: Indices = np.where(base == NONE, len(charges.base), base)
    factors: dict[int, Bools] = {}
    for i, rule in enumerate(charges.factors):
        fit = fits[len(charges.base) + i]
        if fit is None or not fit.any():
            continue
        free = np.array([rate == 0 for rate in rates])[codes]
        unknown = piece.places[(fit == _UNKNOWN) & ~free]
        reasons.add(unknown, _unknown_keys(f"factors[{i}]", rule))
        factors[i] = fit == _YES
        used, codes = np.unique(codes * 2 + factors[i], return_inverse=True)
        rates = [rates[n // 2] * (rule.factor.fraction if n % 2 else 1) for n in used.tolist()]
    return piece._replace(base=base, factors=factors, rates=rates, codes=codes)


def _chosen_base(
    piece: Piece, charges: ChargesFile, fits: Sequence[SmallInts | None], reasons: _Reasons
) -> SmallInts:
    """Return the number of the first rule of ``base`` that fits each job of a piece; NONE, with a
    reason, where none does or it is not known."""
    base = np.full(len(piece.places), NONE, dtype=np.int32)
    open_jobs = np.full(len(base), True)
    for i, rule in enumerate(charges.base):
        fit = fits[i]
        if fit is not None:
            unknown = piece.places[open_jobs & (fit == _UNKNOWN)]
            reasons.add(unknown, _unknown_keys(f"base[{i}]", rule))
            base[open_jobs & (fit == _YES)] = i
            open_jobs &= fit == _NO
    at = "" if piece.start == _EVER[0] else f" from {_shown(piece.start, charges.zone)} on"
    on = f" on nodes of {piece.kind or 'no kind'}" if charges.node_kinds else ""
    reasons.add(piece.places[open_jobs], f"no rule of `base` fits it{on}{at}")
    return base


def _unknown_keys(place: str, rule: ChargeRule) -> str:
    keys = " and ".join(key for key in rule.jobs if key != "node_kind")
    return f"{place} goes by {keys}, which its record does not tell"


def _summed(pieces: Sequence[Piece], number: int) -> tuple[Ints, int]:
    """Return the charges of jobs as numerators, and what all are divided by."""
    divisor = math.lcm(*(rate.denominator for piece in pieces for rate in piece.rates))
    numerators = [[int(rate * divisor) for rate in piece.rates] for piece in pieces]
    largest = sum(
        int((piece.seconds * piece.amounts).max(initial=0)) * max(rates)
        for piece, rates in zip(pieces, numerators, strict=True)
    )
    kind = np.int64 if largest < _LARGEST else object  # of Python's integers, which are slower
    units: Ints = np.zeros(number, dtype=kind)
    for piece, rates in zip(pieces, numerators, strict=True):
        held = (piece.seconds * piece.amounts).astype(kind)
        units[piece.places] += held * np.array(rates, dtype=kind)[piece.codes]
    return units, divisor * 3600


def _rounded(units: Ints, divisor: int, charges: ChargesFile) -> Ints:
    """Return charges in units of the last decimal, none below the least charge but free ones."""
    scale = 2 * 10**charges.decimals
    if int(units.max(initial=0)) * scale + divisor >= _LARGEST:
        units = units.astype(object)
    shift = {"nearest": divisor, "up": 2 * divisor - 1, "down": 0}[charges.rounding]
    steps = (units * scale + shift) // (2 * divisor)
    least = int(charges.minimum.fraction * 10**charges.decimals)
    rounded: Ints = np.where(units > 0, np.maximum(steps, least), 0).astype(np.int64)
    return rounded


# ---- figures by charge ---------------------------------------------------------------------------


def charges_of(machine: Machine | None, instead: Path | None = None) -> ChargesFile | None:
    """Return the charges of a machine, or those of a file ``instead``; None if it has none. Raises
    InvalidFiles and UsageError."""
    if instead is not None:
        return load_charges(instead)
    settings = value_of(machine, "usage", UsageSettings) if machine is not None else UsageSettings()
    return load_charges(Path(settings.charges)) if settings.charges else None


def rate_of(case: CaseRuns) -> float:
    """Return what the runs of a case are charged for an hour, as of now, in the queue and for the
    account that its test or its machine names. Its nodes are charged whole. Raises UsageError where
    that is not known, or nothing."""
    if not case.values:
        return 0.0
    machine = machine_of(case.machine)
    if machine is None and case.folder:
        machine = known_machine(Path(case.folder))
    charges = charges_of(machine)
    if machine is None or charges is None:
        raise UsageError(f"--per charge: {case.machine}: {NO_CHARGES}")
    rates = {_hourly(charges, job) for job in _jobs_like(case, machine)}
    what = f"--per charge: {case.test} of {case.trial}"
    if not rates:
        raise UsageError(f"{what} does not tell nodes that {case.machine} has")
    if len(rates) > 1:
        shown = " or ".join(f"{float(rate):g}" for rate in sorted(rates))
        raise UsageError(f"{what} may be charged {shown} an hour, by the kind of its nodes")
    (rate,) = rates
    if not rate:
        raise UsageError(f"{what} is free now; figures cannot be shown by a charge of 0")
    return float(rate)


def _jobs_like(case: CaseRuns, machine: Machine) -> Iterator[UserJob]:
    """Yield a job of a second like a run of a case, on each kind of node that it may have had."""
    now, asked = int(time.time()), _asked(case)
    batch = machine.batch
    queue = getattr(batch, "partition", getattr(batch, "queue", ""))
    account = getattr(batch, "account", "")
    for kind in machine.nodes:
        of_kind = unfold(kind.names)
        names = [case.node] if case.node else of_kind[: case.nodes]
        if not case.nodes or len(names) < case.nodes or not {*names} <= {*of_kind}:
            continue
        yield UserJob(
            machine=machine.machine,
            job=case.test,
            submitted=now,
            started=now,
            ended=now + 1,
            state="completed",
            nodes=case.nodes,
            cores=case.nodes * kind.cores,
            node_list=fold(names),
            queue=kind.partition or queue if asked.partition is None else asked.partition,
            account=account if asked.account is None else asked.account,
        )


def _asked(case: CaseRuns) -> JobOptions:
    """Return what a case asks of the batch system; no queue and no account, which are not known,
    where its trial cannot be read."""
    try:
        found = TrialFolder(Path(case.folder)).case(case.case) if case.folder else None
    except (SeatrialError, OSError):
        found = None
    return found.job if found is not None else JobOptions(partition="", account="")


def _hourly(charges: ChargesFile, job: UserJob) -> Fraction:
    charged = charge(charges, Jobs.of([job]))
    if reason := charged.reason(0):
        raise UsageError(f"--per charge: {job.job} on {job.machine}: {reason}")
    return charged.exact(0) * 3600
