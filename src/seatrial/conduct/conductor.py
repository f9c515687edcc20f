"""The conductor: decides what starts next. Events in, commands out; no I/O, no clock, no chance.

    conductor = Conductor(tag, cases, limits, policy)
    for event in journal: conductor.apply(event)      # recovery is replay
    while conductor.changed or now >= wake:           # what a driver does
        conductor.changed = False
        for command in conductor.decide(now): ...     # announced (apply), then carried out

A command changes nothing by itself: the driver first records the event that announces the act
(build_start, submit_start, check_end, test_stop, node_exclude, alert), which is then applied. So it
asks again as long as that changed something; then nothing is to decide before the next event that
changes something, or the time of the ``Wake``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from seatrial.conduct.admission import Gates
from seatrial.conduct.commands import (
    Alert,
    Cancel,
    Command,
    ExcludeNodes,
    Finish,
    Launch,
    Recall,
    Reject,
    StartBuild,
    StopTest,
    Wake,
)
from seatrial.conduct.demand import Offer, Supply
from seatrial.conduct.policy import Limits
from seatrial.conduct.state import State
from seatrial.conduct.watch import Finding
from seatrial.journal.codes import BUILD_FAILED

__all__ = ["Conductor", "Limits"]

NONE: frozenset[str] = frozenset()


class Conductor(State):
    """Decides for one trial."""

    # ---- commands out ---------------------------------------------------------------------

    def decide(self, now: int = 0) -> list[Command]:
        """What is to be done at ``now`` (ns). The driver records the announcing events, applies
        them and acts; asked again before that, the answer is the same."""
        commands: list[Command] = []
        launches: list[Launch] = []
        gates = self.admission.gates(now)
        over = self.over_at is not None and now >= self.over_at
        if self.queued and not self.cancelling:
            commands += self._recalls(now, gates)
        if self.cancelling or self.hung:
            commands += self._cancels()
        if not self.held:
            rejections = list(self._rejections()) if self.rejects else []
            commands += rejections
            if not self.too_many(self.failures + len(rejections)):
                stops: list[Command] = []
                if self.answers.to_stop or self.nodes.any_suspect:
                    stops += self._stops(now)
                    commands += stops
                if self.builds.to_start and not over:
                    commands += map(StartBuild, self.builds.next(self.limits.builds))
                if not over and not stops:  # else asked again when they hold
                    launches = self._launches(now, gates)
                    commands += launches
        waits = (self.queued or launches) and not self.cancelling
        wake = hold = gates.next_hold if waits else None
        if self.clock.running and not self.held:
            wake = self._wake(now, launches, gates, hold)
            for finding in self._findings(now, over, gates):
                if finding.time <= now:
                    commands.append(Alert(finding.kind, finding.subject, finding.text()))
                elif wake is None or finding.time < wake:
                    wake = finding.time
        idle = not commands and not self.in_flight and not self.builds.running
        if idle and (why := self._why_over(over)) is not None:
            commands.append(Finish(self._complete(over), why))
        elif wake is not None:
            commands.append(Wake(wake))
        return commands

    def _cancels(self) -> Iterator[Cancel]:
        for run_id, flight in (self.in_flight if self.cancelling else self.hung).items():
            if flight.holds_room:
                yield Cancel(run_id)

    def _recalls(self, now: int, gates: Gates) -> Iterator[Recall]:
        """What waits at the scheduler and is not to start now, or not on nodes that it may get:
        those that it must avoid are fixed when it is launched."""
        admission, nodes = self.admission, self.nodes
        held = gates.held
        exclusions = nodes.exclusions if nodes.excluded and nodes.allowed is not None else 0
        if not held and not exclusions and not admission.shut:
            return
        for run_id, flight in self.queued.items():
            if (
                flight.entry in held
                or (flight.exclusions < exclusions and not self.cases[flight.case].node)
                or admission.shut_since(now, flight.entry, flight.launched)
            ):
                yield Recall(run_id)

    def _rejections(self) -> Iterator[Reject]:
        most = self.limits.max_failures
        rejects = ((number, n) for number, runs in self.rejects.items() for n in range(runs))
        for number, ahead in islice(rejects, most - self.failures if most else None):
            why = self.builds.why_failed[self.cases[number].build]
            yield Reject(number, self.run_id(number, ahead), BUILD_FAILED.number, why)

    def _stops(self, now: int) -> Iterator[StopTest | ExcludeNodes]:
        for number, why in self.answers.to_stop.items():
            if number not in self.admission.stopped:
                yield StopTest(self.policy.entries[number].name, why)
        for node, why in self.nodes.to_exclude(now):
            yield ExcludeNodes(node, why)

    def _launches(self, now: int, gates: Gates) -> list[Launch]:
        places = self._free_places()
        admission, room = self.admission, self._free_room()
        nodes = self.nodes.usable_beside(admission.shut_nodes(now, -1) if admission.shut else NONE)
        launches: list[Launch] = []
        if places < 1 or not self.demand.wants(self.counts, room, nodes):
            return launches
        shut: dict[int, frozenset[str]] = {}
        if admission.shut:
            entries = range(len(self.policy.entries))
            shut = {n: each for n in entries if (each := admission.shut_nodes(now, n))}
        fewer = {n: len(each - self.nodes.excluded.keys()) for n, each in shut.items()}
        supply = Supply(room, places, nodes, self.nodes.allowed, fewer)
        offer = Offer(admission, gates, self.counts, now, self.shapes, supply)
        ahead: dict[int, int] = {}
        for choice in self.demand.choose(offer):
            case = choice.case
            nth = ahead.get(case, 0)
            ahead[case] = nth + 1
            away = shut.get(self.shapes[case].entry, NONE) if shut else NONE
            avoid = self.nodes.avoid(case, self.cases[case].nodes, not nth, away)
            run_id = self.run_id(case, nth)
            launches.append(Launch(case, run_id, choice.target, avoid, choice.stage))
        return launches

    # ---- when to ask again, and what people are told ----------------------------------------

    def _wake(self, now: int, launches: list[Launch], gates: Gates, hold: int | None) -> int | None:
        """When something else may start, or end, or be held back, though nothing happens after
        these launches."""
        admission = self.admission
        times = [] if hold is None else [hold]
        if not admission.lets_all:
            launched = [self.shapes[each.case].entry for each in launches]
            starts = gates.next_start, admission.next_token(now, launched)
            times += [time for time in starts if time is not None and time > now]
        if self.over_at is not None and self.over_at > now:
            times.append(self.over_at)
        if launches and (silent_for := self.watchdogs.silent_for):
            times.append(now + silent_for)
        return min(times) if times else None

    def _findings(self, now: int, over: bool, gates: Gates) -> list[Finding]:
        dogs, counts, admission = self.watchdogs, self.counts, self.admission
        found = dogs.once() if dogs.untold else []
        runs, builds = counts.total, len(self.builds.running)
        stuck = None if over else self._why_idle()
        if stuck is not None:
            found.append(Finding(dogs.later("idle", ""), "idle", "", str, (stuck,)))
        idle = not (over or stuck or runs or builds) and len(self.demand) > 0
        why = partial(admission.why_held, now) if idle else None
        silent = dogs.silent(runs, builds, admission.outages, why)
        if silent is not None:
            found.append(silent)
        if not over:
            if (waiting := dogs.waiting(admission.outages)) is not None:
                found.append(waiting)
            if dogs.any_short:
                found += dogs.short(counts.in_flight, admission.stopped, admission.windows_of)
        if self.nodes.any_suspect and (text := self.nodes.beyond_cap(now)):
            found.append(Finding(dogs.later("nodes", ""), "nodes", "", str, (text,)))
        for throttle in gates.failing:
            gauge, trouble = throttle.about.gauge, throttle.trouble(now, admission.since)
            found.append(Finding(dogs.later("gauge", gauge), "gauge", gauge, str, (trouble,)))
        return found

    # ---- the end --------------------------------------------------------------------------

    def _complete(self, over: bool) -> bool:
        if self.abandoned:
            return False
        if self.policy.kind == "sustained":
            return over or self.unbuildable
        return self.finished >= self.wanted

    @property
    def unbuildable(self) -> bool:
        """Whether no run of a sustained trial can ever start: the build of each test failed."""
        builds = self.builds
        if self.policy.kind != "sustained" or not builds.why_failed:
            return False
        return not (len(self.demand) or builds.to_start or builds.running or self.rejects)

    def _why_idle(self) -> str | None:
        """Why a sustained trial launches nothing more unless a person acts, and how; None where
        it does, or may yet."""
        builds, stopped = self.builds, self.admission.stopped
        if self.policy.kind != "sustained" or builds.to_start or builds.running:
            return None
        if len(self.demand) and not stopped and not self.nodes.excluded:
            return None
        why = self._why_stuck()
        if why is None:
            return None
        unbuilt = self.builds.failures(self.cases)
        if not len(self.demand):
            remedy = "the trial ends; mend the builds, and begin the plan anew under another --name"
            return f"nothing can be launched: {unbuilt}; {remedy}"
        causes = "; ".join(filter(None, (why, unbuilt)))
        remedy = "let back in what is mended: `seatrial accept admit PLAN TEST` (or NODES)"
        if unbuilt:
            remedy += "; to have the others built, begin the plan anew under another --name"
        return f"nothing more can be launched: {causes}; {remedy}"

    def _why_over(self, over: bool) -> str | None:
        """Why nothing is left to do; None where there is something to wait for."""
        if self.unbuildable and not (over or self.held):
            return self.builds.failures(self.cases)
        if self.held or self._complete(over):
            return self.held
        if self.policy.kind == "sustained":
            return None
        return "its time is up" if over else self._why_stuck()

    def _why_stuck(self) -> str | None:
        """Why nothing that is left can ever start by itself; None if something can."""
        why: dict[str, None] = {}
        for shape in map(self.shapes.__getitem__, self.demand.left()):
            name, stopped = self.policy.entries[shape.entry].name, self.admission.stopped
            if shape.entry in stopped:
                why[f"{name} is stopped: {stopped[shape.entry]}"] = None
            elif self.nodes.allowed is not None and shape.nodes > self.nodes.allowed:
                left = f"{self.nodes.allowed} are not excluded"
                why[f"{name} needs {shape.nodes} nodes, and {left}"] = None
            else:
                return None
        return "; ".join(why) or "nothing is left that can start"

    # ---- what there is to give away --------------------------------------------------------

    def _free_room(self) -> int:
        """The cores that runs may take. Builds share the node with them and are counted as one, so
        that nothing that wants the node to itself is measured beside a compiler."""
        building = bool(self.builds.running or self.builds.to_start)
        return self.room - 1 if self.limits.room and building else self.room

    def _free_places(self) -> int:
        """How many runs may be given to the backend. A queue is topped up in large portions."""
        waiting = len(self.demand)
        if self.policy.caps.machine:
            waiting = min(waiting, self.policy.caps.machine - self.counts.total)
        if not self.limits.jobs:
            return waiting
        free = max(0, self.limits.jobs - self.counts.total)
        if self.policy.kind == "sustained":
            return min(free, waiting)
        worth_it = free >= min(self.limits.refill, self.limits.jobs) or waiting <= free
        return free if worth_it else 0
