"""A file or a FIFO that gets events as JSON lines.

A file is appended to under a lock, as several trials may share it; a line that a crash left torn is
cut off, and what it holds of this trial already is not written again. A FIFO without a reader is
tried again later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import time
from collections.abc import Sequence

from msgspec import json

from seatrial.journal.events import Event
from seatrial.machine.sinks import Sink, path_of
from seatrial.sinks.lock import locked_within
from seatrial.sinks.protocol import Reply
from seatrial.sinks.webhook import BEGINNING, record
from seatrial.units import seconds

TAIL = 4 << 20  # how far back a file is searched for what it holds of this trial


class LinesFile:
    """A path that lines are appended to."""

    folds = False

    def __init__(self, sink: Sink, tag: str) -> None:
        self._path = path_of(sink.path)
        self._timeout = seconds(sink.timeout)
        self._mark = b',"trial":' + json.encode(tag)
        self._held: set[bytes] | None = None  # what may be sent again, and is there
        self._torn = False
        self.shown = str(self._path)

    def pieces(self, event: Event, number: int) -> list[bytes]:
        return [record(event, number)]

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

    def close(self) -> None:
        pass

    # ---- a file ---------------------------------------------------------------------------

    def _append(self, pieces: Sequence[bytes]) -> None:
        """Append whole lines or nothing. Raises OSError."""
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(self._path, how, 0o644)
        try:
            if not locked_within(descriptor, self._timeout):  # let go of when it is closed
                raise BlockingIOError(errno.EAGAIN, "another process keeps it locked")
            size = os.fstat(descriptor).st_size
            start = max(0, size - TAIL)
            tail = os.pread(descriptor, size - start, start).split(b"\n")
            torn = tail.pop()
            if torn and _is_ours(torn):
                size -= len(torn)
                os.ftruncate(descriptor, size)
                torn = b""
            lines = self._missing(tail, pieces)
            if lines:
                _write(descriptor, size, [*([b""] if torn else []), *lines, b""])
        finally:
            os.close(descriptor)

    def _missing(self, tail: Sequence[bytes], pieces: Sequence[bytes]) -> Sequence[bytes]:
        """What is not in the file yet: who wrote it may have died before it was noted."""
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
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return Reply("again", f"nobody reads it: {error.strerror}")
        try:
            # The reader may have got half a line before: that line is ended first.
            data = b"\n".join([*([b""] if self._torn else []), *pieces, b""])
            reply, done = _write_within(descriptor, data, self._timeout)
            self._torn = reply.fate != "taken" and (self._torn or done > 0)
            return reply
        finally:
            os.close(descriptor)


def _is_ours(torn: bytes) -> bool:
    """Whether a line without an end is the beginning of one of ours; others' are left alone."""
    return torn.startswith(BEGINNING) or BEGINNING.startswith(torn)


def _write(descriptor: int, size: int, lines: Sequence[bytes]) -> None:
    """Append to a file of that size, all or nothing. Raises OSError."""
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
    """Write to a pipe whose reader may be slow, or leave."""
    deadline = time.monotonic() + timeout
    done = 0
    while done < len(data):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([], [descriptor], [], left)[1]:
            return Reply("again", f"its reader took nothing for {timeout:g} s"), done
        try:
            done += os.write(descriptor, data[done : done + 65536])
        except BlockingIOError:
            continue
        except OSError as error:
            return Reply("again", f"it cannot be written: {error.strerror}"), done
    return Reply("taken"), done
