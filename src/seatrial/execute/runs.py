"""A run from its launch to its verdict: where its directory is, and whether it hangs."""

import asyncio
import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.decide.conductor import Conductor, Launch
from seatrial.decide.in_flight import RunInFlight
from seatrial.execute.backends import Job
from seatrial.execute.background import Tasks
from seatrial.execute.beside_loop import Shell, run_in_thread
from seatrial.execute.directory import job_events, put
from seatrial.execute.trial_paths import HUNG_SCRIPT
from seatrial.files import make_folder, open_regular, replace_file, require_own
from seatrial.journal.events import OutputQuiet
from seatrial.journal.trial import RunState
from seatrial.model.machine import FileSystem
from seatrial.model.parameters import HUNG_FILE
from seatrial.model.run_settings import OPEN_FILES_FILE, PAGES_FILE
from seatrial.model.test import Case, Test
from seatrial.units import SECOND_NS


class PlacementTarget(Struct, frozen=True):
    """A place for run directories: a metadata target, a whole file system that has none, or
    (without a file system) the folder of the trial. ``root`` holds the directories of the tests."""

    file_system: str
    target: str
    number: int
    root: Path

    @property
    def name(self) -> str:
        """The name that people know: FILESYSTEM/TARGET."""
        return "/".join(filter(None, (self.file_system, self.target))) or "the trial's folder"


class RunUnderWay(Struct, frozen=True):
    """A run that has no verdict yet."""

    #: What the conductor asked for.
    launch: Launch
    test: Test
    case: Case
    job: Job
    #: Where its directory is.
    place: PlacementTarget

    @property
    def path(self) -> Path:
        """The directory of the run."""
        return self.job.path


# ---- placement -----------------------------------------------------------------------------------
#
# The directories of runs: in the folder of the trial, or on a metadata target of a file system.
#
#     places = Placement(machine.file_systems, "tag", trial / "runs")
#     place = places.place("scratch", "scratch/mdt1")
#     place.root                                    # <path>/<tag>/mdt1
#     failure = await places.make(place, "cm4")     # <root>/cm4; "" or why the command failed
#
# On Lustre ``place`` is ``lfs mkdir -i "$TARGET_INDEX" "$DIRECTORY"``. Files in such a directory
# are on its target, too, so the command runs once for each test and target.


DECKS = ".decks"


class Placement:
    """The places of one trial. Their directories are created when they are first needed."""

    def __init__(self, file_systems: Mapping[str, FileSystem], tag: str, own: Path) -> None:
        self._file_systems = file_systems
        self._tag = tag
        self._own = own
        self._made: dict[Path, asyncio.Task[str]] = {}

    def place(self, file_system: str, target: str) -> PlacementTarget:
        """Return the place of runs on a file system ("": the folder of the trial) and on a target
        as the policy names it: FILESYSTEM/TARGET, "" for none."""
        if not file_system:
            return PlacementTarget("", "", 0, self._own)
        about = self._file_systems[file_system]
        names = [each.name for each in about.metadata_targets]
        name = target.removeprefix(f"{file_system}/")
        root = Path(about.path) / self._tag
        if not name:
            return PlacementTarget(file_system, "", 0, root)
        index = names.index(name) if name in names else 0
        return PlacementTarget(file_system, name, index, root / name.replace("/", "+"))

    def timeout(self, place: PlacementTarget) -> float:
        """Return the time limit of the placement command of a place, in seconds."""
        about = self._file_systems.get(place.file_system)
        return about.timeout.seconds if about else 0.0

    async def make(self, place: PlacementTarget, name: str) -> str:
        """Create a directory at a place, unless it exists. Returns "", or why the placement command
        failed; then the directory is a plain one. Raises OSError where it cannot be created."""
        return await self._once(place.root / name, lambda: self._make(place, name))

    async def deck(self, place: PlacementTarget, source: Path) -> str:
        """Copy a deck to a place (``copy_of``), once. Returns "", or why the copy is in a plain
        directory. Raises OSError."""
        return await self._once(copy_of(place, source), lambda: self._copy(place, source))

    async def _once(self, path: Path, work: Callable[[], Coroutine[None, None, str]]) -> str:
        """Return what ``work`` returns for a path, or "" where it was done for that path before.
        Work that failed is repeated, work that is under way is awaited."""
        task = self._made.get(path)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._made[path] = asyncio.get_running_loop().create_task(work())
            return await asyncio.shield(task)
        await asyncio.shield(task)
        return ""  # a failure was reported to the first

    async def _make(self, place: PlacementTarget, name: str) -> str:
        directory = place.root / name
        about = self._file_systems.get(place.file_system)
        failure = ""
        if about and about.place.strip() and not await run_in_thread(directory.is_dir, "place"):
            await run_in_thread(partial(make_folder, directory.parent), "place")
            variables = {
                "DIRECTORY": str(directory),
                "TARGET": place.target,
                "TARGET_INDEX": str(place.number) if place.target else "",
            }
            failure = (await Shell(about.place, about.timeout.seconds).run(variables)).failure
            if not failure and not await run_in_thread(directory.is_dir, "place"):
                failure = f"it succeeded, but did not create {directory}"
        await run_in_thread(partial(make_folder, directory), "place")
        if place.file_system:  # others may have made what is named by the trial's tag
            await run_in_thread(lambda: require_own(self._top(place), directory), "place")
        return failure

    def _top(self, place: PlacementTarget) -> Path:
        """Return the folder of the trial on a file system."""
        return Path(self._file_systems[place.file_system].path) / self._tag

    async def _copy(self, place: PlacementTarget, source: Path) -> str:
        failure = await self.make(place, DECKS) if place.file_system else ""
        await run_in_thread(lambda: put(source, copy_of(place, source), "copy"), "deck")
        return failure


