"""The demand: which runs are wanted, and which of them are chosen next: ``once``, ``waves`` or
``mix``.

A demand is a fold over events, as its conductor is. ``choose`` changes nothing: it takes runs from
an offer, which counts what was taken.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from seatrial.decide.admission import Admission, Gates, LargestSearch, Shape, planned_shares
from seatrial.decide.in_flight import InFlightCounts, RunInFlight
from seatrial.decide.nodes import NodePool
from seatrial.decide.race import Race
from seatrial.model import codes
from seatrial.model.codes import CUT_OFF, PASS, PERFORMANCE, code_of
from seatrial.model.figures import ELAPSED
from seatrial.model.policy import Answer, Entry, Policy, RaceRules, fitting
from seatrial.model.test import Case
from seatrial.units import count, ns


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


# ---- expected runs -------------------------------------------------------------------------------
#
# The number of runs of each test that a sustained trial keeps in flight.


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


class RunTimes:
    """The time (ns) within which runs of an entry end: that of its longest run that passed, its
    longest walltime before one has."""

    def __init__(self, cases: Sequence[Case], shapes: Sequence[Shape], entries: int) -> None:
        self._walltime = [0] * entries
        for case, shape in zip(cases, shapes, strict=True):
            self._walltime[shape.entry] = max(self._walltime[shape.entry], ns(case.walltime))
        self._longest = [0] * entries

    def passed(self, flight: RunInFlight) -> None:
        """Record a run that passed."""
        time = ns(flight.seconds)
        if time > self._longest[flight.entry]:
            self._longest[flight.entry] = time

    def of(self, entry: int) -> int:
        return self._longest[entry] or self._walltime[entry]

    def next_end(self, runs: Iterable[RunInFlight], latest: int) -> int:
        """Return when a run should be over next, of those that should not have been at ``latest``;
        0: there is none."""
        ends = (run.job_started + self.of(run.entry) for run in runs if run.job_started)
        return min((end for end in ends if end > latest), default=0)

    def longest(self, runs: Iterable[RunInFlight]) -> int:
        """Return the longest time of the runs that have started."""
        return max((self.of(run.entry) for run in runs if run.job_started), default=0)


# ---- retry policy --------------------------------------------------------------------------------
#
# The consequences of a failed run: whether and where it is retried, and when its test is stopped.


MAX_LOSSES = 3
MAX_REFUSED = 10  # failed launches in a row, where launches never end

_NOT_STARTED = (codes.LAUNCH_FAILED.number, codes.REFUSED.number)
_RIGHT = (codes.PASS.number, codes.PERFORMANCE.number)  # the answer was right


_NOT_ITS_FAULT = codes.CUT_OFF | codes.UNCOUNTED


class RetryPolicy:
    """Counts the retries of each case. Counts, for each entry, wrong answers and failures in a row
    and, if its runs are ``endless``, refused launches in a row."""

    def __init__(self, entries: list[Entry], endless: bool = False) -> None:
        self._entries = entries
        self._endless = endless
        self._retried: Counter[int] = Counter()  # by case
        self._wrong = [0] * len(entries)
        self._failed = [0] * len(entries)
        self._refused = [0] * len(entries)
        self.to_stop: dict[int, str] = {}  # entries to stop, with reasons

    def change(self, entries: list[Entry]) -> None:
        """Follow other rules for the same tests; what was counted stays."""
        self._entries = entries

    def answer(self, entry: int, code: int) -> Answer:
        """Return the policy's answer to a verdict; by default lost runs are retried."""
        default: Answer = "again" if code == codes.LOST.number else "never"
        return self._entries[entry].answers.get(codes.code_of(code).name, default)

    def will_rerun(self, case: int, entry: int, code: int, repeat: int) -> bool:
        """Return whether the run is launched again; ``repeat`` is how many runs its case has in
        all."""
        if self.answer(entry, code) == "never":
            return False
        given = self._entries[entry].answers
        most = MAX_LOSSES if not given else (self._entries[entry].attempts - 1) * max(1, repeat)
        return self._retried[case] < most

    def retried(self, case: int) -> None:
        self._retried[case] += 1

    def verdict(self, entry: int, code: int, reason: str = "") -> None:
        """Record a verdict. A run without a result (such as launch failed) does not reset the count
        of consecutive wrong answers. A run that was cut off from outside, or whose failure is
        known, neither counts as a failure nor ends a row of them."""
        if code in _RIGHT:
            self._failed[entry] = 0
        elif code not in _NOT_ITS_FAULT:
            self._failed[entry] += 1
            most = self._entries[entry].stop_failures
            if most and self._failed[entry] >= most:
                last = f", the last: {codes.code_of(code).name}{reason and f': {reason}'}"
                self.to_stop[entry] = f"{count(self._failed[entry], 'failure')} in a row{last}"
        if code in _NOT_STARTED:
            self._refused[entry] += 1
            if self._endless and self._refused[entry] >= MAX_REFUSED:
                said = f": {reason}" if reason else ""
                self.to_stop[entry] = f"{self._refused[entry]} launches in a row failed{said}"
            return
        self._refused[entry] = 0
        if code == codes.WRONG_ANSWER.number:
            self._wrong[entry] += 1
            most = self._entries[entry].stop_after
            if most and self._wrong[entry] >= most:
                self.to_stop[entry] = f"{self._wrong[entry]} wrong answers in a row"
        elif code in _RIGHT:
            self._wrong[entry] = 0

    def forgive(self, entry: int) -> None:
        """Reset the counts of an entry, as a person admitted its test again."""
        self._wrong[entry] = self._refused[entry] = self._failed[entry] = 0
        self.to_stop.pop(entry, None)


