"""The state of nodes: down, excluded for repeated failures, or to be avoided by one run; and the
nodes that the conductor chooses for placed runs (``run.place``).

placer = NodePlacer(policy.placing, cases)
choice = placer.choose(case, taken, seed)    # beside nodes that are taken, down or excluded
"""

from collections import deque
from collections.abc import Collection, Iterator, KeysView, Mapping, Sequence
from typing import Any

from msgspec import Struct

from seatrial.decide.in_flight import RunInFlight
from seatrial.journal.events import NodeAdmitted, NodeDown, NodeExcluded, NodeUp
from seatrial.journal.trial import Trial
from seatrial.model.codes import BOOT_FAILURE
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import fold, unfold, unfold_or_empty
from seatrial.model.policy import Exclusion, NodePlacing
from seatrial.model.requirements import usable_nodes
from seatrial.model.test import Case, Test
from seatrial.model.topology import NodeChoice, choose_nodes
from seatrial.units import SECOND_NS, count, show_seconds

NodeEvent = NodeDown | NodeUp | NodeExcluded | NodeAdmitted

FEW = 4  # up to this size, each node of a failed run is suspected where none is named


class NodeIncident(Struct, frozen=True):
    """A failure on a node; ``named`` where the scheduler, or the other nodes of a compat job,
    named the node."""

    time: int
    cause: str
    named: bool


class NodePool(Struct, frozen=True):
    """The nodes beside a set of unfit ones: how many can be used now, and the numbers of the sets
    of unfit nodes whose runs can use no others."""

    usable: int
    confined: tuple[int, ...]

    def lacks(self, width: int, held: Mapping[int, int]) -> bool:
        """Return whether so many further nodes are more than can be used; ``held`` has those that
        runs hold or wait for, by their sets of unfit nodes."""
        return sum(held.get(each, 0) for each in self.confined) + width > self.usable


