"""The trials that pages look at: each journal is folded once, then on from where it was.

    tailed = state.trials.of(row)
    tailed.standing()                        # None: its journal is still being read
    tailed.status(), tailed.uses()           # None: being judged

A journal of a million events takes seconds at first; ``tailed.share_read`` says how far it is.
"""

import threading
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from seatrial.acceptance.criteria import Overall, TrialView, judged, overall
from seatrial.acceptance.holds import Hold
from seatrial.acceptance.status import OpenAlert, Status, TestStatus, alerts_of
from seatrial.errors import SeatrialError
from seatrial.plan.checklist import ItemStatus, items_of
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import TrialFolder
from seatrial.trial.record import Record
from seatrial.units import SECOND_NS
from seatrial.web.state import trial_results
from seatrial.web.state.background import MIN_IDLE_FACTOR, BackgroundCompute, ResultSlots
from seatrial.web.state.cache import LruCache
from seatrial.web.state.trial_fold import TrialFold

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
    """Where a trial stands by its events: at ``now`` (ns), ``clock`` and ``duration`` in seconds
    (0: no limit). ``judged`` are the ids of the runs that were judged last."""

    now: int
    state: str
    clock: float
    duration: float
    tests: list[TestStatus]
    alerts: list[OpenAlert]
    held: list[Hold]
    judged: list[str]
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
        return self._judged("status", lambda fold, now: trial_results.status_at(fold, now, driven))

    def uses(self) -> trial_results.UtilisationSteps | None:
        """Return how its nodes were used over time."""
        return self._judged("uses", trial_results.uses_at)

    def flights(self) -> list[trial_results.Steps] | None:
        """Return its runs in flight over time, beside how many are expected."""
        return self._judged("flights", trial_results.flights_at)

    def loads(self) -> list[trial_results.Steps] | None:
        """Return the loads of metadata targets and the readings of gauges over time."""
        return self._judged("loads", trial_results.loads_at)

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
    found = overall(judged(component, TrialView(history, fold.present(), fold.references)))
    return JudgedTrial(found, fold.record, items_of(history.items, history.ticks))