# ---- shortages -----------------------------------------------------------------------------------
#
# The tests that have too few runs in flight, and since when.
#
#     shortages = Shortages(dues, excused)
#     shortages.count(entry, in_flight, time)     # after each event that changes what is in flight
#     shortages.since                             # entry -> time (ns)
#
# Of a test with copies all are due. Of one with a part of the machine half of the runs that its
# part holds are due: others may have their turn. It is not short while that is normal for the mix,
# which ``excused`` says: its build goes on, a throttle or a person holds it back, one of its runs
# waits at the scheduler, or no nodes are free for it and none of the others was launched out of
# turn.


class Due(NamedTuple):
    """When people are told that an entry is short: fewer than ``least`` of its ``expected`` runs
    are in flight for longer than the policy's ``short_for`` and ``gap`` (ns)."""

    expected: int
    least: int
    gap: int = 0


def dues_of(cases: Sequence[Case], shapes: Sequence[Shape], policy: Policy, room: int) -> list[Due]:
    """Return what each entry is due. Where the part of an entry holds less than two runs, gaps of
    two walltimes over that number are usual. ``room`` is the cores of a shared node, 0 where there
    is none."""
    entries = policy.entries
    widest, walltime = [1] * len(entries), [0.0] * len(entries)
    fit = [0] * len(entries)  # the nodes that its cases can use
    for case, shape in zip(cases, shapes, strict=True):
        entry = shape.entry
        widest[entry] = max(widest[entry], shape.width)
        walltime[entry] = max(walltime[entry], case.walltime)
        fit[entry] = max(fit[entry], fitting(policy, shape.unfit))
    dues = []
    for number, (runs, share) in enumerate(expected_runs(policy, widest, room or policy.nodes)):
        if entries[number].copies:
            dues.append(Due(runs, runs))
            continue
        if not room and 0 < fit[number] < policy.nodes:
            runs = min(runs, fit[number] // widest[number])
        gap = 2 * walltime[number] / share if 0 < share < 2 else 0.0
        dues.append(Due(runs, (runs + 1) // 2, ns(gap)))
    return dues


class Shortages:
    """``since`` has the time (ns) since which an entry is short, and may not be."""

    def __init__(self, dues: Sequence[Due], excused: Callable[[int, int], bool]) -> None:
        self._dues = dues
        self._excused = excused
        self.low: set[int] = set()  # entries with fewer runs than are due, excused or not
        self.passed_over: set[int] = set()
        self.since: dict[int, int] = {}

    def count(self, entry: int, in_flight: int, time: int) -> None:
        """Record the number of runs in flight of an entry."""
        if in_flight < self._dues[entry].least:
            self.low.add(entry)
        elif self.low:
            self.low.discard(entry)
            self.since.pop(entry, None)

    def look(self, time: int) -> bool:
        """Find out which entries are excused now. Returns whether one is no longer."""
        before = len(self.since)
        for entry in self.low:
            if self._excused(entry, time):
                before -= self.since.pop(entry, None) is not None
            else:
                self.since.setdefault(entry, time)
        return len(self.since) > before

    def change(self, dues: Sequence[Due], in_flight: Sequence[int], time: int) -> None:
        """Follow other dues: an entry that is short by both was short before, too."""
        self._dues = dues
        for entry, runs in enumerate(in_flight):
            self.count(entry, runs, time)
        self.look(time)

    def restart(self, entry: int, in_flight: int, time: int) -> None:
        """Count from now how long an entry is short."""
        self.since.pop(entry, None)
        self.count(entry, in_flight, time)
        self.look(time)


# ---- race demand ---------------------------------------------------------------------------------
#
# The demand of a tuning: the runs of the blocks of its race, each block in one allocation.
#
# The race decides after each block which settings run in the next one (``race``). Settings are
# cases: those of one group of the policy share the allocation of a block, as a bundle
# (``bundles``); others run one after the other.


RIGHT = (PASS.number, PERFORMANCE.number)  # the answer was right, so the figure counts


class RaceDemand(Demand):
    """The runs of a race. ``waiting`` are those of the current block that are to be launched, as
    (case, round) in their order."""

    def __init__(
        self, cases: Sequence[Case], policy: Policy, shapes: Sequence[Shape], rules: RaceRules
    ) -> None:
        self.race = LargestSearch(rules) if rules.search == "largest" else Race(rules)
        self._shapes = shapes
        self._groups = policy.bundle_of or [0] * len(cases)
        self._unready = set(range(len(cases)))
        self._waiting: list[tuple[int, int]] = []
        self._rounds: dict[tuple[int, int], int] = {}  # of runs in flight, by case and attempt
        self._launched = [0] * len(cases)
        self._again = False  # whether the run that just ended is to be repeated
        self._planned = 0  # runs of all blocks
        self.over = False

    @property
    def wanted(self) -> int:  # type: ignore[override]
        """The runs of all blocks; the most that there can be while the race goes on."""
        return self._planned if self.over else max(self._planned, self.race.rules.runs)

    # ---- events in ------------------------------------------------------------------------

    def ready(self, case: int) -> None:
        self._unready.discard(case)
        self._go_on()

    def unbuilt(self, case: int) -> None:
        self.race.exclude(case, "build failed")
        self._planned += 1  # its verdict
        self.ready(case)

    def again(self, case: int) -> None:
        self._again = True

    def launched(self, case: int, time: int) -> None:
        place = next((n for n, each in enumerate(self._waiting) if each[0] == case), None)
        if place is not None:  # else an older version of Seatrial chose it
            self._rounds[case, self._launched[case]] = self._waiting.pop(place)[1]
        self._launched[case] += 1

    def ended(self, flight: RunInFlight, seconds: float) -> None:
        case, again, self._again = flight.case, self._again, False
        number = self._rounds.pop((case, flight.attempt), None)
        if number is not None and again:
            self._waiting.append((case, number))
        elif number is not None:
            self._record(case, number, flight)
        self._go_on()

    def _record(self, case: int, number: int, flight: RunInFlight) -> None:
        figure = flight.figure
        if figure is None and self.race.rules.metric == ELAPSED:
            figure = flight.elapsed  # its script's own time, as everywhere else
        if self.race.rules.search == "largest":
            figure = 1.0  # it works
        if flight.code not in RIGHT:
            reason = f": {flight.reason}" if flight.reason else ""
            cause = f"{code_of(flight.code).name}{reason}"
            told = self.race.cut_off if flight.code in CUT_OFF else self.race.fail
            told(case, number, cause)
        elif figure is None:
            self.race.fail(case, number, f"no figure of {self.race.rules.metric}")
        else:
            self.race.record(case, number, figure)

    def _go_on(self) -> None:
        """End the block that has run, and begin the next."""
        race = self.race
        if self.over or self._unready or self._waiting or self._rounds:
            return
        if race.blocks:
            race.end_block()
        block = race.next_block()
        first = race.rounds_begun
        self._waiting = [(case, n) for n, order in enumerate(block, first) for case in order]
        self._planned += len(self._waiting)
        self.over = not block

    # ---- choices out ----------------------------------------------------------------------

    def __len__(self) -> int:
        return int(bool(self._waiting) and not self._rounds)

    def left(self) -> Collection[int]:
        return [case for case, _ in self._waiting[:1]]

    def wants(self, counts: InFlightCounts, room: int, nodes: int) -> bool:
        return bool(len(self))

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        """Yield the runs of the next allocation, whole, or the next run alone. Nothing runs beside
        it: that would be measured, too."""
        if not len(self):
            return
        group = self._groups[self._waiting[0][0]]
        if not group:
            choice = offer.take(self._waiting[0][0])
            if choice is not None:
                yield choice
            return
        cases = [case for case, _ in self._waiting if self._groups[case] == group]
        largest = max(self._shapes[case].size for case in cases)  # one runs at a time
        if offer.take_together(cases, largest):
            yield from (Candidate(case, bundle=1) for case in cases)
