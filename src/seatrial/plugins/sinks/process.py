"""The process that delivers a trial's events: one for each trial, beside its driver.

    start(folder)                                   # from the driver's process; does not wait
    deliver(folder, sinks, SinkLifetime(folder, follow=True), tell)

Each sink has its own thread, so that one that hangs does not delay the others.
"""

import contextlib
import os
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import BinaryIO
from urllib.parse import urlsplit

from seatrial.account import at_home
from seatrial.errors import SeatrialError, TrialError, UsageError
from seatrial.execute.ledger import Observer
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import make_folder, open_regular, open_to_write
from seatrial.hooks import load
from seatrial.journal.events import Event
from seatrial.journal.journal import Block, fingerprint, read_blocks
from seatrial.log import DEFAULT_LEVEL, log_to, logger
from seatrial.model.test import Case
from seatrial.plugins.sinks.keys import Sink, only_news, pause_of, sink_kinds
from seatrial.plugins.sinks.lifetime import (
    SECRET_PLACES,
    WAIT_S,
    BadEnvironment,
    Cursor,
    DeliveryLocked,
    SinkLifetime,
    behind,
    folder_of,
    forget_cursor,
    goes_on,
    held,
    load_cursor,
    missing,
    save_cursor,
    shown_url,
)
from seatrial.plugins.sinks.protocol import (
    CaseName,
    Reply,
    SinkTarget,
    TrialInfo,
    about_of,
    is_news,
)
from seatrial.units import count

# ---- delivery ------------------------------------------------------------------------------------
#
# Deliver a trial's journal to one sink, starting at its cursor.
#
#     delivery = Delivery(folder, sink, about, SinkLifetime(folder, follow=True))
#     delivery.run()               # True: all of it was delivered
#
# The journal is read in blocks of bounded size, and one block is in memory at a time: what a server
# does not accept stays in the journal. The cursor moves when the server has answered all of a
# block. After a crash the block is sent again: points replace themselves, and other sinks recognise
# repeated events by ``seq``.
#
# A server that refuses one event after the other is at fault itself. The delivery then stops at
# that place and retries, with what has come since.


_log = logger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
MIN_BLOCK_BYTES = 64 << 10  # bytes of the journal
LOOK_S = 1.0  # between two counts of how far behind the sink is
SAY_S = 600.0  # between two messages about the same trouble
MAX_HALVES = 64  # requests into which one is split to find what the server refuses
HELD_AFTER = 3  # pieces refused in a row after which the server is at fault

Tell = Callable[[str], None]


class GivenUp(SeatrialError):
    """The sink could not be reached within its patience."""


class _Held(SeatrialError):
    """The sink refuses everything that it is sent."""