def copy_of(place: PlacementTarget, source: Path) -> Path:
    """Return the path of the copy of a deck at a place. Decks of one name from several folders have
    copies of their own."""
    mark = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    return place.root / DECKS / f"{mark}-{source.name}"


# ---- hung runs -----------------------------------------------------------------------------------
#
# Hung runs: how they are detected, and what their processes wait in.
#
# A run hangs if its output has not grown for as long as its test or plan allows. The output are the
# sizes and times of ``stdout``, ``stderr`` and the other files in the directory of a run. Times of
# files are compared within one directory only, as a file server has its own clock.


LOOKS = 10  # looks within the time after which a run counts as hung
SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 60.0
MAX_FILES = 200


class OutputState(Struct, frozen=True):
    """The output of a run: a signature that changes with it, and the time of its last write in
    seconds after the run was created, by the clock of the file server."""

    signature: tuple[int, ...]
    written: float


class Quiet(NamedTuple):
    """Since when (ns) the output of a run has not changed, and whether that was reported."""

    signature: tuple[int, ...]
    since: int
    reported: bool = False


class HangDetector:
    """Looks at the output of started runs, and reports those that are quiet for too long."""

    def __init__(self, conductor: Conductor, runs: Mapping[str, RunUnderWay], tasks: Tasks) -> None:
        self._conductor = conductor
        self._runs = runs
        self._tasks = tasks
        self._known: dict[str, Quiet] = {}
        self._looking: set[str] = set()  # places; one that hangs delays no other

    def start(self, now: Callable[[], int]) -> None:
        self._tasks.spawn(self._watch(now))  # a person may change the policy

    def _pause(self) -> float:
        """Return the seconds between two looks, by the policy as it is now."""
        spans = [e.quiet_after for e in self._conductor.state.policy.entries if e.quiet_after]
        shortest = min(spans, default=math.inf)
        return min(max(shortest / LOOKS, SHORTEST_SECONDS), LONGEST_SECONDS)

    async def _watch(self, now: Callable[[], int]) -> None:
        while True:
            places: dict[str, dict[str, Path]] = {}
            state = self._conductor.state
            for run_id, flight in state.in_flight.items():
                if (
                    flight.state is RunState.RUNNING
                    and state.policy.entries[flight.entry].quiet_after
                ):
                    job = self._runs[run_id].job
                    places.setdefault(job.file_system, {})[run_id] = job.path
            for place, paths in places.items():
                if place not in self._looking:
                    self._looking.add(place)
                    self._tasks.spawn(self._look_at(place, paths, now))
            await asyncio.sleep(self._pause())

    async def _look_at(self, place: str, paths: dict[str, Path], now: Callable[[], int]) -> None:
        outputs = await run_in_thread(lambda: _look(paths), "quiet")
        self._looking.discard(place)
        self._note(outputs, now())

    def _note(self, outputs: dict[str, OutputState], now: int) -> None:
        known, entries = self._known, self._conductor.state.policy.entries
        for run_id, output in outputs.items():
            flight = self._conductor.state.in_flight.get(run_id)
            if flight is None or not flight.has_job:
                continue
            state = self._known.get(run_id) or _first_look(flight, output, now)
            if state.signature != output.signature:
                state = Quiet(output.signature, now)
            quiet = (now - state.since) / SECOND_NS
            if not state.reported and quiet >= entries[flight.entry].quiet_after:
                state = state._replace(reported=True)
                self._tasks.put(OutputQuiet(run_id=run_id, seconds=round(quiet, 3)))
            known[run_id] = state
        in_flight = self._conductor.state.in_flight
        self._known = {run_id: state for run_id, state in known.items() if run_id in in_flight}


