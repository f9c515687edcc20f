"""Finding hung runs: those whose output has not grown for as long as the plan allows.

What is looked at are the sizes and times of ``stdout``, ``stderr`` and of what else lies in a run's
directory. Times of a file are compared with those of other files of the same directory alone, as a
file server has a clock of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from seatrial.conduct.conductor import Conductor
from seatrial.journal.codes import Name
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.directory import job_events
from seatrial.trial.tasks import Tasks
from seatrial.units import SECOND_NS

LOOKS = 10  # within the time after which a run counts as hung
SHORTEST_SECONDS, LONGEST_SECONDS = 0.5, 60.0
MAX_FILES = 200


class OutputState(NamedTuple):
    """What there is of a run's output: a signature that changes with it, and for how many seconds
    after the run was made it was last written, by the file server's clock."""

    signature: tuple[int, ...]
    written: float


class Quiet(NamedTuple):
    """Since when (ns) the output of a run is as it is, and whether that was told."""

    signature: tuple[int, ...]
    since: int
    told: bool = False


class HangDetector:
    """Looks at the runs that have started, and notes those that are quiet for too long."""

    def __init__(
        self,
        conductor: Conductor,
        path: Callable[[str], Path],
        place: Callable[[str], str],
        tasks: Tasks,
    ) -> None:
        """``path`` is the directory of a run, ``place`` the target that it is on, "" for none."""
        self._conductor = conductor
        self._path = path
        self._place = place
        self._tasks = tasks
        self._known: dict[str, Quiet] = {}
        self._looking: set[str] = set()  # the places; one that hangs keeps its look, and no other

    def start(self, now: Callable[[], int]) -> None:
        spans = [e.quiet_after for e in self._conductor.policy.entries if e.quiet_after]
        if spans:
            pause = min(max(min(spans) / LOOKS, SHORTEST_SECONDS), LONGEST_SECONDS)
            self._tasks.spawn(self._watch(pause, now))

    async def _watch(self, pause: float, now: Callable[[], int]) -> None:
        while True:
            places: dict[str, dict[str, Path]] = {}
            for run_id in self._started():
                places.setdefault(self._place(run_id), {})[run_id] = self._path(run_id)
            for place, paths in places.items():
                if place not in self._looking:
                    self._looking.add(place)
                    self._tasks.spawn(self._look_at(place, paths, now))
            await asyncio.sleep(pause)

    async def _look_at(self, place: str, paths: dict[str, Path], now: Callable[[], int]) -> None:
        found = await run_in_thread(lambda: _look(paths), "quiet")
        self._looking.discard(place)
        self._note(found, now())

    def _started(self) -> Iterable[str]:
        entries = self._conductor.policy.entries
        for run_id, flight in self._conductor.in_flight.items():
            if entries[flight.entry].quiet_after and flight.started and flight.holds_room:
                yield run_id

    def _note(self, found: dict[str, OutputState], now: int) -> None:
        known = self._known
        for run_id, output in found.items():
            flight = self._conductor.in_flight.get(run_id)
            if flight is None or not flight.holds_room:
                continue
            state = self._known.get(run_id)
            if state is None:  # perhaps it was quiet before this driver looked
                written = flight.launched + round(output.written * SECOND_NS)
                state = Quiet(output.signature, min(now, max(flight.started, written)))
            elif state.signature != output.signature:
                state = Quiet(output.signature, now)
            quiet = (now - state.since) / SECOND_NS
            if not state.told and quiet >= self._conductor.policy.entries[flight.entry].quiet_after:
                state = state._replace(told=True)
                self._tasks.note(Name.OUTPUT_QUIET, run_id=run_id, value=round(quiet, 3))
            known[run_id] = state
        in_flight = self._conductor.in_flight
        self._known = {run_id: state for run_id, state in known.items() if run_id in in_flight}


def _look(paths: dict[str, Path]) -> dict[str, OutputState]:
    """What there is of the output of runs. Those that cannot be looked at are left out, and those
    whose script has ended: the scheduler may keep a job for long after that."""
    found = {}
    for run_id, path in paths.items():
        try:
            if job_events(path).end is None:
                found[run_id] = output_of(path)
        except OSError:
            continue
    return found


def output_of(path: Path) -> OutputState:
    """What there is of a run's output. Raises OSError."""
    made = os.stat(f"{path}/job.sh").st_mtime_ns  # noqa: PTH116
    signature = [os.stat(path).st_mtime_ns]  # noqa: PTH116
    latest = made
    with os.scandir(path) as entries:
        for entry in islice(entries, MAX_FILES):
            about = entry.stat(follow_symlinks=False)
            signature += [about.st_size, about.st_mtime_ns]
            latest = max(latest, about.st_mtime_ns)
    return OutputState(tuple(signature), max(0, latest - made) / SECOND_NS)
