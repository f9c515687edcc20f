"""What people ask of a trial from another process: files in its folder, seen by its driver.

    ask(folder, Request(request="extend", value=7200))
    for path, request in waiting(folder): ...             # in the order of asking
    drop(folder, [event.path])                            # when its answer is in the journal

The event by which one is answered has its file as ``path``, by which nobody answers it again.
`seatrial cancel` leaves a file of its own beside them (``TrialFolder.cancel_request``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from seatrial.decoding import DAMAGED, decoder
from seatrial.journal.codes import Name
from seatrial.trial.folder import TrialFolder
from seatrial.trial.tasks import DriverNote, Tasks

LOOK_SECONDS = 1.0  # between two looks for requests


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``value`` are the seconds of ``extend``; ``text`` is why to abandon, or whom to admit: a test
    or a node set."""

    request: Literal["pause", "extend", "abandon", "admit"]
    value: float = 0.0
    text: str = ""


async def watch(
    folder: TrialFolder, tests: Container[str], tasks: Tasks, on_cancel: Callable[[], None]
) -> None:
    """Pass on what is asked for, from whatever host that sees the trial, for ever."""
    passed_on: set[Path] = set()
    while True:
        if take_cancel(folder):
            on_cancel()
        for path, request in waiting(folder):
            if path not in passed_on:
                passed_on.add(path)
                tasks.put(note_of(request, tests, path))
        await asyncio.sleep(LOOK_SECONDS)


def left(folder: TrialFolder, tests: Container[str], answered: Container[str]) -> list[DriverNote]:
    """The events that answer what an earlier driver did not see; to stop it is of no use now.
    ``answered``: the paths that are in the journal."""
    take_cancel(folder)
    found = []
    for path, request in waiting(folder):
        if request.request == "pause" or _mark(path) in answered:
            drop(folder, [_mark(path)])
        else:
            found.append(note_of(request, tests, path))
    return found


def ask(folder: TrialFolder, request: Request) -> None:
    """Leave a request for the trial's driver, wherever it is. It appears whole or not at all."""
    requests = _requests(folder)
    requests.mkdir(exist_ok=True)
    name = f"{time.time_ns():020d}-{os.getpid()}"
    part = requests / f".{name}"
    part.write_bytes(msgspec.json.encode(request))
    part.rename(requests / f"{name}.json")


def waiting(folder: TrialFolder) -> list[tuple[Path, Request]]:
    """The requests that wait. What is none is removed, and passed over; a file server that does not
    answer now may do so in a second."""
    found = []
    try:
        for path in sorted(_requests(folder).glob("[!.]*.json")):
            try:
                found.append((path, decoder(Request).decode(path.read_bytes())))
            except DAMAGED:
                path.unlink()
    except OSError:
        return found
    return found


def drop(folder: TrialFolder, answered: Iterable[str]) -> None:
    """Remove requests, by the ``path`` of the events that answer them. What cannot be removed is
    not answered again."""
    for path in answered:
        with contextlib.suppress(OSError):
            (folder.path / path).unlink()


def note_of(request: Request, tests: Container[str], path: Path | None = None) -> DriverNote:
    """The event by which a request (in a file) is answered; ``tests`` are the trial's."""
    event, about = _answer(request, tests)
    return DriverNote(event, about | {"path": _mark(path)} if path else about)


def _answer(request: Request, tests: Container[str]) -> tuple[str, dict[str, Any]]:
    if request.request == "extend":
        return Name.TRIAL_EXTEND, {"value": request.value}
    if request.request == "abandon":
        return Name.TRIAL_ABANDON, {"text": request.text or "given up"}
    if request.request == "pause":
        return Name.TRIAL_PAUSE, {"text": request.text or "paused by `seatrial accept`"}
    if request.text in tests:
        return Name.TEST_ADMIT, {"test": request.text}
    return Name.NODE_ADMIT, {"nodes": request.text}


def _mark(path: Path) -> str:
    """A request's file, as its answer names it."""
    return f"{path.parent.name}/{path.name}"


def take_cancel(folder: TrialFolder) -> bool:
    """Whether `seatrial cancel` has asked; it is answered once."""
    if not _exists(folder.cancel_request):
        return False
    with contextlib.suppress(OSError):
        folder.cancel_request.unlink()
    return True


def _requests(folder: TrialFolder) -> Path:
    return folder.path / "requests"


def _exists(path: Path) -> bool:
    """Whether it is there; a file server that does not say so now may in a second."""
    try:
        return path.exists()
    except OSError:
        return False
