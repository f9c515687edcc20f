"""Where run directories go: below the trial's folder, or on a metadata target of a file system.

    places = Placement(machine.file_systems, "tag", trial / "runs")
    place = places.place("scratch", "scratch/mdt1")
    place.root                                    # <path>/<tag>/mdt1
    why = await places.make(place, "cm4")         # <root>/cm4, once; why it is a plain folder

On Lustre ``place`` is ``lfs mkdir -i "$TARGET_INDEX" "$DIRECTORY"``. What lies in a directory that
was so made is on its target, too, so that the command is run once for each test and target.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import NamedTuple

from seatrial.machine.model import FileSystem
from seatrial.runs.daemon_thread import run_in_thread
from seatrial.runs.directory import put
from seatrial.runs.shell import Shell
from seatrial.units import seconds

DECKS = ".decks"


class PlacementTarget(NamedTuple):
    """A metadata target, or the whole of a file system without any, or (no file system) the trial's
    own folder; ``root`` is the directory that those of its tests are in."""

    file_system: str
    target: str
    number: int
    root: Path

    @property
    def name(self) -> str:
        """As people know it: FILESYSTEM/TARGET."""
        return "/".join(filter(None, (self.file_system, self.target))) or "the trial's folder"


class Placement:
    """The places of one trial, whose directories are made when they are first needed."""

    def __init__(self, file_systems: Mapping[str, FileSystem], tag: str, own: Path) -> None:
        self._file_systems = file_systems
        self._tag = tag
        self._own = own
        self._made: dict[Path, asyncio.Task[str]] = {}

    def place(self, file_system: str, target: str) -> PlacementTarget:
        """The place of runs on a file system ("": the trial's folder) and on the target that the
        policy names: FILESYSTEM/TARGET, "" for none."""
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
        """The longest time that its placement command may take, in seconds."""
        about = self._file_systems.get(place.file_system)
        return seconds(about.timeout) if about else 0.0

    async def make(self, place: PlacementTarget, name: str) -> str:
        """Make the directory of that name at a place, if need be; "" or why it is a plain one.
        Raises OSError where there can be none."""
        return await self._once(place.root / name, lambda: self._make(place, name))

    async def deck(self, place: PlacementTarget, source: Path) -> str:
        """Have a copy of a deck there (``copy_of``), made once; "" or why it is in a plain
        directory. Raises OSError."""
        return await self._once(copy_of(place, source), lambda: self._copy(place, source))

    async def _once(self, path: Path, work: Callable[[], Coroutine[None, None, str]]) -> str:
        """What is asked for while it is being made is waited for; a failure is tried again."""
        task = self._made.get(path)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._made[path] = asyncio.get_running_loop().create_task(work())
            return await asyncio.shield(task)
        await asyncio.shield(task)
        return ""  # it was told already

    async def _make(self, place: PlacementTarget, name: str) -> str:
        directory = place.root / name
        about = self._file_systems.get(place.file_system)
        if about is None or not about.place.strip():
            await run_in_thread(lambda: _make(directory), "place")
            return ""
        if await run_in_thread(directory.is_dir, "place"):
            return ""
        await run_in_thread(lambda: _make(directory.parent), "place")
        variables = {
            "DIRECTORY": str(directory),
            "TARGET": place.target,
            "TARGET_INDEX": str(place.number) if place.target else "",
        }
        said = await Shell(about.place, seconds(about.timeout)).run(variables)
        made = await run_in_thread(directory.is_dir, "place")
        if not said.why and made:
            return ""
        await run_in_thread(lambda: _make(directory), "place")
        return said.why or f"it ended well, but made no {directory}"

    async def _copy(self, place: PlacementTarget, source: Path) -> str:
        why = await self.make(place, DECKS) if place.file_system else ""
        await run_in_thread(lambda: put(source, copy_of(place, source), "copy"), "deck")
        return why


def copy_of(place: PlacementTarget, source: Path) -> Path:
    """Where a place's own copy of a deck is; decks of one name may come from several folders."""
    mark = hashlib.sha256(str(source).encode()).hexdigest()[:8]
    return place.root / DECKS / f"{mark}-{source.name}"


def _make(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
