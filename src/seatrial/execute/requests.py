"""Requests of people to a running trial: files in its folder, which its driver reads.

    file = ask(folder, Request(request="extend", value=7200))
    for asked in waiting(folder): ...                     # in the order of asking
    drop(folder, [asked.file])                            # when its answer is in the journal

The event that answers a request names its file (``request``), so that it is answered once; ``by``
is the name of the file's owner, whatever its text says. Each member of a trial's group may ask,
where the folder of trials belongs to a group that may write there: see ``open_to_group``.
`seatrial cancel` leaves a file of its own (``TrialFolder.cancel_request``).
"""

import asyncio
import contextlib
import datetime
import errno
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.account import name_of
from seatrial.decide.policy_change import conflicts, refused, too_short, with_parts
from seatrial.decide.state import ConductorState
from seatrial.errors import TrialError
from seatrial.escaping import plain_line
from seatrial.execute.plan.component import RESULTS
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.files import (
    SAFE_FOLDER,
    is_of_host,
    make_folder,
    names_in,
    open_descriptor,
    opened_folder,
    remove_file,
    replace_file,
)
from seatrial.journal import events
from seatrial.journal.encoding import decode
from seatrial.journal.events import PERSONAL, PersonsEvent, RunReviewed
from seatrial.model.codes import CODES, ERRORS, KNOWN, PASS
from seatrial.model.file_model import DAMAGED, decoder
from seatrial.model.moments import day_of
from seatrial.model.node_set import unfold
from seatrial.model.nodes import node_names
from seatrial.units import seconds

MAX_REQUEST_BYTES = 1 << 20
MAX_REASON = 1000  # characters
LOOK_SECONDS = 1.0  # between two looks

