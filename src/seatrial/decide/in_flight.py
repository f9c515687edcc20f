"""What is in flight: launched and without a verdict, with the sums that caps are about."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Self

from msgspec import Struct

from seatrial.decide.resources import ResourceRequest
from seatrial.journal.run_life import RunLife, RunState
from seatrial.model.policy import Caps, Entry, Limits
from seatrial.units import SECOND_NS


class BundleInFlight(Struct):
    """The allocation that runs share: the cores and the GPUs that it takes of a shared node, until
    the last of its ``runs`` has ended."""

    cores: int = 0
    gpus: int = 0
    runs: int = 0


class RunInFlight(RunLife, kw_only=True):
    """A run that was submitted and has no verdict yet."""

    #: the position of its case in the trial
    case: int
    request: ResourceRequest
    #: how many runs of its case there were before
    attempt: int = 0
    #: the trial was cancelled
    cancelled: bool = False
    #: the verdict code for which this run alone is being cancelled
    ended_for: int | None = None
    ended_why: str = ""
    #: how many exclusions of nodes there had been when it was launched
    exclusions: int = 0
    #: the nodes that it alone was to avoid
    away: set[str] | None = None
    #: the allocation that it shares; None: it has its own
    shared: BundleInFlight | None = None
    #: of the metric by which a race judges
    figure: float | None = None
    #: of the further metrics by which a sweep judges
    others: dict[str, float] = {}
    #: its nodes that did not answer when others of its compat job did
    silent: str = ""

    @property
    def entry(self) -> int:
        return self.request.entry

    @property
    def has_job(self) -> bool:
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


class FreeResources:
    """What the runs in flight leave: ``cores`` and ``gpus`` of a shared node. ``jobs`` is the
    number of jobs in flight; the runs of a bundle have one together."""

    def __init__(self, limits: Limits) -> None:
        self._all_cores = limits.cores
        self.cores = limits.cores
        self.gpus = limits.gpus
        self.jobs = 0
        self._bundles: dict[str, BundleInFlight] = {}

    def take(self, flight: RunInFlight, at_once: int) -> None:
        """Take the cores and the GPUs of a run; those of a bundle, in which so many run
        ``at_once``, once, for its largest runs."""
        request = flight.request
        self.jobs += 1
        if not flight.bundle:
            self.cores -= request.cores
            self.gpus -= request.gpus
            return
        shared = self._bundles.setdefault(flight.bundle, BundleInFlight())
        flight.shared = shared
        cores = max(shared.cores, min(request.cores * at_once, self._all_cores))
        gpus = max(shared.gpus, request.gpus)
        self.cores -= cores - shared.cores
        self.gpus -= gpus - shared.gpus
        self.jobs -= shared.runs > 0
        shared.cores, shared.gpus, shared.runs = cores, gpus, shared.runs + 1

    def give_back(self, flight: RunInFlight) -> None:
        """Give back what a run took; what a bundle took, with its last run."""
        cores, gpus, shared = flight.request.cores, flight.request.gpus, flight.shared
        if shared is not None:
            shared.runs -= 1
            if shared.runs:
                return
            cores, gpus, shared.cores, shared.gpus = shared.cores, shared.gpus, 0, 0
        self.jobs -= 1
        self.cores += cores
        self.gpus += gpus


class InFlightCounts(Struct):
    """Sums over the runs whose jobs have not ended: in all, by entry, by target, and by file system
    where the ``caps`` have any."""

    entries: Sequence[Entry]
    caps: Caps | None = None
    total: int = 0
    queued: int = 0
    #: the width of what has started
    running: int = 0
    #: by width, the number of queued runs
    queued_widths: dict[int, int] = {}
    #: by entry
    in_flight: list[int] = []
    #: by entry, those that are queued
    waiting: list[int] = []
    #: by entry
    width: list[int] = []
    on_target: dict[str, int] = {}
    opens: dict[str, float] = {}
    on_file_system: dict[str, int] = {}
    bytes: dict[str, int] = {}
    #: by their set of nodes that they cannot run on, the widths of runs
    confined: dict[int, int] = {}
    #: the same, the number of those that are queued
    confined_queued: dict[int, int] = {}

    def __post_init__(self) -> None:
        self.entries = tuple(self.entries)
        self.in_flight, self.waiting, self.width = ([0] * len(self.entries) for _ in range(3))

    @property
    def _by_file_system(self) -> bool:
        return self.caps is None or bool(self.caps.file_systems or self.caps.bytes)

    def copy(self) -> Self:
        """Return an independent copy, to try launches on."""
        other = copy(self)
        for name in self.__struct_fields__:
            sums = getattr(self, name)
            if isinstance(sums, (dict, list)):
                setattr(other, name, sums.copy())
        return other

    def launch(self, request: ResourceRequest, target: str) -> None:
        entry, width, unfit = request.entry, request.width, request.unfit
        self.queued += 1
        self.waiting[entry] += 1
        if unfit:
            self.confined[unfit] = self.confined.get(unfit, 0) + width
            self.confined_queued[unfit] = self.confined_queued.get(unfit, 0) + 1
        self.queued_widths[width] = self.queued_widths.get(width, 0) + 1
        self._add(entry, width, target, 1)

    def start(self, request: ResourceRequest) -> None:
        """A queued run has started."""
        self._unqueue(request)
        self.running += request.width

    def end(self, request: ResourceRequest, target: str, started: bool) -> None:
        """A run's job is over."""
        if started:
            self.running -= request.width
        else:
            self._unqueue(request)
        if request.unfit:
            self.confined[request.unfit] -= request.width
        self._add(request.entry, request.width, target, -1)

    def any_waits(self, entries: Iterable[int]) -> bool:
        """Return whether a run of one of these entries is queued."""
        return any(self.waiting[entry] for entry in entries)

    def idle(self, nodes: int) -> int:
        """Return how many of so many nodes will be idle when all queued runs that fit have
        started."""
        idle = nodes - self.running
        if idle > 0:
            for width in sorted(self.queued_widths, reverse=True):
                if width <= idle:
                    idle -= width * min(self.queued_widths[width], idle // width)
        return idle

    def _unqueue(self, request: ResourceRequest) -> None:
        self.queued -= 1
        self.waiting[request.entry] -= 1
        if request.unfit:
            self.confined_queued[request.unfit] -= 1
        left = self.queued_widths[request.width] - 1
        if left:
            self.queued_widths[request.width] = left
        else:
            del self.queued_widths[request.width]

    def _add(self, entry: int, width: int, target: str, sign: int) -> None:
        self.total += sign
        self.in_flight[entry] += sign
        self.width[entry] += sign * width
        about = self.entries[entry]
        if target:
            runs = self.on_target[target] = self.on_target.get(target, 0) + sign
            # Sums of floats keep a rest; where no run is, nothing is open.
            load = self.opens.get(target, 0.0) + sign * about.opens if runs else 0.0
            self.opens[target] = load
        if (name := about.file_system) and self._by_file_system:
            self.on_file_system[name] = self.on_file_system.get(name, 0) + sign
            self.bytes[name] = self.bytes.get(name, 0) + sign * about.bytes
