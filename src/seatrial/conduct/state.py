"""What the conductor knows: a fold over events, so that recovery is to replay the journal.

What may start is kept by ``admission``, what is wanted by a demand (``once``, ``waves``, ``mix``).
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from seatrial.conduct.admission import Admission
from seatrial.conduct.answers import Answers
from seatrial.conduct.builds import Builds
from seatrial.conduct.clock import TrialClock
from seatrial.conduct.demand import Demand
from seatrial.conduct.flights import Counts, Flight
from seatrial.conduct.mix import Mix
from seatrial.conduct.nodes import NodeRecord
from seatrial.conduct.once import Once
from seatrial.conduct.policy import Entry, Limits, Policy
from seatrial.conduct.watch import Watchdogs
from seatrial.conduct.waves import Waves
from seatrial.journal.codes import CANCELLED, HUNG, PASS, Name, code_of
from seatrial.journal.events import Event
from seatrial.suite.model import Case
from seatrial.units import SECOND_NS


class State:
    """All that is known of one trial."""

    def __init__(
        self, tag: str, cases: Sequence[Case], limits: Limits, policy: Policy | None = None
    ) -> None:
        self.tag = tag
        self.cases = cases
        self.limits = limits
        self.policy = _whole(policy or Policy(), len(cases))
        self.index = {case.id: number for number, case in enumerate(cases)}
        self.in_flight: dict[str, Flight] = {}
        self.hung: dict[str, Flight] = {}  # those in flight that we end for that
        self.failures = 0
        self.finished = 0
        self.held = ""  # why nothing is launched
        self.cancelling = False
        self.abandoned = False
        self.clock = TrialClock()
        self.duration = self.policy.duration
        self.counts = Counts(self.policy.entries)
        self.admission = Admission(self.policy)
        self.answers = Answers(self.policy.entries)
        self.nodes = NodeRecord(self.policy.exclusion, self.policy.nodes)
        self.watchdogs = Watchdogs(self.policy)
        self.builds = Builds()
        self.demand: Demand = self._demand()
        self.wanted = self.demand.wanted
        self._attempts = [0] * len(cases)
        self.room = limits.room
        self.rejects: Counter[int] = Counter()
        for number, case in enumerate(cases):
            self._want(number, case.repeat)

    def _demand(self) -> Demand:
        if self.policy.kind == "sustained":
            return Mix(self.cases, self.policy)
        if self.policy.kind == "isolated_then_full":
            return Waves(self.cases, self.policy, self.limits.room, self.size)
        return Once(self.cases, self.size, plain=not _holds_back(self.policy))

    # ---- events in ------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold one event into the state. Events it does not decide by change nothing."""
        handler = _HANDLERS.get(event.event)
        if handler is not None:
            handler(self, event)

    def _on_build_start(self, event: Event) -> None:
        self.builds.start(event.alias)
        self.watchdogs.seen(event.time)

    def _on_build_end(self, event: Event) -> None:
        why = "" if event.value == 0 else (event.text or "the build failed")
        for number, runs in self.builds.end(event.alias, why):
            self._want(number, runs)
        self.watchdogs.seen(event.time)

    def _on_submit_start(self, event: Event) -> None:
        number = self.index.get(event.case)
        if number is None or event.run_id in self.in_flight:
            return
        entry, case = self.policy.entry_of[number], self.cases[number]
        self._take(number, event.stage)
        self.in_flight[event.run_id] = Flight(
            number,
            entry,
            self.size(number),
            case.nodes,
            event.time,
            event.target,
            event.stage,
        )
        self.room -= self.size(number)
        self.counts.launch(entry, case.nodes, event.target)
        self.admission.launch(entry, event)
        self.nodes.launched(entry)
        self._counted(entry, event.time)

    def _on_job_queued(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is not None and not flight.started:
            self.watchdogs.queued(event.run_id, flight.entry, event.time)

    def _on_job_start(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is not None:
            flight.on = event.nodes or flight.on
            if not flight.started and flight.holds_room:
                flight.started = event.time
                self.counts.start(flight.entry, flight.nodes)
                self.watchdogs.unqueued(event.run_id, event.time, started=True)
        self.watchdogs.seen(event.time)

    def _on_job_end(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is not None and flight.holds_room:
            flight.holds_room = False
            flight.ended = event.time
            flight.on = event.nodes or flight.on
            self.room += flight.size
            started = bool(flight.started)
            self.counts.end(flight.entry, flight.nodes, flight.target, started)
            self.watchdogs.unqueued(event.run_id, event.time, started=False)
            self._counted(flight.entry, event.time)

    def _on_check_end(self, event: Event) -> None:
        number = self.index.get(event.case)
        if number is None:
            return
        self._on_job_end(event)
        code = event.value if isinstance(event.value, int) else 0
        again = self.runs_again(number, event.run_id, code)
        flight = self.in_flight.pop(event.run_id, None)
        self.hung.pop(event.run_id, None)
        if flight is None:
            self._take(number, "")  # a run that was rejected before it was launched
        else:
            self._judged(number, flight, code, again, event.time)
        if again:
            self._want(number)
        else:
            self.finished += 1
            self.failures += code != PASS.number
            if self.too_many(self.failures) and not self.held:
                self.held = f"{self.failures} runs did not pass, the most that was allowed"

    def _judged(self, number: int, flight: Flight, code: int, again: bool, time: int) -> None:
        if again and code != CANCELLED.number:
            self.answers.made_good(number)
        if code == PASS.number:
            self.nodes.passed(flight)
        else:
            elsewhere = self.answers.answer(flight.entry, code) == "elsewhere"
            self.nodes.ended(flight, code_of(code).name, elsewhere, time)
        self.answers.verdict(flight.entry, code)
        seconds = max(0, flight.ended - flight.started) / SECOND_NS if flight.started else 0.0
        self.demand.ended(flight, seconds, again)

    def _on_start(self, event: Event) -> None:
        self.clock.go(event.time)
        self.admission.start = self.clock.start
        self.watchdogs.start(event.time)

    def _on_pause(self, event: Event) -> None:
        self.held = event.text or "paused"
        self.clock.stop(event.time)

    def _on_cancel(self, event: Event) -> None:
        self._on_pause(event)
        self.held = event.text or "cancelled"
        self.cancelling = True
        for flight in self.in_flight.values():
            flight.cancelled = True
        self.builds.restart()

    def _on_abandon(self, event: Event) -> None:
        self._on_cancel(event)
        self.abandoned = True

    def _on_resume(self, event: Event) -> None:
        if not self.abandoned:
            self.held = ""
            self.cancelling = False
        self.failures = 0  # those that a person has seen, and went on
        self.builds.restart()
        self._on_start(event)

    def _on_extend(self, event: Event) -> None:
        if isinstance(event.value, int | float) and self.duration:
            self.duration += event.value

    def _on_node_down(self, event: Event) -> None:
        self.nodes.fall(event.nodes, event.time)

    def _on_node_up(self, event: Event) -> None:
        self.nodes.rise(event.nodes)

    def _on_node_exclude(self, event: Event) -> None:
        self.nodes.exclude(event.nodes, event.text)

    def _on_node_admit(self, event: Event) -> None:
        self.nodes.admit(event.nodes)

    def _on_test_stop(self, event: Event) -> None:
        for number in self._entries(event.test):
            self.admission.stopped[number] = event.text

    def _on_test_admit(self, event: Event) -> None:
        for number in self._entries(event.test):
            self.admission.stopped.pop(number, None)
            self.answers.forgive(number)

    def _on_gauge(self, event: Event) -> None:
        self.admission.gauge(event)

    def _on_output_quiet(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is not None and self.policy.entries[flight.entry].end_quiet:
            flight.ended_for = HUNG.number
            self.hung[event.run_id] = flight

    def _on_alert(self, event: Event) -> None:
        self.watchdogs.told(event.alias, event.test, event.time)

    # ---- the parts of the state -----------------------------------------------------------

    def runs_again(self, number: int, run_id: str, code: int | float | str | None) -> bool:
        """Whether the case of a run runs again after this verdict: cancelled with the trial, it
        waits until that is resumed; what else is made good is the policy's word."""
        if code == CANCELLED.number:
            flight = self.in_flight.get(run_id)
            return flight is not None and flight.cancelled and not self.abandoned
        if self.policy.kind == "sustained" or not isinstance(code, int):
            return False
        entry = self.policy.entry_of[number]
        return self.answers.makes_good(number, entry, code, self.cases[number].repeat)

    def ended_for(self, run_id: str) -> int | None:
        """The verdict of a run that we end for a reason of its own."""
        flight = self.in_flight.get(run_id)
        return flight.ended_for if flight is not None else None

    def too_many(self, failures: int) -> bool:
        return 0 < self.limits.max_failures <= failures

    def size(self, number: int) -> int:
        """The room that a case takes: its cores on a shared node, at most the whole of it."""
        if not self.limits.room:
            return 0
        case = self.cases[number]
        cores = case.tasks_per_node * case.threads
        return self.limits.room if case.exclusive else min(cores, self.limits.room)

    def run_id(self, number: int, ahead: int = 0) -> str:
        """The id of a case's next run (or the one ``ahead`` of it): 12 letters and digits, unique
        among all trials as their tags are."""
        attempt = self._attempts[number] + ahead
        text = f"{self.tag}\n{self.cases[number].id}\n{attempt}"
        return base64.b32encode(hashlib.sha256(text.encode()).digest()[:8]).decode().lower()[:12]

    def entry_and_nodes(self, number: int) -> tuple[int, int]:
        return self.policy.entry_of[number], self.cases[number].nodes

    def _entries(self, test: str) -> Iterator[int]:
        return (n for n, entry in enumerate(self.policy.entries) if entry.name == test)

    def _counted(self, entry: int, time: int) -> None:
        self.watchdogs.seen(time)
        self.watchdogs.count(entry, self.counts.in_flight[entry], time)

    def _want(self, number: int, runs: int = 1) -> None:
        """Runs of the case are wanted: after its build, or at once, or never if that failed."""
        key = self.cases[number].build
        if not self.builds.done(key):
            self.builds.wait(key, number, runs)
        elif key and self.builds.why_failed[key]:
            self.rejects[number] += runs
        else:
            self.demand.ready(number, runs)

    def _take(self, number: int, stage: str) -> None:
        """A wanted run has begun."""
        self._attempts[number] += 1
        if self.rejects[number] > 0:
            self.rejects[number] -= 1
            if not self.rejects[number]:
                del self.rejects[number]
        else:
            self.demand.launched(number, stage)


def _whole(policy: Policy, cases: int) -> Policy:
    """The policy with an entry for every case."""
    if policy.entries:
        return policy
    from msgspec.structs import replace

    return replace(policy, entries=[Entry(name="")], entry_of=[0] * cases)


def _holds_back(policy: Policy) -> bool:
    """Whether anything but room can hold a launch back."""
    gates = policy.caps.machine or policy.targets or policy.stagger or policy.throttles
    own = any(e.most or e.file_system or e.stop_after for e in policy.entries)
    return bool(gates or own or policy.blackouts)


_HANDLERS: dict[str, Callable[[State, Event], None]] = {
    Name.BUILD_START: State._on_build_start,
    Name.BUILD_END: State._on_build_end,
    Name.SUBMIT_START: State._on_submit_start,
    Name.JOB_QUEUED: State._on_job_queued,
    Name.JOB_START: State._on_job_start,
    Name.JOB_END: State._on_job_end,
    Name.CHECK_END: State._on_check_end,
    Name.TRIAL_START: State._on_start,
    Name.TRIAL_PAUSE: State._on_pause,
    Name.TRIAL_CANCEL: State._on_cancel,
    Name.TRIAL_ABANDON: State._on_abandon,
    Name.TRIAL_RESUME: State._on_resume,
    Name.TRIAL_EXTEND: State._on_extend,
    Name.NODE_DOWN: State._on_node_down,
    Name.NODE_UP: State._on_node_up,
    Name.NODE_EXCLUDE: State._on_node_exclude,
    Name.NODE_ADMIT: State._on_node_admit,
    Name.TEST_STOP: State._on_test_stop,
    Name.TEST_ADMIT: State._on_test_admit,
    Name.GAUGE: State._on_gauge,
    Name.OUTPUT_QUIET: State._on_output_quiet,
    Name.ALERT: State._on_alert,
}
