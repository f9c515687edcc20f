"""A trial at a moment, as criteria see it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from seatrial.execute.plan.component import fits
from seatrial.journal.trial import TrialState
from seatrial.judge.references import References
from seatrial.model import codes
from seatrial.model.figures import ELAPSED
from seatrial.model.identifiers import show
from seatrial.model.kinds import kind_of, named
from seatrial.model.plan import WHOLE_MACHINE, Criterion, Waiver, bound_of, has_unit, is_relative
from seatrial.model.test import Case, Stage
from seatrial.results.node_hours import NodeShares, node_shares
from seatrial.results.trial_history import RecordedMetric, RunHistory, TrialHistory
from seatrial.results.utilisation import Timeline, Utilisation
from seatrial.units import (
    count,
    figure_of,
    listed,
    show_converted,
    show_number,
    show_seconds,
    show_share,
    show_unit,
    unfit_of,
)

STAGE_WORDS = {"": "", "alone": " alone", "full": " at full machine"}
MAX_SILENT = 5  # nodes that are named
TOO_SOON = 1.0  # seconds that a trial may miss of its duration
_OF_NODES = (*named(machine=True), "mix")
_IS = {"ended": "has", "paused": "is"}


class NodeCases(Struct, frozen=True):
    """Cases that differ only in their node, with their runs of one ``stage`` ("": of any);
    ``case`` is the first of them, ``cases`` are the positions of all."""

    case: Case
    runs: list[RunHistory]
    cases: list[int]
    stage: Stage | Literal[""] = ""

    @property
    def name(self) -> str:
        name = self.case.name.removesuffix(f"%{self.case.node}")
        return f"{name} [{self.stage}]" if self.stage else name

    def right(self, metric: str) -> list[tuple[RunHistory, float]]:
        """Return the right runs that have a figure, each with it, in the order of their
        verdicts."""
        found = [(run, run.figure(metric)) for run in self.runs if run.right]
        figures = [(run, figure.value) for run, figure in found if figure is not None]
        return sorted(figures, key=lambda each: each[0].judged or 0)

    def figures(self, metric: str) -> list[RecordedMetric]:
        """Return the figures of the right runs that have one."""
        found = (run.figure(metric) for run in self.runs if run.right)
        return [figure for figure in found if figure]

    def silent(self, history: TrialHistory, metric: str) -> str:
        """Return which of several cases have no right run with a figure, and say so: ``2 of 64
        nodes gave no triad: n007, n012``; "" if each has one."""
        told = {run.case for run, _ in self.right(metric)}
        lacking = [history.cases[number].node for number in self.cases if number not in told]
        if not lacking or not told:
            return ""
        of = f"{len(lacking)} of {count(len(self.cases), 'node')}"
        return f"{of} gave no {metric}: {listed(lacking, MAX_SILENT)}"

    def newer(self, run: RunHistory) -> RunHistory | None:
        """Return the latest run of the case of another that ended after it, and does not run again;
        None where none did."""
        found = [
            one
            for one in self.runs
            if one.case == run.case
            and one.over
            and not one.will_rerun
            and one.code not in codes.UNCOUNTED
        ]
        last = max(found, key=lambda one: one.judged or 0, default=run)
        return last if (last.judged or 0) > (run.judged or 0) else None


class TrialView:
    """The history of a trial at ``now`` (ns), and the references that it judges by. ``waived``
    are the positions of the cases that criteria leave out. Criteria on verdicts and figures also
    leave out the runs that both sides excluded, unless the view is ``whole``."""

    def __init__(
        self,
        history: TrialHistory,
        now: int,
        references: References | None = None,
        waived: Set[int] = frozenset(),
        whole: bool = False,
    ) -> None:
        self.history = history
        self.now = now
        self.references = references or References()
        self.waived = waived

        self.whole = whole

    def without(self, cases: Set[int]) -> "TrialView":
        """Return the view without the runs of these cases."""
        return self._like(cases, self.whole)

    def as_whole(self) -> "TrialView":
        """Return the view that counts the runs that both sides excluded."""
        return self._like(self.waived, True)

    def _like(self, waived: Set[int], whole: bool) -> "TrialView":
        """Return another view of the same moment, with what was computed of its nodes."""
        found = TrialView(self.history, self.now, self.references, waived, whole)
        found.__dict__.update(
            (name, self.__dict__[name])
            for name in ("utilisation", "timeline", "node_shares")
            if name in self.__dict__
        )
        return found

    @cached_property
    def excluded(self) -> list[RunHistory]:
        """The runs that both sides excluded."""
        return [run for run in self.history.runs if run.is_excluded]

    def leaves_out(self, criterion: Criterion, run: RunHistory) -> bool:
        """Return whether a criterion leaves out a run. Those on nodes and node-hours leave out
        none, as an excluded run used its nodes all the same."""
        return run.is_excluded and not self.whole and criterion.criterion not in _OF_NODES

    @cached_property
    def utilisation(self) -> Utilisation:
        return Utilisation(self.history, self.now)

    @cached_property
    def timeline(self) -> Timeline:
        return self.utilisation.timeline()

    @cached_property
    def node_shares(self) -> NodeShares | None:
        return node_shares(self.history, self.timeline, self.now)

    @property
    def over(self) -> bool:
        """Whether the trial came to its end: it was not abandoned, and did not end before its time
        unless nothing could ever run."""
        history = self.history
        if not history.complete or history.state is TrialState.ABANDONED:
            return False
        timely = history.clock(self.now) >= history.duration - TOO_SOON
        return timely or bool(history.reason)

    @property
    def goes_on(self) -> str:
        """Return why a criterion is not decided yet."""
        history = self.history
        so_far = show_seconds(history.clock(self.now))
        whole = f" of {show_seconds(history.duration)}" if history.duration else ""
        if history.state == "new":
            return "the trial has not begun"
        word = "goes on:"
        if history.state != "running":
            word = f"{_IS.get(history.state, 'was')} {history.state} after"
        return f"the trial {word} {so_far}{whole}"

    def tests(self, criterion: Criterion) -> list[str]:
        """Return the tests that a criterion is about, in their order."""
        names = dict.fromkeys(case.test for _, case in self.cases())
        return [name for name in names if fits(criterion.tests, name)]

    def cases(self) -> Iterator[tuple[int, Case]]:
        """Yield the cases that count, with their positions."""
        return (each for each in enumerate(self.history.cases) if each[0] not in self.waived)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the trial's runs; empty where a component has none."""
        return get_args(Stage) if self.history.policy.kind == "isolated_then_full" else ()

    def stages_of(self, criterion: Criterion) -> tuple[Stage, ...]:
        """Return the stages that a criterion is about; empty where a component has none."""
        return tuple(each for each in self.stages if criterion.of_stage in (None, each))

    def runs(self, criterion: Criterion) -> Iterator[RunHistory]:
        """Return the runs of those tests and stages. A run that was never submitted has no stage:
        it is one of each."""
        wanted = set(self.tests(criterion))
        cases = {number for number, case in self.cases() if case.test in wanted}
        stages = {*(self.stages_of(criterion) or get_args(Stage)), ""}
        return (
            run
            for run in self.history.runs
            if run.case in cases
            and run.stage in stages
            and (run.review is None or not self.leaves_out(criterion, run))
        )

    def groups(self, criterion: Criterion) -> list[NodeCases]:
        """Return the cases of those tests with their runs, each stage by itself: a run that had the
        machine for itself is not like one that shared it."""
        stages = self.stages_of(criterion)
        both = self.pairs(criterion)
        return [
            NodeCases(
                group.case,
                # a run that was never submitted has no stage and no figure: it counts once
                [run for run in group.runs if (run.stage or stages[0]) == stage],
                group.cases,
                stage,
            )
            for group in both
            for stage in stages
        ] or both

    def pairs(self, criterion: Criterion) -> list[NodeCases]:
        """Return the cases of those tests with their runs of all stages. Cases that differ only in
        their node are one group, as nodes should be alike."""
        found: dict[tuple[object, ...], NodeCases] = {}
        of_case: list[NodeCases | None] = []
        wanted = set(self.tests(criterion))
        for number, case in enumerate(self.history.cases):
            bound = tuple((name, show(value)) for name, value in case.parameters.items())
            key = (case.test, bound, case.toolchain, case.nodes)
            chosen = case.test in wanted and number not in self.waived
            own = found.setdefault(key, NodeCases(case, [], [])) if chosen else None
            if own is not None:
                own.cases.append(number)
            of_case.append(own)
        for run in self.history.runs:
            group = of_case[run.case]
            if group is None:
                continue
            if run.review is None or not self.leaves_out(criterion, run):
                group.runs.append(run)
        return list(found.values())


