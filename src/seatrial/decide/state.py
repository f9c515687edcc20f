"""What the conductor knows: a fold over events, so that recovery is to replay the journal.

The states of the trial and of its runs are those of ``journal.trial``. What may start is
kept by ``admission``, what is wanted by a demand (``once``, ``mix``, ``race``).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from seatrial.decide.admission import Admission
from seatrial.decide.demand import Demand
from seatrial.decide.in_flight import (
    BuildTracker,
    FreeResources,
    InFlightCounts,
    ResourceRequest,
    RunInFlight,
    requests_of,
)
from seatrial.decide.mix import Mix
from seatrial.decide.nodes import NodePlacer, NodeRecord
from seatrial.decide.once import Once, Waves
from seatrial.decide.policy_change import followed
from seatrial.decide.race import RaceDemand
from seatrial.decide.watchdogs import (
    STOPPED,
    FailureWatch,
    RunTimes,
    Shortages,
    Watchdogs,
    dues_of,
    is_watched,
)
from seatrial.journal import events
from seatrial.journal.trial import RunState, Trial, TrialState
from seatrial.model.codes import (
    CANCELLED,
    CUT_OFF,
    HUNG,
    KNOWN,
    LAUNCH_FAILED,
    LOST,
    PASS,
    PERFORMANCE,
    RECALLED,
    REFUSED,
    UNCOUNTED,
    WRONG_ANSWER,
    code_of,
)
from seatrial.model.identifiers import run_id_of
from seatrial.model.policy import Answer, Entry, Limits, Policy, whole
from seatrial.model.test import Case
from seatrial.units import count, show_seconds

_QUEUED = RunState.QUEUED
_CANCELLED_BY_US = (CANCELLED.number, RECALLED.number)


class ConductorState:
    """All that is known of one trial. ``order`` is the seed of the order of repeated runs;
    default: the tag."""

    def __init__(
        self,
        tag: str,
        cases: Sequence[Case],
        limits: Limits,
        policy: Policy | None = None,
        order: str = "",
    ) -> None:
        self.tag = tag
        self._order = order or tag
        self.cases = cases
        self.limits = limits
        self.policy = whole(policy or Policy(), len(cases))
        self.index = {case.id: number for number, case in enumerate(cases)}
        #: set by every event after which there may be something new to decide; the driver clears it
        #: before it asks. A launch does not set it: the decision already accounted for it
        self.changed = True
        self.requests = requests_of(cases, self.policy, limits.cores, limits.gpus)
        self.kinds = sorted({(request.entry, request.unfit) for request in self.requests})
        #: the fold of its events, but for its runs
        self.trial: Trial[RunInFlight] = Trial(_no_run, self.policy.duration)
        self.cancelling = False  # whether all jobs are to be cancelled
        self.over_at: int | None = None  # when its time is up
        #: the runs without a verdict
        self.in_flight: dict[str, RunInFlight] = {}
        #: those of them whose jobs have not started
        self.queued: dict[str, RunInFlight] = {}
        #: those that are ended by themselves, because they hang or a person asked for it
        self.ending: dict[str, RunInFlight] = {}
        self.failures = 0
        self.finished = 0
        #: why nothing is launched, "" where that is not so
        self.held = ""
        self.counts = InFlightCounts(self.policy.entries, self.policy.caps)
        self.admission = Admission(self.policy, self.trial)
        self.retry_policy = RetryPolicy(self.policy.entries, self.policy.kind == "sustained")
        self.nodes = NodeRecord(
            self.trial, self.policy.exclusion, self.policy.nodes, self.policy.unfit
        )
        dues = dues_of(cases, self.requests, self.policy, limits.cores)
        self.watchdogs = Watchdogs(self.policy, dues)
        names = [entry.name for entry in self.policy.entries]
        self.failing = FailureWatch(names, self.policy.nodes, is_watched(self.policy.watch))
        self.stopped_at: dict[int, int] = {}  # when a test was stopped for what it did (ns)
        placing = self.policy.placing
        self.placer = NodePlacer(placing, cases) if placing is not None else None
        self._build_keys: list[set[str]] = [set() for _ in self.policy.entries]
        self._narrowest: dict[int, ResourceRequest] = {}
        for case, request in zip(cases, self.requests, strict=True):
            self._build_keys[request.entry].add(case.build)
            narrowest = self._narrowest.setdefault(request.entry, request)
            self._narrowest[request.entry] = min(narrowest, request, key=lambda each: each.width)
        self.shortages = Shortages(dues, self._is_not_short)
        self.run_times = RunTimes(cases, self.requests, len(self.policy.entries))
        self.builds = BuildTracker()
        self.demand: Demand = self._demand()
        self._attempts = [0] * len(cases)
        self._mended: set[str] = set()  # tests with toolchains that pass though they are known
        self.free = FreeResources(limits)
        self.by_build: dict[int, int] = {}  # case -> runs that get their verdict from its build
        for number, case in enumerate(cases):
            if case.build:
                self.builds.wait(case.build, number)
            else:
                self.demand.ready(number)

    @property
    def wanted(self) -> int:
        """The number of runs that are wanted, 0 where the time decides."""
        return self.demand.wanted

    def _demand(self) -> Demand:
        cases, policy, requests, limits = self.cases, self.policy, self.requests, self.limits
        if policy.kind == "sustained":
            return Mix(cases, policy, requests, limits.cores)
        if policy.race is not None:
            return RaceDemand(cases, policy, requests, policy.race)
        if policy.kind == "isolated_then_full":
            return Waves(cases, policy, limits, requests)
        gated = len(policy.entries) > 1 or policy.nodes > 0 or limits.gpus > 0
        return Once(cases, policy, requests, gated, self._order, limits.cores)

    def apply(self, event: events.Event) -> None:
        """Fold one event into the state."""
        handler, is_news, decides = _FOLDS.get(type(event), _NO_FOLD)
        if is_news and event.time > self.watchdogs.latest:
            self.watchdogs.latest = event.time
        if handler is not None:
            handler(self, event)
            if decides:
                self.changed = True

    # ---- builds ---------------------------------------------------------------------------

    def _on_build_ended(self, event: events.BuildEnded) -> None:
        reason = "" if event.code == PASS.number else (event.log or "the build failed")
        for number in self.builds.end(event.key, reason):
            if reason or self.cases[number].only_builds:
                self.by_build[number] = self.demand.runs_of(number)
                self.demand.unbuilt(number)
            else:
                self.demand.ready(number)
        self.shortages.look(event.time)

    # ---- runs -----------------------------------------------------------------------------

    def _on_submitted(self, event: events.RunSubmitted) -> None:
        number = self.index.get(event.case)
        if number is None or event.run_id in self.in_flight:
            return
        request = self.requests[number]
        entry = request.entry
        if self.shortages.low:
            self._pass_over(entry, event.time)
        attempt = self._attempts[number]
        self._attempts[number] += 1
        self.demand.launched(number, event.time)
        flight = RunInFlight(case=number, request=request, attempt=attempt)
        self.in_flight[event.run_id] = self.queued[event.run_id] = flight
        flight.apply(event)
        self.free.take(flight, self.cases[number].at_once)
        self.counts.launch(request, event.target)
        self.admission.launch(entry, event)
        self.changed |= bool(self.admission.load_limits)  # others that wait may fit no more
        flight.away = self.nodes.launched(number)
        flight.exclusions = self.nodes.exclusions
        self._count(entry, event.time)

    def _on_queued(self, event: events.JobQueued) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is None:
            return
        flight.apply(event)
        if flight.state is _QUEUED:
            oldest = self.watchdogs.queued(event.run_id, flight.entry, event.time)
            self.changed = self.changed or oldest

    def _on_started(
        self, event: events.JobStarted | events.ScriptStarted | events.ScriptEnded
    ) -> None:
        flight, nodes = self.in_flight.get(event.run_id), self.nodes.usable
        if flight is not None and flight.apply(event):
            self.queued.pop(event.run_id, None)
            self.admission.started(event.run_id, event.time)
            self.failing.started(event.run_id, flight.entry)
            idle = self.counts.idle(nodes)
            self.counts.start(flight.request)
            self.watchdogs.unqueued(event.run_id, event.time, started=True)
            self._count(flight.entry, event.time)
            admission = self.admission
            # what waits may have to be recalled for one that started
            idle_changed = self.counts.idle(nodes) != idle or bool(admission.shut)
            idle_changed |= bool(admission.load_limits)
            if self.placer is not None or self.demand.asks_after_start(self.counts, idle_changed):
                self.changed = True

    def _on_script(self, event: events.ScriptStarted | events.ScriptEnded) -> None:
        """Record the job's own words, which are all there is of one that nobody saw start; else the
        time of its script, by which a race may judge."""
        flight = self.in_flight.get(event.run_id)
        if flight is not None and flight.job_started is None:
            self._on_started(event)
        elif flight is not None and self.policy.race is not None:
            flight.apply(event)

    def _on_compat(self, event: events.CompatStarted) -> None:
        """Remember the nodes that did not answer. If none did, no node is to blame."""
        flight = self.in_flight.get(event.run_id)
        if flight is not None and event.answered:
            flight.silent = event.missing

    def _on_metric(self, event: events.MetricRecorded) -> None:
        """Remember the figure by which a race judges."""
        rules, flight = self.policy.race, self.in_flight.get(event.run_id)
        if rules is None or flight is None:
            return
        if event.metric == rules.metric:
            flight.figure = event.value
        elif event.metric in rules.others and event.value is not None:
            flight.others[event.metric] = event.value

    def _on_job_ended(self, event: events.JobEnded) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is None:
            return
        had_job = flight.has_job
        flight.apply(event)
        if had_job:
            if flight.recalled:
                self.nodes.recalled(flight.case, flight.away)
            self._free(flight, event)

    def _free(self, flight: RunInFlight, event: events.JobEnded | events.RunJudged) -> None:
        """Take back what the job of a run held."""
        started = self.queued.pop(event.run_id, None) is None
        if not started:
            self.watchdogs.unqueued(event.run_id, event.time, started=False)
        self.admission.ended(event.run_id)
        self.free.give_back(flight)
        self.counts.end(flight.request, flight.target, started)
        self._count(flight.entry, event.time)
        self.changed = True

    def _on_judged(self, event: events.RunJudged) -> None:
        number = self.index.get(event.case)
        if number is None:
            return
        flight = self.in_flight.get(event.run_id)
        code = event.code
        if flight is not None:
            had_job = flight.has_job
            flight.apply(event)
            code = flight.code
            if had_job:
                self._free(flight, event)
        reruns = self.will_rerun(number, event.run_id, code)
        if flight is not None:
            of_run = flight.nodes, flight.reason, flight.request.nodes
            self.failing.ended(event.run_id, flight.entry, code, *of_run)
            del self.in_flight[event.run_id]
            self.ending.pop(event.run_id, None)
            self._follow_up(number, flight, reruns)
        elif not self._judged_by_build(number):
            return  # it is known neither as a run nor as one without a job
        self.changed = True
        if event.known and code == PASS.number:
            self._passes_again(self.cases[number], event.known)
        if not reruns:
            self._count_verdict(code)

    def _count_verdict(self, code: int) -> None:
        """Count a verdict that stands; too many failures hold everything back."""
        self.finished += 1
        self.failures += code not in (PASS.number, KNOWN.number)
        if self.too_many(self.failures) and not self.held:
            self.held = f"{self.failures} runs did not pass, the most that was allowed"

    def _passes_again(self, case: Case, known: str) -> None:
        """Alert people once that a test passes whose failure is known, and why."""
        subject = f"{case.test}@{case.toolchain}"
        if subject not in self._mended:
            self._mended.add(subject)
            text = f"{case.test} passes with {case.toolchain}, though its failure is known"
            text += f" ({known}): remove it from known_failures"
            self.watchdogs.tell_once("known", subject, text)

    def _judged_by_build(self, number: int) -> bool:
        """Record the verdict of a run without a job. Returns False if none was wanted."""
        left = self.by_build.pop(number, 0) - 1
        if left > 0:
            self.by_build[number] = left
        self._attempts[number] += left >= 0
        return left >= 0

    def _follow_up(self, number: int, flight: RunInFlight, reruns: bool) -> None:
        """Record what follows from the verdict of a run."""
        code = flight.code
        if code == PASS.number:
            self.nodes.passed(flight)
            self.run_times.passed(flight)
        else:
            elsewhere = self.retry_policy.answer(flight.entry, code) == "elsewhere"
            self.nodes.ended(flight, code_of(code).name, elsewhere)
        self.retry_policy.verdict(flight.entry, code, flight.reason)
        if reruns:
            if code not in _CANCELLED_BY_US or not flight.ended_by_us:
                self.retry_policy.retried(number)
            self.demand.again(number)
        self.demand.ended(flight, flight.seconds)

    def _on_output_quiet(self, event: events.OutputQuiet) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is None or not flight.has_job or flight.ended_for is not None:
            return
        entry = self.policy.entries[flight.entry]
        follows = "and is ended" if entry.end_quiet else "as it seems; it goes on"
        text = f"{entry.name}: run {event.run_id} hangs, {follows}"
        self.watchdogs.tell_once("hung", event.run_id, text)
        if entry.end_quiet:
            reason = f"no output for {show_seconds(entry.quiet_after)}"
            self._end(flight, event.run_id, HUNG.number, reason)
        self.changed = True

    def _on_cancel_asked(self, event: events.RunCancelAsked) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is None or not flight.has_job or flight.ended_for is not None:
            return
        asked = f"cancelled by {event.by or 'a person'}"
        reason = f"{asked}: {event.reason}" if event.reason else asked
        self._end(flight, event.run_id, CANCELLED.number, reason)
        self.changed = True

    def _end(self, flight: RunInFlight, run_id: str, code: int, reason: str) -> None:
        """Have this run alone ended, with a verdict."""
        flight.ended_for, flight.ended_why = code, reason
        self.ending[run_id] = flight

    # ---- the trial ------------------------------------------------------------------------

    def _on_trial(self, event: events.Event) -> None:
        """Record a start, a stop, or an extension of the trial."""
        trial = self.trial
        if isinstance(event, events.TrialResumed | events.TrialCancelled | events.TrialAbandoned):
            self.builds.restart()
        applied = trial.apply(event)
        self.changed |= applied or not isinstance(event, events.TrialExtended)
        if not applied:
            return
        self.over_at = trial.over_at()
        self.cancelling = trial.state in (TrialState.CANCELLED, TrialState.ABANDONED)
        if isinstance(event, events.TrialPaused | events.TrialCancelled | events.TrialAbandoned):
            self.held = trial.reason or str(trial.state)
        if self.cancelling:
            for flight in self.in_flight.values():
                flight.cancelled = True
        if isinstance(event, events.TrialResumed):
            self.held = ""
            self.failures = 0  # a person has seen them, and resumed
        if isinstance(event, events.TrialOpened):
            self._go(event.time)

    def _go(self, time: int) -> None:
        """Let the clocks of gates, watchdogs and shortages run from now on."""
        self.admission.go(self.trial.start or 0, time)
        self.watchdogs.latest = max(self.watchdogs.latest, time)
        for entry, runs in enumerate(self.counts.in_flight):
            self.shortages.restart(entry, runs, time)

    def is_over(self, now: int) -> bool:
        """Return whether the time of the trial is up."""
        return self.over_at is not None and now >= self.over_at

    @property
    def abandoned(self) -> bool:
        return self.trial.state is TrialState.ABANDONED

    # ---- tests that are short ---------------------------------------------------------------

    def _count(self, entry: int, time: int) -> None:
        """Find out which tests are short, after a change of what is in flight."""
        self.shortages.count(entry, self.counts.in_flight[entry], time)
        if self.shortages.low and self.shortages.look(time):
            self.changed = True

    def _on_gauge(self, event: events.GaugeRead) -> None:
        self.admission.gauge(event)
        self.shortages.look(event.time)

    def _pass_over(self, launched: int, time: int) -> None:
        """Record the tests that have too few runs in flight while a run is launched of another."""
        passed_over, demand = self.shortages.passed_over, self.demand
        passed_over.discard(launched)
        idle = self.free.cores if self.limits.cores else self.counts.idle(self.nodes.usable)
        for entry in self.shortages.low:
            if entry == launched or self._is_held(entry, time):
                continue
            if demand.passes_over(launched, entry, self.counts, idle):
                passed_over.add(entry)

    def _is_not_short(self, entry: int, time: int) -> bool:
        """Return whether it is normal that an entry has few runs in flight."""
        if not self.policy.entries[entry].copies:  # its part of the machine, and others' turns
            if self.counts.waiting[entry]:
                return True
            if entry not in self.shortages.passed_over and not self._fits(entry):
                return True
        return self._is_held(entry, time)

    def _is_held(self, entry: int, time: int) -> bool:
        """Return whether an entry is held back by its first build, by a gate, or as no metadata
        target and no throttle's target can take one more of its runs."""
        keys = self._build_keys[entry]
        if "" not in keys and self.builds.why_failed.keys().isdisjoint(keys):
            return True
        admission = self.admission
        if entry in admission.gates(time).held or not admission.has_place(entry, self.counts):
            return True
        return not admission.has_room(entry, admission.rooms(time))

    def _fits(self, entry: int) -> bool:
        """Return whether its narrowest run would start now, beside those that wait."""
        request, counts = self._narrowest[entry], self.counts
        if self.limits.cores:
            return self.free.cores >= request.cores
        if counts.idle(self.nodes.usable) < request.nodes:
            return False
        unfit = request.unfit
        return not unfit or not self.nodes.pools[unfit].lacks(request.width, counts.confined)

    # ---- nodes and tests ------------------------------------------------------------------

    def _on_node_excluded(self, event: events.NodeExcluded) -> None:
        if event.nodes:
            self.nodes.apply(event)
            text = f"{event.nodes}: no more runs go there: {_reason(event)}"
            self.watchdogs.tell_once("excluded", event.nodes, text)

    def _on_test_stopped(self, event: events.TestStopped) -> None:
        self.admission.apply(event)
        for number in self._entries(event.test):
            text = f"{event.test} is launched no more: {_reason(event)}"
            self.watchdogs.tell_once(STOPPED, event.test, text)
            if not event.by:
                self.stopped_at[number] = event.time

    def _on_test_admitted(self, event: events.TestAdmitted) -> None:
        self.admission.apply(event)
        for number in self._entries(event.test):
            self.retry_policy.forgive(number)
            self.failing.forget(number)
            self.stopped_at.pop(number, None)
            self.shortages.restart(number, self.counts.in_flight[number], event.time)

    def _on_test_held(self, event: events.TestHeld) -> None:
        self.admission.apply(event)
        self.shortages.look(event.time)

    def _on_test_released(self, event: events.TestReleased) -> None:
        before = self.admission.closed
        self.admission.apply(event)
        for number in sorted(before - self.admission.closed):
            self.shortages.restart(number, self.counts.in_flight[number], event.time)

    # ---- another policy -------------------------------------------------------------------

    def _on_policy_changed(self, event: events.PolicyChanged) -> None:
        """Follow the policy that a person changed, from now on."""
        policy = followed(self.policy, event.parts)
        if policy is self.policy:
            return
        self.policy = policy
        self.trial.apply(event)
        self.over_at = self.trial.over_at()
        self.counts = InFlightCounts(policy.entries, policy.caps)
        for run_id, flight in self.in_flight.items():
            if flight.has_job:
                self.counts.launch(flight.request, flight.target)
                if run_id not in self.queued:
                    self.counts.start(flight.request)
        self.admission.change(policy, self.in_flight)
        self.retry_policy.change(policy.entries)
        self.nodes.change(policy.exclusion)
        dues = dues_of(self.cases, self.requests, policy, self.limits.cores)
        self.watchdogs.change(policy, dues)
        self.failing.watched = is_watched(policy.watch)
        self.demand.change(policy, self.in_flight.values(), event.time)
        self.shortages.change(dues, self.counts.in_flight, event.time)

    # ---- the parts of the state -----------------------------------------------------------

    def will_rerun(self, number: int, run_id: str, code: int) -> bool:
        """Return whether the case of a run runs again after this verdict. A run that was cancelled
        with the trial runs again when that is resumed, a recalled one when it may start; for any
        other the policy decides."""
        if code in _CANCELLED_BY_US:
            flight = self.in_flight.get(run_id)
            if flight is None or self.abandoned:
                return False
            if flight.ended_by_us:
                return True
        if self.policy.kind == "sustained":
            return False
        entry = self.policy.entry_of[number]
        return self.retry_policy.will_rerun(number, entry, code, self.cases[number].repeat)

    def ended_for(self, run_id: str) -> int | None:
        """Return the verdict code of a run that we end for a reason of its own, else None."""
        flight = self.in_flight.get(run_id)
        return flight.ended_for if flight is not None else None

    def too_many(self, failures: int) -> bool:
        return 0 < self.limits.max_failures <= failures

    def run_id(self, number: int, ahead: int = 0) -> str:
        """Return the id of a case's next run (or the one ``ahead`` of it): 12 letters and digits,
        unique among all trials as their tags are."""
        return run_id_of(self.tag, self.cases[number].id, self._attempts[number] + ahead)

    def _entries(self, test: str) -> Iterator[int]:
        return (n for n, entry in enumerate(self.policy.entries) if test and entry.name == test)


