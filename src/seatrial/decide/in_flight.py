"""What runs ask of the machine, the share of it that each test of a sustained trial is to get, and
what is under way: runs in flight, with the sums that caps are about, and builds.

requests = requests_of(cases, policy, cores)
planned_shares(policy, widest_of(requests, len(policy.entries)), policy.nodes).shares
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import NamedTuple, Self, get_origin

from msgspec import Struct
from msgspec.structs import fields

from seatrial.journal.trial import RunLife, RunState
from seatrial.model.policy import Caps, Entry, Limits, Policy
from seatrial.model.test import Case
from seatrial.model.topology import NodeWish
from seatrial.units import SECOND_NS


class ResourceRequest(NamedTuple):
    """What a run of a case asks for."""

    entry: int
    nodes: int
    #: those that it takes of a shared node, 0 where there is none
    cores: int
    #: the part of the machine that it takes: its cores of a shared node, else its nodes
    width: int
    #: those that it takes of a shared node
    gpus: int = 0
    #: the number of its set of nodes that it cannot run on, in the policy; 0: none
    unfit: int = 0
    #: the number of its wish for a place in the network; 0: none
    wish: int = 0


Requests = Sequence[ResourceRequest]
"""Of the cases of a trial, by their positions."""


def requests_of(
    cases: Sequence[Case], policy: Policy, cores: int, gpus: int = 0
) -> list[ResourceRequest]:
    """Return the request of each case; equal requests are one object. ``cores`` and ``gpus`` are
    those of a shared node, 0 where there is none."""
    alike: dict[ResourceRequest, ResourceRequest] = {}
    requests = []
    sets = policy.unfit_of or [0] * len(cases)
    wishes: dict[NodeWish, int] = {}
    for case, entry, unfit in zip(cases, policy.entry_of, sets, strict=True):
        part = 0
        if cores:
            part = cores if case.exclusive else min(case.tasks_per_node * case.threads, cores)
        taken = gpus and min(case.gpus, gpus)
        wish = wishes.setdefault(case.place, len(wishes) + 1) if case.place else 0
        request = ResourceRequest(entry, case.nodes, part, part or case.nodes, taken, unfit, wish)
        requests.append(alike.setdefault(request, request))
    return requests


def widest_of(requests: Requests, entries: int) -> list[int]:
    """Return the width of the widest case of each of so many entries, 1 where it has none."""
    widths = [1] * entries
    for request in requests:
        widths[request.entry] = max(widths[request.entry], request.width)
    return widths


# ---- shares --------------------------------------------------------------------------------------


ROUNDING = 1e-9


class PlannedShares(NamedTuple):
    """The share of the machine's node-hours of each entry; ``left`` is the share that no entry
    has, and ``fills`` are the entries without a claim of their own, which divide what the others
    leave."""

    shares: list[float]
    left: float
    fills: list[int]


def planned_shares(policy: Policy, widths: Sequence[int], whole: int) -> PlannedShares:
    """Return the planned share of each entry. ``widths`` has what the widest case of each entry
    takes of the ``whole`` machine (0: unknown): of its nodes, or of the cores of a shared node.
    Claims of more than the machine are scaled down to it."""
    entries = policy.entries
    unit = max(whole, 1)
    claims = [
        max(0.0, entry.weight or entry.copies * width / unit)
        for entry, width in zip(entries, widths, strict=True)
    ]
    total = sum(claims)
    fills = [number for number, claim in enumerate(claims) if not claim]
    if total > 1 or (total and not fills and not whole):
        return PlannedShares([claim / total for claim in claims], 0.0, fills)
    left = 1 - total if total < 1 - ROUNDING else 0.0
    for number in fills:
        claims[number] = left / len(fills)
    return PlannedShares(claims, 0.0 if fills else left, fills)


def planned_for(cases: Sequence[Case], policy: Policy, cores: int) -> PlannedShares:
    """Return the planned shares for the cases of a trial. ``cores`` is the cores of a host whose
    cores runs share, 0 where there is none."""
    widths = widest_of(requests_of(cases, policy, cores), len(policy.entries))
    return planned_shares(policy, widths, cores or policy.nodes)


class ExpectedRuns(NamedTuple):
    """What is expected of an entry: the number of its ``runs`` in flight, 0 where nothing is
    expected; and how many runs its part of the machine holds (``share``), caps aside."""

    runs: int
    share: float


def expected_runs(policy: Policy, widths: Sequence[int], whole: int) -> list[ExpectedRuns]:
    """Return what is expected of each entry: its copies, or as many runs as its part of the machine
    holds and one at least, but no more than its cap. ``widths`` has what the widest case of each
    entry takes of the ``whole`` machine: of its nodes, or of the cores of a shared node."""
    entries = policy.entries
    if policy.kind != "sustained":
        return [ExpectedRuns(0, 0.0)] * len(entries)
    planned = planned_shares(policy, widths, whole)
    expected = []
    for entry, width, part in zip(entries, widths, planned.shares, strict=True):
        share = part * whole / max(width, 1)
        runs = entry.copies
        if not runs and share > 0:
            runs = max(1, int(share + 1e-9))
        expected.append(ExpectedRuns(min(runs, entry.most or runs), share))
    return expected


# ---- runs in flight ------------------------------------------------------------------------------
#
# They are launched and without a verdict.


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
        for name in _SUMS:
            setattr(other, name, getattr(self, name).copy())
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


# The fields of the counts that hold several sums.
_SUMS = [each.name for each in fields(InFlightCounts) if get_origin(each.type) in (dict, list)]


# ---- builds --------------------------------------------------------------------------------------
#
# Which to start, which are running, and which cases wait for them.


LONGEST_CAUSE = 500  # characters of the last line of a log: a path and two checksums fit


class BuildTracker:
    """The state of builds. ``why_failed`` has, for each build that is done, the reason for its
    failure, "" if it succeeded. A case waits for its build."""

    def __init__(self) -> None:
        self.to_start: dict[str, None] = {}
        self.running: dict[str, None] = {}  # ordered, so that replays agree
        self.why_failed: dict[str, str] = {}
        self._waiting: dict[str, list[int]] = {}  # key -> cases

    def wait(self, key: str, case: int) -> None:
        """Record that a case waits for a build."""
        self.to_start[key] = None
        self._waiting.setdefault(key, []).append(case)

    def start(self, key: str) -> None:
        if key in self.to_start:
            del self.to_start[key]
            self.running[key] = None

    def end(self, key: str, why_failed: str) -> list[int]:
        """Record the end of a build. Returns the cases that waited for it."""
        self.running.pop(key, None)
        self.to_start.pop(key, None)
        self.why_failed[key] = why_failed
        return self._waiting.pop(key, [])

    def restart(self) -> None:
        """Record that running builds ended with their driver."""
        self.to_start.update(self.running)
        self.running.clear()

    def next(self, max_running: int) -> Iterator[str]:
        """Return the keys of the builds to start now, so that at most this number is running."""
        return islice(self.to_start, max(0, max_running - len(self.running)))

    def failures(self, cases: Sequence[Case]) -> str:
        """Return the tests of which no case could be built, and the reasons, for people; "" where
        there is none."""
        return "; ".join(
            f"the build of {', '.join(tests)} failed: {cause}"
            for cause, tests in unbuilt(cases, self.why_failed).items()
        )


def unbuilt(cases: Sequence[Case], why_failed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the tests all of whose builds failed, by the last line of the log of the first."""
    causes: dict[str, str] = {}
    usable: set[str] = set()
    for case in cases:
        if text := why_failed.get(case.build, ""):
            causes.setdefault(case.test, (text.strip().splitlines() or ["?"])[-1][:LONGEST_CAUSE])
        else:
            usable.add(case.test)
    by_cause: dict[str, list[str]] = {}
    for test, cause in causes.items():
        if test not in usable:
            by_cause.setdefault(cause, []).append(test)
    return by_cause
