"""The history of a trial: the fold of its events, for criteria and for people.

    history = TrialHistory(cases, policy, node_names(machine))
    for event in journal: history.apply(event)
    history.fold(events)                       # the same for many
    history.runs[0].code, history.clock(now), history.downs

It depends on the events alone: it has no clock, and the pieces in which a journal comes do not
matter. Times are in ns, None where there is none yet. ``results.utilisation`` computes what
follows over time.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.decide.policy_change import differences, followed
from seatrial.execute.plan.component import Ticks
from seatrial.execute.trial_folder import corrected
from seatrial.journal import events
from seatrial.journal.trial import RunLife, RunState, Trial, end_by
from seatrial.judge.references import References
from seatrial.model import codes
from seatrial.model.figures import ELAPSED
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.plan import ChecklistItem
from seatrial.model.policy import Policy
from seatrial.model.test import Case
from seatrial.units import SECOND_NS

NO_ENTRY = -1
_PASS = codes.PASS.number
RIGHT = (_PASS, codes.PERFORMANCE.number)


class RecordedMetric(NamedTuple):
    """A figure of merit of a run."""

    value: float
    unit: str
    better: str


class RunHistory(RunLife, kw_only=True):
    """The life of one run, with its figures. ``case`` and ``entry`` are positions (``NO_ENTRY``:
    none), ``size`` is its number of nodes."""

    id: str
    case: int
    entry: int
    size: int
    figures: dict[str, RecordedMetric] | None = None

    @property
    def over(self) -> bool:
        """Whether it has its verdict."""
        return self.judged is not None

    @property
    def in_flight(self) -> bool:
        """Whether it was submitted, and its job has not ended."""
        return RunState.SUBMITTED <= self.state < RunState.ENDED

    @property
    def is_excluded(self) -> bool:
        """Whether both sides agreed that criteria leave it out."""
        return self.review is not None and self.review.is_excluded == 1

    @property
    def passed(self) -> bool:
        return self.code == _PASS

    @property
    def right(self) -> bool:
        """Whether its answer was right: it passed, or was merely slow."""
        return self.code in RIGHT

    def figure(self, metric: str) -> RecordedMetric | None:
        """Return a figure of merit; ``elapsed`` is the time of its script where the test gives none
        of that name."""
        found = (self.figures or {}).get(metric)
        if found is not None or metric != ELAPSED or self.elapsed is None:
            return found
        return RecordedMetric(self.elapsed, "s", "lower")

    def held_nodes(self, now: int) -> tuple[int, int] | None:
        """Return from when to when (ns) it held its nodes, to ``now`` while it does; None if it
        never did."""
        start, script = self.job_started, self.script_started
        if start is None or (script is not None and script < start):
            start = script  # the scheduler's word may come late
        if start is None:
            return None
        end = self._end_of_hold(now)
        return start, (end if end > start else start)

    def _end_of_hold(self, now: int) -> int:
        """Return when it gave its nodes back (ns); ``now`` while it has them."""
        end, script_end = self.job_ended, self.script_ended
        if end is not None:
            return end if script_end is None or script_end < end else script_end
        if self.judged is None:
            return now
        return self.judged if script_end is None else script_end

    def script(self, held: tuple[int, int]) -> tuple[int, int]:
        """Return from when to when (ns) its script ran, of a run that held its nodes for that long.
        If the job recorded no times of its script, all of that time counts as script."""
        start, end = self.script_started, self.script_ended
        if start is None:
            return held
        if end is None or end < start:
            end = held[1]
        return start, (end if end > start else start)

    def waited(self, held: tuple[int, int] | None, now: int) -> tuple[int, int] | None:
        """Return from when to when (ns) it was queued, of a run that held its nodes for that long;
        None if it never was."""
        start = self.queued if self.queued is not None else self.submitted
        if start is None:
            return None
        if held is not None:
            return start, (held[0] if held[0] > start else start)
        ends = [time for time in (self.job_ended, self.judged) if time is not None]
        return start, max(start, min(ends, default=now))


class PolicySpan(Struct, frozen=True):
    """A policy of the trial, and from when (ns) it holds; 0: from its begin."""

    start: int
    policy: Policy


class TrialHistory(Trial[RunHistory]):
    """The fold of a trial, with its cases, its policies and its figures. ``nodes`` are the nodes
    that the trial has. Events of other nodes do not count. ``policy`` is the one that holds now,
    ``policies`` are all in the order of time. Runs are in the order of their creation. ``room`` is
    the cores of a host whose cores runs share, 0 where a scheduler gives nodes; ``cores`` is the
    cores of its largest node, 0 where runs never share one."""

    def __init__(
        self,
        cases: Sequence[Case],
        policy: Policy,
        nodes: Iterable[str],
        room: int = 0,
        cores: int = 0,
    ) -> None:
        self.names = frozenset(nodes)
        super().__init__(self._begin_run, policy.duration, self.names)
        self.cases = cases
        self.policy = policy
        self.policies = [PolicySpan(0, policy)]
        self.actions: list[OperatorAction] = []  # of people
        self.room = room
        self._cores = cores
        self.nodes = len(self.names)
        self.machine_nodes = (
            0  # of the whole machine, which the trial may have a part of; 0: unknown
        )
        self.bits = NodeBits(self.names)
        self.runs: list[RunHistory] = []
        self.references: References | None = None  # that people judged it again by
        self.items: Sequence[ChecklistItem] = ()  # of a checklist
        self.ticks = Ticks()
        #: the seconds that each gauge may take from a reading to the next
        self.gauge_holds: Mapping[str, float] = {}
        self.damaged = 0  # lines of its journal that cannot be read
        self._index = {case.id: number for number, case in enumerate(cases)}

    def apply(self, event: events.Event) -> bool:
        """Fold one event. Return whether it says anything of a run or of the trial."""
        if type(event) is events.PolicyChanged:
            self._note_action(event)  # by the policy before it
            return self._follow_policy(event)
        if not super().apply(event) and event.run_id:
            return False  # of a run of another trial
        if event.action:
            self._note_action(event)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        return True

    def fold(self, block: Iterable[events.Event]) -> None:
        """Fold many events."""
        for event in block:
            self.apply(event)

    def clock(self, now: int) -> float:
        """Return the seconds that the trial has run, pauses not counted, up to its duration if it
        has one: jobs may end later."""
        ran = sum(max(0, end_by(span.end, now) - span.start) for span in self.spans) / SECOND_NS
        return min(ran, self.duration) if self.duration else ran

    def window(self, now: int) -> list[tuple[int, int]]:
        """Return the spans (ns) in which the clock ran, to ``now`` and within the trial's
        duration."""
        left = round(self.duration * SECOND_NS) if self.duration else 1 << 62
        spans = []
        for span in self.spans:
            end = min(end_by(span.end, now), span.start + left)
            if end > span.start:
                spans.append((span.start, end))
                left -= end - span.start
        return spans

    def policy_at(self, time: int) -> Policy:
        """Return the policy that held at a time (ns)."""
        return next(span.policy for span in reversed(self.policies) if span.start <= time)

    def test_of(self, run: RunHistory) -> str:
        return self.cases[run.case].test

    def can_share(self, case: int) -> bool:
        """Return whether runs of a case leave cores of their nodes to others."""
        about = self.cases[case]
        return not about.exclusive and about.tasks_per_node * about.threads < self._cores

    def part_of_node(self, run: RunHistory) -> float:
        """Return how many nodes a run has; a part of one on a host whose cores runs share."""
        if not self.room:
            return run.size
        about = self.cases[run.case]
        cores = self.room if about.exclusive else about.tasks_per_node * about.threads
        return min(1.0, cores / self.room)

    # ---- events ---------------------------------------------------------------------------

    def _begin_run(self, event: events.RunEvent) -> RunHistory | None:
        """Return the run that an event begins; None of another trial's, and where people speak of
        a run that there is not."""
        number = self._index.get(event.case)
        if number is None or event.is_late:
            return None
        of = self.policy.entry_of
        entry = of[number] if number < len(of) else NO_ENTRY
        run = RunHistory(
            id=event.run_id,
            case=number,
            entry=entry,
            size=self.cases[number].nodes,
            created=event.time,
        )
        self.runs.append(run)
        return run

    def _follow_policy(self, event: events.PolicyChanged) -> bool:
        changed = followed(self.policy, event.parts)
        if changed is self.policy:
            self.last = max(self.last, event.time)
            return False
        super().apply(event)
        self.policy = changed
        self.policies.append(PolicySpan(event.time, changed))
        return True

    def _note_action(self, event: events.Event) -> None:
        if (action := action_of(event, self.policy)) is not None:
            self.actions.append(action)

    def _on_metric(self, event: events.MetricRecorded) -> None:
        run, value = self.runs_by_id.get(event.run_id), events.finite(event.value)
        if run is not None and value is not None:
            figure = RecordedMetric(value, event.unit, event.better)
            run.figures = {**(run.figures or {}), event.metric: figure}

    def _follow_references(self, event: events.ReferencesCorrected) -> None:
        self.references = corrected(event) or self.references

    def _on_ticked(self, event: events.ItemTicked) -> None:
        self.ticks.apply(event)


#: Of the kinds of which it keeps more than the fold of a trial does.
_HANDLERS: dict[type[events.Event], Callable[[TrialHistory, Any], None]] = {
    events.MetricRecorded: TrialHistory._on_metric,
    events.ReferencesCorrected: TrialHistory._follow_references,
    events.ItemTicked: TrialHistory._on_ticked,
}


# ---- node bits -----------------------------------------------------------------------------------
#
# The nodes of a trial as bits of whole numbers, so that sets of thousands are compared at once.
#
#     bits = NodeBits(names)
#     bits.of("n[001-128]") & bits.of("n[100-200]")


MAX_KNOWN = 20_000  # node sets whose bits are kept

_ROWS = re.compile(r"([A-Za-z0-9._-]*?)\[([0-9,-]+)\]")
_NUMBERED = re.compile(r"(.*?)([0-9]+)")


class NodeBits:
    """The nodes of a trial, each as a bit of a whole number, in the order of their names."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = sorted(names)
        self._position = {name: number for number, name in enumerate(self.names)}
        self._row: list[int] = []  # where the consecutive numbers begin that a node is one of
        self._known: dict[str, int] = {}
        self._spans: dict[str, dict[str, int]] = {}
        before: tuple[str, int, int] | None = None
        for number, name in enumerate(self.names):
            match = _NUMBERED.fullmatch(name)
            now = (match[1], len(match[2]), int(match[2])) if match else None
            follows = now and before and (now[0], now[1], now[2] - 1) == before
            self._row.append(self._row[-1] if follows else number)
            before = now

    def of(self, folded: str) -> int:
        """Return the bits of a node set that a scheduler wrote, without nodes of other trials."""
        bits = self._known.get(folded)
        if bits is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
                self._spans.clear()
            bits = self._known[folded] = self._bits(folded)
        return bits

    def _bits(self, folded: str) -> int:
        if len(self.names) == 1:  # a host may know itself by another name
            return 1
        position = self._position.get(folded)
        if position is not None:
            return 1 << position
        match = _ROWS.fullmatch(folded)
        bits = self._of_spans(match[1], match[2]) if match else None
        return self.of_names(unfold_or_empty(folded)) if bits is None else bits

    def of_names(self, names: Iterable[str]) -> int:
        """Return the bits of these nodes, without those that the trial does not have."""
        bits = 0
        for name in names:
            if (position := self._position.get(name)) is not None:
                bits |= 1 << position
        return bits

    def _of_spans(self, stem: str, spans: str) -> int | None:
        """Return the bits of ``001-128,200``; None if they are not rows of known nodes."""
        bits, known = 0, self._spans.setdefault(stem, {})
        for span in spans.split(","):
            if (row := known.get(span)) is None:
                row = known[span] = self._of_row(stem, span)
            if not row:
                return None
            bits |= row
        return bits

    def _of_row(self, stem: str, span: str) -> int:
        """Return the bits of ``001-128``; 0 if it is not a row of known nodes."""
        first, _, last = span.partition("-")
        low = self._position.get(stem + first)
        high = self._position.get(stem + last) if last else low
        if low is None or high is None or self._row[low] != self._row[high] or high < low:
            return 0
        return ((1 << (high - low + 1)) - 1) << low

    def names_in(self, bits: int) -> Iterator[str]:
        """Yield the names of the nodes of these bits."""
        while bits:
            lowest = bits & -bits
            yield self.names[lowest.bit_length() - 1]
            bits ^= lowest


