"""The status of a component of a plan, while it runs and when it is over.

status(record, cases, events)        # of one trial; `seatrial accept status` shows them
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decide.in_flight import expected_runs
from seatrial.execute.plan.component import (
    ItemStatus,
    Place,
    items_of,
    named_beside,
    only_evidence,
    together,
)
from seatrial.execute.plan.policy import shared_node, width_of_machine, widths_of
from seatrial.execute.trial_folder import Record, references_of
from seatrial.grouping import grouped
from seatrial.hooks import load
from seatrial.journal.clock import present
from seatrial.journal.events import AlertRaised, Event, TrialAbandoned
from seatrial.journal.journal import Reading
from seatrial.journal.trial import INTERRUPTED, ClockSpan, RunLife, RunState, end_by
from seatrial.judge.learning import unlearned_sums
from seatrial.judge.references import References
from seatrial.model.codes import RECALLED, code_of
from seatrial.model.kinds import kind_of
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold
from seatrial.model.nodes import node_names
from seatrial.model.plan import Component, Criterion, Waiver
from seatrial.model.test import Case
from seatrial.results.criteria import answers
from seatrial.results.criteria.mix import OverallState, overall
from seatrial.results.criteria.view import Result, TrialView, WithExcluded, waived
from seatrial.results.holds import Hold, Holds, holds_of_gauges
from seatrial.results.node_hours import NodeShares, sharing
from seatrial.results.records import (
    EvidenceStatus,
    RunReview,
    awaited_of,
    items_of_now,
    reviews_of,
    unsound_of,
)
from seatrial.results.trial_history import OperatorAction, RunHistory, TrialHistory, action_of
from seatrial.units import SECOND_NS, count

# ---- sub phases ----------------------------------------------------------------------------------
#
# The sub-phases of a trial: the stretches between pauses and interruptions.
#
#     sub_phases(history.spans, history.runs, now)
#
# A pause stops the trial's clock, and the trial goes on in a new sub-phase. A driver that dies
# does not stop it, because its jobs go on: that sub-phase lasts until the trial is resumed. So the
# times of the sub-phases add up to the trial's clock.


class SubPhase(Struct, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """A stretch of a trial's clock, numbered from 1. ``start`` and ``end`` (None while it goes on)
    in ns, ``clock`` in seconds; ``ended_by`` is the reason of a pause, or what else ended it.
    ``accepted`` counts the runs that passed from its start to that of the next."""

    number: int
    start: int
    end: int | None
    clock: float
    ended_by: str
    accepted: int


def sub_phases(
    spans: Sequence[ClockSpan], runs: Iterable[RunHistory], now: int, duration: float = 0.0
) -> list[SubPhase]:
    """Return the sub-phases of a trial whose clock ran in these spans, in their order, up to its
    duration (seconds) if it has one."""
    starts = [span.start for span in spans]
    accepted = [0] * len(spans)
    for run in runs:
        if run.judged is not None and run.passed and spans:
            accepted[max(0, bisect_right(starts, run.judged) - 1)] += 1
    lengths = [max(0, end_by(span.end, now) - span.start) / SECOND_NS for span in spans]
    if duration:
        before = accumulate(lengths, initial=0.0)
        lengths = [
            max(0.0, min(length, duration - ran))
            for length, ran in zip(lengths, before, strict=False)
        ]
    return [
        SubPhase(
            number=i + 1,
            start=span.start,
            end=span.end,
            clock=lengths[i],
            ended_by=_ended_by(span),
            accepted=accepted[i],
        )
        for i, span in enumerate(spans)
    ]


def _ended_by(span: ClockSpan) -> str:
    """Return what ended a span: the reason that was given, else the kind of the event. The reason
    of an abandoned trial is what a person wrote, so the kind precedes it."""
    if span.ended_by is None:
        return span.reason
    usual = span.ended_by.turn or "the trial ended"
    if span.ended_by is TrialAbandoned and span.reason not in ("", usual):
        return f"{usual}: {span.reason}"
    return span.reason or usual


# ---- counts --------------------------------------------------------------------------------------
#
# Count the verdicts and the waits in the queue of each test of a trial, and list open alerts.


class Waits(Struct, frozen=True):
    """How long the runs that started had been queued, in seconds. ``high`` is the 95th percentile
    by the nearest rank, which is the longest where there are fewer than 20 runs."""

    n: int
    median: float
    high: float
    longest: float


def verdicts(history: TrialHistory) -> dict[str, Counter[str]]:
    """Return how many runs of each test have which verdict. Those whose case runs again are
    ``again``, but recalled ones are ``recalled``."""
    found: dict[str, Counter[str]] = {case.test: Counter() for case in history.cases}
    for run in history.runs:
        if run.over:
            found[history.test_of(run)][verdict_of(run)] += 1
    return found


def verdict_of(run: RunLife) -> str:
    """Return the name under which a run that is over is counted."""
    reruns = run.will_rerun and run.code != RECALLED.number
    return "again" if reruns else code_of(run.code).name


def open_alerts(history: TrialHistory, since: int) -> list[tuple[AlertRaised, int]]:
    """Return the alerts raised since then that are not over, the latest of each subject with how
    often it was raised, the latest first."""
    times = Counter((told.kind, told.subject) for told in history.alerts if not told.over)
    found: dict[tuple[str, str], AlertRaised] = {}
    for told in reversed(history.alerts):
        if told.time < since:
            break
        found.setdefault((told.kind, told.subject), told)
    return [(told, times[key]) for key, told in found.items() if not told.over]


def waits(history: TrialHistory, now: int) -> dict[str, Waits]:
    """Return the waits of each test of which a run has started."""
    found: dict[str, list[float]] = {}
    for run in history.runs:
        held = run.held_nodes(now)
        if held is not None and (waited := run.waited(held, now)) is not None:
            seconds = (waited[1] - waited[0]) / SECOND_NS
            found.setdefault(history.test_of(run), []).append(seconds)
    result = {}
    for test, times in found.items():
        times.sort()
        most = -(-len(times) * 95 // 100)  # rounded up: the nearest rank, never below the median
        result[test] = Waits(len(times), median(times), times[most - 1], times[-1])
    return result


# ---- status --------------------------------------------------------------------------------------


BINS = 48
AWAITED = "awaited"  # the state of a checklist that has items without a result
MIN_ALERTS_S = 3600.0  # how long an alert is shown that is never raised again


class TestStatus(Struct, frozen=True, kw_only=True):
    """The status of a test. ``in_flight`` is how many of its runs the scheduler has, ``running``
    how many of these hold nodes; ``expected`` is how many the plan keeps in flight, 0 where it does
    not say. ``verdicts`` counts the runs that ended. ``stopped`` is why no more are launched, or
    ""."""

    test: str
    in_flight: int
    running: int
    expected: int
    accepted: int
    verdicts: dict[str, int]
    stopped: str


class OpenAlert(Struct, frozen=True, kw_only=True):
    """An alert that is not over, and was raised so lately that it would be raised again if it still
    held. ``time`` of the last one in ns; ``times`` is how often it was raised."""

    time: int
    kind: str
    subject: str
    text: str
    times: int


class Status(Struct, frozen=True, kw_only=True):
    """The status of one trial of a plan."""

    tag: str
    plan: str
    component: str
    phase: str
    kind: str
    rehearsed: bool
    state: str
    verdict: OverallState
    #: the verdict, and what was waived
    verdict_words: str
    #: in ns
    now: int
    #: in seconds, as ``duration``, which is 0 for no limit
    clock: float
    duration: float
    nodes: int
    down: str
    #: None before any node-hours were available
    utilisation: float | None
    #: the course of the utilisation
    over_time: list[tuple[float, float]]
    #: the stretches between its pauses and interruptions
    sub_phases: list[SubPhase]
    parts: list[TestStatus]
    alerts: list[OpenAlert]
    #: nodes and reasons
    excluded: list[tuple[str, str]]
    #: the results of each criterion, the one on all its subjects first
    criteria: list[list[Result]]
    #: what holds launches back now: gauges, blackouts, excluded nodes, stopped tests
    held_back_by: list[Hold] = []
    #: the holds of people that last
    held: list[OperatorAction] = []
    #: all that people did while it was under way
    actions: list[OperatorAction] = []
    #: of each test; None before any node-hours were available
    node_shares: NodeShares | None = None
    #: the components that it runs beside
    alongside: list[str] = []
    #: that were available
    node_hours: float = 0.0
    #: what people said of runs
    reviews: list[RunReview] = []
    #: those of a checklist, which is ``awaited`` until each has its result
    items: list[ItemStatus] = []
    #: of which files any content passes, as no sum of them has been learned, in words
    unlearned: str = ""
    #: its documents; empty where they were not looked at
    evidence: list[EvidenceStatus] = []

    @property
    def awaited(self) -> list[str]:
        """What people still have to give: items and documents."""
        return awaited_of(self.items, self.evidence)

    @property
    def unsound(self) -> list[str]:
        """The documents that are not as they were signed for, with their states."""
        return unsound_of(self.items, self.evidence)

    @property
    def fills_machine(self) -> bool:
        """Whether the share of the node-hours that was accepted is a result: the component is to
        keep its nodes busy, or a criterion asks for it."""
        asked = any(one.criterion == "utilisation" for each in self.criteria for one in each)
        return asked or self.kind == "sustained"

    @property
    def sharing(self) -> str:
        """How far runs shared nodes, in words; "" if they did not."""
        return sharing(self.node_shares)


def status(
    record: Record,
    cases: Sequence[Case],
    events: Iterable[Event],
    now: int | None = None,
    driven: bool = True,
    history: TrialHistory | None = None,
    reading: Reading | None = None,
) -> Status:
    """Return the status of a trial by its journal. ``now`` is the present for a trial that runs,
    else the time of its last event. A trial that is not ``driven`` was interrupted if its journal
    does not say that it stopped. An empty ``history`` of the trial is filled, for callers that need
    it afterwards. ``reading`` is the reading of the journal that the events are from."""
    history = history or accounts_of(record, cases)
    holds = Holds(history)
    for event in events:
        history.apply(event)
        holds.apply(event)
    history.damaged = reading.damaged if reading is not None else 0
    running = history.state == "running"
    if now is None:
        now = present(history.opened) if running and not record.rehearsed else history.last
    now = max(now, history.last)
    found = status_of(record, history, now, references_now(record, history), driven)
    held = holds.held(now) if running and driven else []
    return replace(found, held_back_by=[*held, *_kept_back(found), *holds.unbuilt()])


def references_now(record: Record, history: TrialHistory) -> References:
    """Return the references that the criteria of a trial use: its own, or those that a person
    judged it again by."""
    return history.references or references_of(record)


def accounts_of(record: Record, cases: Sequence[Case]) -> TrialHistory:
    """Return an empty history of a trial, on the nodes of its machine. A rehearsed scheduler
    gives whole nodes."""
    history = _accounts_of(record, cases)
    history.items = record.component.items if record.component else ()
    history.machine_nodes = record.machine_nodes
    history.gauge_holds = holds_of_gauges(record.machine)
    return history


def _accounts_of(record: Record, cases: Sequence[Case]) -> TrialHistory:
    machine, names = record.machine, node_names(record.machine)
    room, _ = shared_node(machine)
    if room or record.rehearsed:
        return TrialHistory(cases, record.policy, names, room)
    cores = max((kind.cores for kind in machine.nodes), default=0)
    return TrialHistory(cases, record.policy, names, cores=cores)


def _held_actions(history: TrialHistory) -> list[OperatorAction]:
    actions = (action_of(event, history.policy) for event in history.held.values())
    return [action for action in actions if action is not None]


def status_of(
    record: Record,
    history: TrialHistory,
    now: int,
    references: References | None = None,
    driven: bool = True,
) -> Status:
    """Return the status as ``status`` does, from a history at hand."""
    component = record.component or Component(component="", kind=history.policy.component_kind)
    view = TrialView(history, now, references)
    results = judged(component, view) if record.component is not None else []
    together = overall(results)
    total = view.timeline.total
    return Status(
        tag=record.tag,
        plan=record.plan,
        component=component.component,
        phase=record.phase,
        kind=component.kind,
        rehearsed=record.rehearsed,
        state=_state(component, history, driven),
        verdict=together.state,
        verdict_words=together.words,
        now=now,
        clock=history.clock(now),
        duration=history.duration,
        nodes=history.nodes,
        down=fold(sorted(down.node for down in history.downs if down.end is None)),
        utilisation=total.share("accepted") if total.available else None,
        over_time=[
            (one.end, one.use.share("accepted"))
            for one in view.timeline.bins(BINS)
            if one.use.available
        ],
        sub_phases=sub_phases(history.spans, history.runs, now, history.duration),
        parts=tests_of(
            history, history.runs, verdicts(history), expected_of(history, record.machine)
        ),
        alerts=alerts_of(history, now),
        excluded=_excluded(history),
        criteria=results,
        node_shares=view.node_shares,
        reviews=reviews_of(history),
        items=items_of(component.items, history.ticks),
        held=[] if history.over else _held_actions(history),
        actions=history.actions,
        alongside=named_beside(component),
        node_hours=total.available / SECOND_NS / 3600,
        unlearned=unlearned_sums(record.tests, view.references.entries),
    )


def _state(component: Component, history: TrialHistory, driven: bool) -> str:
    if component.kind == "checklist" and not history.over:
        return AWAITED
    return history.state if driven or history.state != "running" else INTERRUPTED


def _kept_back(found: Status) -> list[Hold]:
    """Return the excluded nodes and stopped tests."""
    stopped = [(part.test, part.stopped) for part in found.parts if part.stopped]
    named = [("excluded", found.excluded), ("stopped", stopped)]
    return holds_of(found) + [
        Hold(kind=kind, what=what, text=f"{what}: {reason}")
        for kind, each in named
        for what, reason in each
    ]


def holds_of(found: Status) -> list[Hold]:
    """Return the holds of people."""
    return [
        Hold(kind="held", what=each.subject, text=_held_text(each), since=each.time)
        for each in found.held
    ]


def _held_text(action: OperatorAction) -> str:
    reason = f": {action.reason}" if action.reason else ""
    return f"{action.subject}, by {action.by or 'a person'}{reason}"


def tests_of(
    history: TrialHistory,
    runs: Iterable[RunHistory],
    tallied: Mapping[str, Counter[str]],
    expected: Mapping[str, int],
) -> list[TestStatus]:
    """Return the status of each test. ``runs`` are those without a verdict, at least; ``tallied``
    counts the verdicts of each test."""
    going = [run for run in runs if run.in_flight]
    in_flight = Counter(history.test_of(run) for run in going)
    running = Counter(history.test_of(run) for run in going if run.state is RunState.RUNNING)
    return [
        TestStatus(
            test=test,
            in_flight=in_flight[test],
            running=running[test],
            expected=0 if _is_shelved(history, test) else expected.get(test, 0),
            accepted=found["pass"],
            verdicts=dict(found.most_common()),
            stopped=history.stopped.get(test, ""),
        )
        for test, found in tallied.items()
    ]


def _is_shelved(history: TrialHistory, test: str) -> bool:
    """Return whether people or failures let no run of a test start."""
    heavy = "" in history.held and any(
        entry.name == test and entry.io != "light" for entry in history.policy.entries
    )
    return heavy or test in history.stopped or test in history.held


def expected_of(history: TrialHistory, machine: Machine) -> dict[str, int]:
    """Return how many runs of each test a sustained trial keeps in flight."""
    policy, widths = history.policy, widths_of(history.cases, machine)
    of_entries = [widths.get(entry.name, 1) for entry in policy.entries]
    expected = expected_runs(policy, of_entries, width_of_machine(machine))
    return {entry.name: each.runs for entry, each in zip(policy.entries, expected, strict=True)}


def alerts_of(history: TrialHistory, now: int) -> list[OpenAlert]:
    """Return the alerts raised within the time after which those that still hold are raised
    again, the earliest first."""
    since = now - round((history.policy.watch.again or MIN_ALERTS_S) * SECOND_NS)
    found = [] if history.over else open_alerts(history, since)
    return [open_alert(told, times) for told, times in reversed(found)]


def open_alert(alert: AlertRaised, times: int) -> OpenAlert:
    """Return an alert that was raised so often."""
    return OpenAlert(
        time=alert.time, kind=alert.kind, subject=alert.subject, text=alert.text, times=times
    )


def _excluded(history: TrialHistory) -> list[tuple[str, str]]:
    """Return the excluded nodes, those with the same reason together."""
    by_reason = grouped(history.excluded, history.excluded.__getitem__)
    return [(fold(sorted(names)), reason) for reason, names in by_reason.items()]


# ---- beside --------------------------------------------------------------------------------------
#
# The use of nodes of components that run beside each other, by one clock of the phase.
#
# for one in beside(statuses): one.components, one.utilisation


class TogetherUse(Struct, frozen=True, kw_only=True):
    """Components that ran at once in a phase. ``clock`` is that of the one that ran longest, in
    seconds: the nodes of the others count to its end. ``utilisation`` is the share of these
    ``node_hours`` in accepted work."""

    phase: str
    components: list[str]
    nodes: int
    clock: float
    node_hours: float
    utilisation: float

    @property
    def words(self) -> str:
        where = f" in phase {self.phase}" if self.phase else ""
        return f"{' and '.join(self.components)}{where}"


def beside(found: Sequence[Status]) -> Iterator[TogetherUse]:
    """Yield the use of nodes of each group of components that ran at once."""
    for group in together(found, lambda one: Place(one.phase, one.component, one.alongside)):
        if len(group) > 1 and (use := _use(group)) is not None:
            yield use


def _use(group: Sequence[Status]) -> TogetherUse | None:
    clock = max(one.clock for one in group)
    after = sum(one.nodes * (clock - one.clock) for one in group) / 3600
    hours = sum(one.node_hours for one in group) + after
    if not hours:
        return None
    accepted = sum(one.node_hours * (one.utilisation or 0.0) for one in group)
    return TogetherUse(
        phase=group[0].phase,
        components=[one.component for one in group],
        nodes=sum(one.nodes for one in group),
        clock=clock,
        node_hours=hours,
        utilisation=accepted / hours,
    )


# ---- documents -----------------------------------------------------------------------------------
#
# What the documents that people gave make of a status: undecided where one has changed.


def with_documents(found: Status, folder: Path) -> Status:
    """Return a status that says of each item's document whether it is as it was; ``folder`` is the
    plan's."""
    return replace(found, items=items_of_now(found.items, folder))