def _reason(event: events.NodeExcluded | events.TestStopped) -> str:
    """Return the reason of an event, and who asked for it."""
    reason = event.reason or "no reason was given"
    return f"{reason} (by {event.by})" if event.by else reason


def _no_run(event: events.RunEvent) -> None:
    """Runs are kept apart, while they are in flight."""


_Handler = Callable[[ConductorState, Any], None]
_OWN_HANDLERS: dict[type[events.Event], _Handler] = {  # which set ``changed`` where they must
    events.RunSubmitted: ConductorState._on_submitted,
    events.JobQueued: ConductorState._on_queued,
    events.JobStarted: ConductorState._on_started,
    events.ScriptStarted: ConductorState._on_script,
    events.ScriptEnded: ConductorState._on_script,
    events.CompatStarted: ConductorState._on_compat,
    events.MetricRecorded: ConductorState._on_metric,
    events.JobEnded: ConductorState._on_job_ended,
    events.RunJudged: ConductorState._on_judged,
    events.OutputQuiet: ConductorState._on_output_quiet,
    events.TrialStarted: ConductorState._on_trial,
    events.TrialResumed: ConductorState._on_trial,
    events.TrialPaused: ConductorState._on_trial,
    events.TrialCancelled: ConductorState._on_trial,
    events.TrialAbandoned: ConductorState._on_trial,
    events.TrialExtended: ConductorState._on_trial,
    events.TrialEnded: ConductorState._on_trial,
    events.RunCancelAsked: ConductorState._on_cancel_asked,
}
# After these events there is always something new to decide.
_NEWS_HANDLERS: dict[type[events.Event], _Handler] = {
    events.BuildStarted: lambda state, event: state.builds.start(event.key),
    events.BuildEnded: ConductorState._on_build_ended,
    events.NodeDown: lambda state, event: state.nodes.apply(event),
    events.NodeUp: lambda state, event: state.nodes.apply(event),
    events.NodeExcluded: ConductorState._on_node_excluded,
    events.NodeAdmitted: lambda state, event: state.nodes.apply(event),
    events.TestStopped: ConductorState._on_test_stopped,
    events.TestAdmitted: ConductorState._on_test_admitted,
    events.TestHeld: ConductorState._on_test_held,
    events.TestReleased: ConductorState._on_test_released,
    events.PolicyChanged: ConductorState._on_policy_changed,
    events.GaugeRead: ConductorState._on_gauge,
    events.AlertRaised: lambda state, event: state.watchdogs.told(
        event.kind, event.subject, event.time
    ),
}
# What happens to runs and builds. Quiet output is nothing that happens; nor is the removal of
# outputs, which follows a verdict.
_NEWS = {
    kind
    for kind in events.EVENT_KINDS.values()
    if issubclass(kind, events.RunEvent | events.BuildEvent)
}
_NEWS -= {events.OutputQuiet, events.OutputRemoved, events.RunCancelAsked}
# For each kind of event: its handler, whether something happened to a run or a build, and whether
# there is always something new to decide.
_NO_FOLD: tuple[_Handler | None, bool, bool] = None, False, False
_FOLDS = {
    kind: (
        _OWN_HANDLERS.get(kind) or _NEWS_HANDLERS.get(kind),
        kind in _NEWS,
        kind in _NEWS_HANDLERS,
    )
    for kind in events.EVENT_KINDS.values()
}


