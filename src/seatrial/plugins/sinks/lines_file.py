"""Append events as JSON lines to a file or a FIFO.

Several trials may share a file, so it is locked while it is appended to. A line that a crash left
incomplete is removed, and events that are in the file already are not written again. A FIFO without
a reader is retried later.
"""

import contextlib
import errno
import os
import select
import stat
import time
from collections.abc import Iterator, Sequence

from msgspec import json

from seatrial.account import at_home
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import open_regular
from seatrial.journal.journal import read_blocks
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import SinkLifetime, locked_within
from seatrial.plugins.sinks.protocol import (
    BEGINNING,
    CaseName,
    Reply,
    SinkTarget,
    TrialInfo,
    record,
)

LOOK_S = 1.0
TAIL = 4 << 20  # bytes at a file's end that are searched for events of this trial


class LinesFile(SinkTarget):
    """A path that lines are appended to."""

    def __init__(self, sink: Sink, about: TrialInfo, _case_name: CaseName) -> None:
        self._path = at_home(sink.path)
        self._timeout = sink.timeout.seconds
        self._mark = b',"trial":' + json.encode(about.tag)
        self._held: set[bytes] | None = None  # lines in the file that may be sent again
        self._torn = False  # the FIFO's reader may have half a line
        self.shown = str(self._path)

    def send(self, pieces: Sequence[bytes]) -> Reply:
        try:
            kind = self._path.stat().st_mode if self._path.exists() else stat.S_IFREG
            if stat.S_ISFIFO(kind):
                return self._into_fifo(pieces)
            if not stat.S_ISREG(kind):
                return Reply("again", "it is neither a file nor a FIFO")
            self._append(pieces)
        except OSError as error:
            return Reply("again", f"it cannot be written: {error.strerror}")
        return Reply("taken")

    # ---- a file ---------------------------------------------------------------------------

    def _append(self, pieces: Sequence[bytes]) -> None:
        """Append whole lines or nothing. Raises OSError."""
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        # plain: a file that the machine's file names, perhaps by a link
        descriptor = os.open(self._path, how, 0o644)
        try:
            if not locked_within(descriptor, self._timeout):  # let go of when it is closed
                raise BlockingIOError(errno.EAGAIN, "another process keeps it locked")
            size = os.fstat(descriptor).st_size
            start = max(0, size - TAIL)
            tail = os.pread(descriptor, size - start, start).split(b"\n")
            torn = tail.pop()
            if torn and (torn.startswith(BEGINNING) or BEGINNING.startswith(torn)):  # ours
                size -= len(torn)
                os.ftruncate(descriptor, size)
                torn = b""
            lines = self._missing(tail, pieces)
            if lines:
                _write(descriptor, size, [*([b""] if torn else []), *lines, b""])
        finally:
            os.close(descriptor)

    def _missing(self, tail: Sequence[bytes], pieces: Sequence[bytes]) -> Sequence[bytes]:
        """Return the pieces that are not in the file yet. A process that wrote some may have died
        before its cursor was saved."""
        if self._held is None:
            self._held = {text for text in tail if self._mark in text}
        if not self._held:
            return pieces
        missing = [piece for piece in pieces if piece not in self._held]
        if missing:
            self._held = set()
        return missing

    # ---- a FIFO ---------------------------------------------------------------------------

    def _into_fifo(self, pieces: Sequence[bytes]) -> Reply:
        try:
            # plain: a FIFO that the machine's file names
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return Reply("again", f"nobody reads it: {error.strerror}")
        try:
            # The reader may have received half a line before: end that line first.
            data = b"\n".join([*([b""] if self._torn else []), *pieces, b""])
            reply, done = _write_within(descriptor, data, self._timeout)
            self._torn = reply.fate != "taken" and (self._torn or done > 0)
            return reply
        finally:
            os.close(descriptor)


def _write(descriptor: int, size: int, lines: Sequence[bytes]) -> None:
    """Append lines to a file of that size, all or nothing. Raises OSError."""
    data = b"\n".join(lines)
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
        os.fdatasync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _write_within(descriptor: int, data: bytes, timeout: float) -> tuple[Reply, int]:
    """Write to a pipe for so many seconds; return the reply and how many bytes were written."""
    deadline = time.monotonic() + timeout
    done = 0
    while done < len(data):
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not select.select([], [descriptor], [], remaining)[1]:
            return Reply("again", f"its reader took nothing for {timeout:g} s"), done
        try:
            done += os.write(descriptor, data[done : done + 65536])
        except BlockingIOError:
            continue
        except OSError as error:
            return Reply("again", f"it cannot be written: {error.strerror}"), done
    return Reply("taken"), done


def records(folder: TrialFolder, lifetime: SinkLifetime) -> Iterator[bytes]:
    """Yield a trial's events as JSON lines, some at a time, from the journal's beginning."""
    offset = number = 0
    while True:
        last = lifetime.is_over()
        with open_regular(folder.journal) as journal:
            for block in read_blocks(journal, offset):
                lines = [
                    record(event, number) for number, event in enumerate(block.events, number + 1)
                ]
                number, offset = number + len(lines), block.end
                yield b"\n".join([*lines, b""])
        if last:
            return
        lifetime.wait(LOOK_S)
