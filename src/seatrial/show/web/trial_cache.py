"""The trials that pages look at: each journal is folded once, then on from where it was.

    tailed = state.trials.of(row)
    tailed.standing()                        # None: its journal is still being read
    tailed.status(), tailed.uses()           # None: being judged

A journal of a million events takes seconds at first; ``tailed.share_read`` says how far it is.
"""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from seatrial.errors import JournalError, SeatrialError, TrialError
from seatrial.execute.plan.component import ItemStatus, items_of
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.files import open_regular
from seatrial.journal.clock import present
from seatrial.journal.journal import fingerprint, read_blocks
from seatrial.judge.references import References
from seatrial.lazy import np
from seatrial.model.policy import Policy
from seatrial.results import node_hours, status, utilisation
from seatrial.results.criteria.mix import Overall, overall
from seatrial.results.criteria.view import TrialView, bounds_of
from seatrial.results.holds import Hold, Holds, gauge_spans
from seatrial.results.status import (
    OpenAlert,
    Status,
    TestStatus,
    alerts_of,
    holds_of,
    judged,
    status_of,
    verdict_of,
)
from seatrial.results.store.tables import TrialRow
from seatrial.results.trial_history import RunHistory, whole_outages
from seatrial.results.utilisation import USES, LevelSpan, timeline_of
from seatrial.show.web.caches import MIN_IDLE_FACTOR, BackgroundCompute, LruCache, ResultSlots
from seatrial.units import SECOND_NS

# ---- trial fold ----------------------------------------------------------------------------------
#
# The fold of one trial's journal, which goes on from where it was.
#
#     fold = TrialFold(TrialFolder(path))
#     while fold.go_on():                  # a block at a time
#         ...
#     fold.history, fold.tests(), fold.held(fold.present())
#
# A journal that was replaced or cut is folded from its start. To be used by one thread at a time.


AT_ONCE = 2 << 20  # bytes of a journal that are folded in one go
LATEST = 8


class TrialFold:
    """The fold of one trial. ``end`` is the offset to which its journal was read; ``damaged``
    counts lines that are no events; ``verdicts`` counts those of each test."""

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self.record = self.folder.record()
        self.cases = self.folder.cases()
        self.history = status.accounts_of(self.record, self.cases)
        self.verdicts: dict[str, Counter[str]] = {case.test: Counter() for case in self.cases}
        self._runs = 0  # how many runs of the history were looked at
        self._open: list[RunHistory] = []  # those of them without a verdict
        self._expected: dict[str, int] = {}  # by the policy below
        self._policy: Policy | None = None
        self.judged: deque[str] = deque(maxlen=LATEST)  # ids of runs, by their verdicts
        self.end = self.size = self.damaged = 0
        self._holds = Holds(self.history)
        self._mark = (0, 0)  # inode and fingerprint of what was read

    # ---- reading --------------------------------------------------------------------------

    def left(self) -> int:
        """Return how many bytes of the journal are still to be read, with a torn last line."""
        try:
            self.size = self.folder.journal.stat().st_size
        except OSError:
            return 0
        return max(0, self.size - self.end)

    def go_on(self, at_once: int = AT_ONCE) -> bool:
        """Fold the next block and return whether there is more. Raises JournalError, or TrialError
        if the trial's folder is gone."""
        try:
            with open_regular(self.folder.journal) as file:
                if not self._goes_on(file):
                    self._begin()
                return self._fold_next(file, at_once)
        except FileNotFoundError:
            if not self.folder.path.is_dir():
                raise TrialError(f"{self.folder.path}: this folder is gone") from None
            return False
        except OSError as error:
            raise JournalError(
                f"{self.folder.journal}: cannot be read: {error.strerror}"
            ) from error

    def _goes_on(self, file: BinaryIO) -> bool:
        """Return whether the journal is the one that was read."""
        self.size = os.fstat(file.fileno()).st_size
        return self.end == 0 or (self.size >= self.end and _mark_of(file, self.end) == self._mark)

    def _fold_next(self, file: BinaryIO, at_once: int) -> bool:
        block = next(read_blocks(file, self.end, at_once), None)
        if block is None:
            return False
        for event in block.events:
            self.history.apply(event)
            self._holds.apply(event)
        self._count_verdicts()
        self.end = block.end
        self.damaged += block.damaged
        self.history.damaged = self.damaged
        self._mark = _mark_of(file, self.end)
        return file.tell() < self.size

    @property
    def references(self) -> References:
        """The references that criteria use by now."""
        return status.references_now(self.record, self.history)

    def _count_verdicts(self) -> None:
        """Count the runs that are over since the last time."""
        self._open += self.history.runs[self._runs :]
        self._runs = len(self.history.runs)
        over = [run for run in self._open if run.over]
        self._open = [run for run in self._open if not run.over]
        for run in sorted(over, key=lambda run: run.judged or 0):
            self.verdicts[self.history.test_of(run)][verdict_of(run)] += 1
            self.judged.append(run.id)

    # ---- what it has ----------------------------------------------------------------------

    def present(self) -> int:
        """Return the time (ns) at which the trial is looked at: now while it runs, else that of its
        last event."""
        runs = self.history.state == "running" and not self.record.rehearsed
        return max(present(self.history.opened) if runs else 0, self.history.last)

    def held(self, now: int) -> list[Hold]:
        """Return what holds launches back, if the trial runs."""
        if self.history.state != "running":
            return []
        return [*self._holds.held(now), *self._holds.unbuilt()]

    def tests(self) -> list[status.TestStatus]:
        """Return the status of each test."""
        if self._policy is not self.history.policy:
            self._policy = self.history.policy
            self._expected = status.expected_of(self.history, self.record.machine)
        return status.tests_of(self.history, self._open, self.verdicts, self._expected)