# ---- what people did -----------------------------------------------------------------------------
#
# What people did to a trial while it was under way: who, when, why, and what.
#
# action_of(event, policy)        # None for what nobody asked for


class OperatorAction(Struct, frozen=True, kw_only=True):
    """What a person did. ``time`` is in ns; ``by`` is "" where a version before 0.2 recorded no
    name. ``action`` is one word, as of the command; ``subject`` is the test, nodes or run that it
    is about, "" for the trial; ``changes`` are the values that a change made others."""

    time: int
    by: str
    action: str
    subject: str
    reason: str
    changes: list[str] = []

    @property
    def text(self) -> str:
        """What was done, in words."""
        return " ".join(filter(None, (self.action, self.subject)))


def action_of(event: events.Event, policy: Policy) -> OperatorAction | None:
    """Return what a person did by an event, under the policy before it; None for other events."""
    if not event.action or (event.is_also_automatic and not event.by):
        return None
    changes: list[str] = []
    if isinstance(event, events.PolicyChanged):
        changes = [str(each) for each in differences(policy, event.parts)]
    return OperatorAction(
        time=event.time,
        by=event.by,
        action=event.action,
        subject=event.acted_on,
        reason=event.reason,
        changes=changes,
    )


# ---- planned outages -----------------------------------------------------------------------------
#
# Planned outages: spans of time that no criterion counts, of all nodes or of some.


