"""The demand: which runs are wanted, and which of them are chosen next: ``once``, ``mix`` or
``race``.

A demand is a fold over events, as its conductor is. ``choose`` changes nothing: it takes runs from
a budget, which counts what was taken.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from seatrial.decide.admission import Admission, Gates
from seatrial.decide.in_flight import InFlightCounts, Requests, RunInFlight
from seatrial.decide.nodes import NodePool
from seatrial.model.policy import Policy


class ChosenRun(Struct, frozen=True):
    """A run of a case to launch, with its target and stage. Those of one decision with the same
    number ``bundle`` (above 0) share an allocation, in their order: see ``once``."""

    case: int
    target: str = ""
    stage: str = ""
    bundle: int = 0


class Budget:
    """What one decision may still launch, as far as resources, caps, gates and targets allow.

    It counts what was taken, so that a whole decision keeps every cap. It copies the counts of the
    trial when the first run is taken, and does not change these.
    """

    def __init__(
        self,
        admission: Admission,
        gates: Gates,
        counts: InFlightCounts,
        now: int,
        requests: Requests,
        cores: int,
        jobs: int,
        nodes: int,
        max_nodes: int | None,
        closed_nodes: Mapping[tuple[int, int], int],
        gpus: int | None,
        pools: Sequence[NodePool],
    ) -> None:
        self.counts = counts
        self.now = now
        #: entries of which no run may start
        self.shut = gates.held
        #: free cores of a shared node
        self.cores = cores
        #: how many jobs may be given to the backend
        self.jobs = jobs
        #: the nodes that can be used now, 0: unknown
        self.nodes = nodes
        self._max_nodes = max_nodes  # that a run may ask for; None: unknown
        self._closed_nodes = closed_nodes  # by entry and set of unfit nodes: fewer may be asked for
        self._gpus = gpus  # free on a shared node; None: they are not counted
        self._pools = pools  # the nodes for runs with each set of unfit nodes
        self._keeps_busy = admission.policy.kind == "sustained"
        #: whether it refuses nothing
        self.lets_all = max_nodes is None and gpus is None and admission.lets_all
        self._admission = admission
        self._requests = requests
        self._entries = admission.policy.entries
        self._caps = caps = admission.policy.caps
        self._capped = bool(caps.file_systems or caps.bytes)
        self._targets = admission.targets
        self._has_own_counts = False
        self._has_own_targets = False
        self._rooms = admission.rooms(now)
        self._bucket = admission.bucket
        if self._bucket is not None:
            self._tokens = self._bucket.whole(now)
            if self._tokens < 1:
                self.shut |= admission.heavy

    @property
    def follows_load(self) -> bool:
        """Whether starts are held back by the target of a throttle."""
        return bool(self._rooms)

    def may_start(self, case: int) -> bool:
        """Return whether a run may start now, cores and targets aside."""
        if not self._may_start(case):
            return False
        return not self._rooms or self._admission.has_room(self._requests[case].entry, self._rooms)

    def keep_room(self, case: int) -> bool:
        """Keep the room of throttles with a target for a run that may start but for that, and will
        have room when runs of this trial have ended. Return whether it was kept."""
        entry, limits = self._requests[case].entry, self._admission.load_limits
        if self._admission.has_room(entry, self._rooms) or not self._may_start(case):
            return False
        if not all(limit.will_fit(entry) for limit in limits):
            return False
        self._rooms = [
            room - limit.loads[entry] for limit, room in zip(limits, self._rooms, strict=True)
        ]
        return True

    def _may_start(self, case: int) -> bool:
        """Return whether a run may start now, cores, targets and loads aside."""
        entry, nodes, _, width, gpus, unfit, _ = self._requests[case]
        return not (
            entry in self.shut
            or (gpus and gpus > (self._gpus or 0))
            or self._asks_too_much(nodes, entry, unfit)
            or (unfit and self._keeps_busy and self._crowded(unfit, width))
            or self._at_cap(entry)
        )

    def _asks_too_much(self, nodes: int, entry: int, unfit: int) -> bool:
        if self._max_nodes is None:
            return False
        return nodes > self._max_nodes - self._closed_nodes.get((entry, unfit), 0)

    def _at_cap(self, entry: int) -> bool:
        """Return whether a cap holds a further run of an entry back."""
        about, max_runs = self._entries[entry], self._caps.machine
        if about.most and self.counts.in_flight[entry] >= about.most:
            return True
        if max_runs and self.counts.total >= max_runs:
            return True
        return self._capped and self._full(about.file_system, about.bytes)

    def take(self, case: int, stage: str = "") -> ChosenRun | None:
        """Take a run of a case. Returns None where it may not start now."""
        request = self._requests[case]
        if self.jobs < 1 or request.cores > self.cores or not self.may_start(case):
            return None
        about = self._entries[request.entry]
        target: str | None = ""
        if about.file_system and self._targets.has(about.file_system):
            target = self._targets.choose(about, self.counts)
        if target is None:
            return None
        self._take([case], request.cores, target)
        if self._bucket is not None and about.io != "light":
            self._tokens -= 1
            if self._tokens < 1:
                self.shut |= self._admission.heavy
        return ChosenRun(case, target, stage)

    def take_together(self, cases: Sequence[int], cores: int) -> bool:
        """Take runs of cases that share an allocation, which takes so many ``cores`` of a shared
        node. Returns False where not all of them may start now; then none is taken."""
        if self.jobs < 1 or cores > self.cores or not all(map(self.may_start, cases)):
            return False
        self._take(cases, cores)
        return True

    def _take(self, cases: Sequence[int], cores: int, target: str = "") -> None:
        """Count the runs of one job."""
        if not self._has_own_counts:
            self._has_own_counts = True
            self.counts = self.counts.copy()
        if target:
            if not self._has_own_targets:
                self._has_own_targets = True
                self._targets = self._targets.copy()
            self._targets.place(target, self._entries[self._requests[cases[0]].entry].opens)
        gpus = 0
        for case in cases:
            request = self._requests[case]
            self.counts.launch(request, target)
            for i, limit in enumerate(self._admission.load_limits):
                self._rooms[i] -= limit.loads[request.entry]
            gpus = max(gpus, request.gpus)
        self.cores -= cores
        self.jobs -= 1
        if gpus:
            self._gpus = (self._gpus or 0) - gpus

    def _crowded(self, unfit: int, width: int) -> bool:
        """Return whether a further run would wait for nodes that fit it behind another that does:
        the nodes that do not fit are no reason to launch it."""
        pool, counts = self._pools[unfit], self.counts
        waits = any(counts.confined_queued.get(each) for each in pool.confined)
        return waits and pool.lacks(width, counts.confined)

    def _full(self, file_system: str, more: int) -> bool:
        if not file_system:
            return False
        caps, counts = self._caps, self.counts
        runs, space = caps.file_systems.get(file_system, 0), caps.bytes.get(file_system, 0)
        if runs and counts.on_file_system.get(file_system, 0) >= runs:
            return True
        return bool(space and more and counts.bytes.get(file_system, 0) + more > space)


class Demand(Protocol):
    """The runs that are wanted. ``wanted`` is their number, 0 where the time decides."""

    wanted: int = 0

    def runs_of(self, case: int) -> int:
        """Return how many runs of a case are wanted in all; each gets a verdict if its build
        fails."""
        return 1

    def ready(self, case: int) -> None:
        """Record that runs of a case can start, as its build is done."""

    def unbuilt(self, case: int) -> None:
        """Record that runs of a case cannot start, as its build failed."""
        return

    def again(self, case: int) -> None:
        """Record that a run of a case is to be repeated."""
        return

    def change(self, policy: Policy, flights: Iterable[RunInFlight], now: int) -> None:
        """Follow another policy from ``now`` (ns) on; ``flights`` have no verdict yet."""
        return

    def __len__(self) -> int:
        """Return the number of runs that wait, up to the number that could be launched now."""

    def left(self) -> Collection[int]:
        """Return cases that can start and have runs left; one for each entry and number of nodes is
        enough."""

    def launched(self, case: int, time: int) -> None: ...

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        """Record the verdict of a run, after so many seconds on its nodes."""
        return

    def passes_over(self, entry: int, other: int, counts: InFlightCounts, idle: int) -> bool:
        """Return whether it is the turn of another entry, of which a run would fit as well, if a
        run of an entry is launched. ``idle`` is the number of idle nodes, or of cores of a shared
        node."""
        return False

    def wants(self, counts: InFlightCounts, cores: int, nodes: int) -> bool:
        """Return False where ``choose`` would choose nothing, to save the call."""
        return True

    def asks_after_start(self, counts: InFlightCounts, idle_changed: bool) -> bool:
        """Return False where nothing more is wanted as a queued run has started. ``counts`` has it
        as started; ``idle_changed``: the queued runs leave more nodes idle than before, or
        fewer."""
        return True

    def choose(self, budget: Budget) -> Iterable[ChosenRun]: ...

    def next_start(self, now: int, launches: Requests, counts: InFlightCounts) -> int | None:
        """Return the time (ns) from which more runs are wanted though nothing happens, if runs of
        these requests are launched now; None if there is none."""
        return None