def _mark_of(file: BinaryIO, end: int) -> tuple[int, int]:
    return os.fstat(file.fileno()).st_ino, fingerprint(file, end)


# ---- trial results -------------------------------------------------------------------------------
#
# The results of one trial for its page: where it stands, and its numbers over time.
#
#     status_at(fold, now, driven=True)
#     uses_at(fold, now).bins(600)             # utilisation by the wall clock
#     flights_at(fold, now), loads_at(fold, now)
#
# Times are seconds since the epoch, so that all figures of a page share an axis.


GAUGE = "gauge "  # begins the name of the line of a gauge
FINEST = 8192  # bins that are kept
MAX_STEPS = 3000  # of one line


def status_at(fold: TrialFold, now: int, driven: bool) -> Status:
    """Return the status of a trial, as ``results.status.status`` does from its journal."""
    status = status_of(fold.record, fold.history, now, fold.references, driven)
    held = [*fold.held(now), *holds_of(status)] if driven else holds_of(status)
    return replace(status, held_back_by=held)


# ---- how nodes were used ------------------------------------------------------------------


class NodeUses(Struct, frozen=True, kw_only=True):
    """How the nodes were used up to ``now`` (ns): the share of each use in the ``available``
    node-seconds; ``sentence`` names the largest loss."""

    now: int
    available: float
    shares: dict[str, float]
    sentence: str
    meanings: dict[str, str]


