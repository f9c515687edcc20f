"""The conductor: decides what starts next. Events in, decisions out; no I/O, no clock, no chance.

    conductor = Conductor(tag, cases, limits, policy)
    for event in journal: conductor.apply(event)      # recovery is replay
    while conductor.state.changed or now >= wake:     # what a driver does
        conductor.state.changed = False
        decision = conductor.decide(now)              # announced (apply), then carried out

A decision changes nothing by itself: the driver first records the event that announces the act
(build_start, submit_start, check_end, test_stop, node_exclude, alert), which is then applied. Call
`decide` repeatedly until ``changed`` stays False; then wait for an event or for the ``wake`` time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decide.admission import Gates
from seatrial.decide.demand import Offer, Supply
from seatrial.decide.failing import PendingAlert
from seatrial.decide.state import ConductorState
from seatrial.journal.events import AlertRaised, Event, NodeExcluded, TestStopped
from seatrial.model.codes import BUILD_FAILED, PASS
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.policy import Limits, Policy
from seatrial.model.test import Case
from seatrial.units import FAR_FUTURE_NS

# ---- commands ------------------------------------------------------------------------------------
#
# A decision of the conductor: what a driver is to carry out. It answers with events.


class Launch(Struct, frozen=True):
    """Give a new run of a case to the backend. ``case`` is its position in the trial, ``target``
    the metadata target of its directory. ``avoid`` are nodes that it must not get; ``stage`` is
    ``alone`` or ``full`` in a component that compares the two. Launches with the same ``bundle``
    (the id of its first run; "": none) share an allocation, in the order of ``position``, from 1
    on. ``nodes`` are those that it must get, with commas, in the order of its ranks ("": those that
    the scheduler chooses)."""

    case: int
    run_id: str
    target: str = ""
    avoid: str = ""
    stage: str = ""
    bundle: str = ""
    position: int = 0
    nodes: str = ""


def in_bundles(launches: Iterable[Launch], groups: Iterable[int]) -> list[Launch]:
    """Return the launches; those of one group (0: none) as a bundle, in their order."""
    members: dict[int, list[str]] = {}
    found = []
    for launch, group in zip(launches, groups, strict=True):
        if group:
            together = members.setdefault(group, [])
            together.append(launch.run_id)
            launch = replace(launch, bundle=together[0], position=len(together))
        found.append(launch)
    return found


class BuildVerdict(Struct, frozen=True):
    """Record a run without a job, as its build failed or the build is all of its test: the code of
    its verdict and the reason."""

    case: int
    run_id: str
    code: int
    reason: str


class Finish(Struct, frozen=True):
    """End the drive. ``complete`` is False where cases remain that were not started."""

    complete: bool
    reason: str


class Decision(Struct):
    """What is to be done now, in this order: runs that get their verdict ``by_build``; tests and
    nodes to take out (``stops``, recorded without a time); keys of builds to start; alerts to
    record; runs to launch; ids of runs to cancel, and of runs to recall if their jobs have not
    started. An alert of the same kind and subject is raised again only after a while, which the
    event of the first makes known. ``wake`` is the time (ns) at which to decide again even if no
    event comes before."""

    by_build: list[BuildVerdict] = []
    stops: list[TestStopped | NodeExcluded] = []
    builds: list[str] = []
    alerts: list[AlertRaised] = []
    launches: list[Launch] = []
    cancels: list[str] = []
    recalls: list[str] = []
    wake: int | None = None
    finish: Finish | None = None

    def acts(self) -> Iterator[tuple[str, object]]:
        """Yield what is to be carried out, in order, each with the name of its member."""
        for name in ("by_build", "stops", "builds", "alerts", "launches", "cancels", "recalls"):
            for each in getattr(self, name):
                yield name, each

    @property
    def idle(self) -> bool:
        """Whether nothing is to be carried out."""
        return next(self.acts(), None) is None


# ---- conductor -----------------------------------------------------------------------------------


__all__ = ["Conductor", "Limits"]

NONE: frozenset[str] = frozenset()


class Conductor:
    """Decides for one trial, by what its ``state`` knows."""

    def __init__(
        self, tag: str, cases: Sequence[Case], limits: Limits, policy: Policy | None = None
    ) -> None:
        self.state = ConductorState(tag, cases, limits, policy)
        self.apply: Callable[[Event], None] = self.state.apply
        """Folds one event into the state."""

    def decide(self, now: int = 0) -> Decision:
        """Return what is to be done at ``now`` (ns), by these rules in their order. The driver
        records the announcing events, applies them and acts; asked again before that, the answer is
        the same."""
        state = self.state
        gates, builds = state.admission.gates(now), state.builds
        over = state.over_at is not None and now >= state.over_at
        decision = Decision()

        # 1. Recall queued runs that must not start now, or not on nodes that they may get.
        if state.queued and not state.cancelling:
            decision.recalls = self._recalls(now, gates.held)

        # 2. Cancel all runs of a trial that is cancelled, else those that hang or that a person
        #    asked to cancel.
        if state.cancelling or state.ending:
            runs = state.in_flight if state.cancelling else state.ending
            decision.cancels = [run_id for run_id, flight in runs.items() if flight.holds_room]

        # 3. Judge runs by their build; too many failures hold everything else back.
        may_start = not state.held
        if may_start and state.by_build:
            decision.by_build += self._verdicts_by_build()
            failed = sum(each.code != PASS.number for each in decision.by_build)
            may_start = not state.too_many(state.failures + failed)

        # 4. Stop tests and exclude nodes that failed too often.
        if may_start and (state.retry_policy.to_stop or state.nodes.suspects):
            decision.stops += self._stops(now)

        # 5. Start builds.
        may_start = may_start and not over
        if may_start and builds.to_start:
            decision.builds += builds.next(state.limits.builds)

        # 6. Launch runs, unless a test or a node is just being taken out: then it is asked again.
        if may_start and not decision.stops:
            decision.launches = self._launches(now, gates)

        # 7. Raise the alerts that are due, and find out when to ask again.
        if (state.queued or decision.launches) and not state.cancelling:
            decision.wake = gates.next_hold
        if state.trial.clock_runs and not state.held:
            self._report(now, over, gates, decision)

        # 8. Finish where nothing is left to do or to wait for.
        if not state.in_flight and not builds.running and decision.idle:
            reason = self._why_over(over)
            if reason is not None:
                decision.finish, decision.wake = Finish(self._complete(over), reason), None
        return decision

    # ---- what the rules are about -----------------------------------------------------------

    def _recalls(self, now: int, held: frozenset[int]) -> list[str]:
        """The nodes that a run must avoid are fixed when it is launched."""
        state = self.state
        admission, nodes = state.admission, state.nodes
        exclusions = nodes.exclusions if nodes.excluded and nodes.allowed is not None else 0
        placed = state.placer is not None and nodes.down
        if not (held or exclusions or admission.shut or placed):
            return []
        return [
            run_id
            for run_id, flight in state.queued.items()
            if flight.entry in held
            or (flight.exclusions < exclusions and not state.cases[flight.case].node)
            or admission.shut_since(now, flight.entry, flight.submitted or 0)
            or (flight.placed and not nodes.down.isdisjoint(flight.placed.split(",")))
        ]

    def _verdicts_by_build(self) -> Iterator[BuildVerdict]:
        state = self.state
        most, failures = state.limits.max_failures, state.failures
        runs = ((number, n) for number, runs in state.by_build.items() for n in range(runs))
        for number, ahead in runs:
            reason = state.builds.why_failed[state.cases[number].build]
            code = BUILD_FAILED if reason else PASS
            failures += code is BUILD_FAILED
            if most and failures > most:
                return
            yield BuildVerdict(number, state.run_id(number, ahead), code.number, reason)

    def _stops(self, now: int) -> Iterator[TestStopped | NodeExcluded]:
        state = self.state
        for number, reason in state.retry_policy.to_stop.items():
            if number not in state.admission.stopped:
                yield TestStopped(test=state.policy.entries[number].name, reason=reason)
        for node, reason in state.nodes.to_exclude(now):
            yield NodeExcluded(nodes=node, reason=reason)

    def _launches(self, now: int, gates: Gates) -> list[Launch]:
        state = self.state
        free_places = self._free_places()
        admission, room = state.admission, self._free_room()
        nodes = state.nodes.usable_beside(admission.shut_nodes(now, -1) if admission.shut else NONE)
        launches: list[Launch] = []
        if free_places < 1 or not state.demand.wants(state.counts, room, nodes):
            return launches
        shut: dict[int, frozenset[str]] = {}
        if admission.shut:
            entries = range(len(state.policy.entries))
            shut = {n: each for n in entries if (each := admission.shut_nodes(now, n))}
        fewer: dict[tuple[int, int], int] = {}
        if shut or state.policy.unfit:
            fewer = {
                (entry, unfit): state.nodes.lost_for(unfit, shut.get(entry, NONE))
                for entry, unfit in state.kinds
            }
        gpus = state.free.gpus if state.limits.gpus else None
        supply = Supply(
            room, free_places, nodes, state.nodes.allowed, fewer, gpus, state.nodes.pools
        )
        offer = Offer(admission, gates, state.counts, now, state.shapes, supply)
        ahead: dict[int, int] = {}
        bundles: list[int] = []
        placed = PlacedLaunches(state) if state.placer is not None else None
        for choice in state.demand.choose(offer):
            case = choice.case
            nth = ahead.get(case, 0)
            ahead[case] = nth + 1
            shape = state.shapes[case]
            away = shut.get(shape.entry, NONE) if shut else NONE
            avoid = state.nodes.avoid(case, shape.nodes, not nth, away, shape.unfit)
            run_id = state.run_id(case, nth)
            chosen: str | None = ""
            if placed is not None:
                chosen = placed.nodes_for(case, run_id, avoid, choice.bundle)
            if chosen is None:  # there are none now; it keeps its turn
                ahead[case] = nth
                continue
            launches.append(Launch(case, run_id, choice.target, avoid, choice.stage, nodes=chosen))
            bundles.append(choice.bundle)
        return in_bundles(launches, bundles) if any(bundles) else launches

    # ---- when to ask again, and what people are told ----------------------------------------

    def _report(self, now: int, over: bool, gates: Gates, decision: Decision) -> None:
        state, launches = self.state, decision.launches
        admission = state.admission
        # When something else may start, or end, or be held back, though nothing happens.
        times = [decision.wake, state.over_at]
        shapes = [state.shapes[each.case] for each in launches]
        if not over:
            times.append(state.demand.next_start(now, shapes, state.counts))
        if not admission.lets_all:
            times += gates.next_start, admission.next_token(now, shapes)
        if launches and (silent_for := state.watchdogs.silent_for):
            times.append(now + silent_for)
        for finding in self._findings(now, over, gates):
            if finding.time <= now:
                kind, subject, text = finding.kind, finding.subject, finding.text()
                decision.alerts.append(AlertRaised(kind=kind, subject=subject, text=text))
            times.append(finding.time)
        earliest = FAR_FUTURE_NS
        for time in times:
            if time and now < time < earliest:
                earliest = time
        decision.wake = earliest if earliest < FAR_FUTURE_NS else None

    def _findings(self, now: int, over: bool, gates: Gates) -> list[PendingAlert]:
        state = self.state
        dogs, counts, admission = state.watchdogs, state.counts, state.admission
        found = dogs.once() if dogs.untold else []
        runs, builds = counts.total, len(state.builds.running)
        stuck = None if over else self._why_idle()
        if stuck is not None:
            found.append(dogs.pending("idle", "", stuck))
        idle = not (over or stuck or runs or builds) and len(state.demand) > 0
        reason = partial(admission.why_held, now) if idle else None
        if not builds:  # they have time limits of their own
            silent = dogs.silent(runs, admission.outages, reason)
            if silent is not None and silent.time <= now and runs:
                until = state.run_times.next_end(state.in_flight.values(), dogs.latest)
                silent = dogs.silent(runs, admission.outages, reason, until)
            if silent is not None:
                found.append(silent)
        if not over:
            found += dogs.waiting(now, admission.outages, self._patience)
            if since := state.shortages.since:
                windows = admission.windows_of
                found += dogs.short(since, counts.in_flight, admission.shelved, windows)
        if not over:
            stopped = admission.stopped
            for subject, text in state.failing.found(stopped, state.nodes.excluded).items():
                found.append(dogs.pending("failing", subject, text))
            for number, stop in state.stopped_at.items() if stuck is None else ():
                found.append(dogs.still_stopped(number, stop, stopped[number]))
        if state.nodes.suspects and (text := state.nodes.beyond_cap(now)):
            found.append(dogs.pending("nodes", "", text))
        if not over and state.placer is not None:
            for test, text in short_places(state).items():
                found.append(dogs.pending("place", test, text))
        for throttle in gates.failing:
            trouble = throttle.trouble(now, admission.since)
            found.append(dogs.pending("gauge", throttle.about.gauge, trouble))
        return found

    def _patience(self) -> int:
        """Return for how long (ns) it is normal that runs wait: as long as those that hold the
        nodes take, once for each machine full of waiting runs."""
        state = self.state
        wanted = sum(width * runs for width, runs in state.counts.queued_widths.items())
        if state.nodes.usable - state.counts.running >= wanted:
            return 0
        turns = -(-wanted // max(1, state.nodes.usable))
        return turns * state.run_times.longest(state.in_flight.values())

    # ---- the end --------------------------------------------------------------------------

    def _complete(self, over: bool) -> bool:
        state = self.state
        if state.abandoned:
            return False
        if state.policy.kind == "sustained":
            return over or self.unbuildable
        return state.finished >= state.wanted

    @property
    def unbuildable(self) -> bool:
        """Whether no run of a sustained trial can ever start: the build of each test failed."""
        state = self.state
        builds = state.builds
        if state.policy.kind != "sustained" or not builds.why_failed:
            return False
        return not (len(state.demand) or builds.to_start or builds.running or state.by_build)

    def _why_idle(self) -> str | None:
        """Why a sustained trial launches nothing more unless a person acts, and how; None where
        it does, or may yet."""
        state = self.state
        builds, stopped = state.builds, state.admission.stopped
        if state.policy.kind != "sustained" or builds.to_start or builds.running:
            return None
        if len(state.demand) and not stopped and not state.nodes.excluded:
            return None
        reason = self._why_stuck()
        if reason is None:
            return None
        unbuilt = state.builds.failures(state.cases)
        if not len(state.demand):
            remedy = "the trial ends; mend the builds, and begin the plan anew under another --name"
            return f"nothing can be launched: {unbuilt}; {remedy}"
        causes = "; ".join(filter(None, (reason, unbuilt)))
        remedy = "let back in what is mended: `seatrial accept admit PLAN TEST` (or NODES)"
        if unbuilt:
            remedy += "; to have the others built, begin the plan anew under another --name"
        return f"nothing more can be launched: {causes}; {remedy}"

    def _why_over(self, over: bool) -> str | None:
        """Why nothing is left to do; None where there is something to wait for."""
        state = self.state
        if self.unbuildable and not (over or state.held):
            return state.builds.failures(state.cases)
        if state.held or self._complete(over):
            return state.held
        if state.policy.kind == "sustained":
            return None
        return "its time is up" if over else self._why_stuck()

    def _why_stuck(self) -> str | None:
        """Why nothing that is left can ever start by itself; None if something can."""
        state = self.state
        reason: dict[str, None] = {}
        for shape in map(state.shapes.__getitem__, state.demand.left()):
            name, stopped = state.policy.entries[shape.entry].name, state.admission.stopped
            if shape.entry in stopped:
                reason[f"{name} is stopped: {stopped[shape.entry]}"] = None
            elif (left := state.nodes.allowed_for(shape.unfit)) is not None and shape.nodes > left:
                such = " of those that it can use" if shape.unfit else ""
                reason[f"{name} needs {shape.nodes} nodes, and {left}{such} are not excluded"] = (
                    None
                )
            else:
                return None
        return "; ".join(reason) or "nothing is left that can start"

    # ---- what there is to give away --------------------------------------------------------

    def _free_room(self) -> int:
        """The cores that runs may take. Builds share the node with them and are counted as one, so
        that nothing that wants the node to itself is measured beside a compiler."""
        state = self.state
        building = bool(state.builds.running or state.builds.to_start)
        return state.free.room - 1 if state.limits.room and building else state.free.room

    def _free_places(self) -> int:
        """How many runs may be given to the backend. A queue is topped up in large portions."""
        state = self.state
        waiting = len(state.demand)
        if most := state.policy.caps.machine:
            waiting = min(waiting, most - state.counts.total)
        if not state.limits.jobs:
            return waiting
        free = state.limits.jobs - state.free.jobs
        if free <= 0:
            return 0
        if state.policy.kind == "sustained":
            return free if free < waiting else waiting
        worth_it = free >= min(state.limits.refill, state.limits.jobs) or waiting <= free
        return free if worth_it else 0


# ---- executor ------------------------------------------------------------------------------------
#
# Carrying out a decision, in one order for the driver and for the rehearsal.
#
# for step in carry_out(conductor.decide(now), executor):
#     await step                                # a rehearsal has nothing to wait for


T = TypeVar("T", covariant=True)


class Executor(Protocol[T]):
    """Carries out a decision. What ``launch``, ``cancel`` and ``recall`` return is awaited by the
    driver."""

    def start_build(self, key: str) -> None: ...

    def judge_by_build(self, command: BuildVerdict) -> None: ...

    def note(self, event: Event) -> None:
        """Record an event, which lacks its time and its trial."""

    def launch(self, launches: Sequence[Launch]) -> T: ...

    def cancel(self, run_ids: Sequence[str]) -> T: ...

    def recall(self, run_ids: Sequence[str]) -> T: ...


def carry_out(decision: Decision, executor: Executor[T]) -> Iterator[T]:
    """Carry out a decision: first what is done by recording it, then launches, cancellations and
    recalls. Yields what these three return. ``wake`` and ``finish`` are the caller's."""
    for command in decision.by_build:
        executor.judge_by_build(command)
    for stop in decision.stops:
        executor.note(stop)
    for key in decision.builds:
        executor.start_build(key)
    for alert in decision.alerts:
        executor.note(alert)
    yield executor.launch(decision.launches)
    if decision.cancels:
        yield executor.cancel(decision.cancels)
    if decision.recalls:
        yield executor.recall(decision.recalls)