class NodeRecord:
    """What follows from the nodes of a trial that are down or excluded, and from the ends of runs
    on them. ``usable`` is the number of nodes that can be used now (0: unknown), ``allowed`` the
    number that is not excluded (None: unknown). ``unfit`` are the sets of nodes that some runs
    cannot use, from number 1 on."""

    def __init__(
        self, trial: Trial[Any], exclusion: Exclusion, nodes: int, unfit: Sequence[str] = ()
    ) -> None:
        self._trial = trial
        self._exclusion = exclusion
        self._all = nodes
        self.usable = nodes
        self.allowed = nodes or None
        self._avoid: dict[int, set[str]] = {}  # case -> nodes that its next run must not get
        self._failed: dict[str, deque[NodeIncident]] = {}  # the latest failures
        self._suspected: set[str] = set()  # nodes with failures, none of them named
        self.suspects: dict[str, None] = {}  # nodes with enough failures, at any time
        self._went_down: dict[str, int] = {}
        self.exclusions = 0  # number of exclusions so far
        self._folded: dict[frozenset[str], str] = {frozenset(): ""}  # with excluded nodes
        none: frozenset[str] = frozenset()
        self.unfit = [none, *(frozenset(unfold_or_empty(names)) for names in unfit)]
        self._lost: dict[tuple[int, frozenset[str]], int] = {}
        self.pools = self._pools()

    def change(self, exclusion: Exclusion) -> None:
        """Follow another rule; of earlier failures it knows as many as the former rule kept."""
        self._exclusion = exclusion
        after = exclusion.after
        self._failed = {
            node: deque(failures, maxlen=after) for node, failures in self._failed.items() if after
        }
        self._suspected.intersection_update(self._failed)
        self.suspects = {
            node: None
            for node, failures in self._failed.items()
            if len(failures) == after and node not in self.excluded
        }

    # ---- events in ------------------------------------------------------------------------

    def apply(self, event: NodeEvent) -> None:
        """Follow what the scheduler, Seatrial or a person says of nodes."""
        self._trial.apply(event)
        nodes = unfold_or_empty(event.nodes)
        if isinstance(event, NodeDown):
            self._went_down.update(dict.fromkeys(nodes, event.time))
        elif isinstance(event, NodeExcluded):
            self.exclusions += 1
            for node in nodes:
                self.suspects.pop(node, None)
        elif isinstance(event, NodeAdmitted):
            for node in nodes:
                self._failed.pop(node, None)
                self._suspected.discard(node)
                self.suspects.pop(node, None)
        self._folded.clear()
        self._recount()

    @property
    def exclusions_in_force(self) -> int:
        """How many exclusions there were, 0 where no excluded node can be avoided."""
        return self.exclusions if self.excluded and self.allowed is not None else 0

    @property
    def down(self) -> KeysView[str]:
        """The nodes that are down."""
        return self._trial.down.keys()

    @property
    def excluded(self) -> Mapping[str, str]:
        """The nodes that get no more runs, and why."""
        return self._trial.excluded

    def _recount(self) -> None:
        if self._all:
            self.allowed = max(0, self._all - len(self.excluded))
        self.usable = max(0, self._all - len(self.down | self.excluded.keys()))
        self._lost.clear()
        self.pools = self._pools()

    def _pools(self) -> list[NodePool]:
        if len(self.unfit) == 1:
            return []
        return [
            NodePool(self.usable_beside(unfit), tuple(self._confined_to(unfit)))
            for unfit in self.unfit
        ]

    def _confined_to(self, unfit: frozenset[str]) -> Iterator[int]:
        """Yield the numbers of the sets of unfit nodes that hold all of this one."""
        return (number for number, each in enumerate(self.unfit) if number and each >= unfit)

    def launched(self, case: int) -> set[str] | None:
        """Return the nodes that this run of a case alone avoids; the next run does not avoid
        them."""
        return self._avoid.pop(case, None)

    def recalled(self, case: int, away: set[str] | None) -> None:
        """Record that a run of a case never started: its next run avoids the same nodes."""
        if away:
            self._avoid.setdefault(case, set()).update(away)

    def ended(self, flight: RunInFlight, cause: str, elsewhere: bool) -> None:
        """Record a failed run and its cause. With ``elsewhere`` the next run of its case avoids the
        nodes that may be to blame: those that failed, or if none is known all nodes of the run."""
        held_against = cause in self._exclusion.causes and self._exclusion.after > 0
        if not flight.nodes or not (elsewhere or held_against):
            return
        nodes = unfold_or_empty(flight.nodes)
        named = self._named(flight, nodes, cause)
        if elsewhere:
            self._avoid.setdefault(flight.case, set()).update(named or nodes)
        if held_against and (named or len(nodes) <= FEW):
            incident = NodeIncident(flight.judged or 0, cause, bool(named))
            self._hold_against(named or nodes, incident)

    def _named(self, flight: RunInFlight, nodes: Sequence[str], cause: str) -> list[str]:
        """Return the nodes of a failed run that are known to have failed. A boot failure is one of
        silent nodes; a run that went on without them had others."""
        since = flight.job_started or flight.submitted or 0
        silent = unfold_or_empty(flight.silent) if cause == BOOT_FAILURE.name else ()
        return [n for n in nodes if n in silent or self._went_down.get(n, -1) >= since]

    def _hold_against(self, nodes: Sequence[str], incident: NodeIncident) -> None:
        if not incident.named:
            self._suspected.update(nodes)
        after = self._exclusion.after
        for node in nodes:
            failures = self._failed.setdefault(node, deque(maxlen=after))
            failures.append(incident)
            if len(failures) == after and node not in self.excluded:
                self.suspects[node] = None

    def passed(self, flight: RunInFlight) -> None:
        """Record a run that passed: failures on its nodes that nobody named are dropped."""
        if not self._suspected or not flight.nodes:
            return
        for node in self._suspected.intersection(unfold_or_empty(flight.nodes)):
            named = [failure for failure in self._failed[node] if failure.named]
            if len(named) < self._exclusion.after:
                self.suspects.pop(node, None)
            self._failed[node] = deque(named, maxlen=self._exclusion.after)
            self._suspected.discard(node)

    # ---- what follows ---------------------------------------------------------------------

    def avoid(
        self,
        case: int,
        nodes: int,
        first: bool = True,
        shut: frozenset[str] = frozenset(),
        unfit: int = 0,
    ) -> str:
        """Return the nodes that a run of a case must not get, folded: excluded ones, ``shut`` ones
        and, for the ``first`` run after a failure, those of the failed run, if enough other nodes
        are left that it can use."""
        once = self._avoid.get(case) if first else None
        if once:
            away = once.union(self.excluded, shut)
            if self._all - len(away.union(self.down, self.unfit[unfit])) >= nodes:
                return fold(away)
        if shut not in self._folded:
            self._folded[shut] = fold(shut.union(self.excluded))
        return self._folded[shut]

    def allowed_for(self, unfit: int) -> int | None:
        """Return the number of nodes that are not excluded and that runs with this set of unfit
        nodes can use (None: unknown)."""
        if self.allowed is None:
            return None
        return max(0, self._all - len(self.unfit[unfit].union(self.excluded)))

    def lost_for(self, unfit: int, shut: frozenset[str]) -> int:
        """Return how many of the nodes that are not excluded are ``shut``, or in a set of unfit
        nodes."""
        lost = self._lost.get((unfit, shut))
        if lost is None:
            lost = len(self.unfit[unfit].union(shut).difference(self.excluded))
            self._lost[unfit, shut] = lost
        return lost

    def usable_beside(self, shut: frozenset[str]) -> int:
        """Return the number of nodes that can be used now and are not ``shut``."""
        if not shut:
            return self.usable
        return max(0, self._all - len(shut.union(self.down, self.excluded)))

    def to_exclude(self, now: int) -> Iterator[tuple[str, str]]:
        """Yield (node, reason) of the nodes to exclude now."""
        bad = self._bad(now)
        if not bad:
            return
        for node, failures in bad[: self._may_be_excluded()]:
            causes = ", ".join(dict.fromkeys(failure.cause for failure in failures))
            span = show_seconds(self._exclusion.within)
            yield node, f"{count(len(failures), 'failure')} there within {span}: {causes}"

    def beyond_cap(self, now: int) -> str:
        """Return the alert that more nodes fail than may be excluded; "" where that is not so."""
        bad = len(self._bad(now))
        if bad == 0 or bad <= self._may_be_excluded():
            return ""
        return (
            f"{count(bad, 'node')} failed repeatedly, and no more than {self._most()} may be "
            f"excluded, of which {len(self.excluded)} already; look for what they share"
        )

    def _may_be_excluded(self) -> int:
        """Return how many further nodes may be excluded."""
        return max(0, self._most() - len(self.excluded))

    def _most(self) -> int:
        """Return how many nodes may be excluded: at least one, and never all."""
        most = max(1, int(self._all * self._exclusion.most))
        return min(most, self._all - 1) if self._all else most

    def _bad(self, now: int) -> list[tuple[str, Sequence[NodeIncident]]]:
        """Return the nodes that failed too often within the span, with their failures."""
        if not self.suspects:
            return []
        since = now - round(self._exclusion.within * SECOND_NS)
        failed = ((node, self._failed[node]) for node in self.suspects)
        return [(node, failures) for node, failures in failed if failures[0].time >= since]