RequestKind = Literal[
    "pause",
    "extend",
    "abandon",
    "admit",
    "change",
    "hold",
    "release",
    "stop",
    "exclude",
    "cancel",
    "record",
]


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. ``value`` are the seconds to extend; ``text`` is the reason to abandon, the test
    or node set to admit, hold, release, stop or exclude, the id of the run to cancel, or the event
    to record, as a line of a journal. ``parts`` are the parts of the policy to change, ``before``
    what they were when the change was made."""

    request: RequestKind
    value: float = 0.0
    text: str = ""
    reason: str = ""
    parts: dict[str, Any] = {}
    before: dict[str, Any] = {}


class WaitingRequest(NamedTuple):
    """A request with its file (relative to the trial's folder) and the name of the file's
    owner."""

    file: str
    request: Request
    by: str


async def watch(
    folder: TrialFolder, put: Callable[[WaitingRequest], None], on_cancel: Callable[[], None]
) -> None:
    """Pass on requests, from any host that sees the folder, until the task is cancelled."""
    passed_on: set[str] = set()
    while True:
        if take_cancel(folder):
            on_cancel()
        for each in waiting(folder):
            if each.file not in passed_on:
                passed_on.add(each.file)
                put(each)
        await asyncio.sleep(LOOK_SECONDS)


def left(folder: TrialFolder, answered: Container[str]) -> list[WaitingRequest]:
    """Return the requests that an earlier driver left. A request to pause is dropped, as that drive
    is over. ``answered`` are the files of requests in the journal."""
    take_cancel(folder)
    found = []
    for each in waiting(folder):
        if each.request.request == "pause" or each.file in answered:
            drop(folder, [each.file])
        else:
            found.append(each)
    return found


def ask(folder: TrialFolder, request: Request) -> str:
    """Write a request for the driver of the trial; return its file, relative to the trial's
    folder. It appears when it is complete. Raises TrialError where it cannot be written."""
    name = f"{time.time_ns():020d}-{os.uname().nodename}-{os.getpid()}"
    try:
        open_to_group(folder)
        make_folder(folder.requests)
        data = msgspec.json.encode(request)  # the driver may be another member's
        replace_file(folder.requests / f"{name}.json", data, 0o644, exact=True)
    except OSError as error:
        what = remedy(error)
        if error.errno in (errno.EACCES, errno.EPERM):
            what = (
                f"its owner can open it to a group: `chgrp GROUP {folder.requests}` and "
                "`chmod 3775` it"
            )
        raise TrialError(
            f"{folder.requests}: nothing can be asked there: {error.strerror}; {what}"
        ) from error
    return f"{folder.requests.name}/{name}.json"


def open_to_group(folder: TrialFolder) -> None:
    """Where the group of the folder of trials may write there, make a folder of requests in which
    each member may ask: it gets that group, and the sticky bit, so that none removes or renames the
    request of another. A folder that is there stays as its owner made it."""
    trials = folder.path.parent.stat()
    if not trials.st_mode & stat.S_IWGRP:
        return
    with contextlib.suppress(OSError):  # one is there, or this is another member
        folder.requests.mkdir(SAFE_FOLDER)  # plain: it must be a new one
        with opened_folder(folder.requests) as opened:
            if os.fstat(opened).st_gid != trials.st_gid:
                os.fchown(opened, -1, trials.st_gid)
            os.fchmod(opened, 0o3775)


def waiting(folder: TrialFolder) -> list[WaitingRequest]:
    """Return the requests, oldest first. A file that is no request, such as a FIFO or a link, is
    removed; nothing is where a link stands for the folder of requests. Where the file server does
    not answer, return those read so far."""
    requests = []
    with contextlib.suppress(OSError), opened_folder(folder.requests) as opened:
        names = names_in(opened)
        for name in sorted(name for name in names if name.endswith(".json") and name[0] != "."):
            try:
                requests.append(_read(opened, name, folder.requests.name))
            except DAMAGED:
                os.unlink(name, dir_fd=opened)
            except OSError as error:
                if is_of_host(error):
                    raise
                with contextlib.suppress(OSError):  # it is another member's, or a folder
                    os.unlink(name, dir_fd=opened)
    return requests


def _read(opened: int, name: str, folder: str) -> WaitingRequest:
    """Read a request in the open folder of requests. Raises OSError, and one of DAMAGED."""
    with os.fdopen(open_descriptor(name, os.O_RDONLY | os.O_NOFOLLOW, at=opened), "rb") as file:
        about = os.fstat(file.fileno())
        data = file.read(MAX_REQUEST_BYTES + 1)
    if len(data) > MAX_REQUEST_BYTES or about.st_nlink > 1:
        raise OSError(errno.EINVAL, "it is too long, or a second name of another's file", name)
    request = decoder(Request).decode(data)
    by = name_of(about.st_uid)
    if request.request == "record":
        recorded(request, by)  # raises one of DAMAGED
    return WaitingRequest(f"{folder}/{name}", request, by)


def drop(folder: TrialFolder, answered: Iterable[str]) -> None:
    """Remove the files of answered requests. One that cannot be removed is not answered again."""
    for file in answered:
        with contextlib.suppress(OSError):
            remove_file(folder.requests / Path(file).name)


def recorded(request: Request, by: str, file: str = "") -> PersonsEvent | RunReviewed:
    """Return the event that a person (``by``) records. Raises one of DAMAGED where it is none that
    people may record."""
    event = decode(request.text.encode())
    if not isinstance(event, PERSONAL):
        raise msgspec.ValidationError(f"{event.name} is not for people to record")
    if fault := fault_of(event):
        raise msgspec.ValidationError(fault)
    host = event.by.partition("@")[2]
    return replace(event, by=f"{by}@{host}", request=file)


def take_cancel(folder: TrialFolder) -> bool:
    """Return whether `seatrial cancel` has asked, once for each time."""
    with contextlib.suppress(OSError):  # where the file server does not answer
        if os.path.lexists(folder.cancel_request):
            with contextlib.suppress(OSError):
                remove_file(folder.cancel_request, follow=True)
            return True
    return False


# ---- answers -------------------------------------------------------------------------------------
#
# The answer to a person's request: the event that records it, or that says why it is refused.
#
#     event = answer_to(request, conductor.state, record, by="mara", file="requests/...json",
#     now=now)
#
# A request comes from a file that anybody in the group may have written, and perhaps an hour ago:
# all of it is checked again, against the trial as it is now.


HEAVY = "heavy"


def answer_to(
    request: Request, state: ConductorState, record: Record, *, by: str, file: str = "", now: int
) -> events.RequestedEvent | events.RunCancelAsked | events.RunReviewed:
    """Return the event that answers a request of a person (``by``) at ``now`` (ns)."""
    if request.request == "record":
        return recorded(request, by, file)
    reason = plain_line(request.reason)[:MAX_REASON]
    text = plain_line(request.text)[:MAX_REASON]
    asked = _Asked(request, text, reason, by, state, record, now)
    try:
        answer = _ANSWERS.get(request.request, _admit)(asked)
    except ValueError as error:
        words = " ".join(filter(None, (request.request, text)))
        answer = events.RequestRefused(asked=words, reason=str(error), by=by)
    return replace(answer, request=file)


class _Asked(Struct, frozen=True):
    """What a person asks of a trial, and the trial as it is at that time (ns)."""

    request: Request
    text: str
    reason: str
    by: str
    state: ConductorState
    record: Record
    now: int


# Each of these returns the event that does what was asked. It raises ValueError with the reason why
# that is refused.


def _extend(asked: _Asked) -> events.TrialExtended:
    if not asked.state.policy.duration:
        raise ValueError("the trial has no duration to extend; only a sustained one has")
    return events.TrialExtended(seconds=seconds(asked.request.value), by=asked.by)


def _abandon(asked: _Asked) -> events.TrialAbandoned:
    return events.TrialAbandoned(reason=asked.text or "abandoned", by=asked.by)


def _pause(asked: _Asked) -> events.TrialPaused:
    return events.TrialPaused(reason=asked.text or "paused by `seatrial accept`", by=asked.by)


def _change(asked: _Asked) -> events.PolicyChanged:
    """Change the policy, unless that contradicts what ran, or what somebody else has changed in the
    meantime."""
    request, state = asked.request, asked.state
    changed = with_parts(state.policy, request.parts)
    if others := conflicts(state.policy, request.before, request.parts):
        values = "; ".join(map(str, others[:3]))
        raise ValueError(f"somebody else changed it in the meantime: {values}")
    life = state.trial
    if faults := refused(state.policy, changed, asked.now, life.start):
        raise ValueError("; ".join(map(str, faults)))
    if fault := too_short(life, state.policy, changed, asked.now):
        raise ValueError(fault)
    return events.PolicyChanged(parts=request.parts, reason=asked.reason, by=asked.by)


def _cancel(asked: _Asked) -> events.RunCancelAsked:
    flight = asked.state.in_flight.get(asked.text)
    if flight is None or not flight.has_job:
        raise ValueError(f"run {asked.text} is not in flight")
    return events.RunCancelAsked(run_id=asked.text, reason=asked.reason, by=asked.by)


def _hold(asked: _Asked) -> events.TestHeld | events.TestReleased:
    event = events.TestHeld if asked.request.request == "hold" else events.TestReleased
    if asked.text == HEAVY and HEAVY not in asked.record.tests:
        return event(io=HEAVY, reason=asked.reason, by=asked.by)
    return event(test=_test(asked.text, asked.record), reason=asked.reason, by=asked.by)


def _stop(asked: _Asked) -> events.TestStopped:
    test = _test(asked.text, asked.record)
    return events.TestStopped(test=test, reason=asked.reason, by=asked.by)


def _exclude(asked: _Asked) -> events.NodeExcluded:
    nodes = _nodes(asked.text, asked.record)
    return events.NodeExcluded(nodes=nodes, reason=asked.reason, by=asked.by)


def _admit(asked: _Asked) -> events.TestAdmitted | events.NodeAdmitted:
    if asked.text in asked.record.tests:
        return events.TestAdmitted(test=asked.text, reason=asked.reason, by=asked.by)
    nodes = _nodes(asked.text, asked.record)
    return events.NodeAdmitted(nodes=nodes, reason=asked.reason, by=asked.by)


_ANSWERS: Mapping[str, Callable[[_Asked], events.RequestedEvent | events.RunCancelAsked]] = {
    "extend": _extend,
    "abandon": _abandon,
    "pause": _pause,
    "change": _change,
    "cancel": _cancel,
    "hold": _hold,
    "release": _hold,
    "stop": _stop,
    "exclude": _exclude,
}


def _test(name: str, record: Record) -> str:
    if name not in record.tests:
        raise ValueError(f"there is no test {name}")
    return name


def _nodes(text: str, record: Record) -> str:
    if unknown := sorted(set(unfold(text)) - set(node_names(record.machine))):
        raise ValueError(f"there is no node and no test {unknown[0]}")
    return text


# ---- outcome -------------------------------------------------------------------------------------
#
# The outcome of a drive of a trial.


FailOn = Literal["any", "failures", "never"]
"""What makes the exit code 1: any verdict that is not pass, verdicts that the test is to blame for,
or none."""

_ERRORS = frozenset(CODES[number].name for number in ERRORS)

INTERRUPTED = "interrupted by Ctrl-C"
WAS_COMPLETE = "it was complete already"
TWICE = "interrupted twice by Ctrl-C"


class DriveOutcome(Struct, frozen=True):
    """The outcome of a drive: verdicts by name, whether all cases have their runs, the reason if
    not, and the number of runs that are left."""

    verdicts: Counter[str]
    complete: bool
    reason: str
    left: int = 0

    @property
    def failed(self) -> bool:
        """Whether a verdict is neither pass nor known."""
        return bool(self._bad)

    @property
    def _bad(self) -> set[str]:
        return set(self.verdicts) - {PASS.name, KNOWN.name}

    def exit_code(self, fail_on: FailOn = "any") -> int:
        """Return 0, 1, or 3 where not all cases could be judged. By ``failures`` a run that failed
        by the fault of the machine, the scheduler or a person is one that could not."""
        if fail_on == "never":
            return 0 if self.complete else 3
        if self._bad - (_ERRORS if fail_on == "failures" else set()):
            return 1
        return 0 if self.complete and not self._bad else 3


class Stop(Exception):
    """The driver leaves at once. Jobs go on, and the trial can be resumed."""


_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or have the quota raised",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close files: this host has too many open",
    errno.EACCES: "get write permission there",
    errno.EPERM: "get write permission there",
    errno.EROFS: "have the file system mounted writable",
    errno.ENOENT: "restore what is missing",
}


def remedy(error: OSError) -> str:
    """Return what a person can do about an error."""
    return _REMEDIES.get(error.errno or 0, "check the file system")


# ---- faults of records ---------------------------------------------------------------------------
#
# What is wrong with a record of people: names, texts and values that no command would write.
#
#     if fault := fault_of(event): ...        # "--by: 'x...' has 20000 characters; ..."
#
# A record comes from a command or from a file that anybody of the group may have written: both are
# held to this.


MAX_NAME = 100  # characters
MAX_NAMES = 20
MAX_TEXT = 2000  # characters
DAY_SECONDS = 86400  # a date may be that of another time zone
STATES_OF_ISSUES = ("", "open", "closed")
KINDS_OF_ENTRIES = ("milestone", "part", "incident")
_SHA256 = r"[0-9a-f]{64}"


def fault_of(event: events.PersonsEvent | events.RunReviewed) -> str:
    """Return the first fault of a record with its remedy; "" if it has none."""
    return next(_faults(event), "")


def _faults(event: events.PersonsEvent | events.RunReviewed) -> Iterator[str]:
    yield from _faults_of_names(event.names)
    for name, text in _texts(event):
        if len(text) > MAX_TEXT:
            yield (
                f"{name} has {len(text)} characters; give at most {MAX_TEXT}, and put the rest "
                "into a document"
            )
    if (faults_of_kind := _OF_KINDS.get(type(event))) is not None:
        yield from faults_of_kind(event)


def _faults_of_review(event: events.RunReviewed) -> Iterator[str]:
    people = {name.strip().casefold() for name in event.names}
    if event.is_excluded and len(people) < 2:
        yield "an exclusion is by agreement of both sides; name them: --by A --by B"


def _faults_of_tick(event: events.ItemTicked) -> Iterator[str]:
    if event.result not in RESULTS:
        yield f"{event.result!r} is no result; there are {', '.join(RESULTS)}"


def _faults_of_issue(event: events.IssueRecorded) -> Iterator[str]:
    if event.issue < 0 or event.state not in STATES_OF_ISSUES:
        yield f"issue {event.issue} {event.state}: is no issue with a state"


def _faults_of_entry(event: events.PlanEntry) -> Iterator[str]:
    if event.kind not in KINDS_OF_ENTRIES:
        yield f"{event.kind!r} is no kind of record; there are {', '.join(KINDS_OF_ENTRIES)}"
    if event.at < 0:
        yield "the time of a record is before 1970"


def _faults_of_names(names: list[str]) -> Iterator[str]:
    if len(names) > MAX_NAMES:
        yield f"--by: {len(names)} names; give at most {MAX_NAMES}"
    for name in names:
        if len(name) > MAX_NAME:
            yield f"--by: {name[:20]!r}... has {len(name)} characters; give at most {MAX_NAME}"
        if not name.isprintable():
            yield f"--by: {name!r} has control characters or line ends; write a name in one line"


def _texts(event: events.PersonsEvent | events.RunReviewed) -> Iterator[tuple[str, str]]:
    """Yield each text of a record with its name."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, str):
            yield name, value


def _faults_of_document(event: events.EvidenceGiven) -> Iterator[str]:
    if event.size < 0 or not re.fullmatch(_SHA256, event.sha256):
        yield f"{event.document}: has no size and SHA-256 of a document"
    try:
        day_of(event.on)
    except ValueError as error:
        yield f"--on: {error}"
        return
    latest = datetime.datetime.fromtimestamp(time.time() + DAY_SECONDS).date()
    if datetime.date.fromisoformat(event.on) > latest:
        yield f"--on: {event.on} is yet to come; give the day on which it was signed"


_OF_KINDS: dict[type[events.Event], Callable[[Any], Iterator[str]]] = {
    events.RunReviewed: _faults_of_review,
    events.ItemTicked: _faults_of_tick,
    events.EvidenceGiven: _faults_of_document,
    events.PlanEntry: _faults_of_entry,
    events.IssueRecorded: _faults_of_issue,
}
