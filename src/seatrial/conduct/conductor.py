"""The conductor: decides what starts next. Events in, commands out; no I/O, no clock, no chance.

    conductor = Conductor(tag, cases, limits)
    for event in journal: conductor.apply(event)      # recovery is replay
    for command in conductor.decide(): ...            # carried out by a driver

Its state is a fold over events. A command changes nothing by itself: the driver first records the
event that announces the act (build_start, submit_start, check_end), which is then applied.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from seatrial.conduct.commands import Cancel, Command, Finish, Launch, Reject, StartBuild
from seatrial.conduct.packing import Waiting
from seatrial.journal.codes import BUILD_FAILED, CANCELLED, LOST, PASS, Name
from seatrial.journal.events import Event
from seatrial.suite.model import Case

MOST_LOSSES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be in flight at a time. ``room`` is in cores for a backend that shares a node, 0 for
    one with a queue of its own; ``jobs`` caps the runs given to it, 0 for no cap; ``refill`` is the
    number of free places below which a queue is not topped up, so that jobs go in large arrays;
    ``max_failures`` stops the trial at that many verdicts other than pass, 0 never."""

    room: int = 0
    jobs: int = 0
    builds: int = 2
    refill: int = 1
    max_failures: int = 0


@dataclass(slots=True)
class _Flight:
    """A run that was launched and has no verdict yet."""

    case: int
    size: int
    holds_room: bool = True
    cancelled: bool = False


