"""A run's directory: made before the run is submitted, read when it has ended."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.journal.codes import Name
from seatrial.journal.events import Event
from seatrial.suite.model import Input, Test

EVENTS_LIMIT = 1 << 20


def prepare(path: Path, job_script: str, test: Test) -> None:
    """Make the directory with its job script and inputs. Raises OSError. A directory that exists,
    from a run that was made but never submitted, is completed."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "job.sh").write_text(job_script)
    for item in test.inputs:
        assert isinstance(item, Input)  # the loader has replaced plain names
        _place(Path(item.source), path / (item.name or Path(item.source).name), item.how)


def _place(source: Path, target: Path, how: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or target.exists():
        return
    if how == "link":
        target.symlink_to(source)
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


class JobEvents(NamedTuple):
    """What a job wrote of itself: its last start and end, None where it did not get there, and
    whether it has claimed its directory."""

    claimed: bool
    start: Event | None
    end: Event | None

    @property
    def exit_code(self) -> int | None:
        value = self.end.value if self.end else None
        return value if isinstance(value, int) else None


def job_events(path: Path) -> JobEvents:
    """Read a job's events; lines that are torn, garbage or no events of a job are passed over."""
    try:
        descriptor = os.open(path / "events.jsonl", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return JobEvents(False, None, None)
    try:
        data = os.read(descriptor, EVENTS_LIMIT)
    except OSError:
        data = b""
    finally:
        os.close(descriptor)
    start = end = None
    for line in data.split(b"\n"):
        event = _decode(line) if line else None
        if event is None:
            continue
        if event.event == Name.BINARY_EXECUTE_START:
            start, end = event, None
        elif event.event == Name.BINARY_EXECUTE_END and isinstance(event.value, int):
            end = event
    return JobEvents(True, start, end)


_decoder = msgspec.json.Decoder(Event)


def _decode(line: bytes) -> Event | None:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
