"""Requests of people to a running trial: files in its folder, which its driver reads.

    ask(folder, Request(request="extend", value=7200))
    for file, request in waiting(folder): ...             # in the order of asking
    drop(folder, [event.request])                         # when its answer is in the journal

The event that answers a request names its file (``request``), so that it is answered once.
`seatrial cancel` leaves a file of its own (``TrialFolder.cancel_request``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import time
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from socket import gethostname
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.decoding import DAMAGED, decoder
from seatrial.files import is_of_host, read_regular
from seatrial.journal.encoding import decode
from seatrial.journal.events import (
    PERSONAL,
    NodeAdmitted,
    PersonsEvent,
    RequestedEvent,
    RunReviewed,
    TestAdmitted,
    TrialAbandoned,
    TrialExtended,
    TrialPaused,
)
from seatrial.trial.folder import TrialFolder
from seatrial.trial.tasks import Tasks

MAX_REQUEST_BYTES = 1 << 20
LOOK_SECONDS = 1.0  # between two looks

Answer = RequestedEvent | RunReviewed


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. ``value`` are the seconds to extend; ``text`` is the reason to abandon, the test
    or node set to admit, or the event to record, as a line of a journal. ``user`` is the account
    that owns its file, whatever the file says."""

    request: Literal["pause", "extend", "abandon", "admit", "record"]
    value: float = 0.0
    text: str = ""
    user: str = ""


async def watch(
    folder: TrialFolder, tests: Container[str], tasks: Tasks, on_cancel: Callable[[], None]
) -> None:
    """Pass on requests, from any host that sees the folder, until the task is cancelled."""
    passed_on: set[str] = set()
    while True:
        if take_cancel(folder):
            on_cancel()
        for file, request in waiting(folder):
            if file not in passed_on:
                passed_on.add(file)
                tasks.put(answer_to(request, tests, file))
        await asyncio.sleep(LOOK_SECONDS)


def left(folder: TrialFolder, tests: Container[str], answered: Container[str]) -> list[Answer]:
    """Return the events that answer the requests that an earlier driver left. A request to pause is
    dropped, as that drive is over. ``answered`` are the files of requests in the journal."""
    take_cancel(folder)
    answers = []
    for file, request in waiting(folder):
        if request.request == "pause" or file in answered:
            drop(folder, [file])
        else:
            answers.append(answer_to(request, tests, file))
    return answers


def ask(folder: TrialFolder, request: Request) -> str:
    """Write a request for the driver of the trial; return its file, as ``waiting`` does. The file
    appears when it is complete."""
    folder.requests.mkdir(exist_ok=True)
    name = f"{time.time_ns():020d}-{gethostname()}-{os.getpid()}"
    part = folder.requests / f".{name}"
    part.write_bytes(msgspec.json.encode(request))
    part.chmod(0o644)  # the driver may be another member's
    part.rename(folder.requests / f"{name}.json")
    return f"{folder.requests.name}/{name}.json"


def waiting(folder: TrialFolder) -> list[tuple[str, Request]]:
    """Return the requests and their files, oldest first. A file that is no request, such as a FIFO,
    is removed. Where the file server does not answer, return those read so far."""
    requests = []
    with contextlib.suppress(OSError):
        for path in sorted(folder.requests.glob("[!.]*.json")):
            try:
                data = read_regular(path, MAX_REQUEST_BYTES, follow=False)
                request = replace(decoder(Request).decode(data), user=_owner(path))
                if request.request == "record":
                    _recorded(request)  # raises one of DAMAGED
                requests.append((f"{path.parent.name}/{path.name}", request))
            except DAMAGED:
                path.unlink()
            except OSError as error:
                if is_of_host(error):
                    raise
                with contextlib.suppress(OSError):  # it is another member's, or a folder
                    path.unlink()
    return requests


def drop(folder: TrialFolder, answered: Iterable[str]) -> None:
    """Remove the files of answered requests. One that cannot be removed is not answered again."""
    for file in answered:
        with contextlib.suppress(OSError):
            (folder.path / file).unlink()


def answer_to(request: Request, tests: Container[str], file: str = "") -> Answer:
    """Return the event that answers a request (in a file); ``tests`` are the trial's."""
    if request.request == "record":
        return replace(_recorded(request), request=file)
    if request.request == "extend":
        return TrialExtended(seconds=request.value, request=file)
    if request.request == "abandon":
        return TrialAbandoned(reason=request.text or "abandoned", request=file)
    if request.request == "pause":
        return TrialPaused(reason=request.text or "paused by `seatrial accept`", request=file)
    if request.text in tests:
        return TestAdmitted(test=request.text, request=file)
    return NodeAdmitted(nodes=request.text, request=file)


def _recorded(request: Request) -> PersonsEvent | RunReviewed:
    """Return the event that a person records, by the account that owns the request's file. Raises
    one of DAMAGED where it is none that people may record."""
    event = decode(request.text.encode())
    if not isinstance(event, PERSONAL):
        raise msgspec.ValidationError(f"{event.name} is not for people to record")
    account, _, host = event.by.partition("@")
    return replace(event, by=f"{request.user or account}@{host}")


def _owner(path: Path) -> str:
    """Return the name of the account that owns a file, or its number."""
    number = path.lstat().st_uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def take_cancel(folder: TrialFolder) -> bool:
    """Return whether `seatrial cancel` has asked, once for each time."""
    with contextlib.suppress(OSError):  # where the file server does not answer
        if folder.cancel_request.exists():
            with contextlib.suppress(OSError):
                folder.cancel_request.unlink()
            return True
    return False
