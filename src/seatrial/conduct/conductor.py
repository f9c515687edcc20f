"""The conductor: decides what starts next. Events in, commands out; no I/O, no clock, no chance.

    conductor = Conductor(tag, cases, limits, policy)
    for event in journal: conductor.apply(event)      # recovery is replay
    for command in conductor.decide(now): ...         # carried out by a driver

A command changes nothing by itself: the driver first records the event that announces the act
(build_start, submit_start, check_end, ...), which is then applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from seatrial.conduct.commands import (
    Alert,
    Cancel,
    Command,
    ExcludeNodes,
    Finish,
    Launch,
    Reject,
    StartBuild,
    StopTest,
    Wake,
)
from seatrial.conduct.demand import Offer
from seatrial.conduct.policy import Limits
from seatrial.conduct.state import State
from seatrial.conduct.watch import Finding
from seatrial.journal.codes import BUILD_FAILED
from seatrial.units import show_seconds

__all__ = ["Conductor", "Limits"]


class Conductor(State):
    """Decides for one trial."""

    # ---- commands out ---------------------------------------------------------------------

    def decide(self, now: int = 0) -> list[Command]:
        """What is to be done at ``now`` (ns). The driver records the announcing events, applies
        them and acts; asked again before that, the answer is the same."""
        commands: list[Command] = list(self._cancels())
        if not self.held:
            rejections = list(self._rejections())
            commands += rejections
            if not self.too_many(self.failures + len(rejections)):
                commands += map(StartBuild, self.builds.next(self.limits.builds))
                commands += self._stops(now)
                commands += self._launches(now)
        alerts, later = self._alerts(now)
        commands += alerts
        idle = not self.in_flight and not self.builds.running
        if not commands and idle and (why := self._why_over(now)) is not None:
            commands.append(Finish(self._complete(now), why))
        elif (wake := self._wake(now, later)) is not None:
            commands.append(Wake(wake))
        return commands

    def _cancels(self) -> Iterator[Cancel]:
        for run_id, flight in (self.in_flight if self.cancelling else self.hung).items():
            if flight.holds_room:
                yield Cancel(run_id)

    def _rejections(self) -> Iterator[Reject]:
        most = self.limits.max_failures
        rejects = ((number, n) for number, runs in self.rejects.items() for n in range(runs))
        for number, ahead in islice(rejects, most - self.failures if most else None):
            why = self.builds.why_failed[self.cases[number].build]
            yield Reject(number, self.run_id(number, ahead), BUILD_FAILED.number, why)

    def _stops(self, now: int) -> Iterator[StopTest | ExcludeNodes]:
        for number, entry in enumerate(self.policy.entries):
            if number not in self.admission.stopped and (why := self.answers.why_stopped(number)):
                yield StopTest(entry.name, why)
        for node, why in self.nodes.to_exclude(now):
            yield ExcludeNodes(node, why)

    def _launches(self, now: int) -> Iterator[Launch]:
        places = self._free_places()
        if not places or self._time_is_up(now):
            return
        nodes = self.nodes.usable
        desk = self.admission.desk(now, self.counts)
        offer = Offer(desk, self._free_room(), places, nodes, self.size, self.entry_and_nodes)
        ahead: Counter[int] = Counter()
        for case, target, stage in self.demand.choose(offer):
            run_id = self.run_id(case, ahead[case])
            ahead[case] += 1
            entry, nodes = self.entry_and_nodes(case)
            avoid = self.nodes.avoid(entry, nodes) if self.nodes.any_bad else ""
            yield Launch(case, run_id, target, avoid, stage)

    def _alerts(self, now: int) -> tuple[list[Alert], int | None]:
        """What is to be told now, and when the next thing will be to tell."""
        if not self.clock.running or self.held:
            return [], None
        alerts: list[Alert] = []
        later: int | None = None
        for finding in self._findings(now):
            if finding.time <= now:
                alerts.append(Alert(finding.kind, finding.subject, finding.text))
            elif later is None or finding.time < later:
                later = finding.time
        return alerts, later

    def _findings(self, now: int) -> Iterator[Finding]:
        dogs, stopped = self.watchdogs, self.admission.stopped
        if not self._time_is_up(now):
            yield from dogs.findings(self.counts.in_flight, stopped)
        for number, why in stopped.items():
            name = self.policy.entries[number].name
            yield from dogs.once("stopped", name, f"{name} is launched no more: {why}")
        for node, why in self.nodes.excluded.items():
            yield from dogs.once("excluded", node, f"{node} gets no more runs: {why}")
        if text := self.nodes.beyond_cap(now):
            yield dogs.repeatedly("nodes", "", text)
        for throttle in self.admission.throttles:
            if throttle.failing(now, self.admission.start) or throttle.failure:
                about = throttle.about
                why = throttle.failure or f"no reading for {show_seconds(about.stale_after)}"
                text = f"gauge {about.gauge} fails: {why}; launches are {about.on_failure}"
                yield dogs.repeatedly("gauge", about.gauge, text)
        for run_id, flight in self.hung.items():
            name = self.policy.entries[flight.entry].name
            yield from dogs.once("hung", run_id, f"{name}: run {run_id} hangs and is ended")

    def _wake(self, now: int, later: int | None) -> int | None:
        """When there will be something to decide though nothing happens."""
        if self.held or not self.clock.running:
            return None
        times = [time for time in self.admission.next_times(now) if time > now]
        if later is not None:
            times.append(later)
        if self.duration and (end := self.clock.at(self.duration)) is not None and end > now:
            times.append(end)
        return min(times, default=None)

    # ---- the end --------------------------------------------------------------------------

    def _time_is_up(self, now: int) -> bool:
        return bool(self.duration) and self.clock.elapsed(now) >= self.duration

    def _complete(self, now: int) -> bool:
        if self.policy.kind == "sustained":
            return not self.abandoned and self._time_is_up(now)
        return self.finished >= self.wanted

    def _why_over(self, now: int) -> str | None:
        """Why nothing is left to do; None where there is something to wait for."""
        if self.held or self._complete(now):
            return self.held
        stopped = [self.policy.entries[n].name for n in self.admission.stopped]
        if self.policy.kind != "sustained" and stopped and not self._waits_for_time(now):
            return f"stopped: {', '.join(stopped)}"
        return None

    def _waits_for_time(self, now: int) -> bool:
        """Whether something that is not stopped is held back, but not for ever."""
        entries = set(range(len(self.policy.entries))) - self.admission.stopped.keys()
        return any(self.admission.held(now, entry) for entry in entries)

    # ---- what there is to give away --------------------------------------------------------

    def _free_room(self) -> int:
        """The cores that runs may take. Builds share the node with them and are counted as one, so
        that nothing that wants the node to itself is measured beside a compiler."""
        building = bool(self.builds.running or self.builds.to_start)
        return self.room - 1 if self.limits.room and building else self.room

    def _free_places(self) -> int:
        """How many runs may be given to the backend. A queue is topped up in large portions."""
        waiting = len(self.demand)
        if not self.limits.jobs:
            return waiting
        free = max(0, self.limits.jobs - self.counts.total)
        if self.policy.kind == "sustained":
            return free if waiting else 0
        worth_it = free >= min(self.limits.refill, self.limits.jobs) or waiting <= free
        return free if worth_it else 0
