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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decide.admission import Gates
from seatrial.decide.demand import Budget
from seatrial.decide.in_flight import RunInFlight
from seatrial.decide.nodes import NodePlacer
from seatrial.decide.state import ConductorState
from seatrial.decide.watchdogs import PendingAlert
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
    """Give a new run of a case to the backend."""

    #: the position of its case in the trial
    case: int
    run_id: str
    #: the metadata target of its directory
    target: str = ""
    #: the nodes that it must not get
    avoid: str = ""
    #: ``alone`` or ``full`` in a component that compares the two
    stage: str = ""
    #: the id of the first run of those that share an allocation; "": it has its own
    bundle: str = ""
    #: the place in its bundle, from 1 on
    position: int = 0
    #: those that it must get, with commas, in the order of its ranks; "": the scheduler chooses
    nodes: str = ""


def in_bundles(launches: Iterable[Launch], groups: Iterable[int]) -> list[Launch]:
    """Return the launches; those of one group (0: none) as a bundle, in their order."""
    members: dict[int, list[str]] = {}
    bundled = []
    for launch, group in zip(launches, groups, strict=True):
        if group:
            together = members.setdefault(group, [])
            together.append(launch.run_id)
            launch = replace(launch, bundle=together[0], position=len(together))
        bundled.append(launch)
    return bundled


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
    """What is to be done now, in this order."""

    by_build: list[BuildVerdict] = []
    #: tests and nodes to take out, recorded without a time
    stops: list[TestStopped | NodeExcluded] = []
    #: keys of builds to start
    builds: list[str] = []
    #: to record; one of the same kind and subject is raised again only after a while, which the
    #: event of the first makes known
    alerts: list[AlertRaised] = []
    launches: list[Launch] = []
    #: ids of runs to cancel
    cancels: list[str] = []
    #: ids of runs to recall if their jobs have not started
    recalls: list[str] = []
    #: the time (ns) at which to decide again even if no event comes before
    wake: int | None = None
    finish: Finish | None = None

    def acts(self) -> Iterator[tuple[str, object]]:
        """Yield what is to be carried out, in order, each with the name of its member."""
        for name in ("by_build", "stops", "builds", "alerts", "launches", "cancels", "recalls"):
            for act in getattr(self, name):
                yield name, act

    @property
    def failed_builds(self) -> int:
        """The number of runs whose build failed."""
        return sum(verdict.code != PASS.number for verdict in self.by_build)

    @property
    def idle(self) -> bool:
        """Whether nothing is to be carried out."""
        return next(self.acts(), None) is None


# ---- conductor -----------------------------------------------------------------------------------


__all__ = ["Conductor", "Limits"]

NONE: frozenset[str] = frozenset()