# ---- retry policy --------------------------------------------------------------------------------
#
# The consequences of a failed run: whether and where it is retried, and when its test is stopped.


MAX_LOSSES = 3
MAX_REFUSED = 10  # failed launches in a row, where launches never end

_NOT_STARTED = (LAUNCH_FAILED.number, REFUSED.number)
_RIGHT = (PASS.number, PERFORMANCE.number)  # the answer was right
_NOT_ITS_FAULT = CUT_OFF | UNCOUNTED


class RetryPolicy:
    """Counts the retries of each case. Counts, for each entry, wrong answers and failures in a row
    and, if its runs are ``endless``, refused launches in a row."""

    def __init__(self, entries: list[Entry], endless: bool = False) -> None:
        self._entries = entries
        self._endless = endless
        self._retried: Counter[int] = Counter()  # by case
        self._wrong = [0] * len(entries)
        self._failed = [0] * len(entries)
        self._refused = [0] * len(entries)
        self.to_stop: dict[int, str] = {}  # entries to stop, with reasons

    def change(self, entries: list[Entry]) -> None:
        """Follow other rules for the same tests; what was counted stays."""
        self._entries = entries

    def answer(self, entry: int, code: int) -> Answer:
        """Return the policy's answer to a verdict; by default lost runs are retried."""
        default: Answer = "again" if code == LOST.number else "never"
        return self._entries[entry].answers.get(code_of(code).name, default)

    def will_rerun(self, case: int, entry: int, code: int, repeat: int) -> bool:
        """Return whether the run is launched again; ``repeat`` is how many runs its case has in
        all."""
        if self.answer(entry, code) == "never":
            return False
        rules, max_retries = self._entries[entry], MAX_LOSSES
        if rules.answers:
            max_retries = (rules.attempts - 1) * max(1, repeat)
        return self._retried[case] < max_retries

    def retried(self, case: int) -> None:
        self._retried[case] += 1

    def verdict(self, entry: int, code: int, reason: str = "") -> None:
        """Record a verdict. A run without a result (such as launch failed) does not reset the count
        of consecutive wrong answers. A run that was cut off from outside, or whose failure is
        known, neither counts as a failure nor ends a row of them."""
        self._count_failure(entry, code, reason)
        self._count_refused_launch(entry, code, reason)
        self._count_wrong_answer(entry, code)

    def _count_failure(self, entry: int, code: int, reason: str) -> None:
        if code in _RIGHT:
            self._failed[entry] = 0
        elif code not in _NOT_ITS_FAULT:
            self._failed[entry] += 1
            limit = self._entries[entry].stop_failures
            if limit and self._failed[entry] >= limit:
                last = f", the last: {code_of(code).name}{reason and f': {reason}'}"
                self.to_stop[entry] = f"{count(self._failed[entry], 'failure')} in a row{last}"

    def _count_refused_launch(self, entry: int, code: int, reason: str) -> None:
        if code not in _NOT_STARTED:
            self._refused[entry] = 0
            return
        self._refused[entry] += 1
        if self._endless and self._refused[entry] >= MAX_REFUSED:
            last_words = f": {reason}" if reason else ""
            self.to_stop[entry] = f"{self._refused[entry]} launches in a row failed{last_words}"

    def _count_wrong_answer(self, entry: int, code: int) -> None:
        if code in _RIGHT:
            self._wrong[entry] = 0
        elif code == WRONG_ANSWER.number:
            self._wrong[entry] += 1
            limit = self._entries[entry].stop_after
            if limit and self._wrong[entry] >= limit:
                self.to_stop[entry] = f"{self._wrong[entry]} wrong answers in a row"

    def forgive(self, entry: int) -> None:
        """Reset the counts of an entry, as a person admitted its test again."""
        self._wrong[entry] = self._refused[entry] = self._failed[entry] = 0
        self.to_stop.pop(entry, None)
