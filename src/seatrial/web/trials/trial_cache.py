"""The trials that pages look at: their journals, folded once and kept.

    following = site.followed.of(row)
    standing = following.standing()          # None: its journal is still being read
    following.status(), following.uses()     # None: being judged

A journal of a million events takes seconds at first; meanwhile ``following.share_read`` says how
far it is. Few trials are kept, those that were looked at last.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.web.background import MIN_IDLE_FACTOR, BackgroundCompute, ResultSlots

if TYPE_CHECKING:
    from seatrial.acceptance.criteria import Overall
    from seatrial.acceptance.holds import Hold
    from seatrial.acceptance.status import Status
    from seatrial.store.rows import TrialRow
    from seatrial.web.trials.trial_fold import TrialFold
    from seatrial.web.trials.trial_results import Steps, UtilisationSteps

MOST_TRIALS = 24
MOST_RUNS = 400_000  # of all trials that are kept
MOST_VERDICTS = 500
MOST_ALIKE = 4  # of what a question chooses
AT_ONCE_BYTES = 1 << 20  # what a page itself reads of a journal
TURN_S = 0.2  # for who judges the trial at this moment
LOOK_AGAIN_S = 30  # what a trial that runs comes to changes even without events
STIR_S = 1.0  # between two words on how far a long reading is


class TestNow(Struct, frozen=True, kw_only=True):
    """How a test stands: runs that the scheduler has, those of them that hold nodes, how many are
    kept in flight (0: not said, or not known yet); ``verdicts`` of those that ended."""

    test: str
    in_flight: int
    running: int
    expected: int
    passed: int
    others: dict[str, int]
    stopped: str


class AlertNow(Struct, frozen=True, kw_only=True):
    """An alert told lately, and how often it was told in all."""

    time: int
    kind: str
    test: str
    text: str
    times: int


class Standing(Struct, frozen=True, kw_only=True):
    """Where a trial stands by its events: at ``now`` (ns), ``clock`` and ``duration`` in seconds
    (0: no limit). ``judged`` are the ids of the runs that had their verdicts last."""

    now: int
    state: str
    clock: float
    duration: float
    nodes: int
    tests: list[TestNow]
    alerts: list[AlertNow]
    held: list[Hold]
    judged: list[str]
    damaged: int

    @property
    def in_flight(self) -> int:
        return sum(test.in_flight for test in self.tests)

    @property
    def running(self) -> int:
        return sum(test.running for test in self.tests)

    @property
    def expected(self) -> int:
        return sum(test.expected for test in self.tests)


class TailedTrial:
    """One trial. ``trouble`` says why its journal cannot be read here, else it is empty."""

    def __init__(self, path: str, desk: BackgroundCompute, stir: Callable[[], None]) -> None:
        self.path = path
        self.trouble = ""
        self.driven = True
        self.course: TrialFold | None = None
        self.shelf = ResultSlots()
        self._desk = desk
        self._stir = stir
        self._lock = threading.Lock()
        self._kept: Standing | None = None

    @property
    def share_read(self) -> float:
        """How much of the journal was read, from 0 to 1."""
        course = self.course
        return course.end / course.size if course is not None and course.size else 0.0

    def standing(self) -> Standing | None:
        """Where the trial stands, by all of its journal where that is quick, else by what was read
        of it when it was last up to date; None if it never was."""
        try:
            if (size := self._far()) > 0:
                self._desk.have(
                    self.shelf, "journal", size, self._read_all, self._patience(), leisure=0
                )
            if self._lock.acquire(timeout=0 if self.shelf.is_behind() else TURN_S):
                try:
                    self._read_on()
                finally:
                    self._lock.release()
            self.trouble = ""
        except (SeatrialError, OSError) as error:
            self.trouble = str(error)
        return self._with_targets(self._kept)

    def _with_targets(self, standing: Standing | None) -> Standing | None:
        """With what is kept in flight of each test, which takes its cases' sizes to reckon."""
        if standing is None or self.status() is None:
            return standing
        expected = self.expected()
        tests = [replace(test, expected=expected.get(test.test, 0)) for test in standing.tests]
        return replace(standing, tests=tests)

    def _open(self) -> TrialFold:
        from seatrial.trial.folder import TrialFolder
        from seatrial.web.trials.trial_fold import TrialFold

        if self.course is None:
            self.course = TrialFold(TrialFolder(Path(self.path)))
        return self.course

    def _far(self) -> int:
        """The journal's size, if reading on to its end takes longer than a page may; else 0."""
        read = self.course.end if self.course is not None else 0
        try:
            size = (Path(self.path) / "journal.jsonl").stat().st_size
        except OSError:
            return 0  # opening it says why
        return size if size - read >= AT_ONCE_BYTES else 0

    def _read_on(self) -> None:
        """To the end of the journal, if that is near."""
        course = self._open()
        if course.left() >= AT_ONCE_BYTES:
            return
        while course.go_on():
            pass
        self._kept = self._standing_of(course)

    def _read_all(self) -> bool:
        """To the end of the journal, however far."""
        told = time.monotonic()
        more = True
        while more:
            with self._lock:
                more = self._open().go_on()
            if time.monotonic() - told > STIR_S:
                told = time.monotonic()
                self._stir()
        return True

    def _standing_of(self, course: TrialFold) -> Standing:
        from seatrial.web.trials.trial_results import present

        history = course.history
        now = present(course)
        return Standing(
            now=now,
            state=history.state,
            clock=history.clock(now),
            duration=history.duration,
            nodes=history.nodes,
            tests=self._tests_of(course),
            alerts=[
                AlertNow(time=told.time, kind=told.kind, test=told.subject, text=told.text, times=n)
                for told, n in (course.alerts(now) if not history.over else [])
            ],
            held=course.held(now) if self.driven else [],
            judged=list(reversed(course.judged)),
            damaged=course.damaged,
        )

    def _tests_of(self, course: TrialFold) -> list[TestNow]:
        return [
            TestNow(
                test=name,
                in_flight=len(test.in_flight),
                running=len(test.running),
                expected=0,
                passed=test.verdicts["pass"],
                others={why: n for why, n in test.verdicts.most_common() if why != "pass"},
                stopped=course.history.stopped.get(name, ""),
            )
            for name, test in course.tests.items()
        ]

    def expected(self) -> dict[str, int]:
        """How many runs of each test are kept in flight, by what was judged last."""
        made = self.shelf.get("status")
        if made is None or made.value is None:
            return {}
        return {part.test: part.expected for part in made.value.parts}

    # ---- what is judged -------------------------------------------------------------------

    def status(self) -> Status | None:
        """Where it stands by its criteria."""
        from seatrial.web.trials.trial_results import status_at

        driven = self.driven
        return self._judged("status", lambda course, now: status_at(course, now, driven))

    def uses(self) -> UtilisationSteps | None:
        """How its nodes were used over time."""
        from seatrial.web.trials.trial_results import uses_at

        return self._judged("uses", uses_at)

    def flights(self) -> list[Steps] | None:
        """Its runs in flight over time, beside what is expected by its status."""
        from seatrial.web.trials.trial_results import flights_at

        if self.status() is None:
            return None
        expected = self.expected()
        return self._judged("flights", lambda course, now: flights_at(course, now, expected))

    def loads(self) -> list[Steps] | None:
        """The loads of metadata targets over time, and the readings of gauges."""
        from seatrial.web.trials.trial_results import loads_at

        return self._judged("loads", loads_at)

    def _judged(self, name: str, make: Callable[[TrialFold, int], Any]) -> Any | None:
        from seatrial.web.trials.trial_results import present

        course = self.course
        if course is None or self._kept is None:
            return None
        now = present(course)
        runs = course.history.state == "running" and not course.record.rehearsed
        version = (course.end, self.driven, now // (LOOK_AGAIN_S * 10**9) if runs else 0)

        def locked() -> Any:
            with self._lock:
                return make(course, present(course))

        return self._desk.have(self.shelf, name, version, locked, self._patience())

    def _patience(self) -> float | None:
        """How long a page waits for one of its parts, None for as long as is usual: not at all
        while something is made for the first time that takes long; ``stir`` tells when that is
        there."""
        return 0.0 if self.shelf.is_behind() else None

    def have(self, name: str, version: Hashable, make: Callable[[], Any]) -> Any | None:
        """Something else that takes its time, made beside the page and kept with the trial."""
        return self._desk.have(self.shelf, name, version, make, self._patience())

    def have_few(
        self,
        name: str,
        version: Hashable,
        make: Callable[[], Any],
        leisure: float = MIN_IDLE_FACTOR,
    ) -> Any | None:
        """As ``have``, of what there may be many kinds of; the first word of the name is common to
        all, and of these few are kept."""
        kind = name.partition(" ")[0] + " "
        alike = [each for each in list(self.shelf) if each.startswith(kind) and each != name]
        for old in alike[: 1 - MOST_ALIKE]:
            self.shelf.pop(old, None)
        return self._desk.have(self.shelf, name, version, make, self._patience(), leisure)


class TrialCache:
    """The trials that are kept. ``stir`` is called when there is something new to show."""

    def __init__(self, stir: Callable[[], None]) -> None:
        self._stir = stir
        self._desk = BackgroundCompute(stir)
        self._lock = threading.Lock()
        self._trials: OrderedDict[str, TailedTrial] = OrderedDict()
        self._verdicts = ResultSlots()

    def of(self, row: TrialRow) -> TailedTrial:
        """The trial, which is kept from now on."""
        with self._lock:
            found = self._trials.get(row.path)
            if found is None:
                found = self._trials[row.path] = TailedTrial(row.path, self._desk, self._stir)
            self._trials.move_to_end(row.path)
            found.driven = row.state != "interrupted"
            self._let_go()
        return found

    def _let_go(self) -> None:
        """Forget what was looked at longest ago, where it is too much."""
        sizes = [
            0 if each.course is None else len(each.course.history.runs)
            for each in self._trials.values()
        ]
        kept, total = len(sizes), sum(sizes)
        for size in sizes[:-1]:
            if kept <= MOST_TRIALS and total <= MOST_RUNS:
                return
            self._trials.popitem(last=False)
            kept, total = kept - 1, total - size

    def verdict(self, row: TrialRow) -> Overall | None:
        """What a trial that is not running comes to by its criteria; None while that is not known,
        or cannot be as its folder is gone. The trial is not kept."""
        if len(self._verdicts) > MOST_VERDICTS:
            self._verdicts = ResultSlots()
        version = (row.last, row.state)
        wait_s = 0.0 if self._verdicts.is_behind() else None  # a page shows many
        try:
            return self._desk.have(
                self._verdicts, row.path, version, lambda: _verdict_of(row), wait_s
            )
        except (SeatrialError, OSError):
            return None

    def close(self) -> None:
        """Begin nothing new."""
        self._desk.close()


def _verdict_of(row: TrialRow) -> Overall:
    from seatrial.acceptance.criteria import TrialView, judged, overall
    from seatrial.trial.folder import TrialFolder
    from seatrial.web.trials.trial_fold import TrialFold
    from seatrial.web.trials.trial_results import present

    course = TrialFold(TrialFolder(Path(row.path)))
    if course.record.component is None:
        return "undecided"
    while course.go_on():
        pass
    view = TrialView(course.history, present(course), course.references)
    return overall(judged(course.record.component, view))
