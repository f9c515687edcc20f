"""What is in flight: launched and without a verdict, with the sums that caps are about."""

from copy import copy
from typing import Self

from msgspec import Struct

from seatrial.conduct.policy import Caps, Entry, Limits
from seatrial.journal.run_life import RunLife, RunState
from seatrial.units import SECOND_NS


class BundleInFlight(Struct):
    """The allocation that runs share: the room and the GPUs that it takes of a shared node, until
    the last of its ``runs`` has ended."""

    size: int = 0
    gpus: int = 0
    runs: int = 0


class RunInFlight(RunLife, kw_only=True):
    """A run that was submitted and has no verdict yet. ``case`` and ``entry`` are positions;
    ``size`` is the room that it takes on a shared node, ``node_count`` its nodes, ``width`` what it
    takes of the machine: its nodes, or on a shared node its cores; ``gpus`` are those that it takes
    of a shared node; ``unfit`` is the number of its set of nodes that it cannot run on.
    ``cancelled``: the trial was cancelled; ``ended_for``: the verdict code for which this run alone
    is being cancelled, or None, and ``ended_why`` the reason. ``exclusions`` is how many there had
    been when it was launched, ``away`` the nodes that it alone was to avoid. ``shared`` is the
    allocation that it shares, None if it has its own. ``attempt`` counts the runs of its case, from
    0 on; ``figure`` is that of the metric by which a race judges. ``silent`` are its nodes that did
    not answer when others of its compat job did."""

    case: int
    entry: int
    size: int
    node_count: int
    width: int
    gpus: int = 0
    unfit: int = 0
    cancelled: bool = False
    ended_for: int | None = None
    ended_why: str = ""
    exclusions: int = 0
    away: set[str] | None = None
    shared: BundleInFlight | None = None
    attempt: int = 0
    figure: float | None = None
    silent: str = ""

    @property
    def holds_room(self) -> bool:
        """Whether its job has not ended."""
        return self.state < RunState.ENDED

    @property
    def ended_by_us(self) -> bool:
        """Whether Seatrial cancelled it, with the trial or to recall it."""
        return self.cancelled or self.recalled

    @property
    def seconds(self) -> float:
        """Seconds for which its job ran; by its script where nobody saw the job start; else 0."""
        start, end = self.job_started, self.job_ended or self.judged
        if start is None:
            start, end = self.script_started, self.script_ended
        return ((end or 0) - start) / SECOND_NS if start and end and end > start else 0.0


class FreeRoom:
    """What the runs in flight leave: ``room`` and ``gpus`` of a shared node. ``jobs`` is the number
    of jobs in flight; the runs of a bundle have one together."""

    def __init__(self, limits: Limits) -> None:
        self._whole = limits.room
        self.room = limits.room
        self.gpus = limits.gpus
        self.jobs = 0
        self._bundles: dict[str, BundleInFlight] = {}

    def take(self, flight: RunInFlight, at_once: int) -> None:
        """Take the room and the GPUs of a run; those of a bundle, in which so many run ``at_once``,
        once, for its largest runs."""
        self.jobs += 1
        if not flight.bundle:
            self.room -= flight.size
            self.gpus -= flight.gpus
            return
        shared = self._bundles.setdefault(flight.bundle, BundleInFlight())
        flight.shared = shared
        size = max(shared.size, min(flight.size * at_once, self._whole))
        gpus = max(shared.gpus, flight.gpus)
        self.room -= size - shared.size
        self.gpus -= gpus - shared.gpus
        self.jobs -= shared.runs > 0
        shared.size, shared.gpus, shared.runs = size, gpus, shared.runs + 1

    def give_back(self, flight: RunInFlight) -> None:
        """Give back what a run took; what a bundle took, with its last run."""
        size, gpus, shared = flight.size, flight.gpus, flight.shared
        if shared is not None:
            shared.runs -= 1
            if shared.runs:
                return
            size, gpus, shared.size, shared.gpus = shared.size, shared.gpus, 0, 0
        self.jobs -= 1
        self.room += size
        self.gpus += gpus


