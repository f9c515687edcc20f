"""The result of a criterion: met, not met, undecided or waived, with the numbers behind it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from seatrial.acceptance.criteria.view import STAGE_WORDS, NodeCases, TrialView
from seatrial.acceptance.trial_history import RecordedMetric, RunHistory
from seatrial.plan.bounds import bound_of, is_relative
from seatrial.plan.criterion_kinds import kind_of
from seatrial.plan.model import Criterion
from seatrial.units import count, show_number, show_seconds, show_share, show_unit, unfit_of

State = Literal["met", "not met", "undecided", "waived"]
STATES: Final[tuple[State, ...]] = get_args(State)  # the words that people read, too
Numbers = dict[str, float | int | str]
Reach = tuple[float | None, float | None]


class WithExcluded(Struct, frozen=True, kw_only=True):
    """What a result would be if the excluded runs counted."""

    state: State
    value: float | None
    n: int


class Result(Struct, frozen=True, kw_only=True):
    """The result of a criterion on one subject: a test, a case, or "" for all its subjects
    together.

    ``value`` is a share, seconds, a number or, for ``slowdown``, per cent (positive is better);
    None where there is none; ``unit`` is that of a figure of merit. ``label`` names the criterion
    and what it is about. ``bound`` is the bound in words. ``n`` is the number of runs (or of what
    ``numbers`` says) behind it. ``why`` is the reason, in a sentence. ``without_waiver`` is the
    state that it would have without the waiver that covers it; None where no waiver does.
    ``with_excluded`` is the result if the runs counted that both sides excluded; None where that
    changes nothing. ``id``, ``clause`` and ``about`` are those that the plan gives to the
    criterion.
    """

    criterion: str
    label: str
    subject: str = ""
    state: State = "undecided"
    value: float | None = None
    unit: str = ""
    bound: str = ""
    n: int = 0
    numbers: Numbers = {}
    why: str
    without_waiver: State | None = None
    with_excluded: WithExcluded | None = None
    id: str = ""
    clause: str = ""
    about: str = ""

    @property
    def reason(self) -> str:
        """Why, and what it would be with the excluded runs."""
        other = self.with_excluded
        if other is None:
            return self.why
        value = show_value(self.criterion, other.value, self.unit) or "no value"
        return f"{self.why}; with excluded runs {value}, {other.state} (n {other.n})"

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


def label(criterion: Criterion) -> str:
    """Return a criterion's name with what it is about: ``accepted runs of cm4``, ``within expected
    of cm4 (5 % of the median)``."""
    about = ", ".join(filter(None, (criterion.metric, *criterion.tests)))
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
    least = _side(criterion, criterion.at_least, reference)
    most = _side(criterion, criterion.at_most, reference)
    words = [f"at least {show_value(name, least, unit)}"] if least is not None else []
    if most is not None:
        shown = show_value(name, most, unit) if name != "slowdown" else f"{most + 0.0:.3g} % loss"
        words.append(f"at most {shown}")
    if name == "slowdown":  # the smallest gain and the largest loss: two lower bounds of the value
        lower = [bound for bound in (least, most and -most) if bound is not None]
        least, most = max(lower, default=None), None
    return Bounds(least, most, " and ".join(words))


def _side(
    criterion: Criterion, written: str | int | float | None, reference: float | None
) -> float | None:
    name = criterion.criterion
    if written is None:
        return None
    if name != "figure_of_merit" or not is_relative(written):
        return bound_of(name, written, criterion.metric) * (100 if name == "slowdown" else 1)
    if reference is None:
        raise ValueError(f"{written!r} is of a reference in the same unit, and there is none")
    return bound_of(name, written) * reference


def show_value(criterion: str, value: float | None, unit: str = "") -> str:
    """Return a criterion's value as people read it, with its unit; "" for none."""
    if value is None:
        return ""
    kind = kind_of(criterion)
    if kind.bound in ("part", "share"):
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


def decided(
    view: TrialView,
    criterion: Criterion,
    value: float | None,
    why: str,
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
    ``goes_on`` is the reason (default: the view's). A value of None is undecided, and ``why`` is
    the reason."""
    state: State = "undecided"
    bounds = bounds or bounds_of(criterion)
    if bounds.least is None and bounds.most is None:
        why = "the criterion has no bound: give at_least or at_most"
    elif view.over:
        if value is not None:
            state = "met" if bounds.holds(value) else "not met"
    elif bounds.excludes(reach):
        state = "not met"
    elif bounds.contains(reach):
        state = "met"
    elif value is not None:
        why = goes_on or view.goes_on
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
        why=why,
    )


def doubt_of(metric: str, runs: int, figures: Sequence[RecordedMetric]) -> str:
    """Return why the figures of so many right runs of a case are no sample; "" if they are one, or
    there is none."""
    kinds = sorted({f"{figure.unit}, {figure.better}" for figure in figures})
    if len(kinds) > 1:
        return f"{metric} is in several units or directions: {' and '.join(kinds)}"
    if unfit := unfit_of([figure.value for figure in figures]):
        return f"{metric}: {unfit}"
    lacking = runs - len(figures)
    if figures and lacking:
        return f"{lacking} of {count(runs, 'right run')} gave no {metric}"
    return ""


def unless_newer(result: Result, group: NodeCases, latest: RunHistory, lacks: str) -> Result:
    """Return the result of the latest run that could be asked, or an undecided one where it is met
    and a newer run of the case could not: it ``lacks`` something."""
    newer = group.newer(latest)
    if result.state != "met" or newer is None:
        return result
    why = f"the latest run, {newer.id}, {lacks}; {result.why}"
    return replace(result, state="undecided", why=why)


def unless_silent(result: Result, group: NodeCases, view: TrialView, metric: str) -> Result:
    """Return the result of cases that differ in their node alone, or an undecided one where it is
    met and some nodes gave no figure."""
    silent = group.silent(view.history, metric) if result.state == "met" else ""
    return replace(result, state="undecided", why=f"{silent}; {result.why}") if silent else result


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
    why = f"{worst.subject}: {worst.why}" if worst.why else ""
    n = sum(one.n for one in each)
    return [replace(worst, subject="", n=n, numbers=numbers, why=why), *each]


def undecided(criterion: Criterion, why: str, bound: str = "", subject: str = "") -> Result:
    """Return a result without a value."""
    name = label(criterion)
    return Result(criterion=criterion.criterion, label=name, subject=subject, bound=bound, why=why)


def listed(numbers: Mapping[str, int], most: int = 3) -> str:
    """Return names with their numbers, the largest first: ``30 timeout, 2 hung``."""
    ordered = sorted(numbers.items(), key=lambda part: (-part[1], part[0]))
    words = [f"{number} {name}" for name, number in ordered[:most]]
    rest = sum(number for _, number in ordered[most:])
    return ", ".join([*words, *([f"{rest} others"] if rest else [])])