# ---- result --------------------------------------------------------------------------------------
#
# The result of a criterion: met, not met, undecided or waived, with the numbers behind it.


State = Literal["met", "not met", "undecided", "waived"]
STATES: Final[tuple[State, ...]] = get_args(State)  # the words that people read, too
Numbers = dict[str, float | int | str]
Reach = tuple[float | None, float | None]


class WithExcluded(Struct, frozen=True, kw_only=True):
    """What a result would be if the excluded runs counted."""

    state: State
    value: float | None
    n: int


class Result(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """The result of a criterion on one subject: a test, a case, or "" for all its subjects
    together."""

    criterion: str
    #: names the criterion and what it is about
    label: str
    subject: str = ""
    state: State = "undecided"
    #: a share, seconds, a number or, of ``slowdown``, per cent (positive is better)
    value: float | None = None
    #: of a figure of merit
    unit: str = ""
    #: in words
    bound: str = ""
    #: of runs, or of what ``numbers`` says
    n: int = 0
    numbers: Numbers = {}
    #: a sentence
    reason: str
    #: the state without the waiver that covers it; None where no waiver does
    without_waiver: State | None = None
    #: if the runs counted that both sides excluded; None where that changes nothing
    with_excluded: WithExcluded | None = None
    #: as the plan gives it, with ``clause`` and ``about``
    id: str = ""
    clause: str = ""
    about: str = ""

    @property
    def full_reason(self) -> str:
        """The reason, and what it would be with the excluded runs."""
        other = self.with_excluded
        if other is None:
            return self.reason
        value = show_value(self.criterion, other.value, self.unit) or "no value"
        return f"{self.reason}; with excluded runs {value}, {other.state} (n {other.n})"

    @property
    def shown(self) -> str:
        """The value as text, with its unit."""
        return show_value(self.criterion, self.value, self.unit)

    @property
    def words(self) -> str:
        """The state as people read it, such as ``waived (not met)``."""
        if self.without_waiver is None:
            return self.state
        return (
            f"{self.state} ({'waiver not needed' if self.state == 'met' else self.without_waiver})"
        )

    def unless(self, doubt: str) -> "Result":
        """Return the result; an undecided one where it is met, though there is a doubt."""
        if self.state != "met" or not doubt:
            return self
        return replace(self, state="undecided", reason=f"{doubt}; {self.reason}")


def label(criterion: Criterion) -> str:
    """Return a criterion's name with what it is about: ``accepted runs of cm4``, ``within expected
    of cm4 (5 % of the median)``."""
    about = ", ".join(filter(None, (criterion.metric, criterion.gauge, *criterion.tests)))
    name = criterion.criterion.replace("_", " ")
    name = f"{name} of {about}" if about else name
    name += STAGE_WORDS[criterion.stage or ""]
    if criterion.pooled:
        name += ", pooled"
    if criterion.within is None:
        return name
    return f"{name} ({str(criterion.within).replace('%', ' %')} of the {criterion.of})"


# ---- bounds -------------------------------------------------------------------------------


class Bounds(Struct, frozen=True):
    """The smallest and the largest value that meet a criterion, and both in words."""

    least: float | None
    most: float | None
    words: str

    def holds(self, value: float) -> bool:
        """Return whether a value is inside, within rounding."""
        return self.contains((value, value))

    def contains(self, reach: Reach) -> bool:
        """Return whether all values that are still possible are inside."""
        least, most = reach
        low = self.least is None or (least is not None and _reaches(least, self.least))
        high = self.most is None or (most is not None and _reaches(self.most, most))
        return low and high

    def excludes(self, reach: Reach) -> bool:
        """Return whether no value that is still possible is inside."""
        least, most = reach
        too_low = self.least is not None and most is not None and not _reaches(most, self.least)
        too_high = self.most is not None and least is not None and not _reaches(self.most, least)
        return too_low or too_high


def _reaches(value: float, bound: float) -> bool:
    """Return whether a value is at least the bound, within rounding."""
    return value >= bound or math.isclose(value, bound, rel_tol=1e-12)


def bounds_of(criterion: Criterion, reference: float | None = None, unit: str = "") -> Bounds:
    """Return the bounds of a criterion in the unit of its value. For ``figure_of_merit`` a number
    is in the metric's ``unit``, and per cent (``95%``) are of its reference's value. Raises
    ValueError with a remedy."""
    name = criterion.criterion
    least = _side(criterion, criterion.at_least, reference, unit)
    most = _side(criterion, criterion.at_most, reference, unit)
    words = []
    if least is not None:
        words.append(f"at least {_shown_side(criterion, criterion.at_least, least, unit)}")
    if most is not None:
        shown = _shown_side(criterion, criterion.at_most, most, unit)
        shown = shown if name != "slowdown" else f"{most + 0.0:.3g} % loss"
        words.append(f"at most {shown}")
    if name == "slowdown":  # the smallest gain and the largest loss: two lower bounds of the value
        lower = [bound for bound in (least, most and -most) if bound is not None]
        least, most = max(lower, default=None), None
    return Bounds(least, most, " and ".join(words))


def _shown_side(
    criterion: Criterion, written: str | int | float | None, side: float, unit: str
) -> str:
    """Return a bound, also as it is written where that is in another unit: ``50 GB/s = 47684
    MiB/s``."""
    name = criterion.criterion
    if kind_of(name).bound == "reading":
        return show_number(side)
    if name != "figure_of_merit" or criterion.metric == ELAPSED or not has_unit(written):
        return show_value(name, side, unit)
    number, own = figure_of(str(written))
    return show_converted(number, own, unit or own)


def _side(
    criterion: Criterion,
    written: str | int | float | None,
    reference: float | None,
    unit: str,
) -> float | None:
    name = criterion.criterion
    if written is None:
        return None
    if name != "figure_of_merit" or not is_relative(written):
        return bound_of(name, written, criterion.metric, unit) * (100 if name == "slowdown" else 1)
    if reference is None:
        raise ValueError(f"{written!r} is of a reference in the same unit, and there is none")
    return bound_of(name, written) * reference


def show_value(criterion: str, value: float | None, unit: str = "") -> str:
    """Return a criterion's value as people read it, with its unit; "" for none."""
    if value is None:
        return ""
    kind = kind_of(criterion)
    if kind.bound in ("part", "share", "reading"):
        return show_share(value)
    if kind.bound == "change":
        return f"{value + 0.0:+.3g} %"
    if kind.bound == "seconds":
        return show_seconds(value)
    if kind.bound == "points":
        return f"{100 * value:.3g} points"
    if kind.noun:
        return f"{show_number(value)} {kind.noun}{'' if value == 1 else 's'}"
    return f"{show_number(value)}{show_unit(unit)}"


# ---- results ------------------------------------------------------------------------------


def _state_at_end(bounds: Bounds, value: float | None) -> State:
    if value is None:
        return "undecided"
    return "met" if bounds.holds(value) else "not met"


def _state_before_end(bounds: Bounds, reach: Reach) -> State:
    if bounds.excludes(reach):
        return "not met"
    return "met" if bounds.contains(reach) else "undecided"


def decided(
    view: TrialView,
    criterion: Criterion,
    value: float | None,
    reason: str,
    *,
    n: int,
    bounds: Bounds | None = None,
    goes_on: str = "",
    subject: str = "",
    reach: Reach = (None, None),
    numbers: Numbers | None = None,
    unit: str = "",
) -> Result:
    """Return the result of a value. Before the trial is over it is decided only if every value that
    is still possible (``reach``, None is unbounded) is inside the bounds, or none is; else
    ``goes_on`` is the reason (default: the view's). A value of None is undecided, and ``reason``
    says why."""
    state: State
    bounds = bounds or bounds_of(criterion)
    if bounds.least is None and bounds.most is None:
        state, reason = "undecided", "the criterion has no bound: give at_least or at_most"
    elif view.over:
        state = _state_at_end(bounds, value)
    else:
        state = _state_before_end(bounds, reach)
        if state == "undecided" and value is not None:
            reason = goes_on or view.goes_on
    return Result(
        criterion=criterion.criterion,
        label=label(criterion),
        subject=subject,
        state=state,
        value=value,
        unit=unit,
        bound=bounds.words,
        n=n,
        numbers=numbers or {},
        reason=reason,
    )


def doubt_of(metric: str, group: NodeCases) -> str:
    """Return why the figures of the right runs of a case are no sample; "" if they are one, or
    there is none."""
    figures = group.figures(metric)
    kinds = sorted({f"{figure.unit}, {figure.better}" for figure in figures})
    if len(kinds) > 1:
        return f"{metric} is in several units or directions: {' and '.join(kinds)}"
    if unfit := unfit_of([figure.value for figure in figures]):
        return f"{metric}: {unfit}"
    runs = sum(run.right for run in group.runs)
    if 0 < len(figures) < runs:
        return f"{runs - len(figures)} of {count(runs, 'right run')} gave no {metric}"
    return ""


def unless_newer(result: Result, group: NodeCases, latest: RunHistory, lacks: str) -> Result:
    """Return the result of the latest run that could be asked, or an undecided one where it is met
    and a newer run of the case could not: it ``lacks`` something."""
    newer = group.newer(latest)
    return result.unless(f"the latest run, {newer.id}, {lacks}" if newer else "")


def unless_silent(result: Result, group: NodeCases, view: TrialView, metric: str) -> Result:
    """Return the result of cases that differ in their node alone, or an undecided one where it is
    met and some nodes gave no figure."""
    return result.unless(group.silent(view.history, metric))


def with_worst(results: Iterable[Result], badness: Callable[[Result], float]) -> list[Result]:
    """Return the results of several subjects behind one on all of them, which is the worst of
    them: one that is not met, else undecided, else met; of equals the one with the greatest
    ``badness``."""
    each = list(results)
    if len(each) < 2:
        return each
    order = {"not met": 2, "undecided": 1}
    worst = max(
        each, key=lambda one: (order.get(one.state, 0), one.value is not None, badness(one))
    )
    numbers: Numbers = {"subjects": len(each), "worst": worst.subject}
    for state in ("met", "not met", "undecided"):
        numbers[state] = sum(one.state == state for one in each)
    reason = f"{worst.subject}: {worst.reason}" if worst.reason else ""
    n = sum(one.n for one in each)
    return [replace(worst, subject="", n=n, numbers=numbers, reason=reason), *each]


def undecided(criterion: Criterion, reason: str, bound: str = "", subject: str = "") -> Result:
    """Return a result without a value."""
    name = label(criterion)
    return Result(
        criterion=criterion.criterion, label=name, subject=subject, bound=bound, reason=reason
    )


def largest_listed(numbers: Mapping[str, int], limit: int = 3) -> str:
    """Return names with their numbers, the largest first: ``30 timeout, 2 hung``."""
    ordered = sorted(numbers.items(), key=lambda part: (-part[1], part[0]))
    words = [f"{number} {name}" for name, number in ordered[:limit]]
    rest = sum(number for _, number in ordered[limit:])
    return ", ".join([*words, *([f"{rest} others"] if rest else [])])


# ---- waivers -------------------------------------------------------------------------------------
#
# Criteria with waivers: of a whole criterion, or of the runs of some tests and toolchains.
#
# results = waived(criterion, view, component.waivers, compute)
#
# A criterion that is met without its waivers stays met. Where a waiver is in part, the criterion
# is computed again without the runs that it covers: it is waived if it is met then, else the rest
# decides.


Compute = Callable[[TrialView, Criterion], list[Result]]


def waived(
    criterion: Criterion, view: TrialView, waivers: Sequence[Waiver], compute: Compute
) -> list[Result]:
    """Return the results of a criterion as ``compute`` does, with the waivers that cover it."""
    results = compute(view, criterion)
    covering = [each for each in waivers if covers(each, criterion)]
    whole = next((each for each in covering if not each.in_part), None)
    if whole is not None:
        first, *others = results
        return [_in_whole(first, whole), *(_in_whole(one, None) for one in others)]
    left_out = _left_out(view, covering)
    if not left_out:
        return results
    return _waived_in_part(criterion, results, view.without(left_out), covering, compute)


def _waived_in_part(
    criterion: Criterion,
    results: Sequence[Result],
    rest: TrialView,
    covering: Sequence[Waiver],
    compute: Compute,
) -> list[Result]:
    """Return the results of a criterion with waivers in part; ``rest`` is the view without the runs
    that these cover."""
    tests = rest.tests(criterion)
    reduced = compute(rest, criterion) if tests else []
    of_rest = {one.subject: one for one in reduced}
    if len(reduced) == len(tests) == 1:
        of_rest.setdefault(tests[0], reduced[0])
    agreed = "; ".join(map(agreement, covering))
    first, *others = results
    return [
        _in_part(first, reduced[0] if reduced else None, agreed),
        *(_in_part(one, of_rest.get(one.subject), "") for one in others),
    ]


def _left_out(view: TrialView, waivers: Sequence[Waiver]) -> set[int]:
    """Return the numbers of the cases that waivers in part are about."""
    return {
        number
        for number, case in enumerate(view.history.cases)
        if any(_is_about(each, case) for each in waivers)
    }


def covers(waiver: Waiver, criterion: Criterion | Result) -> bool:
    """Return whether a waiver is about a criterion, or its result. One in part is about no
    criterion on the whole machine."""
    if waiver.in_part and criterion.criterion in WHOLE_MACHINE:
        return False
    return not waiver.criteria or any(
        name in waiver.criteria for name in (criterion.criterion, criterion.id) if name
    )


def is_unneeded(waiver: Waiver, results: Iterable[Sequence[Result]]) -> bool:
    """Return whether each criterion that a waiver covers was met without it; False where it covers
    none. ``results``: of each criterion, the one on all its subjects first."""
    states = {each[0].state for each in results if covers(waiver, each[0])}
    return states == {"met"}


def agreement(waiver: Waiver) -> str:
    """Return what was agreed: by whom, when, why, and of what."""
    of = f"{runs_of(waiver)} " if waiver.in_part else ""
    return f"{of}waived by {waiver.by} on {waiver.on}: {waiver.reason}"


def runs_of(waiver: Waiver) -> str:
    """Return the tests and toolchains whose runs a waiver covers: ``cm4, ufs with oneapi``; "" if
    it covers all."""
    tests, chains = (", ".join(each) for each in (waiver.tests, waiver.toolchains))
    return f"{tests or 'runs'} with {chains}" if chains else tests


def covered(waiver: Waiver) -> str:
    """Return what a waiver covers: criteria, and the runs of which they leave out."""
    criteria = ", ".join(waiver.criteria).replace("_", " ")
    if not waiver.in_part:
        return criteria or "the whole component"
    return f"{runs_of(waiver)} in {criteria}" if criteria else runs_of(waiver)


def _is_about(waiver: Waiver, case: Case) -> bool:
    chains = waiver.toolchains
    return fits(waiver.tests, case.test) and (
        not chains or any(fnmatchcase(case.toolchain, each) for each in chains)
    )


def _in_whole(result: Result, waiver: Waiver | None) -> Result:
    """Return a result that a waiver covers. One that is met stays met."""
    if result.state == "met":
        return replace(result, without_waiver="met")
    reason = "; ".join(filter(None, (agreement(waiver) if waiver else "", result.reason)))
    return replace(result, state="waived", without_waiver=result.state, reason=reason)


def _in_part(result: Result, rest: Result | None, agreed: str) -> Result:
    """Return a result of which a waiver covers some runs; ``rest`` is the result on the others,
    None where there are none."""
    if rest is not None and _found(rest) == _found(result):
        return result
    if result.state == "met":
        return replace(result, without_waiver="met")
    reason = "; ".join(filter(None, (agreed, result.reason)))
    if rest is None or rest.state == "met":
        return replace(result, state="waived", without_waiver=result.state, reason=reason)
    return replace(
        rest,
        subject=result.subject,
        reason=f"{rest.reason}; with waived runs {result.shown}, {result.state}",
    )


def _found(result: Result) -> tuple[object, ...]:
    """Return what was found, by which results with and without some runs are compared."""
    return result.state, result.value, result.n, result.numbers
