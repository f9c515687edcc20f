"""A run from its launch to its verdict, and where its directory is."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from seatrial.decide.conductor import Launch
from seatrial.execute.backends import Job
from seatrial.execute.beside_loop import Shell, run_in_thread
from seatrial.execute.directory import put
from seatrial.files import make_folder, require_own
from seatrial.model.machine import FileSystem
from seatrial.model.test import Case, Test


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