class Conductor:
    """Decides for one trial."""

    def __init__(self, tag: str, cases: Sequence[Case], limits: Limits) -> None:
        self.tag = tag
        self.cases = cases
        self.limits = limits
        self.index = {case.id: number for number, case in enumerate(cases)}
        self.in_flight: dict[str, _Flight] = {}
        self.failures = 0
        self.finished = 0
        self.wanted = 0
        self._attempts = [0] * len(cases)
        self._losses: Counter[int] = Counter()
        self._room = limits.room
        self._placed = 0
        self.held = ""  # why nothing is launched
        self.cancelling = False
        self._waiting = Waiting()
        self._rejects: Counter[int] = Counter()
        self._builds_to_start: dict[str, None] = {}
        self._builds_running: set[str] = set()
        self._builds_done: dict[str, str] = {}  # key -> why it failed, "" if good
        self._waits_for_build: dict[str, list[tuple[int, int]]] = {}  # key -> (case, runs)
        for number, case in enumerate(cases):
            self.wanted += case.repeat
            self._want(number, case.repeat)

    # ---- events in ------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold one event into the state. Events it does not decide by change nothing."""
        handler = _HANDLERS.get(event.event)
        if handler is not None:
            handler(self, event)

    def _on_build_start(self, event: Event) -> None:
        if event.alias in self._builds_to_start:
            del self._builds_to_start[event.alias]
            self._builds_running.add(event.alias)

    def _on_build_end(self, event: Event) -> None:
        key = event.alias
        self._builds_running.discard(key)
        self._builds_to_start.pop(key, None)
        self._builds_done[key] = "" if event.value == 0 else (event.text or "the build failed")
        for number, runs in self._waits_for_build.pop(key, ()):
            self._want(number, runs)

    def _on_submit_start(self, event: Event) -> None:
        number = self.index.get(event.case)
        if number is None or event.run_id in self.in_flight:
            return
        self._take(number)
        size = self.size(number)
        self.in_flight[event.run_id] = _Flight(number, size)
        self._room -= size
        self._placed += 1

    def _on_job_end(self, event: Event) -> None:
        flight = self.in_flight.get(event.run_id)
        if flight is not None and flight.holds_room:
            flight.holds_room = False
            self._room += flight.size
            self._placed -= 1

    def _on_check_end(self, event: Event) -> None:
        number = self.index.get(event.case)
        if number is None:
            return
        self._on_job_end(event)
        again = self.runs_again(number, event.run_id, event.value)
        if self.in_flight.pop(event.run_id, None) is None:
            self._take(number)  # a run that was rejected before it was launched
        if again:
            if event.value == LOST.number:
                self._losses[number] += 1
            self._want(number)
        else:
            self.finished += 1
            self.failures += event.value != PASS.number
            if self._too_many(self.failures) and not self.held:
                self.held = f"{self.failures} runs did not pass, the most that was allowed"

    def _on_pause(self, event: Event) -> None:
        self.held = event.text or "paused"

    def _on_cancel(self, event: Event) -> None:
        self.held = event.text or "cancelled"
        self.cancelling = True
        for flight in self.in_flight.values():
            flight.cancelled = True
        self._restart_builds()

    def _on_resume(self, event: Event) -> None:
        self.held = ""
        self.cancelling = False
        self.failures = 0  # those that a person has seen, and went on
        self._restart_builds()

    # ---- commands out ---------------------------------------------------------------------

    def decide(self) -> list[Command]:
        """What is to be done now. The driver records the announcing events, applies them and acts;
        asked again before that, the answer is the same."""
        commands: list[Command] = []
        if self.cancelling:
            commands += [Cancel(run_id) for run_id in self.in_flight]
        if not self.held:
            rejections = list(self._rejections())
            commands += rejections
            if not self._too_many(self.failures + len(rejections)):
                commands += self._starts_of_builds()
                commands += self._launches()
        idle = not self.in_flight and not self._builds_running
        if not commands and idle and (self.held or self.finished >= self.wanted):
            commands.append(Finish(self.finished >= self.wanted, self.held))
        return commands

    def _rejections(self) -> Iterator[Reject]:
        most = self.limits.max_failures
        rejects = ((number, n) for number, runs in self._rejects.items() for n in range(runs))
        for number, ahead in islice(rejects, most - self.failures if most else None):
            why = self._builds_done[self.cases[number].build]
            yield Reject(number, self.run_id(number, ahead), BUILD_FAILED.number, why)

    def _too_many(self, failures: int) -> bool:
        return 0 < self.limits.max_failures <= failures

    def _starts_of_builds(self) -> Iterator[StartBuild]:
        free = max(0, self.limits.builds - len(self._builds_running))
        for key in islice(self._builds_to_start, free):
            yield StartBuild(key)

    def _launches(self) -> Iterator[Launch]:
        places = self._free_places()
        ahead: Counter[int] = Counter()
        for number in self._waiting.choose(self._free_room(), places) if places else ():
            yield Launch(number, self.run_id(number, ahead[number]))
            ahead[number] += 1

    def _free_room(self) -> int:
        """The cores that runs may take. Builds share the node with them and are counted as one, so
        that nothing that wants the node to itself is measured beside a compiler."""
        building = bool(self._builds_running or self._builds_to_start)
        return self._room - 1 if self.limits.room and building else self._room

    def _free_places(self) -> int:
        """How many runs may be given to the backend. A queue is topped up in large portions."""
        waiting = len(self._waiting)
        if not self.limits.jobs:
            return waiting
        free = max(0, self.limits.jobs - self._placed)
        worth_it = free >= min(self.limits.refill, self.limits.jobs) or waiting <= free
        return free if worth_it else 0

    # ---- the parts of the state -----------------------------------------------------------

    def runs_again(self, number: int, run_id: str, code: int | float | str | None) -> bool:
        """Whether the case of a run runs again after this verdict: cancelled with the trial, it
        waits until that is resumed; what was lost is made good a few times for each case."""
        if code == CANCELLED.number:
            flight = self.in_flight.get(run_id)
            return flight is not None and flight.cancelled
        return code == LOST.number and self._losses[number] < MOST_LOSSES

    def size(self, number: int) -> int:
        """The room that a case takes: its cores on a shared node, at most the whole of it."""
        if not self.limits.room:
            return 0
        case = self.cases[number]
        cores = case.tasks_per_node * case.threads
        return self.limits.room if case.exclusive else min(cores, self.limits.room)

    def run_id(self, number: int, ahead: int = 0) -> str:
        """The id of a case's next run (or the one ``ahead`` of it): 12 letters and digits, unique
        among all trials as their tags are."""
        attempt = self._attempts[number] + ahead
        text = f"{self.tag}\n{self.cases[number].id}\n{attempt}"
        return base64.b32encode(hashlib.sha256(text.encode()).digest()[:8]).decode().lower()[:12]

    def _restart_builds(self) -> None:
        """Builds that ran are gone with their driver, or were ended by it."""
        self._builds_to_start.update(dict.fromkeys(self._builds_running))
        self._builds_running.clear()

    def _want(self, number: int, runs: int = 1) -> None:
        """Runs of the case are wanted: after its build, or at once, or never if that failed."""
        key = self.cases[number].build
        if key and key not in self._builds_done:
            if key not in self._builds_running:
                self._builds_to_start[key] = None
            self._waits_for_build.setdefault(key, []).append((number, runs))
        elif key and self._builds_done[key]:
            self._rejects[number] += runs
        else:
            self._waiting.add(number, self.size(number), runs)

    def _take(self, number: int) -> None:
        """A wanted run has begun."""
        self._attempts[number] += 1
        if self._rejects[number] > 0:
            self._rejects[number] -= 1
            if not self._rejects[number]:
                del self._rejects[number]
        else:
            self._waiting.remove(number, self.size(number))


_HANDLERS: dict[str, Callable[[Conductor, Event], None]] = {
    Name.BUILD_START: Conductor._on_build_start,
    Name.BUILD_END: Conductor._on_build_end,
    Name.SUBMIT_START: Conductor._on_submit_start,
    Name.JOB_END: Conductor._on_job_end,
    Name.CHECK_END: Conductor._on_check_end,
    Name.TRIAL_PAUSE: Conductor._on_pause,
    Name.TRIAL_CANCEL: Conductor._on_cancel,
    Name.TRIAL_RESUME: Conductor._on_resume,
}