class UtilisationSteps(Struct, frozen=True):
    """How nodes were used, in the ``whole`` time and over it. ``rows`` are node-seconds, shape
    (uses, FINEST): a row for each of ``results.utilisation.USES``, a column for each of FINEST
    spans of ``step`` seconds from ``first`` on."""

    whole: NodeUses
    first: float
    step: float
    rows: "NDArray[np.float64]"

    def bins(
        self, max_bins: int, since: float = 0.0, until: float = 0.0
    ) -> tuple[list[float], dict[str, list[float | None]], float]:
        """Return the starts of at most so many spans, the share of each use in them (None where no
        node was available), and their length in seconds; of the time between ``since`` and
        ``until``, if given."""
        if self.step <= 0:
            return [], {use: [] for use in USES}, 0.0
        low = max(0, int((since - self.first) / self.step)) if since else 0
        high = self.rows.shape[1]
        if until:
            high = min(high, max(low + 1, int(np.ceil((until - self.first) / self.step))))
        low = min(low, high - 1)
        together = -(-(high - low) // max_bins)
        sums = np.add.reduceat(self.rows[:, low:high], np.arange(0, high - low, together), axis=1)
        total = sums.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = np.round(sums / total, 4)
        available = total > 0
        step = together * self.step
        starts = [round(self.first + low * self.step + i * step, 3) for i in range(len(total))]
        shares: dict[str, list[float | None]] = {
            use: [float(part) if ok else None for part, ok in zip(row, available, strict=True)]
            for use, row in zip(USES, parts, strict=True)
        }
        return starts, shares, step


def uses_at(fold: TrialFold, now: int) -> UtilisationSteps:
    """Return how the nodes were used up to ``now`` (ns)."""
    timeline = timeline_of(fold.history, now)
    whole = NodeUses(
        now=now,
        available=timeline.total.available / SECOND_NS,
        shares={use: timeline.total.share(use) for use in USES},
        sentence=node_hours.sentence(fold.history, timeline, now),
        meanings=USES,
    )
    if not len(timeline.starts):
        return UtilisationSteps(whole, 0.0, 0.0, np.zeros((len(USES), 0)))
    first, last = timeline.starts[0], timeline.ends[-1]
    pieces = np.array([timeline.starts, timeline.ends]).T
    spans = (pieces - first) / SECOND_NS
    step = max((last - first) / SECOND_NS, 1e-6) / FINEST
    edges = np.arange(FINEST + 1) * step
    # The sums up to the ends of the pieces; between two pieces, in a pause, they do not grow.
    times = np.concatenate(([0.0], spans.ravel()))
    rows = np.empty((len(USES), FINEST))
    for number, use in enumerate(USES):
        grown = np.cumsum(np.asarray(timeline.nodes_in(use)) * (spans[:, 1] - spans[:, 0]))
        before = np.concatenate(([0.0], grown[:-1]))
        sums = np.concatenate(([0.0], np.column_stack((before, grown)).ravel()))
        rows[number] = np.diff(np.interp(edges, times, sums))
    return UtilisationSteps(whole, first / SECOND_NS, step, np.maximum(rows, 0.0))


# ---- runs in flight, loads of targets -----------------------------------------------------


class Steps(Struct, frozen=True, rename={"times": "t", "values": "y"}):
    """A number over time: from ``times[i]`` (s) on it was ``values[i]``, None while the trial was
    paused. In JSON these are ``t`` and ``y``. ``name`` is a test, a metadata target, a gauge, or ""
    for all. ``expected`` is the planned value (0: none), ``most`` the limit (0: none)."""

    name: str
    times: list[float]
    values: list[float | None]
    expected: float = 0.0
    most: float = 0.0


def flights_at(fold: TrialFold, now: int) -> list[Steps]:
    """Return the number of runs that held nodes, of all tests and of each."""
    history = fold.history
    by_test: dict[str, list[tuple[int, int, float]]] = {test: [] for test in fold.verdicts}
    for run in history.runs:
        held = run.held_nodes(now)
        if held is not None:
            by_test[history.test_of(run)].append((*held, 1.0))
    spans, without = history.window(now), whole_outages(history)
    everything = [one for each in by_test.values() for one in each]
    lines = [_steps("", utilisation.levels(everything, spans, without), _least_of_all(fold))]
    for test in fold.tests():
        levels = utilisation.levels(by_test[test.test], spans, without)
        lines.append(_steps(test.test, levels, test.expected))
    return lines


def _least_of_all(fold: TrialFold) -> float:
    """Return the number of jobs in flight that a criterion on all tests asks for."""
    component = fold.record.component
    for criterion in component.criteria if component else ():
        if criterion.criterion == "jobs_in_flight" and not criterion.tests:
            return bounds_of(criterion).least or 0.0
    return 0.0


def loads_at(fold: TrialFold, now: int) -> list[Steps]:
    """Return the open files on each metadata target that a run was placed on, then the readings of
    gauges."""
    safe = _safe_loads(fold)
    lines = [
        _steps(name, each, most=safe.get(name, 0.0))
        for name, each in utilisation.target_loads(fold.history, now).items()
    ]
    highs = {throttle.gauge: throttle.highest for throttle in fold.history.policy.throttles}
    for name in fold.history.readings:
        spans = gauge_spans(fold.history, name, now)
        lines.append(_steps(GAUGE + name, spans, most=highs.get(name, 0.0)))
    return lines


def _safe_loads(fold: TrialFold) -> dict[str, float]:
    """Return the safe load of each target, by the plan or else by the machine's description."""
    systems = fold.record.machine.file_systems
    loads = {
        f"{name}/{target.name}": system.safe_load
        for name, system in systems.items()
        for target in system.metadata_targets
    }
    capped = {target.name: target.safe for target in fold.history.policy.targets}
    return loads | {name: safe for name, safe in capped.items() if safe}


def _steps(
    name: str, levels: Sequence[LevelSpan], expected: float = 0.0, most: float = 0.0
) -> Steps:
    """Return levels as steps, with None in the gaps between them."""
    levels = utilisation.few_levels(levels, MAX_STEPS)
    times: list[float] = []
    values: list[float | None] = []
    last = None
    for start, end, value in levels:
        if last is not None and start > last:
            times.append(round(last / SECOND_NS, 3))
            values.append(None)
        times.append(round(start / SECOND_NS, 3))
        values.append(value)
        last = end
    if last is not None:
        times.append(round(last / SECOND_NS, 3))
        values.append(values[-1])
    return Steps(name, times, values, expected, most)


# ---- trial cache ---------------------------------------------------------------------------------


T = TypeVar("T")

MAX_TRIALS = 24
MAX_RUNS = 400_000  # of all trials that are kept
MAX_VERDICTS = 500
MAX_PLOTS = 4  # of a trial, each for other tests
AT_ONCE_BYTES = 1 << 20  # a page reads at most so much of a journal itself
TURN_S = 0.2  # how long a page waits for a thread that judges the trial
LOOK_AGAIN_S = 30  # a trial that runs is judged again after this time even without events
ANNOUNCE_S = 1.0  # between two announcements of how far a long journal is read


class Standing(Struct, frozen=True, kw_only=True):
    """Where a trial stands by its events."""

    #: When, in ns.
    now: int
    state: str
    #: In seconds, and so is the duration; 0 for no limit.
    clock: float
    duration: float
    tests: list[TestStatus]
    alerts: list[OpenAlert]
    held: list[Hold]
    #: The ids of the runs that were judged last.
    judged: list[str]
    #: Lines of its journal that are no events.
    damaged: int


class TailedTrial:
    """One trial. ``trouble`` says why its journal cannot be read here, or is "". ``driven`` is
    false if its driver died."""

    def __init__(
        self, path: str, background: BackgroundCompute, announce: Callable[[], None]
    ) -> None:
        self.path = path
        self.trouble = ""
        self.driven = True
        self.fold: TrialFold | None = None
        self.results = ResultSlots()
        self.plots = ResultSlots(MAX_PLOTS)
        self._background = background
        self._announce = announce
        self._lock = threading.Lock()
        self._standing: Standing | None = None

    @property
    def share_read(self) -> float:
        """How much of the journal was read, from 0 to 1."""
        fold = self.fold
        return fold.end / fold.size if fold is not None and fold.size else 0.0

    def runs(self) -> int:
        """Return how many runs are kept of it."""
        return 0 if self.fold is None else len(self.fold.history.runs)

    def standing(self) -> Standing | None:
        """Return where the trial stands: now if the rest of the journal is short, else when all of
        it was read last; None if it never was."""
        try:
            if (size := self._far()) > 0:
                self.latest("journal", size, self._read_all, idle_factor=0)
            if self._lock.acquire(timeout=0 if self._is_behind() else TURN_S):
                try:
                    self._read_on()
                finally:
                    self._lock.release()
            self.trouble = ""
        except (SeatrialError, OSError) as error:
            self.trouble = str(error)
        return self._standing

    def _open(self) -> TrialFold:
        if self.fold is None:
            self.fold = TrialFold(TrialFolder(Path(self.path)))
        return self.fold

    def _far(self) -> int:
        """Return the size of the journal if a page cannot read on to its end itself, else 0."""
        read = self.fold.end if self.fold is not None else 0
        try:
            size = (Path(self.path) / "journal.jsonl").stat().st_size
        except OSError:
            return 0  # opening it says why
        return size if size - read >= AT_ONCE_BYTES else 0

    def _read_on(self) -> None:
        """Read to the end of the journal, if that is near."""
        fold = self._open()
        if fold.left() >= AT_ONCE_BYTES:
            return
        while fold.go_on():
            pass
        self._standing = self._standing_of(fold)

    def _read_all(self) -> bool:
        """Read to the end of the journal, however far."""
        announced = time.monotonic()
        more = True
        while more:
            with self._lock:
                more = self._open().go_on()
            if time.monotonic() - announced > ANNOUNCE_S:
                announced = time.monotonic()
                self._announce()
        return True

    def _standing_of(self, fold: TrialFold) -> Standing:
        history, now = fold.history, fold.present()
        return Standing(
            now=now,
            state=history.state,
            clock=history.clock(now),
            duration=history.duration,
            tests=fold.tests(),
            alerts=alerts_of(history, now)[::-1],
            held=fold.held(now) if self.driven else [],
            judged=list(reversed(fold.judged)),
            damaged=fold.damaged,
        )

    # ---- what is judged -------------------------------------------------------------------

    def status(self) -> Status | None:
        """Return where it stands by its criteria; None while that is made for the first time."""
        driven = self.driven
        return self._judged("status", lambda fold, now: status_at(fold, now, driven))

    def uses(self) -> UtilisationSteps | None:
        """Return how its nodes were used over time."""
        return self._judged("uses", uses_at)

    def flights(self) -> list[Steps] | None:
        """Return its runs in flight over time, beside how many are expected."""
        return self._judged("flights", flights_at)

    def loads(self) -> list[Steps] | None:
        """Return the loads of metadata targets and the readings of gauges over time."""
        return self._judged("loads", loads_at)

    def _judged(self, name: str, make: Callable[[TrialFold, int], T]) -> T | None:
        fold = self.fold
        if fold is None or self._standing is None:
            return None
        runs = fold.history.state == "running" and not fold.record.rehearsed
        turn = fold.present() // (LOOK_AGAIN_S * SECOND_NS) if runs else 0

        def locked() -> T:
            with self._lock:
                return make(fold, fold.present())

        return self.latest(name, (fold.end, self.driven, turn), locked)

    def _is_behind(self) -> bool:
        return self.results.is_behind() or self.plots.is_behind()

    def latest(
        self,
        name: Hashable,
        version: Hashable,
        make: Callable[[], T],
        slots: ResultSlots | None = None,
        idle_factor: float = MIN_IDLE_FACTOR,
    ) -> T | None:
        """Return the latest result of this name, which is made in the background and kept with the
        trial. While another one takes long for the first time, none is waited for."""
        wait_s = 0.0 if self._is_behind() else None
        slots = self.results if slots is None else slots
        return self._background.latest(slots, name, version, make, wait_s, idle_factor)


class JudgedTrial(NamedTuple):
    """What the criteria say of a trial, and the items of its checklist; documents were not looked
    at."""

    overall: Overall
    record: Record
    items: list[ItemStatus]


class TrialCache:
    """The trials that were looked at last. ``announce`` is called when there is something new to
    show."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._background = BackgroundCompute(announce)
        self._lock = threading.Lock()
        self._trials: LruCache[str, TailedTrial] = LruCache(
            MAX_TRIALS, MAX_RUNS, size_of=TailedTrial.runs
        )
        self._verdicts = ResultSlots(MAX_VERDICTS)

    def of(self, row: TrialRow) -> TailedTrial:
        """Return the trial, which is kept from now on."""
        with self._lock:
            tailed = self._trials.get_or_make(
                row.path, lambda: TailedTrial(row.path, self._background, self._announce)
            )
            tailed.driven = row.state != "interrupted"
            self._trials.measure()
        return tailed

    def verdict(self, row: TrialRow) -> JudgedTrial | None:
        """Return what the criteria say of a trial that does not run; None while that is unknown,
        or if its folder is gone. The trial is not kept."""
        version = (row.last, row.state)
        wait_s = 0.0 if self._verdicts.is_behind() else None  # a page shows many
        try:
            return self._background.latest(
                self._verdicts, row.path, version, lambda: _verdict_of(row), wait_s
            )
        except (SeatrialError, OSError):
            return None

    def close(self) -> None:
        """Begin no new work."""
        self._background.close()


def _verdict_of(row: TrialRow) -> JudgedTrial:
    fold = TrialFold(TrialFolder(Path(row.path)))
    if fold.record.component is None:
        return JudgedTrial(Overall("undecided", []), fold.record, [])
    while fold.go_on():
        pass
    component, history = fold.record.component, fold.history
    verdict = overall(judged(component, TrialView(history, fold.present(), fold.references)))
    return JudgedTrial(verdict, fold.record, items_of(history.items, history.ticks))
