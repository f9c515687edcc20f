"""The demand: which runs are wanted, and which of them are chosen next: ``once``, ``waves`` or
``mix``.

A demand is a fold over events, as its conductor is. ``choose`` changes nothing: it takes runs from
an offer, which counts what was taken.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from seatrial.conduct.admission import Admission, Gates, Shape
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight
from seatrial.conduct.nodes import NodePool
from seatrial.conduct.policy import Policy


class Candidate(Struct, frozen=True):
    """A case to launch, with its target and stage. Those of one decision with the same number
    ``bundle`` (above 0) share an allocation, in their order: see ``bundles``."""

    case: int
    target: str = ""
    stage: str = ""
    bundle: int = 0


class Supply(NamedTuple):
    """The resources to give away: ``room`` on a shared node, ``places`` at the backend. ``nodes``
    is the number that can be used now (0: unknown), ``allowed`` the maximum that a run may ask for
    (None: unknown); runs of some (entry, set of unfit nodes) may ask for so many ``fewer``.
    ``gpus`` are free on the shared node (None: they are not counted). ``pools`` has the nodes for
    runs with each set of unfit nodes."""

    room: int
    places: int
    nodes: int
    allowed: int | None
    fewer: Mapping[tuple[int, int], int]
    gpus: int | None = None
    pools: Sequence[NodePool] = ()


class Offer:
    """What a demand can take in one decision: the supply, as far as caps, gates and targets allow.

    The offer counts what was taken, so that a whole decision keeps every cap. It copies the state
    of the trial when the first run is taken, and does not change it.
    """

    def __init__(
        self,
        admission: Admission,
        gates: Gates,
        counts: InFlightCounts,
        now: int,
        shapes: Sequence[Shape],
        supply: Supply,
    ) -> None:
        self.counts = counts
        self.room, self.places, self.nodes, self._allowed, self._fewer, self._gpus = supply[:6]
        self._pools = supply.pools
        self._keeps_busy = admission.policy.kind == "sustained"
        # Whether it refuses nothing.
        self.lets_all = self._allowed is None and self._gpus is None and admission.lets_all
        self.now = now
        self.shut = gates.held  # entries of which no run may start
        self._admission = admission
        self._shapes = shapes
        self._entries = admission.policy.entries
        self._caps = caps = admission.policy.caps
        self._capped = bool(caps.file_systems or caps.bytes)
        self._targets = admission.targets
        self._copied = False
        self._bucket = admission.bucket
        if self._bucket is not None:
            self._tokens = self._bucket.whole(now)
            if self._tokens < 1:
                self.shut |= admission.heavy

    def may(self, case: int) -> bool:
        """Return whether a run may start now, room and targets aside."""
        entry, nodes, _, width, gpus, unfit, _ = self._shapes[case]
        if entry in self.shut or (gpus and gpus > (self._gpus or 0)):
            return False
        if self._allowed is not None and nodes > self._allowed - self._fewer.get((entry, unfit), 0):
            return False
        if unfit and self._keeps_busy and self._crowded(unfit, width):
            return False
        about, most = self._entries[entry], self._caps.machine
        if about.most and self.counts.in_flight[entry] >= about.most:
            return False
        if most and self.counts.total >= most:
            return False
        return not (self._capped and self._full(about.file_system, about.bytes))

    def take(self, case: int, stage: str = "") -> Candidate | None:
        """Take a run of a case. Returns None where it may not start now."""
        entry, _, size, width, gpus, unfit, _ = self._shapes[case]
        if self.places < 1 or size > self.room or not self.may(case):
            return None
        about = self._entries[entry]
        target = ""
        if about.file_system and self._targets.has(about.file_system):
            chosen = self._targets.choose(about, self.counts)
            if chosen is None:
                return None
            target = chosen
        if not self._copied:
            self._copied = True
            self.counts, self._targets = self.counts.copy(), self._targets.copy()
        if target:
            self._targets.place(target, about.opens)
        if self._bucket is not None and about.io != "light":
            self._tokens -= 1
            if self._tokens < 1:
                self.shut |= self._admission.heavy
        self.counts.launch(entry, width, target, unfit)
        self.room -= size
        self.places -= 1
        if gpus:
            self._gpus = (self._gpus or 0) - gpus
        return Candidate(case, target, stage)

    def take_together(self, cases: Sequence[int], size: int) -> bool:
        """Take runs of cases that share an allocation, which takes ``size`` of the room of a shared
        node. Returns False where not all of them may start now; then none is taken."""
        if self.places < 1 or size > self.room or not all(map(self.may, cases)):
            return False
        if not self._copied:
            self._copied = True
            self.counts, self._targets = self.counts.copy(), self._targets.copy()
        gpus = 0
        for case in cases:
            shape = self._shapes[case]
            self.counts.launch(shape.entry, shape.width, "", shape.unfit)
            gpus = max(gpus, shape.gpus)
        self.room -= size
        self.places -= 1
        if gpus:
            self._gpus = (self._gpus or 0) - gpus
        return True

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

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        """Return False where ``choose`` would choose nothing, to save the call."""
        return True

    def asks_after_start(self, counts: InFlightCounts, idle_changed: bool) -> bool:
        """Return False where nothing more is wanted as a queued run has started. ``counts`` has it
        as started; ``idle_changed``: the queued runs leave more nodes idle than before, or
        fewer."""
        return True

    def choose(self, offer: Offer) -> Iterable[Candidate]: ...

    def next_start(self, now: int, launches: Sequence[Shape], counts: InFlightCounts) -> int | None:
        """Return the time (ns) from which more runs are wanted though nothing happens, if runs of
        these shapes are launched now; None if there is none."""
        return None