class Conductor:
    """Decides for one trial, by what its ``state`` knows. ``order`` is the seed of the order of
    repeated runs; default: the tag."""

    def __init__(
        self,
        tag: str,
        cases: Sequence[Case],
        limits: Limits,
        policy: Policy | None = None,
        order: str = "",
    ) -> None:
        self.state = ConductorState(tag, cases, limits, policy, order)
        self.apply: Callable[[Event], None] = self.state.apply
        """Folds one event into the state."""

    def decide(self, now: int = 0) -> Decision:
        """Return what is to be done at ``now`` (ns), by these rules in their order. The driver
        records the announcing events, applies them and acts; asked again before that, the answer is
        the same."""
        state = self.state
        gates = state.admission.gates(now)
        over = state.is_over(now)
        decision = Decision()

        # 1. Recall queued runs that must not start now, or not on nodes that they may get.
        decision.recalls = self._recalls(now, gates.held)

        # 2. Cancel all runs of a trial that is cancelled, else those that hang or that a person
        #    asked to cancel.
        runs = state.in_flight if state.cancelling else state.ending
        decision.cancels = [run_id for run_id, flight in runs.items() if flight.has_job]

        # 3. Judge runs by their build; too many failures hold everything else back.
        may_start = not state.held
        if may_start and state.by_build:
            decision.by_build = list(self._verdicts_by_build())
            may_start = not state.too_many(state.failures + decision.failed_builds)

        # 4. Stop tests and exclude nodes that failed too often.
        if may_start:
            decision.stops = list(self._stops(now))

        # 5. Start builds.
        may_start = may_start and not over
        if may_start:
            decision.builds = list(state.builds.next(state.limits.builds))

        # 6. Launch runs, unless a test or a node is just being taken out: then it is asked again.
        if may_start and not decision.stops:
            decision.launches = self._launches(now, gates)

        # 7. Raise the alerts that are due, and find out when to ask again.
        self._report(now, over, gates, decision)

        # 8. Finish where nothing is left to do or to wait for.
        if not state.in_flight and not state.builds.running and decision.idle:
            reason = self._why_over(over)
            if reason is not None:
                decision.finish, decision.wake = Finish(self._complete(over), reason), None
        return decision

    # ---- what the rules are about -----------------------------------------------------------

    def _recalls(self, now: int, held: frozenset[int]) -> list[str]:
        """The nodes that a run must avoid are fixed when it is launched."""
        state = self.state
        if not state.queued or state.cancelling:
            return []
        excess = state.admission.excess(now)
        if not (state.counts.any_waits(held) or excess or self._nodes_are_lost):
            return []

        return [
            run_id
            for run_id, flight in state.queued.items()
            if flight.entry in held or run_id in excess or self._may_get_wrong_nodes(flight, now)
        ]

    @property
    def _nodes_are_lost(self) -> bool:
        """Whether there are nodes that a queued run must not get, and might."""
        state = self.state
        placed_may_be_down = state.placer is not None and bool(state.nodes.down)
        exclusions = state.nodes.exclusions_in_force
        return bool(exclusions or state.admission.shut or placed_may_be_down)

    def _may_get_wrong_nodes(self, flight: RunInFlight, now: int) -> bool:
        """Return whether a queued run may get nodes that were excluded, closed by a blackout, or
        went down since it was launched."""
        state, placed = self.state, flight.placed
        exclusions = state.nodes.exclusions_in_force
        return (
            (flight.exclusions < exclusions and not state.cases[flight.case].node)
            or state.admission.shut_since(now, flight.entry, flight.submitted or 0)
            or (bool(placed) and not state.nodes.down.isdisjoint(placed.split(",")))
        )

    def _verdicts_by_build(self) -> Iterator[BuildVerdict]:
        state = self.state
        max_failures, failures = state.limits.max_failures, state.failures
        runs = ((number, n) for number, runs in state.by_build.items() for n in range(runs))
        for number, ahead in runs:
            reason = state.builds.why_failed[state.cases[number].build]
            code = BUILD_FAILED if reason else PASS
            failures += code is BUILD_FAILED
            if max_failures and failures > max_failures:
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
        state, free_jobs, free_cores = self.state, self._free_jobs(), self._free_cores()
        admission, nodes = state.admission, state.nodes.usable
        shut: dict[int, frozenset[str]] = {}  # by entry, the nodes that a blackout closes
        if admission.shut:
            nodes = state.nodes.usable_beside(admission.shut_nodes(now, -1))
            by_entry = [(n, admission.shut_nodes(now, n)) for n in range(len(state.policy.entries))]
            shut = {n: names for n, names in by_entry if names}
        if free_jobs < 1 or not state.demand.wants(state.counts, free_cores, nodes):
            return []
        budget = Budget(
            admission,
            gates,
            state.counts,
            now,
            state.requests,
            cores=free_cores,
            jobs=free_jobs,
            nodes=nodes,
            max_nodes=state.nodes.allowed,
            closed_nodes=self._closed_nodes(shut),
            gpus=state.free.gpus if state.limits.gpus else None,
            pools=state.nodes.pools,
        )
        placed = PlacedLaunches(state)
        ahead: dict[int, int] = {}  # by case, the runs that were chosen before
        launches: list[Launch] = []
        bundles: list[int] = []
        for choice in state.demand.choose(budget):
            case, request = choice.case, state.requests[choice.case]
            place = ahead.get(case, 0)
            run_id = state.run_id(case, place)
            avoid = state.nodes.avoid(
                case,
                request.nodes,
                first=not place,
                shut=shut.get(request.entry, NONE),
                unfit=request.unfit,
            )
            chosen = placed.nodes_for(case, run_id, avoid, choice.bundle)
            if chosen is not None:  # else there are none now; it keeps its turn
                ahead[case] = place + 1
                launches.append(
                    Launch(case, run_id, choice.target, avoid, choice.stage, nodes=chosen)
                )
                bundles.append(choice.bundle)
        return in_bundles(launches, bundles)

    def _closed_nodes(self, shut: Mapping[int, frozenset[str]]) -> dict[tuple[int, int], int]:
        """Return, by entry and set of unfit nodes, how many of the nodes that are not excluded its
        runs cannot get."""
        state = self.state
        if not (shut or state.policy.unfit):
            return {}
        return {
            (entry, unfit): state.nodes.lost_for(unfit, shut.get(entry, NONE))
            for entry, unfit in state.kinds
        }

    # ---- when to ask again, and what people are told ----------------------------------------

    def _report(self, now: int, over: bool, gates: Gates, decision: Decision) -> None:
        """Raise alerts, and set when something else may start, or end, or be held back, though
        nothing happens."""
        state, launches = self.state, decision.launches
        if (state.queued or launches) and not state.cancelling:
            decision.wake = gates.next_hold
        if not state.trial.clock_runs or state.held:
            return
        times = [decision.wake, *self._times(now, over, gates, launches)]
        for alert in self._alerts(now, over, gates):
            if alert.time <= now:
                kind, subject, text = alert.kind, alert.subject, alert.text()
                decision.alerts.append(AlertRaised(kind=kind, subject=subject, text=text))
            times.append(alert.time)
        decision.wake = _earliest(times, now)

    def _times(
        self, now: int, over: bool, gates: Gates, launches: Sequence[Launch]
    ) -> list[int | None]:
        """Return when something else may start or end, or have been silent for long, if these runs
        are launched now."""
        state = self.state
        requests = [state.requests[launch.case] for launch in launches]
        times = [state.over_at]
        if not over:
            times.append(state.demand.next_start(now, requests, state.counts))
        if not state.admission.lets_all:
            times += gates.next_start, state.admission.next_token(now, requests)
        if launches and (silent_for := state.watchdogs.silent_for):
            times.append(now + silent_for)
        return times

    def _alerts(self, now: int, over: bool, gates: Gates) -> list[PendingAlert]:
        """Return all alerts that are due, or will be if nothing happens."""
        state, watchdogs = self.state, self.state.watchdogs
        stuck = None if over else self._why_idle()
        alerts = watchdogs.once()
        if stuck is not None:
            alerts.append(watchdogs.pending("idle", "", stuck))
        silence = self._silence(now, waits=not (over or stuck))
        if silence is not None:
            alerts.append(silence)
        if not over:
            alerts += self._alerts_of_tests(now, stuck is not None)
        alerts += self._alerts_of_nodes(now, over)
        for throttle in gates.failing:
            trouble = throttle.trouble(now, state.admission.since)
            alerts.append(watchdogs.pending("gauge", throttle.about.gauge, trouble))
        return alerts

    def _alerts_of_nodes(self, now: int, over: bool) -> list[PendingAlert]:
        """Return the alerts of more bad nodes than may be excluded, and of places that are short
        of nodes."""
        state, watchdogs = self.state, self.state.watchdogs
        alerts = []
        if text := state.nodes.beyond_cap(now):
            alerts.append(watchdogs.pending("nodes", "", text))
        if not over and state.placer is not None:
            for test, text in short_places(state, state.placer).items():
                alerts.append(watchdogs.pending("place", test, text))
        return alerts

    def _silence(self, now: int, waits: bool) -> PendingAlert | None:
        """Return the alert that nothing has happened for long, though runs are under way, or are
        wanted (``waits``). Builds have time limits of their own."""
        state, watchdogs = self.state, self.state.watchdogs
        runs, outages = state.counts.total, state.admission.outages
        if state.builds.running:
            return None
        idle = waits and not runs and len(state.demand) > 0
        reason = partial(state.admission.why_held, now) if idle else None
        silent = watchdogs.silent(runs, outages, reason)
        if silent is not None and silent.time <= now and runs:
            until = state.run_times.next_end(state.in_flight.values(), watchdogs.latest)
            silent = watchdogs.silent(runs, outages, reason, until)
        return silent

    def _alerts_of_tests(self, now: int, stuck: bool) -> list[PendingAlert]:
        """Return the alerts of tests that wait for long, have too few runs in flight, fail, or are
        stopped still; where nothing can start any more, people were told of the last already."""
        state, watchdogs, admission = self.state, self.state.watchdogs, self.state.admission
        alerts = watchdogs.waiting(now, admission.outages, self._patience)
        if since := state.shortages.since:
            alerts += watchdogs.short(
                since, state.counts.in_flight, admission.closed, admission.windows_of
            )
        failing = state.failing.subjects(admission.stopped, state.nodes.excluded)
        for subject, text in failing.items():
            alerts.append(watchdogs.pending("failing", subject, text))
        if not stuck:
            for number, time in state.stopped_at.items():
                alerts.append(watchdogs.still_stopped(number, time, admission.stopped[number]))
        return alerts

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
        state, stopped = self.state, self.state.admission.stopped
        reasons: dict[str, None] = {}
        for case in state.demand.left():
            request = state.requests[case]
            name = state.policy.entries[request.entry].name
            allowed = state.nodes.allowed_for(request.unfit)
            if request.entry in stopped:
                reasons[f"{name} is stopped: {stopped[request.entry]}"] = None
            elif allowed is not None and request.nodes > allowed:
                such = " of those that it can use" if request.unfit else ""
                text = f"{name} needs {request.nodes} nodes, and {allowed}{such} are not excluded"
                reasons[text] = None
            else:
                return None
        return "; ".join(reasons) or "nothing is left that can start"

    # ---- what there is to give away --------------------------------------------------------

    def _free_cores(self) -> int:
        """The cores that runs may take. Builds share the node with them and are counted as one, so
        that nothing that wants the node to itself is measured beside a compiler."""
        state = self.state
        building = bool(state.builds.running or state.builds.to_start)
        return state.free.cores - 1 if state.limits.cores and building else state.free.cores

    def _free_jobs(self) -> int:
        """How many jobs may be given to the backend. A queue is topped up in large portions."""
        state, limits = self.state, self.state.limits
        waiting = len(state.demand)
        if max_runs := state.policy.caps.machine:
            waiting = min(waiting, max_runs - state.counts.total)
        if not limits.jobs:
            return waiting
        free = max(0, limits.jobs - state.free.jobs)
        if state.policy.kind == "sustained":
            return min(free, waiting)
        worth_it = free >= min(limits.refill, limits.jobs) or waiting <= free
        return free if worth_it else 0