def with_evidence(found: Status, evidence: list[EvidenceStatus]) -> Status:
    """Return a status with the documents of its component, and the verdict that follows."""
    found = replace(found, evidence=evidence)
    verdict, words = with_people(found.verdict, found.verdict_words, found.unsound, found.awaited)
    return replace(found, verdict=verdict, verdict_words=words)


def with_people(
    verdict: OverallState, words: str, unsound: Sequence[str], awaited: Sequence[str]
) -> tuple[OverallState, str]:
    """Return the verdict of a component and its words: what is not decided by runs alone is
    awaited, or undecided where a document is not as it was signed for."""
    if verdict in ("not met", "undecided"):
        return verdict, words
    if unsound:
        return "undecided", f"undecided: {'; '.join(unsound)}"
    return ("awaited", f"awaited: {'; '.join(awaited)}") if awaited else (verdict, words)


# ---- judgement by criteria -----------------------------------------------------------------------
#
# A criterion is a small function in ``results.criteria``, whose docstring is its page of the
# reference: formula, example, and when it is undecided.
#
#     view = TrialView(history, now, references)
#     for result in judged(component, view): print(result.criterion, result.state, result.reason)
#
# A criterion returns the result on all its subjects together, then those of each subject (a test or
# a case) where there are several.


Judge = Callable[[TrialView, Criterion], list[Result]]