@dataclass
class Delivery:
    """The delivery of one trial to one sink. ``_tell`` is called with a line when trouble begins or
    ends. ``_again``: the command with which a person continues a delivery that gave up."""

    _folder: TrialFolder
    sink: Sink
    _about: TrialInfo
    _lifetime: SinkLifetime
    _tell: Tell
    _again: str = ""

    def __post_init__(self) -> None:
        self._again = self._again or f"seatrial sink {self._folder.tag}"
        self._size = self.sink.size.bytes
        self._at_once = max(MIN_BLOCK_BYTES, self._size)
        self._cursor = load_cursor(self._folder, self.sink.name)
        self._cursor.kind = self.sink.kind
        self._cursor.to = planned(self.sink)
        self._refused = 0  # pieces of the current block
        self._done = 0  # number of the last event that was sent before the delivery was held
        self._in_a_row = 0  # pieces refused since one was accepted
        self._held = False  # the server refuses everything
        self._untold = 0  # refused pieces that `tell` was not told of yet
        self._said = {"refused": -SAY_S, "changed": -SAY_S}  # when, by the monotonic clock
        self._failing = 0.0  # since when, by the monotonic clock
        self._looked = 0.0  # when it was last counted how far behind the sink is
        self._unsaved = ""  # why the cursor cannot be written

    def run(self) -> bool:
        """Deliver until the course is over; return whether everything was delivered. Failures of
        the sink or of a file system are retried, and raise nothing."""
        try:
            while True:
                try:
                    if self._pass_through():
                        continue
                    return True
                except OSError as error:
                    place = error.filename or self._folder.journal
                    self._fail(f"{place}: {error.strerror}", "the journal cannot be read")
                except _Held as error:
                    self._fail(str(error), self._cursor.to)
                self._pause()
        except GivenUp as error:
            self._tell(str(error))
            return False

    def _pass_through(self) -> bool:
        """Deliver a journal to its end; return whether another has replaced it."""
        with contextlib.closing(self._target()) as target, self._journal() as journal:
            self._cursor.to = target.shown
            if journal is None:
                self._save()
                return False
            if not goes_on(journal, self._cursor):
                self._begin_anew()
            if target.folds:
                self._fold(journal, target)
            self._save()
            while True:
                last = self._lifetime.is_over()
                for block in read_blocks(journal, self._cursor.offset, self._at_once):
                    self._deliver(journal, block, target)
                if self._cursor.behind.events or self._cursor.error:
                    self._recover()
                    self._looked = 0.0
                    self._save()
                if not self._is_there(journal):
                    return True
                if last:
                    return False
                self._lifetime.wait(pause_of(self.sink))

    # ---- the journal ----------------------------------------------------------------------

    def _journal(self) -> BinaryIO | contextlib.nullcontext[None]:
        """Open the journal as soon as it is there; the context of None if there will be none."""
        while True:
            try:
                return open_regular(self._folder.journal)
            except FileNotFoundError:
                if self._lifetime.is_over():
                    return contextlib.nullcontext()
                self._lifetime.wait(pause_of(self.sink))

    def _is_there(self, journal: BinaryIO) -> bool:
        """Return whether this is still the trial's journal, and no shorter than it was."""
        ours = os.fstat(journal.fileno())
        try:
            now = self._folder.journal.stat()
        except FileNotFoundError:
            return True  # it was deleted, so nothing more will come
        return now.st_ino == ours.st_ino and ours.st_size >= self._cursor.offset

    def _begin_anew(self) -> None:
        """Go back to the beginning, as the journal is new or another one."""
        self._refused = self._done = self._in_a_row = 0
        old = self._cursor
        self._cursor = new = Cursor(sink=old.sink, kind=old.kind, to=old.to)
        if old.offset:
            new.told = "the journal is another one than before; it is sent from its beginning"
            self._tell(f"{self.sink.name}: {new.told}")

    def _fold(self, journal: BinaryIO, target: SinkTarget) -> None:
        """Pass the events that were sent to the target; later ones depend on them."""
        blocks = read_blocks(journal, until=self._cursor.offset)
        for number, event in enumerate(chain.from_iterable(block.events for block in blocks), 1):
            target.pieces(event, number)

    # ---- one block ------------------------------------------------------------------------

    def _deliver(self, journal: BinaryIO, block: Block, target: SinkTarget) -> None:
        """Send a block in requests of bounded size, and move the cursor behind it."""
        cursor = self._cursor
        for pieces, last in self._requests(block, target):
            self._push(target, pieces)
            self._done = last
        cursor.offset = block.end
        cursor.fingerprint = fingerprint(journal, block.end)
        cursor.read += len(block.events)
        cursor.damaged += block.damaged
        cursor.refused += self._refused
        cursor.answered = time.time_ns()
        self._untold += self._refused
        self._refused = 0
        if self._untold and self._may_say("refused"):
            refusals = count(self._untold, "point" if target.folds else "event")
            self._tell(f"{self.sink.name}: {refusals} not taken: {cursor.told}")
            self._untold = 0
        self._save()

    def _requests(self, block: Block, target: SinkTarget) -> Iterator[tuple[list[bytes], int]]:
        """Yield the pieces of each request for a block, with the number of the last event of which
        all pieces are in it or before it."""
        pieces: list[bytes] = []
        size, number = 0, self._cursor.read
        for event in block.events:
            number += 1
            if only_news(self.sink) and not is_news(event):
                continue
            made = target.pieces(event, number)  # for each event: some points depend on others
            for piece in made if number > self._done else ():
                if len(pieces) >= self.sink.lines or (pieces and size + len(piece) >= self._size):
                    yield pieces, number - 1
                    pieces, size = [], 0
                pieces.append(piece)
                size += len(piece) + 1
        if pieces:
            yield pieces, number

    def _push(self, target: SinkTarget, pieces: Sequence[bytes]) -> None:
        """Send pieces until each was accepted or refused. Raises GivenUp, and _Held if all were
        refused and too many before them; then none of them counts as refused."""
        refused = self._sent(target, pieces)
        if self._held and len(refused) < len(pieces):  # the server may have recovered meanwhile
            refused = self._sent(target, refused)
        whole = len(refused) == len(pieces)
        if whole and self._in_a_row + len(refused) >= HELD_AFTER:
            self._held = True
            raise _Held(f"it takes no event: {self._cursor.told}")
        self._held = False
        self._in_a_row = self._in_a_row + len(refused) if whole else 0
        self._refused += len(refused)
        if self._cursor.error:
            self._tell(f"{self.sink.name}: {target.shown} takes events again")
            self._recover()

    def _sent(self, target: SinkTarget, pieces: Sequence[bytes]) -> list[bytes]:
        """Send pieces, in halves if they are refused; return those that were refused alone."""
        waiting = [pieces] if pieces else []
        refused: list[bytes] = []
        halves = 0
        while waiting:
            part = waiting.pop()
            reply = self._answered(target, part)
            if reply.fate == "smaller" and len(part) > 1 and halves < MAX_HALVES:
                halves += 2
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
            elif reply.fate != "taken":
                refused += part
                self._cursor.told = reply.reason
            elif reply.lost:
                self._refused += min(reply.lost, len(part))
                self._cursor.told = reply.reason
        return refused

    def _answered(self, target: SinkTarget, pieces: Sequence[bytes]) -> Reply:
        """Send one request until the server accepts or refuses it. Raises GivenUp."""
        while True:
            reply = target.send(pieces)
            _log.debug("%s: %d pieces: %s", self.sink.name, len(pieces), reply)
            if reply.fate != "again":
                return reply
            self._fail(reply.reason, target.shown)
            self._pause(reply.wait)

    # ---- what goes wrong ------------------------------------------------------------------

    def _target(self) -> SinkTarget:
        """Return the target as soon as its secrets can be read. Raises GivenUp if one is missing in
        our environment, which never changes."""
        while True:
            try:
                return target_of(self.sink, self._about, self._case_name)
            except UsageError as error:
                self._fail(str(error), "it cannot be used")
                if isinstance(error, BadEnvironment):
                    raise GivenUp(
                        f"{self.sink.name}: given up: put that right, then "
                        f"`{self._again}` sends what is not sent yet"
                    ) from error
                self._pause()

    def _case_name(self, case: str) -> str:
        """Return the name of a case of the trial; "" if its files do not tell it."""
        with contextlib.suppress(TrialError):
            if known := self._folder.case(case):
                return known.name
        return ""

    def _fail(self, reason: str, shown: str) -> None:
        """Record a failed attempt, and tell of it unless that was told before."""
        cursor = self._cursor
        if not cursor.error or (reason != cursor.error and self._may_say("changed")):
            self._tell(f"{self.sink.name}: {shown}: {reason}")
        cursor.error = reason
        cursor.since = cursor.since or time.time_ns()
        cursor.tries += 1
        self._failing = self._failing or time.monotonic()
        self._save()

    def _may_say(self, what: str) -> bool:
        """Return whether the last message of that kind was long enough ago."""
        now = time.monotonic()
        if now - self._said[what] < SAY_S:
            return False
        self._said[what] = now
        return True

    def _recover(self) -> None:
        self._cursor.error, self._cursor.since, self._cursor.tries = "", 0, 0
        self._failing = 0.0

    def _pause(self, wanted: float = 0.0) -> None:
        """Wait before the next attempt: longer each time, up to a minute, with random jitter.
        ``wanted``: seconds that the server asked for. Raises GivenUp."""
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._cursor.tries - 1, 10))
        pause = max(longest * random.uniform(0.5, 1.0), min(wanted, LONGEST_PAUSE_S))
        if not self._lifetime.bears(self._failing, self.sink.patience.seconds, pause):
            raise GivenUp(
                f"{self.sink.name}: given up for now: {self._cursor.error}; "
                f"`{self._again}` goes on from there"
            )
        self._lifetime.wait(pause)

    def _save(self) -> None:
        """Write the cursor. If it cannot be written, go on: sending twice is harmless."""
        cursor, now = self._cursor, time.monotonic()
        if cursor.error or now - self._looked >= LOOK_S:
            cursor.behind = behind(self._folder, cursor)
            self._looked = now
        before, self._unsaved = self._unsaved, ""
        try:
            save_cursor(self._folder, cursor)
        except OSError as error:
            self._unsaved = error.strerror or "unknown"
            if self._unsaved != before:
                self._tell(f"{self.sink.name}: its cursor cannot be written: {self._unsaved}")