def _earliest(times: Iterable[int | None], now: int) -> int | None:
    """Return the earliest of the times that is to come; None if there is none."""
    to_come = [time for time in times if time and now < time < FAR_FUTURE_NS]
    return min(to_come, default=None)


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
        self._bundles: dict[int, str | None] = {}
        self._taken: set[str] = set()  # nodes that runs of the trial have, or were launched to get
        if state.placer is not None:
            for flight in state.in_flight.values():
                if flight.has_job:
                    placed = flight.placed.split(",") if flight.placed else ()
                    self._taken.update(placed or unfold_or_empty(flight.nodes))

    def nodes_for(self, case: int, run_id: str, avoid: str, bundle: int) -> str | None:
        """Return the names of the nodes for a run, with commas, in the order of its ranks; "" if it
        is not placed, None if there are no such nodes now."""
        placer = self._state.placer
        if placer is None or not placer.is_placed(case):
            return ""
        if bundle in self._bundles:
            return self._bundles[bundle]
        lost = self._taken.union(_out_of_use(self._state), unfold_or_empty(avoid))
        names = placer.names(placer.choose(case, lost, run_id)) or None
        if names:
            self._taken.update(names.split(","))
        if bundle:
            self._bundles[bundle] = names
        return names


def short_places(state: ConductorState, placer: NodePlacer) -> dict[str, str]:
    """Return the tests of which placed runs wait for nodes that are down or excluded, each with the
    level that is short. Nodes that other runs of the trial have are no reason: they will end."""
    texts: dict[str, str] = {}
    lost = _out_of_use(state)
    if not lost:  # what all nodes could not hold was left out
        return texts
    for number in filter(placer.is_placed, state.demand.left()):
        case = state.cases[number]
        short = "" if case.test in texts else placer.choose(number, lost, "").short
        if short:
            texts[case.test] = f"{case.name} waits: of the nodes that are up, {short}"
    return texts


def _out_of_use(state: ConductorState) -> set[str]:
    return state.nodes.down | state.nodes.excluded.keys()
