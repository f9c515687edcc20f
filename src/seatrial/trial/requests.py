"""What people ask of a trial from another process: files in its folder, seen by its driver.

    ask(folder, Request(request="extend", value=7200))
    for request in take(folder): ...                      # each once, in the order of asking

`seatrial cancel` leaves a file of its own beside them (``TrialFolder.cancel_request``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from seatrial.journal.codes import Name
from seatrial.trial.folder import TrialFolder
from seatrial.trial.tasks import Note, Tasks

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
    while True:
        if take_cancel(folder):
            on_cancel()
        for request in take(folder):
            tasks.put(note_of(request, tests))
        await asyncio.sleep(LOOK_SECONDS)


def left(folder: TrialFolder, tests: Container[str]) -> list[Note]:
    """The events that answer what an earlier driver did not see; to stop it is of no use now."""
    take_cancel(folder)
    return [note_of(each, tests) for each in take(folder) if each.request != "pause"]


def ask(folder: TrialFolder, request: Request) -> None:
    """Leave a request for the trial's driver, wherever it is. It appears whole or not at all."""
    requests = _requests(folder)
    requests.mkdir(exist_ok=True)
    name = f"{time.time_ns():020d}-{os.getpid()}"
    part = requests / f".{name}"
    part.write_bytes(msgspec.json.encode(request))
    part.rename(requests / f"{name}.json")


def take(folder: TrialFolder) -> list[Request]:
    """The requests that wait, each taken once. What is none is removed, and passed over; a file
    server that does not answer now may do so in a second."""
    found = []
    for path in _waiting(folder):
        try:
            data = path.read_bytes()
            path.unlink()
            found.append(msgspec.json.decode(data, type=Request))
        except OSError:
            break
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return found


def note_of(request: Request, tests: Container[str]) -> Note:
    """The event by which a request is answered; ``tests`` are the trial's."""
    if request.request == "extend":
        return Note(Name.TRIAL_EXTEND, {"value": request.value})
    if request.request == "abandon":
        return Note(Name.TRIAL_ABANDON, {"text": request.text or "given up"})
    if request.request == "pause":
        return Note(Name.TRIAL_PAUSE, {"text": request.text or "paused by `seatrial accept`"})
    if request.text in tests:
        return Note(Name.TEST_ADMIT, {"test": request.text})
    return Note(Name.NODE_ADMIT, {"nodes": request.text})


def take_cancel(folder: TrialFolder) -> bool:
    """Whether `seatrial cancel` has asked; it is answered once."""
    if not _exists(folder.cancel_request):
        return False
    with contextlib.suppress(OSError):
        folder.cancel_request.unlink()
    return True


def _waiting(folder: TrialFolder) -> list[Path]:
    try:
        return sorted(_requests(folder).glob("[!.]*.json"))
    except OSError:
        return []


def _requests(folder: TrialFolder) -> Path:
    return folder.path / "requests"


def _exists(path: Path) -> bool:
    """Whether it is there; a file server that does not say so now may in a second."""
    try:
        return path.exists()
    except OSError:
        return False