def judge_of(criterion: str) -> Judge:
    """Return the function that judges by a criterion."""
    function: Judge = load(kind_of(criterion).judge)
    return function


def judge(criterion: Criterion, view: TrialView, waivers: Sequence[Waiver] = ()) -> list[Result]:
    """Return the results of one criterion, the one on all its subjects first. Raises ValueError for
    an invalid bound, which a checked plan does not have."""
    compute = judge_of(criterion.criterion)
    results = waived(criterion, view, waivers, _doubted if view.history.damaged else compute)
    if not (criterion.id or criterion.clause or criterion.about):
        return results
    named = {"id": criterion.id, "clause": criterion.clause, "about": criterion.about}
    return [replace(one, **named) for one in results]


def _doubted(view: TrialView, criterion: Criterion) -> list[Result]:
    """Return the results of a criterion of a trial whose journal lacks events: what is met without
    them is undecided."""
    lines = count(view.history.damaged, "line")
    reason = f"{lines} of the journal cannot be read, which may say otherwise"
    return [one.unless(reason) for one in judge_of(criterion.criterion)(view, criterion)]


def judged(component: Component, view: TrialView) -> list[list[Result]]:
    """Return the results of each criterion of a component, in the plan's order, and last that of
    ``every_test``, which holds for each component; each with what it would be if the runs counted
    that both sides excluded."""
    results = [judge(criterion, view, component.waivers) for criterion in criteria_of(component)]
    if not view.excluded or view.whole:
        return results
    others = judged(component, view.as_whole())
    return [
        [_beside(one, other) for one in some] for some, other in zip(results, others, strict=True)
    ]


def _beside(result: Result, others: Sequence[Result]) -> Result:
    """Return a result with that of the same subject among the results with all runs."""
    for other in others:
        found = WithExcluded(state=other.state, value=other.value, n=other.n)
        same = (result.state, result.value, result.n) == (other.state, other.value, other.n)
        if other.subject == result.subject and not same:
            return replace(result, with_excluded=found)
    return result


def criteria_of(component: Component) -> list[Criterion]:
    """Return the criteria of a component, with ``every_test`` even where the plan does not ask for
    it; those of a checklist, with ``items_passed`` where it asks for nothing."""
    asked = component.criteria
    if component.kind == "checklist":
        return asked or ([answers.IMPLIED] if component.items else [])
    if only_evidence(component) or any(
        each.criterion == "every_test" and not each.tests for each in asked
    ):
        return asked
    return [*asked, Criterion(criterion="every_test")]
