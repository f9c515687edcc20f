"""A machine in virtual time, with nodes, a queue, failures, gauges and people, and a driver.

Everything that happens is drawn from a seed, and from nothing that the conductor's answers could
disturb; every decision is checked against rules that are written here a second time, plainly.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.decide.conductor import Conductor, Decision, Finish, Launch
from seatrial.decide.policy_change import with_parts
from seatrial.journal.events import (
    AlertRaised,
    BuildEnded,
    BuildStarted,
    Event,
    GaugeRead,
    JobEnded,
    JobQueued,
    JobStarted,
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    NodeUp,
    OutputQuiet,
    PolicyChanged,
    RunCreated,
    RunJudged,
    RunSubmitted,
    SubmitEnded,
    TestAdmitted,
    TestHeld,
    TestReleased,
    TestStopped,
    TrialCancelled,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from seatrial.model import codes
from seatrial.model.node_set import unfold
from seatrial.model.policy import Entry, Limits, Policy, RateLimit, ThrottleRule, Window
from seatrial.model.test import Case

from .model import a_case

NS = 10**9
START = 1_000 * NS
SLACK = 2 * NS  # in which what waits at the scheduler is recalled
ONCE = {"excluded", "hung"}


def a_run(number: int, test: str, nodes: int = 1, **more: Any) -> Case:
    """A case of some nodes; its walltime is 60 s."""
    return replace(a_case(number, **more), test=test, nodes=nodes)


@dataclass
class Run:
    case: int
    entry: int
    launched: int
    target: str
    stage: str
    avoid: set[str]
    on: tuple[str, ...] = ()
    started: int | None = None
    cancelled: bool = False
    over: bool = False
    recalled: bool = False
    bad: set[str] = field(default_factory=set)  # nodes that it alone is to avoid


@dataclass
class Luck:
    """How runs, builds, gauges and people turn out, and until when anything goes wrong."""

    wrong: float = 0.0
    timeout: float = 0.0
    lost: float = 0.0
    hangs: float = 0.0
    bad_builds: float = 0.0
    node_falls: float = 0.0  # at each minute
    people: float = 0.0
    changes: float = 0.0  # of the policy, and tests that are held and released
    crashes: float = 0.0
    gauge_fails: float = 0.0
    until: float = 3600.0


@dataclass
class World:
    """``everywhen``: the driver asks after every event, and at times when nothing happens, too, and
    takes each decision twice."""

    cases: Sequence[Case]
    limits: Limits
    policy: Policy
    seed: int = 0
    luck: Luck = field(default_factory=Luck)
    elapsed: Callable[[Case, Random], float] = lambda case, random: random.uniform(5, 60)
    everywhen: bool = False
    most_steps: int = 20_000

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.probes = Random(self.seed + 1)
        self.now = START
        self.first_policy = self.policy
        self.conductor = self._new()
        self.events: list[Event] = []
        self.names = [f"n{number:03}" for number in range(1, self.policy.nodes + 1)]
        self.unfit = [set[str](), *(set(unfold(names)) for names in self.policy.unfit)]
        self.free = set(self.names)
        self.down: set[str] = set()
        self.runs: dict[str, Run] = {}  # in flight, by the scheduler's word
        self.unjudged: dict[str, Run] = {}
        self.queue: list[str] = []
        self.ids: set[str] = set()
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.count = 0
        self.building: set[str] = set()
        self.finish: Finish | None = None
        self.wake: int | None = None
        self.held = False
        self.stopped: dict[str, int] = {}  # test -> since when
        self.on_hold: dict[str, int] = {}  # test -> since when a person holds it
        self.heavy_on_hold: int | None = None
        self.excluded: dict[str, int] = {}
        self.closed_at: dict[str, int] = {}  # gauge -> since when
        self.failed_on: dict[int, set[str]] = {}  # case -> nodes that its next run must not get
        self.heavy_starts: list[int] = []
        self.recalls = 0
        self.told: dict[tuple[str, str], int] = {}
        self.alerts: list[tuple[int, AlertRaised]] = []
        self.launches: list[tuple[int, Launch]] = []
        self.closed: dict[str, bool | None] = {t.gauge: None for t in self.policy.throttles}
        self.read: dict[str, int] = {}
        self.values: dict[str, float] = {}  # gauge -> its latest good reading
        self.since = START
        self.delivered: Counter[int] = Counter()  # node-seconds, by entry
        self.verdicts: list[tuple[int, int]] = []  # case, code
        self.decided: list[tuple[int, int, Decision]] = []
        self.ran = 0  # ns of the trial's clock before it was last taken up

    def _new(self) -> Conductor:
        return Conductor("tag", self.cases, self.limits, self.first_policy)

    # ---- the driver -----------------------------------------------------------------------

    def go(self) -> World:
        """See the trial through, or fail."""
        self.note(TrialStarted)
        for throttle in self.policy.throttles:
            self.at(0, self._read_gauge, throttle)
        self.at(60, self._minute)
        for _ in range(self.most_steps):
            self._ask()
            if self.finish is not None and not self.held:
                return self
            self.finish = None  # what is paused is taken up again
            times = [self.heap[0][0]] if self.heap else []
            following = min([*times, self.wake] if self.wake else times)
            if self.everywhen and following > self.now + 1:
                self._probe(following)
            self.now = following
            while self.heap and self.heap[0][0] <= self.now:
                _, _, happen, what = heapq.heappop(self.heap)
                happen(*what)
            self._schedule()
        raise AssertionError("the trial never comes to an end")

    def _ask(self) -> None:
        """Decide as a driver does, until nothing is to be done. In some worlds each decision is
        taken twice, in others one of eight: that is most of what they cost."""
        due = self.everywhen or (self.wake is not None and self.now >= self.wake)
        idle = False
        while self.finish is None and (self.conductor.state.changed or due):
            due = self.conductor.state.changed = False
            decision = self.conductor.decide(self.now)
            if self.everywhen or len(self.decided) % 8 == 0:
                assert self.conductor.decide(self.now) == decision, "deciding changes something"
            self.decided.append((len(self.events), self.now, decision))
            self._carry_out(decision)
            self.wake = decision.wake
            assert self.wake is None or self.wake > self.now
            idle = self._is_idle(decision)
        if self.finish is None and not idle:
            assert self._is_idle(self.conductor.decide(self.now)), "it could have decided before"

    def _is_idle(self, decision: Decision) -> bool:
        """Whether it has nothing to be carried out that the scheduler has not been told."""
        return replace(decision, cancels=[], recalls=[]).idle

    def _probe(self, until: int) -> None:
        """Between events there is nothing to decide before the time of the wake."""
        for moment in sorted(self.probes.randrange(self.now, until) for _ in range(2)):
            self.now = moment
            self._ask()

    def replayed(self, length: int | None = None) -> Conductor:
        """A conductor that has read the journal, or so much of it."""
        conductor = self._new()
        for event in self.events[:length]:
            conductor.apply(event)
        return conductor

    def note(
        self, kind: type[Event], /, run_id: str = "", case: int | None = None, **more: Any
    ) -> None:
        if case is not None:
            more |= {"run_id": run_id, "case": self.cases[case].id}
        event = kind(time=self.now, **more)
        self.events.append(event)
        self.conductor.apply(event)

    def _carry_out(self, decision: Decision) -> None:
        for run_id in decision.recalls:
            assert run_id in self.conductor.state.queued
            run = self.runs.get(run_id)
            if run is not None and not run.recalled:
                run.recalled = True
                self.recalls += 1
                self.at(1, self._recalled, run_id)
        for run_id in decision.cancels:
            run = self.runs.get(run_id)
            if run is not None and not run.cancelled:
                run.cancelled = True
                self.at(1, self._ends, run_id, codes.CANCELLED.number)
        for command in decision.by_build:
            assert command.run_id not in self.ids and not self.held
            self.ids.add(command.run_id)
            self.verdicts.append((command.case, command.code))
            self.note(RunJudged, command.run_id, command.case, code=command.code)
        for stop in decision.stops:
            self._take_out(stop)
        for key in decision.builds:
            assert not self.held and key not in self.building
            self.building.add(key)
            self.note(BuildStarted, key=key)
            self.at(self.random.uniform(1, 100), self._build_ends, key)
        for launch in decision.launches:
            self._launch(launch)
        for alert in decision.alerts:
            self._alert(alert)
        if decision.finish is not None:
            assert not self.runs and not self.unjudged and not self.building
            self.finish = decision.finish

    def _take_out(self, stop: TestStopped | NodeExcluded) -> None:
        if isinstance(stop, TestStopped):
            assert stop.test not in self.stopped
            self.stopped[stop.test] = self.now
            self.note(TestStopped, test=stop.test, reason=stop.reason)
        else:
            self.excluded |= dict.fromkeys(unfold(stop.nodes), self.now)
            most = max(1, int(self.policy.nodes * self.policy.exclusion.most))
            assert len(self.excluded) <= min(most, self.policy.nodes - 1)
            self.note(NodeExcluded, nodes=stop.nodes, reason=stop.reason)

    def _alert(self, alert: AlertRaised) -> None:
        assert alert.text
        told = self.told.get((alert.kind, alert.subject))
        if told is not None:
            assert alert.kind not in ONCE
            assert self.now - told >= self.policy.watch.again * NS
        self.told[alert.kind, alert.subject] = self.now
        self.alerts.append((self.now, alert))
        self.note(AlertRaised, kind=alert.kind, subject=alert.subject, text=alert.text)

    def _launch(self, launch: Launch) -> None:
        entry = self.policy.entry_of[launch.case]
        about, case = self.policy.entries[entry], self.cases[launch.case]
        assert launch.run_id not in self.ids, "launched twice"
        assert isinstance(launch.target, str) and isinstance(launch.stage, str)
        self.ids.add(launch.run_id)
        away = set(unfold(launch.avoid)) if launch.avoid else set()
        run = Run(launch.case, entry, self.now, launch.target, launch.stage, away)
        self._check_time(about, entry)
        self._check_nodes(run, case)
        self.note(RunCreated, launch.run_id, launch.case)
        self.note(
            RunSubmitted,
            launch.run_id,
            launch.case,
            target=launch.target,
            stage=launch.stage,
        )
        intent = self.events[-1]  # before the act
        assert isinstance(intent, RunSubmitted)
        assert intent.run_id == launch.run_id
        self.runs[launch.run_id] = run
        self.launches.append((self.now, launch))
        self._check_caps(entry)
        if about.io != "light" and self.policy.stagger:
            self._check_bucket()
        self.note(SubmitEnded, launch.run_id, launch.case, refused=0)
        self.note(JobQueued, launch.run_id, launch.case, job_id=launch.run_id)
        self.queue.append(launch.run_id)

    # ---- what must hold of a launch -------------------------------------------------------

    def clock(self) -> int:
        """What the trial has run, ns."""
        return self.ran + (0 if self.held else self.now - self.since)

    def _span(self, window: Window) -> tuple[int, int]:
        since = 0 if window.absolute else START
        return since + round(window.start * NS), since + round(window.end * NS)

    def _blackouts(self, entry: int, lasting: int = 0) -> list[Window]:
        """Those that an entry is in, and was already so many ns ago."""
        found = []
        for window in self.policy.blackouts:
            start, end = self._span(window)
            if not window.entries or entry in window.entries:
                found += [window] * (start + lasting <= self.now < end)
        return found

    def _check_start(self, run: Run) -> None:
        """What waited at the scheduler while it came to be held back was recalled in time."""
        about = self.policy.entries[run.entry]
        late = self.now - SLACK
        assert self.stopped.get(about.name, late) >= late, "starts though its test is stopped"
        assert self.on_hold.get(about.name, late) >= late, "starts though its test is held"
        if self.heavy_on_hold is not None and self.heavy_on_hold < late and about.io != "light":
            raise AssertionError("starts though all tests with I/O are held")
        away = {node for node, since in self.excluded.items() if since < late}
        for window in self._blackouts(run.entry, SLACK + 1):
            assert window.nodes, "starts in a blackout"
            away |= set(unfold(window.nodes))
        assert not away & set(run.on), "starts on a node that is closed"
        if about.io == "light" or self.since >= late:
            return
        for throttle in self.policy.throttles:
            stale = max(self.read.get(throttle.gauge, 0), self.since)
            stale += round(throttle.stale_after * NS)
            if throttle.target is not None and self.read.get(throttle.gauge, 0) < self.since:
                closed = throttle.on_failure == "closed" and self.since < late
            elif self.now < stale:
                closed = self.closed_at.get(throttle.gauge, late) < late
            else:
                closed = throttle.on_failure == "closed" and stale < late
            assert not closed, "starts though a throttle is closed"
            if self.read.get(throttle.gauge, late) < late:
                self._check_load(throttle, run, late)

    def _check_load(self, throttle: ThrottleRule, run: Run, late: int) -> None:
        """By a target: what was read, what has started since (until ``late``; what waited beside it
        was recalled in time), and the run."""
        entries = self.policy.entries
        if throttle.target is None or not self._is_read(throttle) or not entries[run.entry].opens:
            return
        read = self.read[throttle.gauge]
        others = (each for each in self.runs.values() if each is not run)
        since = [each for each in others if each.started and read <= each.started < late]
        load = sum(entries[each.entry].opens for each in [*since, run])
        assert self.values[throttle.gauge] + load <= throttle.target + 1e-9, "starts beyond"

    def _is_read(self, throttle: ThrottleRule) -> bool:
        """Whether a good reading says something now of a throttle with a target."""
        read = self.read.get(throttle.gauge, 0)
        return read >= self.since and self.now < read + round(throttle.stale_after * NS)

    def _recalled(self, run_id: str) -> None:
        if run_id in self.queue:
            run = self.runs[run_id]
            if run.bad:
                self.failed_on.setdefault(run.case, set()).update(run.bad)
            code = codes.CANCELLED if run.cancelled else codes.RECALLED
            self._ends(run_id, code.number)

    def _check_time(self, about: Entry, entry: int) -> None:
        assert not self.held
        assert about.name not in self.stopped
        assert about.name not in self.on_hold
        assert about.io == "light" or self.heavy_on_hold is None
        if self.policy.duration:
            assert self.clock() < round(self.policy.duration * NS)
        assert not any(not w.nodes for w in self._blackouts(entry)), "launched in a blackout"
        for throttle in self.policy.throttles:
            if about.io != "light":
                fresh = max(self.read.get(throttle.gauge, 0), self.since)
                closed = self.closed[throttle.gauge]
                if throttle.target is not None and self.read.get(throttle.gauge, 0) < self.since:
                    closed = None  # from before a pause
                if closed is None or self.now >= fresh + round(throttle.stale_after * NS):
                    closed = throttle.on_failure == "closed"
                assert not closed, "launched though a throttle is closed"
                if throttle.target is not None and self._is_read(throttle):
                    read = self.read[throttle.gauge]
                    unseen = [
                        self.policy.entries[run.entry].opens
                        for run in self.runs.values()
                        if run.started is None or run.started >= read
                    ]
                    load = self.values[throttle.gauge] + sum(unseen) + about.opens
                    assert load <= throttle.target + 1e-9, "launched beyond the target"

    def _check_nodes(self, run: Run, case: Case) -> None:
        if not self.policy.nodes:
            return
        assert self.excluded.keys() <= run.avoid
        for window in self._blackouts(run.entry):
            assert set(unfold(window.nodes)) <= run.avoid
        assert self.policy.nodes - len(run.avoid) >= case.nodes, "too few nodes are left for it"
        bad = self.failed_on.pop(run.case, set())
        run.bad = bad
        shut = self.down.union(self.excluded)
        for window in self._blackouts(run.entry):
            shut |= set(unfold(window.nodes))
        if bad and self.policy.nodes - len(bad | shut) >= case.nodes:
            assert bad <= run.avoid, "it is to run elsewhere"

    def _check_caps(self, launched: int) -> None:
        """A cap that a person lowered may be exceeded by runs of other tests that go on."""
        runs, caps, policy = list(self.runs.values()), self.policy.caps, self.policy
        entries = [policy.entries[run.entry] for run in runs]
        if self.limits.cores:
            requests = self.conductor.state.requests
            assert sum(requests[run.case].cores for run in runs) <= self.limits.cores
        if self.limits.jobs:
            assert len(runs) <= self.limits.jobs
        if caps.machine:
            assert len(runs) <= caps.machine
        for number, entry in enumerate(policy.entries):
            if number == launched or policy is self.first_policy:
                assert not entry.most or sum(run.entry == number for run in runs) <= entry.most
        for name, most in caps.file_systems.items():
            assert sum(entry.file_system == name for entry in entries) <= most
        for name, space in caps.bytes.items():
            assert sum(entry.bytes for entry in entries if entry.file_system == name) <= space
        for target in policy.targets:
            there = [e for r, e in zip(runs, entries, strict=True) if r.target == target.name]
            assert all(entry.file_system == target.file_system for entry in there)
            assert not caps.per_target or len(there) <= caps.per_target
            assert not target.safe or sum(entry.opens for entry in there) <= target.safe
        placed = {target.file_system for target in policy.targets}
        for run, entry in zip(runs, entries, strict=True):
            assert bool(run.target) == (entry.file_system in placed)

    def _check_bucket(self) -> None:
        """In no span of time more starts than the bucket holds and gets in it."""
        assert self.policy.stagger is not None
        starts, per = self.policy.stagger.starts, round(self.policy.stagger.per * NS)
        self.heavy_starts.append(self.now)
        for count, since in enumerate(reversed(self.heavy_starts[-200:]), 1):
            assert count * per <= starts * per + (self.now - since) * starts

    # ---- the machine ----------------------------------------------------------------------

    def at(self, seconds: float, happen: Callable[..., None], *what: Any) -> None:
        self.count += 1
        heapq.heappush(self.heap, (self.now + round(seconds * NS), self.count, happen, what))

    def lucky(self, chance: float) -> bool:
        """Drawn in any case, so that what is drawn later is the same."""
        drawn = self.random.random()
        return drawn < chance and self.now < START + self.luck.until * NS

    def _schedule(self) -> None:
        """First come, first served; whoever fits passes those that do not, but not for ever."""
        for run_id in list(self.queue):
            run = self.runs[run_id]
            case = self.cases[run.case]
            unfit = self.unfit[self.conductor.state.requests[run.case].unfit]
            usable = sorted(self.free - run.avoid - self.down - unfit)
            if self.names and len(usable) < case.nodes:
                if self.now - run.launched > 30 * NS:
                    return  # it has waited for long: nobody passes it any more
                continue
            self.queue.remove(run_id)
            run.on = tuple(usable[: case.nodes])
            self._check_start(run)
            run.started = self.now
            self.free -= set(run.on)
            self.note(JobStarted, run_id, run.case, nodes=",".join(run.on))
            self._draw_end(run_id, run, case)

    def _draw_end(self, run_id: str, run: Run, case: Case) -> None:
        luck, seconds = self.luck, self.elapsed(case, self.random)
        wrong, late, lost, hangs = map(
            self.lucky, (luck.wrong, luck.timeout, luck.lost, luck.hangs)
        )
        if hangs:
            self.at(seconds, self._hangs, run_id)
            self.at(case.walltime + 600, self._ends, run_id, codes.TIMEOUT.number)
        elif late:
            self.at(case.walltime, self._ends, run_id, codes.TIMEOUT.number)
        else:
            code = codes.WRONG_ANSWER if wrong else codes.LOST if lost else codes.PASS
            self.at(seconds, self._ends, run_id, code.number)

    def _hangs(self, run_id: str) -> None:
        if run_id in self.runs:
            self.note(OutputQuiet, run_id, self.runs[run_id].case, seconds=100.0)

    def _ends(self, run_id: str, code: int) -> None:
        run = self.runs.pop(run_id, None)
        if run is None:
            return
        if run_id in self.queue:
            self.queue.remove(run_id)
        self.free |= set(run.on)
        if code == codes.CANCELLED.number and self.conductor.state.ended_for(run_id) is not None:
            code = codes.HUNG.number
        recalled = code == codes.RECALLED.number
        nodes = ",".join(run.on)
        self.note(JobEnded, run_id, run.case, nodes=nodes, code=code, recalled=recalled)
        self.unjudged[run_id] = run
        self.delivered[run.entry] += len(run.on) or 1
        if self.lucky(0.5):
            self.at(self.random.uniform(0, 3), self._judged, run_id, code)
        else:
            self._judged(run_id, code)

    def _judged(self, run_id: str, code: int) -> None:
        run = self.unjudged.pop(run_id)
        entry = self.policy.entries[run.entry]
        cause = codes.code_of(code).name
        if entry.answers.get(cause) == "elsewhere" and run.on:
            fell = {node for node in run.on if node in self.down}
            self.failed_on.setdefault(run.case, set()).update(fell or run.on)
        again = self.conductor.state.will_rerun(run.case, run_id, code)
        if not again:
            self.verdicts.append((run.case, code))
        self.note(RunJudged, run_id, run.case, code=code, will_rerun=again)

    def _build_ends(self, key: str) -> None:
        if key in self.building:
            self.building.remove(key)
            bad = self.lucky(self.luck.bad_builds)
            self.note(BuildEnded, key=key, code=int(bad), log="log" if bad else "")

    def _minute(self) -> None:
        """What may happen at any time."""
        luck = self.luck
        fall, person, crash = map(self.lucky, (luck.node_falls, luck.people, luck.crashes))
        node = self.random.choice(self.names) if self.names else ""
        deed = self.random.choice([self._pause, self._cancel, self._stop, self._admit])
        if fall and node and node not in self.down:
            self._node_falls(node)
        if crash and not self.held:
            self._take_up()
        if self.held:
            self._take_up()
        elif person:
            deed()
        if luck.changes and self.lucky(luck.changes) and not self.held:
            self.random.choice([self._change, self._change, self._hold, self._release])()
        if self.now >= START + luck.until * NS:
            self._release()
            self._admit()  # nobody is held back for ever
        self.at(60, self._minute)

    def _node_falls(self, node: str) -> None:
        self.down.add(node)
        self.note(NodeDown, nodes=node)
        for run_id, run in list(self.runs.items()):
            if node in run.on:
                self._ends(run_id, codes.NODE_FAILURE.number)
        self.at(self.random.uniform(30, 300), self._node_rises, node)

    def _node_rises(self, node: str) -> None:
        self.down.discard(node)
        self.note(NodeUp, nodes=node)

    def _read_gauge(self, throttle: Any) -> None:
        failing, value = self.lucky(self.luck.gauge_fails), self.random.uniform(0, 10)
        if failing:
            self.note(GaugeRead, gauge=throttle.gauge, reason="it hangs")
        else:
            if self.now >= START + self.luck.until * NS:
                value = throttle.lowest - 1 if throttle.target is None else 0.0
            self.note(GaugeRead, gauge=throttle.gauge, value=value)
            fresh = max(self.read.get(throttle.gauge, 0), self.since)
            told = throttle.target is None or self.read.get(throttle.gauge, 0) >= self.since
            if self.now >= fresh + round(throttle.stale_after * NS) or not told:
                self.closed_at.pop(throttle.gauge, None)  # it was as it is on failure
            self.read[throttle.gauge] = self.now
            self.values[throttle.gauge] = value
            if value > throttle.highest:
                self.closed[throttle.gauge] = True
            elif (
                value < throttle.lowest
                or throttle.target == value
                or self.closed[throttle.gauge] is None
            ):
                self.closed[throttle.gauge] = False
                self.closed_at.pop(throttle.gauge, None)
            if self.closed[throttle.gauge]:
                self.closed_at.setdefault(throttle.gauge, self.now)
        self.at(20, self._read_gauge, throttle)

    # ---- people ---------------------------------------------------------------------------

    def _pause(self) -> None:
        self.ran, self.held = self.clock(), True
        self.note(TrialPaused, reason="a person said so")

    def _cancel(self) -> None:
        self.ran, self.held = self.clock(), True
        self.building.clear()
        self.note(TrialCancelled, reason="a person said so")

    def _take_up(self) -> None:
        """The driver died, or had ended: another one takes the trial up from its journal."""
        self.conductor = self.replayed()
        self.building.clear()
        self.ran, self.held, self.since = self.clock(), False, self.now
        self.finish = None
        self.note(TrialResumed)

    def _stop(self) -> None:
        name = self.policy.entries[0].name
        if name not in self.stopped:
            self.stopped[name] = self.now
            self.note(TestStopped, test=name, reason="a person said so")

    def _admit(self) -> None:
        for name in sorted(self.stopped):
            del self.stopped[name]
            self.told.pop(("stopped", name), None)
            self.note(TestAdmitted, test=name)
        for node in sorted(self.excluded):
            del self.excluded[node]
            self.told.pop(("excluded", node), None)
            self.note(NodeAdmitted, nodes=node)

    def _hold(self) -> None:
        name = self.random.choice([entry.name for entry in self.policy.entries])
        if self.random.random() < 0.3:
            if self.heavy_on_hold is None:
                self.heavy_on_hold = self.now
            self.note(TestHeld, io="heavy", by="a person")
        else:
            self.on_hold.setdefault(name, self.now)
            self.note(TestHeld, test=name, by="a person")

    def _release(self) -> None:
        for name in sorted(self.on_hold):
            self.note(TestReleased, test=name)
        if self.heavy_on_hold is not None:
            self.note(TestReleased, io="heavy")
        self.on_hold, self.heavy_on_hold = {}, None

    def _change(self) -> None:
        """What a plan may change of each kind of component."""
        kind, policy, draw = self.policy.kind, self.policy, self.random
        name = draw.choice([entry.name for entry in policy.entries])
        changed: dict[str, Any] = {"stop_after": draw.choice([0, 2]), "attempts": 3}
        parts: dict[str, Any] = {"entries": {name: changed}}
        parts["exclusion"] = to_builtins(replace(policy.exclusion, after=draw.choice([0, 1, 2])))
        parts["watch"] = to_builtins(replace(policy.watch, short_for=draw.choice([0.0, 60.0])))
        if draw.random() < 0.5:
            stagger = RateLimit(starts=draw.choice([1, 3]), per=11.3)
            if stagger != policy.stagger:
                self.heavy_starts = []
            parts["stagger"] = to_builtins(stagger)
        if kind != "isolated_then_full":
            changed["most"] = draw.choice([0, 1, 4])
            parts["caps"] = to_builtins(replace(policy.caps, machine=draw.choice([0, 3, 6])))
        if kind == "sustained":
            changed |= {"copies": draw.choice([0, 1, 2]), "weight": draw.choice([0.0, 0.2, 0.7])}
            parts["reserve"] = draw.choice([0, 2, 4])
            parts["duration"] = policy.duration + draw.choice([0, 50])
        self.policy = with_parts(policy, parts)
        self.note(PolicyChanged, parts=parts, by="a person")
