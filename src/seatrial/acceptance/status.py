"""The status of a component of a plan, while it runs and when it is over.

status(record, cases, events)        # of one trial; `seatrial accept status` shows them
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.acceptance.counts import open_alerts, verdicts
from seatrial.acceptance.criteria import OverallState, Result, TrialView, judged, overall
from seatrial.acceptance.evidence_status import EvidenceStatus, awaited_of, unsound_of
from seatrial.acceptance.holds import Hold, Holds
from seatrial.acceptance.node_shares import NodeShares, sharing
from seatrial.acceptance.operator_actions import OperatorAction
from seatrial.acceptance.reviews import RunReview, reviews_of
from seatrial.acceptance.sub_phases import SubPhase, sub_phases
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.conduct.expected_runs import expected_runs
from seatrial.journal.clock import present
from seatrial.journal.events import Event
from seatrial.journal.journal import Reading
from seatrial.journal.run_life import RunState
from seatrial.journal.trial_life import INTERRUPTED
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine
from seatrial.machine.node_sets import fold
from seatrial.plan.alongside import named_beside
from seatrial.plan.checklist import ItemStatus, items_of
from seatrial.plan.model import Component
from seatrial.plan.policy import shared_node, width_of_machine, widths_of
from seatrial.structs import copied
from seatrial.suite.model import Case
from seatrial.trial.record import Record, references_of
from seatrial.units import SECOND_NS
from seatrial.verify.learned_sums import unlearned_sums
from seatrial.verify.references import References

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
    """The status of one trial of a plan at ``now`` (ns). ``clock`` and ``duration`` in seconds, 0
    for no limit. ``verdict_words`` names what was waived. ``utilisation`` is None before any
    node-hours were available; ``over_time`` has its course. ``sub_phases`` are the stretches
    between its pauses and interruptions. ``excluded`` has nodes and reasons. ``criteria`` has the
    results of each criterion, the one on all its subjects first. ``held_back_by`` is what holds
    launches back now: gauges, blackouts, excluded nodes, tests that are stopped or cannot be
    built. ``held`` are the holds of people that last, ``actions`` is all that people did while it
    was under way. ``alongside`` are the components that it runs beside, ``node_hours`` are those
    that were available. ``node_shares`` has the planned and the achieved share of each test, None
    before any node-hours were available. ``reviews`` is what people said of runs, ``items`` are
    those of a checklist, whose state is ``awaited`` until each has its result. ``evidence`` are its
    documents, empty where they were not looked at."""

    tag: str
    plan: str
    component: str
    phase: str
    kind: str
    rehearsed: bool
    state: str
    verdict: OverallState
    verdict_words: str
    now: int
    clock: float
    duration: float
    nodes: int
    down: str
    utilisation: float | None
    over_time: list[tuple[float, float]]
    sub_phases: list[SubPhase]
    parts: list[TestStatus]
    alerts: list[OpenAlert]
    excluded: list[tuple[str, str]]
    criteria: list[list[Result]]
    held_back_by: list[Hold] = []
    held: list[OperatorAction] = []
    actions: list[OperatorAction] = []
    node_shares: NodeShares | None = None
    alongside: list[str] = []
    node_hours: float = 0.0
    reviews: list[RunReview] = []
    items: list[ItemStatus] = []
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
    holds = Holds(record.policy, cases)
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
    return history


def _accounts_of(record: Record, cases: Sequence[Case]) -> TrialHistory:
    machine, names = record.machine, node_names(record.machine)
    room, _ = shared_node(machine)
    if room or record.rehearsed:
        return TrialHistory(cases, record.policy, names, room)
    cores = max((kind.cores for kind in machine.nodes), default=0)
    return TrialHistory(cases, record.policy, names, cores=cores)


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
    note = unlearned_sums(record.tests, view.references.entries)
    results = [_with_note(each, note) for each in results]
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
        held=[] if history.over else list(history.held.values()),
        actions=history.actions,
        alongside=named_beside(component),
        node_hours=total.available / SECOND_NS / 3600,
    )


def _with_note(results: list[Result], note: str) -> list[Result]:
    """Return the results of a criterion; that on right answers with a note of what was not
    checked."""
    first, *rest = results
    if not note or first.criterion != "every_test":
        return results
    return [replace(first, why="; ".join(filter(None, (first.why, note)))), *rest]


def _state(component: Component, history: TrialHistory, driven: bool) -> str:
    if component.kind == "checklist" and not history.over:
        return AWAITED
    return history.state if driven or history.state != "running" else INTERRUPTED


def _kept_back(found: Status) -> list[Hold]:
    """Return the excluded nodes and stopped tests."""
    stopped = [(part.test, part.stopped) for part in found.parts if part.stopped]
    named = [("excluded", found.excluded), ("stopped", stopped)]
    return holds_of(found) + [
        Hold(kind=kind, what=what, text=f"{what}: {why}")
        for kind, each in named
        for what, why in each
    ]


def holds_of(found: Status) -> list[Hold]:
    """Return the holds of people."""
    return [
        Hold(kind="held", what=each.subject, text=_held_text(each), since=each.time)
        for each in found.held
    ]


def _held_text(action: OperatorAction) -> str:
    why = f": {action.reason}" if action.reason else ""
    return f"{action.subject}, by {action.by or 'a person'}{why}"


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
    return [copied(OpenAlert, told, times=times) for told, times in reversed(found)]


def _excluded(history: TrialHistory) -> list[tuple[str, str]]:
    """Return the excluded nodes, those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in history.excluded.items():
        by_reason.setdefault(why, []).append(name)
    return [(fold(sorted(names)), why) for why, names in by_reason.items()]