# ---- targets -------------------------------------------------------------------------------------
#
# Make the target of a sink, by the sink's kind. Only a target that needs httpx imports it.
#
#     target = target_of(sink, about, case_name)
#     planned(sink)                                # what people may see of it, before it is made


def planned(sink: Sink) -> str:
    """Return what people may see of a sink's target, before it is made."""
    place = sink_kinds()[sink.kind].place
    if place == "path":
        return str(at_home(sink.path))
    if place == "to":
        return ", ".join(sink.to)
    if sink.url.startswith(SECRET_PLACES):
        return sink.url

    try:
        return shown_url(urlsplit(sink.url))
    except ValueError:  # reported when it is used
        return ""


def target_of(sink: Sink, about: TrialInfo, case_name: CaseName) -> SinkTarget:
    """Return the target of a sink; texts to people ask ``case_name``. Raises UsageError if a secret
    or certificate cannot be read."""
    target: SinkTarget = load(sink_kinds()[sink.kind].target)(sink, about, case_name)
    return target


# ---- the process ---------------------------------------------------------------------------------


BESIDE_A_DRIVER = 10  # how nice the process is
LEAVING_S = 5.0  # how long an earlier process may take to end

_COMMAND = (
    "from seatrial.entry import put_own_first; put_own_first(); "
    "import sys; from seatrial.plugins.sinks.process import run; sys.exit(run(*sys.argv[1:]))"
)
_started: list[subprocess.Popen[bytes]] = []  # kept, as they outlive us and nobody waits for them


