"""What the conductor knows: a fold over events, so that recovery is to replay the journal.

What may start is kept by ``admission``, what is wanted by a demand (``once``, ``waves``, ``mix``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from seatrial.conduct.admission import Admission, shapes_of
from seatrial.conduct.builds import BuildTracker
from seatrial.conduct.clock import TrialClock
from seatrial.conduct.commands import RECALLED
from seatrial.conduct.demand import Demand
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight
from seatrial.conduct.mix import Mix
from seatrial.conduct.nodes import NodeRecord
from seatrial.conduct.once import Once
from seatrial.conduct.policy import Limits, Policy, whole
from seatrial.conduct.retry_policy import RetryPolicy
from seatrial.conduct.run_ids import run_id_of
from seatrial.conduct.watchdogs import Watchdogs, dues_of
from seatrial.conduct.waves import Waves
from seatrial.journal.codes import CANCELLED, HUNG, PASS, Name, code_of
from seatrial.journal.events import Event
from seatrial.suite.model import Case
from seatrial.units import SECOND_NS


class ConductorState:
    """All that is known of one trial. ``changed`` is set by every event after which there may be
    something else to decide; a driver that has asked may set it back, and need not ask again before
    it is set or the time of a ``Wake`` has come. (What a launch changes was decided with it.)"""

    def __init__(
        self, tag: str, cases: Sequence[Case], limits: Limits, policy: Policy | None = None
    ) -> None:
        self.tag = tag
        self.cases = cases
        self.limits = limits
        self.policy = whole(policy or Policy(), len(cases))
        self.index = {case.id: number for number, case in enumerate(cases)}
        self.changed = True
        self.shapes = shapes_of(cases, self.policy, limits.room)
        self.in_flight: dict[str, RunInFlight] = {}
        self.queued: dict[str, RunInFlight] = {}  # those of them that have not started
        self.hung: dict[str, RunInFlight] = {}  # those in flight that we end for that
        self.failures = 0
        self.finished = 0
        self.held = ""  # why nothing is launched
        self.cancelling = False
        self.abandoned = False
        self.clock = TrialClock()
        self.duration = self.policy.duration
        self.over_at: int | None = None  # from when on its time is up
        self.counts = InFlightCounts(self.policy.entries)
        self.admission = Admission(self.policy)
        self.retry_policy = RetryPolicy(self.policy.entries, self.policy.kind == "sustained")
        self.nodes = NodeRecord(self.policy.exclusion, self.policy.nodes)
        self.watchdogs = Watchdogs(
            self.policy, dues_of(cases, self.shapes, self.policy, limits.room)
        )
        self.builds = BuildTracker()
        self.demand: Demand = self._demand()
        self.wanted = self.demand.wanted
        self._attempts = [0] * len(cases)
        self.room = limits.room
        self.rejects: dict[int, int] = {}  # case -> runs that are wanted and cannot start
        for number, case in enumerate(cases):
            if case.build:
                self.builds.wait(case.build, number)
            else:
                self.demand.ready(number)

    def _demand(self) -> Demand:
        cases, policy, shapes = self.cases, self.policy, self.shapes
        if policy.kind == "sustained":
            return Mix(cases, policy, shapes, bool(self.limits.room))
        if policy.kind == "isolated_then_full":
            return Waves(cases, policy, self.limits.room, self.limits.jobs, shapes)
        return Once(cases, shapes, grouped=len(policy.entries) > 1 or policy.nodes > 0)

    # ---- events in ------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold one event into the state. Events it does not decide by change nothing."""
        handler = _HANDLERS.get(event.event)
        if handler is not None:
            handler(self, event)
        elif event.run_id:
            self.watchdogs.seen(event.time)

    def _on_build_start(self, event: Event) -> None:
        self.builds.start(event.alias)
        self.watchdogs.seen(event.time)
        self.changed = True

    def _on_build_end(self, event: Event) -> None:
        why = "" if event.value == 0 else (event.text or "the build failed")
        for number in self.builds.end(event.alias, why):
            if why:
                self.rejects[number] = self.demand.runs_of(number)
            else:
                self.demand.ready(number)
        self.watchdogs.seen(event.time)
        self.changed = True

    def _on_submit_start(self, event: Event) -> None:
        number = self.index.get(event.case)
        if number is None or event.run_id in self.in_flight:
            return
        entry, nodes, size, width = self.shapes[number]
        self._attempts[number] += 1
        self.demand.launched(number, event.stage)
        self.in_flight[event.run_id] = self.queued[event.run_id] = flight = RunInFlight(
            number, entry, size, nodes, width, event.time, event.target, event.stage
        )
        self.room -= size
        self.counts.launch(entry, width, event.target)
        self.admission.launch(entry, event)
        flight.away = self.nodes.launched(number)
        flight.exclusions = self.nodes.exclusions
        self._counted(entry, event.time)

    def _on_job_queued(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        self.watchdogs.seen(event.time)
        if flight is not None and not flight.started and flight.holds_room:
            oldest = self.watchdogs.queued(event.run_id, flight.entry, event.time)
            self.changed = self.changed or oldest

    def _on_job_start(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        self.watchdogs.seen(event.time)
        if flight is None:
            return
        flight.on = event.nodes or flight.on
        if not flight.started and flight.holds_room:
            flight.started = event.time
            self.queued.pop(event.run_id, None)
            self.counts.start(flight.width)
            self.watchdogs.unqueued(event.run_id, event.time, started=True)
            self.changed = True

    def _on_job_end(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is not None and flight.holds_room:
            flight.holds_room = False
            flight.ended = event.time
            self.queued.pop(event.run_id, None)
            if event.alias == RECALLED and not flight.started:
                flight.recalled = True
                self.nodes.recalled(flight.case, flight.away)
            flight.on = event.nodes or flight.on
            self.room += flight.size
            self.counts.end(flight.entry, flight.width, flight.target, bool(flight.started))
            self.watchdogs.unqueued(event.run_id, event.time, started=False)
            self._counted(flight.entry, event.time)
            self.changed = True

    def _on_script(self, event: Event) -> None:
        """A run's own word of its script: all there is of a job that nobody saw start."""
        self.watchdogs.seen(event.time)
        flight = self.in_flight.get(event.run_id)
        if flight is None or flight.started:
            return
        if event.event == Name.BINARY_EXECUTE_START:
            flight.began = event.time
        else:
            flight.left = event.time

    def _on_check_end(self, event: Event) -> None:
        number = self.index.get(event.case)
        if number is None:
            return
        self._on_job_end(event)
        self.watchdogs.seen(event.time)
        code = event.value if isinstance(event.value, int) else 0
        again = self.runs_again(number, event.run_id, code)
        flight = self.in_flight.pop(event.run_id, None)
        if flight is not None:
            if self.hung:
                self.hung.pop(event.run_id, None)
            self._judged(number, flight, code, again, event)
        elif not self._rejected(number):
            return  # it is known neither as a run nor as one that could not start
        self.changed = True
        if not again:
            self.finished += 1
            self.failures += code != PASS.number
            if self.too_many(self.failures) and not self.held:
                self.held = f"{self.failures} runs did not pass, the most that was allowed"

    def _rejected(self, number: int) -> bool:
        """A run that could not start has its verdict; False if none was wanted."""
        left = self.rejects.pop(number, 0) - 1
        if left > 0:
            self.rejects[number] = left
        self._attempts[number] += left >= 0
        return left >= 0

    def _judged(
        self, number: int, flight: RunInFlight, code: int, again: bool, event: Event
    ) -> None:
        if code == PASS.number:
            self.nodes.passed(flight)
        else:
            elsewhere = self.retry_policy.answer(flight.entry, code) == "elsewhere"
            self.nodes.ended(flight, code_of(code).name, elsewhere, event.time)
        self.retry_policy.verdict(flight.entry, code, event.text)
        if again:
            if code != CANCELLED.number or not flight.ours:
                self.retry_policy.retried(number)
            self.demand.again(number, flight.stage)
        start, end = flight.started, flight.ended
        if not start:
            start, end = flight.began, flight.left
        self.demand.ended(flight, max(0, end - start) / SECOND_NS if start else 0.0)

    def _on_start(self, event: Event) -> None:
        self.clock.go(event.time)
        self._time_out()
        self.admission.go(self.clock.start, event.time)
        self.watchdogs.start(event.time, self.counts.in_flight)
        self.changed = True

    def _on_pause(self, event: Event) -> None:
        self.held = event.text or "paused"
        self.clock.stop(event.time)
        self._time_out()
        self.changed = True

    def _on_cancel(self, event: Event) -> None:
        self._on_pause(event)
        self.held = event.text or "cancelled"
        self.cancelling = True
        for flight in self.in_flight.values():
            flight.cancelled = True
        self.builds.restart()

    def _on_abandon(self, event: Event) -> None:
        self._on_cancel(event)
        self.held = event.text or "abandoned"
        self.abandoned = True

    def _on_end(self, event: Event) -> None:
        self.clock.stop(event.time)
        self._time_out()
        self.changed = True

    def _on_resume(self, event: Event) -> None:
        self.changed = True
        self.builds.restart()
        if not self.abandoned:
            self.held = ""
            self.cancelling = False
            self.failures = 0  # those that a person has seen, and went on
            self._on_start(event)

    def _on_extend(self, event: Event) -> None:
        value = event.value
        if isinstance(value, int | float) and self.duration and 0 < value < math.inf:
            self.duration += value
            self._time_out()
            self.changed = True

    def _on_nodes(self, event: Event) -> None:
        if event.event == Name.NODE_DOWN:
            self.nodes.fall(event.nodes, event.time)
        elif event.event == Name.NODE_UP:
            self.nodes.rise(event.nodes)
        elif event.event == Name.NODE_ADMIT:
            self.nodes.admit(event.nodes)
        elif event.nodes:
            self.nodes.exclude(event.nodes, event.text)
            text = f"{event.nodes}: no more runs go there: {event.text or 'no reason was given'}"
            self.watchdogs.tell_once("excluded", event.nodes, text)
        self.changed = True

    def _on_test_stop(self, event: Event) -> None:
        for number in self._entries(event.test):
            self.admission.stop(number, event.text)
            text = f"{event.test} is launched no more: {event.text or 'no reason was given'}"
            self.watchdogs.tell_once("stopped", event.test, text)
        self.changed = True

    def _on_test_admit(self, event: Event) -> None:
        for number in self._entries(event.test):
            self.admission.admit(number)
            self.retry_policy.forgive(number)
            self.watchdogs.restart(number, self.counts.in_flight[number], event.time)
        self.changed = True

    def _on_gauge(self, event: Event) -> None:
        self.admission.gauge(event)
        self.changed = True

    def _on_output_quiet(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is None or not flight.holds_room or flight.ended_for is not None:
            return
        about = self.policy.entries[flight.entry]
        follows = "and is ended" if about.end_quiet else "as it seems; it goes on"
        text = f"{about.name}: run {event.run_id} hangs, {follows}"
        self.watchdogs.tell_once("hung", event.run_id, text)
        if about.end_quiet:
            flight.ended_for = HUNG.number
            self.hung[event.run_id] = flight
        self.changed = True

    def _on_alert(self, event: Event) -> None:
        self.watchdogs.told(event.alias, event.test, event.time)
        self.changed = True

    # ---- the parts of the state -----------------------------------------------------------

    def runs_again(self, number: int, run_id: str, code: int | float | str | None) -> bool:
        """Whether the case of a run runs again after this verdict: cancelled with the trial, it
        waits until that is resumed; taken back, until it may start; what else is made good is the
        policy's word, of what others cancelled, too."""
        if code == CANCELLED.number:
            flight = self.in_flight.get(run_id)
            if flight is None or self.abandoned:
                return False
            if flight.ours:
                return True
        if self.policy.kind == "sustained" or not isinstance(code, int):
            return False
        entry = self.policy.entry_of[number]
        return self.retry_policy.will_rerun(number, entry, code, self.cases[number].repeat)

    def ended_for(self, run_id: str) -> int | None:
        """The verdict of a run that we end for a reason of its own."""
        flight = self.in_flight.get(run_id)
        return flight.ended_for if flight is not None else None

    def too_many(self, failures: int) -> bool:
        return 0 < self.limits.max_failures <= failures

    def run_id(self, number: int, ahead: int = 0) -> str:
        """The id of a case's next run (or the one ``ahead`` of it): 12 letters and digits, unique
        among all trials as their tags are."""
        return run_id_of(self.tag, self.cases[number].id, self._attempts[number] + ahead)

    def _time_out(self) -> None:
        self.over_at = self.clock.over_at(self.duration) if self.duration else None

    def _entries(self, test: str) -> Iterator[int]:
        return (n for n, entry in enumerate(self.policy.entries) if test and entry.name == test)

    def _counted(self, entry: int, time: int) -> None:
        self.watchdogs.seen(time)
        self.watchdogs.count(entry, self.counts.in_flight[entry], time)


_HANDLERS: dict[str, Callable[[ConductorState, Event], None]] = {
    Name.BUILD_START: ConductorState._on_build_start,
    Name.BUILD_END: ConductorState._on_build_end,
    Name.SUBMIT_START: ConductorState._on_submit_start,
    Name.JOB_QUEUED: ConductorState._on_job_queued,
    Name.JOB_START: ConductorState._on_job_start,
    Name.JOB_END: ConductorState._on_job_end,
    Name.BINARY_EXECUTE_START: ConductorState._on_script,
    Name.BINARY_EXECUTE_END: ConductorState._on_script,
    Name.CHECK_END: ConductorState._on_check_end,
    Name.TRIAL_START: ConductorState._on_start,
    Name.TRIAL_PAUSE: ConductorState._on_pause,
    Name.TRIAL_CANCEL: ConductorState._on_cancel,
    Name.TRIAL_ABANDON: ConductorState._on_abandon,
    Name.TRIAL_RESUME: ConductorState._on_resume,
    Name.TRIAL_EXTEND: ConductorState._on_extend,
    Name.TRIAL_END: ConductorState._on_end,
    Name.NODE_DOWN: ConductorState._on_nodes,
    Name.NODE_UP: ConductorState._on_nodes,
    Name.NODE_EXCLUDE: ConductorState._on_nodes,
    Name.NODE_ADMIT: ConductorState._on_nodes,
    Name.TEST_STOP: ConductorState._on_test_stop,
    Name.TEST_ADMIT: ConductorState._on_test_admit,
    Name.GAUGE: ConductorState._on_gauge,
    Name.OUTPUT_QUIET: ConductorState._on_output_quiet,
    Name.ALERT: ConductorState._on_alert,
}