Span = tuple[int, int]


class PlannedOutage(Struct, frozen=True):
    """A span of time in which nodes are planned to be out: ``names``, or all nodes if that is
    empty. ``size`` is their number. No two of them overlap."""

    start: int
    end: int
    names: frozenset[str]
    size: int


def outages_of(history: TrialHistory) -> list[PlannedOutage]:
    """Return the planned outages, cut so that no two overlap."""
    windows = list(_windows(history))
    edges = sorted({edge for start, end, _ in windows for edge in (start, end)})
    found = []
    for start, end in pairwise(edges):
        covering = [names for begin, stop, names in windows if begin <= start and end <= stop]
        if not covering:
            continue
        if all(covering):
            names = frozenset[str]().union(*covering)
            found.append(PlannedOutage(start, end, names, len(names)))
        else:
            found.append(PlannedOutage(start, end, frozenset(), history.nodes))
    return found


def _windows(history: TrialHistory) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the planned outages as the policy has them: start, end, and nodes, none for all."""
    for window in history.policy.outages:
        start, end = window.span(history.start or 0)
        names = frozenset(history.names.intersection(unfold_or_empty(window.nodes)))
        if end > start and (names or not window.nodes):
            yield start, end, names


def whole_outages(history: TrialHistory) -> list[Span]:
    """Return the spans in which all nodes are in a planned outage."""
    return [(each.start, each.end) for each in outages_of(history) if not each.names]


def outside(node: str, start: int, end: int, outages: Iterable[PlannedOutage]) -> Iterator[Span]:
    """Return the parts of a span that are in no planned outage of the node."""
    for outage in outages:  # in the order of time
        if outage.names and node not in outage.names:
            continue
        if outage.start < end and outage.end > start:
            if outage.start > start:
                yield start, outage.start
            start = max(start, outage.end)
    if end > start:
        yield start, end
