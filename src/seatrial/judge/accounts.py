"""The accounts of a trial: what its events come to, for criteria and for people.

    accounts = Accounts(cases, policy, nodes=1920)
    for event in journal: accounts.apply(event)
    accounts.fold(events)                       # the same for many
    accounts.runs[0].code, accounts.clock(now), accounts.downs

A fold over events and nothing else: it has no clock, and gives the same whatever pieces a journal
comes in. Times are in ns, NEVER where there is none yet. What comes of them over time is in
``judge.timeline``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from seatrial.conduct.policy import Policy
from seatrial.journal import codes
from seatrial.journal.codes import Name
from seatrial.journal.events import Event
from seatrial.machine.facts import unfold_or_empty
from seatrial.suite.model import Case
from seatrial.units import SECOND_NS

NEVER = -1


class Figure(NamedTuple):
    """A figure of merit of a run."""

    value: float
    unit: str
    better: str


class Run:
    """One run. ``case`` and ``entry`` are positions; ``size`` is its number of nodes, ``nodes``
    their names if known. ``submitted``, ``queued``, ``started`` and ``ended`` are of its job,
    ``began`` and ``left`` of its script, ``judged`` of its verdict."""

    __slots__ = (
        *("again", "began", "case", "code", "ended", "entry", "figures", "id", "judged", "left"),
        *("nodes", "queued", "size", "stage", "started", "submitted", "target"),
    )

    def __init__(self, run_id: str, case: int, entry: int, size: int) -> None:
        self.id = run_id
        self.case = case
        self.entry = entry
        self.size = size
        self.submitted = self.queued = self.started = self.ended = NEVER
        self.began = self.left = self.judged = NEVER
        self.code = codes.PENDING.number
        self.again = False
        self.target = self.stage = self.nodes = ""
        self.figures: dict[str, Figure] | None = None

    @property
    def over(self) -> bool:
        """Whether it has its verdict."""
        return self.judged != NEVER

    @property
    def passed(self) -> bool:
        return self.code == codes.PASS.number

    @property
    def right(self) -> bool:
        """Whether its answer was right: it passed, or was merely slow."""
        return self.code in RIGHT

    @property
    def elapsed(self) -> float | None:
        """Seconds of its script."""
        if self.began == NEVER or self.left < self.began:
            return None
        return (self.left - self.began) / SECOND_NS

    def on_nodes(self, now: int) -> tuple[int, int] | None:
        """From when to when it held its nodes, to ``now`` while it does; None if it never did."""
        start = self.started if self.started != NEVER else self.began
        if start == NEVER:
            return None
        if NEVER < self.began < start:
            start = self.began  # the scheduler's word came late
        if self.ended == NEVER and self.judged == NEVER:
            return start, max(start, now)
        end = max(self.ended, self.left)
        return start, max(start, end if end != NEVER else self.judged)

    def script(self, held: tuple[int, int]) -> tuple[int, int]:
        """From when to when its script ran, of a run that held its nodes for that long. A job that
        told nothing of it is taken for all script."""
        began = self.began
        if began == NEVER:
            return held
        return began, max(began, self.left if self.left >= began else held[1])

    def waited(self, held: tuple[int, int] | None, now: int) -> tuple[int, int] | None:
        """From when to when it was queued, of a run that held its nodes for that long; None if it
        never was."""
        begin = self.queued if self.queued != NEVER else self.submitted
        if begin == NEVER:
            return None
        if held is None:
            ends = [time for time in (self.ended, self.judged) if time != NEVER]
            return begin, max(begin, min(ends, default=now))
        return begin, max(begin, held[0])


RIGHT = frozenset((codes.PASS.number, codes.PERFORMANCE.number))


class Down(NamedTuple):
    """A node was down from a time to another; ``end`` is NEVER while it is."""

    node: str
    start: int
    end: int


class Told(NamedTuple):
    """An alert; ``over``: that what was told before of its subject has passed."""

    time: int
    kind: str
    subject: str
    text: str
    over: bool = False


class Accounts:
    """The fold. ``nodes`` are the nodes that the trial has, by name or number; what happens to
    others is not counted. Runs are in the order in which they were made."""

    def __init__(self, cases: Sequence[Case], policy: Policy, nodes: int | Collection[str]) -> None:
        self.cases = cases
        self.policy = policy
        self.names = None if isinstance(nodes, int) else frozenset(nodes)
        self.nodes = nodes if isinstance(nodes, int) else len(nodes)
        self.runs: list[Run] = []
        self.alerts: list[Told] = []
        self.excluded: dict[str, str] = {}  # nodes that get no more runs, and why
        self.stopped: dict[str, str] = {}  # tests that are launched no more, and why
        self.spans: list[tuple[int, int]] = []  # when the clock ran; the last end may be NEVER
        self.duration = policy.duration  # seconds, with what it was extended by; 0: no limit
        self.ended = self.abandoned = False
        self.state = "new"
        self.ended_for = ""  # why it ended for good before its time
        self.last = NEVER
        self._by_id: dict[str, Run] = {}
        self._index = {case.id: number for number, case in enumerate(cases)}
        self._down: dict[str, int] = {}
        self._downs: list[Down] = []

    def apply(self, event: Event) -> None:
        """Fold one event."""
        self.fold((event,))

    def fold(self, events: Iterable[Event]) -> None:
        """Fold many events."""
        handlers = _HANDLERS
        for event in events:
            if event.time > self.last:
                self.last = event.time
            handler = handlers.get(event.event)
            if handler is not None:
                handler(self, event)

    # ---- what it has ----------------------------------------------------------------------

    @property
    def start(self) -> int:
        """When the trial began."""
        return self.spans[0][0] if self.spans else NEVER

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.ended or self.abandoned

    @property
    def downs(self) -> list[Down]:
        """When nodes were down."""
        return [*self._downs, *(Down(name, since, NEVER) for name, since in self._down.items())]

    def clock(self, now: int) -> float:
        """Seconds that the trial has run, pauses not counted."""
        return self.clock_ns(now) / SECOND_NS

    def clock_ns(self, now: int) -> int:
        return sum(
            max(0, min(now, end if end != NEVER else now) - start) for start, end in self.spans
        )

    def window(self, now: int) -> list[tuple[int, int]]:
        """The spans in which the clock ran, to ``now`` and within the trial's duration."""
        left = round(self.duration * SECOND_NS) if self.duration else 1 << 62
        found = []
        for start, end in self.spans:
            end = min(now if end == NEVER else min(end, now), start + left)
            if end > start:
                found.append((start, end))
                left -= end - start
        return found

    def test_of(self, run: Run) -> str:
        return self.cases[run.case].test

    # ---- events ---------------------------------------------------------------------------

    def _run(self, event: Event) -> Run | None:
        run = self._by_id.get(event.run_id)
        if run is None:
            number = self._index.get(event.case)
            if number is None or not event.run_id:
                return None
            of = self.policy.entry_of
            entry = of[number] if number < len(of) else NEVER
            run = Run(event.run_id, number, entry, self.cases[number].nodes)
            self._by_id[event.run_id] = run
            self.runs.append(run)
        return run

    def _on_made(self, event: Event) -> None:
        self._run(event)

    def _on_submit(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            run.submitted = event.time
            run.target = event.target
            run.stage = event.stage

    def _on_queued(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            run.queued = event.time

    def _on_start(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            run.started = event.time
            run.nodes = event.nodes or run.nodes

    def _on_script(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            run.began = max(run.began, event.time)
            run.nodes = event.nodes or run.nodes

    def _on_script_end(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            run.left = max(run.left, event.time)

    def _on_job_end(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            run.ended = event.time

    def _on_verdict(self, event: Event) -> None:
        if (run := self._run(event)) is not None:
            code = event.value
            run.code = int(code) if isinstance(code, int | float) else codes.CHECK_ERROR.number
            run.judged = event.time
            run.again = event.again

    def _on_metric(self, event: Event) -> None:
        value = event.value
        run = self._run(event)
        if run is not None and isinstance(value, int | float) and abs(value) < float("inf"):
            figure = Figure(float(value), event.unit, event.better)
            run.figures = {**(run.figures or {}), event.alias: figure}

    def _on_go(self, event: Event) -> None:
        self.state, self.ended, self.abandoned = "running", False, False
        if not self.spans or self.spans[-1][1] != NEVER:
            self.spans.append((event.time, NEVER))

    def _on_stop(self, event: Event) -> None:
        if self.spans and self.spans[-1][1] == NEVER:
            start = self.spans[-1][0]
            self.spans[-1] = (start, max(start, event.time))
        if event.event == Name.TRIAL_END:
            self.ended, self.ended_for = True, event.text
        self.abandoned = self.abandoned or event.event == Name.TRIAL_ABANDON
        if self.abandoned:
            self.state = "abandoned"
        elif self.state != "cancelled":
            self.state = "ended" if self.ended else "paused"

    def _on_cancel(self, event: Event) -> None:
        self._on_stop(event)  # the clock stops
        self.state = "cancelled"

    def _on_extend(self, event: Event) -> None:
        if isinstance(event.value, int | float) and self.duration:
            self.duration += event.value
            self.ended_for = ""

    def _on_alert(self, event: Event) -> None:
        over = event.value == 0
        self.alerts.append(Told(event.time, event.alias, event.test, event.text, over))

    def _on_down(self, event: Event) -> None:
        for name in self._ours(event.nodes):
            self._down.setdefault(name, event.time)

    def _on_up(self, event: Event) -> None:
        for name in self._ours(event.nodes):
            since = self._down.pop(name, None)
            if since is not None:
                self._downs.append(Down(name, since, max(since, event.time)))

    def _on_exclude(self, event: Event) -> None:
        self.excluded.update((name, event.text) for name in self._ours(event.nodes))

    def _on_admit(self, event: Event) -> None:
        for name in self._ours(event.nodes):
            self.excluded.pop(name, None)

    def _on_test_stop(self, event: Event) -> None:
        self.stopped[event.test] = event.text

    def _on_test_admit(self, event: Event) -> None:
        self.stopped.pop(event.test, None)

    def _ours(self, folded: str) -> Iterable[str]:
        """Those of a node set that the trial has."""
        names = unfold_or_empty(folded)
        return names if self.names is None else [name for name in names if name in self.names]


_HANDLERS: dict[str, Callable[[Accounts, Event], None]] = {
    str(name): handler
    for name, handler in {
        Name.LOGGING_START: Accounts._on_made,
        Name.SUBMIT_START: Accounts._on_submit,
        Name.JOB_QUEUED: Accounts._on_queued,
        Name.JOB_START: Accounts._on_start,
        Name.BINARY_EXECUTE_START: Accounts._on_script,
        Name.BINARY_EXECUTE_END: Accounts._on_script_end,
        Name.JOB_END: Accounts._on_job_end,
        Name.CHECK_END: Accounts._on_verdict,
        Name.METRIC: Accounts._on_metric,
        Name.TRIAL_START: Accounts._on_go,
        Name.TRIAL_RESUME: Accounts._on_go,
        Name.TRIAL_PAUSE: Accounts._on_stop,
        Name.TRIAL_END: Accounts._on_stop,
        Name.TRIAL_ABANDON: Accounts._on_stop,
        Name.TRIAL_CANCEL: Accounts._on_cancel,
        Name.TRIAL_EXTEND: Accounts._on_extend,
        Name.ALERT: Accounts._on_alert,
        Name.NODE_DOWN: Accounts._on_down,
        Name.NODE_UP: Accounts._on_up,
        Name.NODE_EXCLUDE: Accounts._on_exclude,
        Name.NODE_ADMIT: Accounts._on_admit,
        Name.TEST_STOP: Accounts._on_test_stop,
        Name.TEST_ADMIT: Accounts._on_test_admit,
    }.items()
}