class InFlightCounts:
    """Sums over the runs whose jobs have not ended: in all, by entry, by target, and by file system
    where the ``caps`` have any. ``queued`` have not started, of each entry ``waiting``; of the
    widths that queue, ``queued_widths`` has their numbers. By their set of nodes that they cannot
    run on (0 aside), ``confined`` has the widths, and ``confined_queued`` the numbers of those that
    have not started."""

    def __init__(self, entries: list[Entry], caps: Caps | None = None) -> None:
        self._entries = entries
        self._by_file_system = caps is None or bool(caps.file_systems or caps.bytes)
        self.total = 0
        self.queued = 0
        self.running = 0  # the width of what has started
        self.queued_widths: dict[int, int] = {}
        self.in_flight = [0] * len(entries)
        self.waiting = [0] * len(entries)
        self.width = [0] * len(entries)
        self.on_target: dict[str, int] = {}
        self.opens: dict[str, float] = {}
        self.on_file_system: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.confined: dict[int, int] = {}
        self.confined_queued: dict[int, int] = {}

    def copy(self) -> Self:
        """One to try things out on."""
        other = copy(self)
        other.queued_widths = self.queued_widths.copy()
        other.in_flight, other.width = self.in_flight.copy(), self.width.copy()
        other.waiting = self.waiting.copy()
        other.on_target, other.opens = self.on_target.copy(), self.opens.copy()
        other.on_file_system, other.bytes = self.on_file_system.copy(), self.bytes.copy()
        other.confined = self.confined.copy()
        other.confined_queued = self.confined_queued.copy()
        return other

    def launch(self, entry: int, width: int, target: str, unfit: int = 0) -> None:
        self.queued += 1
        self.waiting[entry] += 1
        if unfit:
            self.confined[unfit] = self.confined.get(unfit, 0) + width
            self.confined_queued[unfit] = self.confined_queued.get(unfit, 0) + 1
        self.queued_widths[width] = self.queued_widths.get(width, 0) + 1
        self._add(entry, width, target, 1)

    def start(self, entry: int, width: int, unfit: int = 0) -> None:
        """A queued run has started."""
        self._unqueue(entry, width, unfit)
        self.running += width

    def end(self, entry: int, width: int, target: str, started: bool, unfit: int = 0) -> None:
        """A run's job is over."""
        if started:
            self.running -= width
        else:
            self._unqueue(entry, width, unfit)
        if unfit:
            self.confined[unfit] -= width
        self._add(entry, width, target, -1)

    def idle(self, nodes: int) -> int:
        """Return how many of so many nodes will be idle when all queued runs that fit have
        started."""
        idle = nodes - self.running
        if idle > 0:
            for width in sorted(self.queued_widths, reverse=True):
                if width <= idle:
                    idle -= width * min(self.queued_widths[width], idle // width)
        return idle

    def _unqueue(self, entry: int, width: int, unfit: int) -> None:
        self.queued -= 1
        self.waiting[entry] -= 1
        if unfit:
            self.confined_queued[unfit] -= 1
        left = self.queued_widths[width] - 1
        if left:
            self.queued_widths[width] = left
        else:
            del self.queued_widths[width]

    def _add(self, entry: int, width: int, target: str, sign: int) -> None:
        self.total += sign
        self.in_flight[entry] += sign
        self.width[entry] += sign * width
        about = self._entries[entry]
        if target:
            there = self.on_target[target] = self.on_target.get(target, 0) + sign
            # Sums of floats keep a rest; where no run is, nothing is open.
            load = self.opens.get(target, 0.0) + sign * about.opens if there else 0.0
            self.opens[target] = load
        if self._by_file_system and (name := about.file_system):
            self.on_file_system[name] = self.on_file_system.get(name, 0) + sign
            self.bytes[name] = self.bytes.get(name, 0) + sign * about.bytes