# ---- placed launches -----------------------------------------------------------------------------
#
# Placed runs that are launched: each gets nodes that no other run of the trial has or waits for.
#
#     placed = PlacedLaunches(state)  # of one decision
#     placed.nodes_for(case, run_id, avoid, 0)
#     # "n003,n001", "" for a run that is not placed, or None


class PlacedLaunches:
    """Chooses the nodes of the runs of one decision; a bundle gets its nodes once."""

    def __init__(self, state: ConductorState) -> None:
        self._state = state
        self._taken = _in_use(state)
        self._bundles: dict[int, str | None] = {}

    def nodes_for(self, case: int, run_id: str, avoid: str, bundle: int) -> str | None:
        """Return the names of the nodes for a run, with commas, in the order of its ranks; "" if it
        is not placed, None if there are no such nodes now."""
        placer = self._state.placer
        if placer is None or not placer.is_placed(case):
            return ""
        if bundle in self._bundles:
            return self._bundles[bundle]
        lost = self._taken.union(_out_of_use(self._state), unfold_or_empty(avoid))
        choice = placer.choose(case, lost, run_id)
        found = placer.names(choice) or None
        if found:
            self._taken.update(found.split(","))
        if bundle:
            self._bundles[bundle] = found
        return found


def short_places(state: ConductorState) -> dict[str, str]:
    """Return the tests of which placed runs wait for nodes that are down or excluded, each with the
    level that is short. Nodes that other runs of the trial have are no reason: they will end."""
    placer, found = state.placer, dict[str, str]()
    lost = _out_of_use(state)
    if placer is None or not lost:  # what all nodes could not hold was left out
        return found
    for case in filter(placer.is_placed, state.demand.left()):
        about = state.cases[case]
        short = "" if about.test in found else placer.choose(case, lost, "").short
        if short:
            found[about.test] = f"{about.name} waits: of the nodes that are up, {short}"
    return found


def _out_of_use(state: ConductorState) -> set[str]:
    return state.nodes.down.union(state.nodes.excluded)


def _in_use(state: ConductorState) -> set[str]:
    """Return the nodes that runs of the trial have, or were launched to get."""
    found: set[str] = set()
    for flight in state.in_flight.values():
        if flight.holds_room:
            found.update(
                flight.placed.split(",") if flight.placed else unfold_or_empty(flight.nodes)
            )
    return found