# ---- nodes of placed runs ------------------------------------------------------------------------


def placing_of(
    machine: Machine, tests: Mapping[str, Test], cases: Sequence[Case]
) -> NodePlacing | None:
    """Return the placing of a trial; None if no case is placed."""
    if all(case.place is None for case in cases):
        return None
    topology = topology_of(machine)
    assert topology is not None  # such cases are left out
    sets: dict[str, int] = {}
    numbers = []
    for case in cases:
        usable = (
            fold(usable_nodes(machine, tests[case.test].requires.features, case))
            if case.place
            else ""
        )
        numbers.append(sets.setdefault(usable, len(sets) + 1) if case.place else 0)
    return NodePlacing(topology=topology, sets=list(sets), set_of=numbers)


class NodePlacer:
    """Chooses the nodes of placed runs of a trial."""

    def __init__(self, placing: NodePlacing, cases: Sequence[Case]) -> None:
        self._topology = placing.topology
        self._cases = cases
        numbers = placing.topology.number_of
        sets = [
            frozenset(numbers[n] for n in unfold(each) if n in numbers) for each in placing.sets
        ]
        self._usable = [sets[number - 1] if number else frozenset() for number in placing.set_of]

    def is_placed(self, case: int) -> bool:
        return self._cases[case].place is not None

    def choose(self, case: int, taken: Collection[str], seed: str) -> NodeChoice:
        """Return nodes for a run of a case beside those that are taken or cannot be used."""
        wish = self._cases[case].place
        assert wish is not None
        number_of = self._topology.number_of
        lost = {number_of[name] for name in taken if name in number_of}
        number, usable = self._cases[case].nodes, self._usable[case]
        return choose_nodes(self._topology, usable - lost, wish, number, seed, usable)

    def names(self, choice: NodeChoice) -> str:
        """Return the names of chosen nodes, with commas, in their order."""
        return ",".join(self._topology.nodes[node] for node in choice.nodes)
