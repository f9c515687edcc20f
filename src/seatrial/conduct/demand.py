"""What is still wanted, and what of it is chosen next: ``once``, ``waves`` or ``mix``.

A demand is a fold like the conductor that it belongs to. ``choose`` changes nothing: it takes from
an offer, which goes on from what it gave already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from seatrial.conduct.admission import Admission, Gates, Shape
from seatrial.conduct.in_flight import InFlightCounts, RunInFlight


class Candidate(Struct, frozen=True):
    """A case to launch, with its target and stage."""

    case: int
    target: str = ""
    stage: str = ""


class Supply(NamedTuple):
    """What there is to give away: ``room`` on a shared node, ``places`` at the backend. ``nodes``
    are those that can be used now (0 where their number is unknown), ``allowed`` the most that a
    run may ask for (None: not known), one of some entries so many ``fewer``."""

    room: int
    places: int
    nodes: int
    allowed: int | None
    fewer: Mapping[int, int]


class Offer:
    """What there is for a demand to take, in one decision: the supply, as far as caps, gates and
    targets admit.

    It goes on from what was taken already, so that a whole decision keeps every cap. What is true
    of the trial itself is not touched, but copied when the first run is taken."""

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
        self.room, self.places, self.nodes, self._allowed, self._fewer = supply
        self.lets_all = self._allowed is None and admission.lets_all  # it refuses nothing
        self.shut = gates.held  # entries of which surely no run may start
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
        """Whether a run may start now, room and targets aside."""
        entry, nodes, _, _ = self._shapes[case]
        if entry in self.shut:
            return False
        if self._allowed is not None and nodes > self._allowed - self._fewer.get(entry, 0):
            return False
        about, most = self._entries[entry], self._caps.machine
        if about.most and self.counts.in_flight[entry] >= about.most:
            return False
        if most and self.counts.total >= most:
            return False
        return not (self._capped and self._full(about.file_system, about.bytes))

    def take(self, case: int, stage: str = "") -> Candidate | None:
        """The case to launch, or None where it may not start now. What is taken counts from here
        on."""
        entry, _, size, width = self._shapes[case]
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
            self._targets.place(target)
        if self._bucket is not None and about.io != "light":
            self._tokens -= 1
            if self._tokens < 1:
                self.shut |= self._admission.heavy
        self.counts.launch(entry, width, target)
        self.room -= size
        self.places -= 1
        return Candidate(case, target, stage)

    def _full(self, file_system: str, more: int) -> bool:
        if not file_system:
            return False
        caps, counts = self._caps, self.counts
        runs, space = caps.file_systems.get(file_system, 0), caps.bytes.get(file_system, 0)
        if runs and counts.on_file_system.get(file_system, 0) >= runs:
            return True
        return bool(space and more and counts.bytes.get(file_system, 0) + more > space)


class Demand(Protocol):
    """Which runs are wanted. ``wanted`` is their number in all, 0 where time decides."""

    wanted: int

    def runs_of(self, case: int) -> int:
        """How many runs of a case are wanted in all; each has a verdict if its build fails."""

    def ready(self, case: int) -> None:
        """The runs of a case can start: its build is done."""

    def again(self, case: int, stage: str) -> None:
        """A run of a case is to be made good."""

    def __len__(self) -> int:
        """How many runs wait; not more than could be launched now."""

    def left(self) -> Collection[int]:
        """The cases of which runs wait that can start as far as builds go; of some of them, one
        for each entry and number of nodes is enough."""

    def launched(self, case: int, stage: str) -> None: ...

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        """A run has its verdict, after so many seconds on its nodes."""

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        """False where ``choose`` would surely choose nothing, so that nobody need ask."""

    def choose(self, offer: Offer) -> Iterable[Candidate]: ...