def start(folder: TrialFolder, log_level: str = DEFAULT_LEVEL) -> str:
    """Start the process for a trial whose machine names sinks. It ends when the trial is over and
    everything is delivered. Returns why it could not be started, or ""."""
    place, log = folder_of(folder), folder.log("sinks")
    try:
        make_folder(place)
        make_folder(log.parent)
        with open_to_write(log, append=True) as output:  # of a defect that ends it, too
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMMAND, str(folder.path), log_level],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        return f"{error.filename or place}: {error.strerror}"
    _started.append(process)
    return ""


def run(path: str, log_level: str) -> int:
    """Deliver a trial's events for as long as it is driven; return the exit code of the process. If
    another process does that already, this one ends."""
    folder = TrialFolder(Path(path))
    os.nice(BESIDE_A_DRIVER)
    with log_to(folder.log("sinks"), log_level):
        try:
            sinks = wanted(about_of(folder))
            lifetime = SinkLifetime(folder, follow=True)
            return 0 if deliver(folder, sinks, lifetime, _log.warning, LEAVING_S) else 1
        except DeliveryLocked:
            return 0
        except SeatrialError as error:
            _log.warning("%s", error)
            return 1


@dataclass
class Starting(Observer):
    """An observer that starts the process when a drive begins, and passes everything on."""

    _folder: TrialFolder
    _observer: Observer
    _log_level: str

    def on_open(self, finished: int, wanted: int) -> None:
        if reason := start(self._folder, self._log_level):
            print(f"seatrial: the sinks of this trial were not started: {reason}", file=sys.stderr)
        _warn(self._folder)
        self._observer.on_open(finished, wanted)

    def on_event(self, event: Event, case: "Case | None") -> None:
        self._observer.on_event(event, case)


def _warn(folder: TrialFolder) -> None:
    """Warn of the sinks of a trial whose secrets our environment lacks."""
    for sink in wanted(about_of(folder)):
        if reason := missing(sink):
            print(
                f"seatrial: the sink {sink.name} gets nothing: {reason}; set it, then "
                f"`seatrial sink {folder.tag} --sink {sink.name}` sends what is missing",
                file=sys.stderr,
            )


def deliver(
    folder: TrialFolder,
    sinks: "Sequence[Sink]",
    lifetime: SinkLifetime,
    tell: Tell,
    wait_s: float = WAIT_S,
    *,
    again: str = "",
    from_start: bool = False,
) -> bool:
    """Deliver a trial's events to some sinks; return whether everything was delivered. ``wait_s``:
    how long another process that does this may take to end. ``again``: the command with which a
    person continues. ``from_start``: send the whole journal again. Raises DeliveryLocked if that
    process does not end, and TrialError."""
    about = about_of(folder)
    with held(folder, wait_s):
        if from_start:
            for sink in sinks:
                forget_cursor(folder, sink.name)
        done: list[str] = []

        def work(delivery: Delivery) -> None:
            name = delivery.sink.name
            try:
                done.extend([name] if delivery.run() else [])
            except Exception as error:  # in one sink; the others go on
                traceback.print_exc()
                tell(f"{name}: this is a defect of Seatrial: {error}")

        deliveries = [Delivery(folder, sink, about, lifetime, tell, again) for sink in sinks]
        threads = [Thread(target=work, args=(each,), daemon=True) for each in deliveries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(done) == len(threads)


def wanted(about: TrialInfo, names: Sequence[str] = ()) -> "list[Sink]":
    """Return the sinks of a trial's machine with these names. Without names they are all sinks, but
    for a rehearsal only those that want rehearsals."""
    sinks = about.machine.sinks
    if names:
        return [sink for sink in sinks if sink.name in names]
    return [sink for sink in sinks if sink.rehearsals or not about.rehearsed]