def _first_look(flight: RunInFlight, output: OutputState, now: int) -> Quiet:
    """Return since when a run is quiet: perhaps since before this driver started."""
    written = (flight.submitted or 0) + round(output.written * SECOND_NS)
    return Quiet(output.signature, min(now, max(flight.job_started or 0, written)))


_OF_JOB_SCRIPT = frozenset({PAGES_FILE, OPEN_FILES_FILE})  # grow though the test writes nothing


def _look(paths: dict[str, Path]) -> dict[str, OutputState]:
    """Return the output of runs. Left out are runs that cannot be read, and those whose script has
    ended: the scheduler may keep a job for long after that."""
    outputs = {}
    for run_id, path in paths.items():
        try:
            if job_events(path).end is None:
                outputs[run_id] = output_of(path)
        except OSError:
            continue
    return outputs


def output_of(path: Path) -> OutputState:
    """Return the state of the output of a run. Raises OSError."""
    made = os.stat(f"{path}/job.sh").st_mtime_ns  # noqa: PTH116
    signature = [os.stat(path).st_mtime_ns]  # noqa: PTH116
    latest = made
    with os.scandir(path) as entries:
        for entry in islice(entries, MAX_FILES):
            if entry.name in _OF_JOB_SCRIPT:
                continue
            about = entry.stat(follow_symlinks=False)
            signature += [about.st_size, about.st_mtime_ns]
            latest = max(latest, about.st_mtime_ns)
    return OutputState(tuple(signature), max(0, latest - made) / SECOND_NS)


# ---- hung processes ------------------------------------------------------------------------------
#
# What the processes of a hung run wait in.
#
# `hung.sh` prints it on each node of the run: first how many processes of a program wait in which
# function of the kernel, then each process with its stacks. It is kept as `hung.txt` in the
# directory of the run; its first lines become a part of the verdict.
#
#     write_waits(run_directory, printed)
#     waits_in(run_directory)               # "12 pw.x in futex_wait_queue, 1 mpirun in poll"


MAX_WAITS_BYTES = 64 << 10
MAX_KINDS = 3  # that a verdict names
COLLECT_SECONDS = 60.0  # the longest time that a hung run is kept for it

_TASK = r" *(\d+): ?(.*)"  # a line that `srun --label` labelled
_KIND = r"\S+: (\d{1,9}) ([!-~]{1,40} (?:running|in [!-~]{1,60}(?: state)?))"
_SHELLS = ("bash ", "sh ")


def hung_script() -> str:
    """Return the script that prints what the processes of a run wait in."""
    return Path(__file__).with_name(HUNG_SCRIPT).read_text()


def nodes_in_order(labelled: str) -> str:
    """Return the output of several tasks of ``srun --label``, whose lines are mixed: the kinds of
    processes of all nodes, an empty line, then node after node."""
    tasks: dict[int, list[str]] = {}
    for line in labelled.splitlines():
        if match := re.fullmatch(_TASK, line):
            tasks.setdefault(int(match[1]), []).append(match[2])
    kinds: list[str] = []
    details: list[str] = []
    for _, lines in sorted(tasks.items()):
        end = lines.index("") if "" in lines else len(lines)
        kinds += lines[:end]
        details += lines[end + 1 :]
    return "\n".join([*kinds, "", *details, ""]) if kinds else ""


def write_waits(path: Path, printed: str) -> None:
    """Write ``hung.txt`` into the directory of a run, at most 64 KiB. Nothing is written where
    nothing was printed. Raises OSError."""
    if not printed:
        return
    replace_file(path / HUNG_FILE, printed.encode(errors="replace")[:MAX_WAITS_BYTES])


def waits_in(path: Path) -> str:
    """Return what most processes of a hung run waited in, by its ``hung.txt``; "" if that tells
    nothing. Shells count only where there is nothing else."""
    try:
        with open_regular(path / HUNG_FILE, follow=False) as file:
            text = file.read(MAX_WAITS_BYTES).decode(errors="replace")
    except OSError:
        return ""
    kinds: Counter[str] = Counter()
    for line in text.partition("\n\n")[0].splitlines():
        if match := re.fullmatch(_KIND, line):
            kinds[match[2]] += int(match[1])
    programs = Counter({kind: n for kind, n in kinds.items() if not kind.startswith(_SHELLS)})
    commonest = (programs or kinds).most_common(MAX_KINDS)
    return ", ".join(f"{number} {kind}" for kind, number in commonest)
