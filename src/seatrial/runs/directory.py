"""The directory of a run: prepared before the run is submitted, read after it has ended."""

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.decoding import DAMAGED
from seatrial.file_origin import close_to_others
from seatrial.files import SAFE_FOLDER, make_folder, open_descriptor, remove_tree
from seatrial.journal.encoding import decode
from seatrial.journal.events import CompatStarted, JobsOwnEvent, ScriptEnded, ScriptStarted
from seatrial.runs.environment import write_script
from seatrial.runs.environment_capture import ENVIRONMENT
from seatrial.suite.inputs import name_of
from seatrial.suite.model import Input, Test
from seatrial.units import SECOND_NS

EVENTS_LIMIT = 1 << 20
TEXT_LIMIT = 4000
MAX_SIZES = 64
MAX_REFUSED = 8
MAX_FACTS, LONGEST_FACT = 40, 250
# The blanks in the last line of a job (runs/script.py), which take long to read as JSON.
_FILLED = b" " * 4096 + b"}\n"
# Times of a job count if they are within these bounds of the present. A clock that was never set,
# or a forged time, would stretch all pages of the trial over decades.
_OLDEST_NS, _AHEAD_NS = 366 * 86_400 * SECOND_NS, 86_400 * SECOND_NS


def prepare(path: Path, job_script: str, test: Test, more: Sequence[Input] = ()) -> None:
    """Create the directory of a run with its job script, the inputs of the test and ``more``
    inputs. A directory that exists already, of a run that was created and not submitted, is
    completed. Raises OSError."""
    _make(path)
    write_script(f"{path}/job.sh", job_script)
    os.close(open_descriptor(f"{path}/{ENVIRONMENT}", os.O_WRONLY | os.O_CREAT, 0o600))
    for item in (*test.inputs, *more):
        assert isinstance(item, Input)  # the loader replaces plain names by Inputs
        put(Path(item.source), path / name_of(item), item.how)


def _make(path: Path) -> None:
    try:
        # plain: one system call for nearly all runs
        os.mkdir(path, SAFE_FOLDER)  # noqa: PTH102
    except FileNotFoundError:
        make_folder(path)
    except FileExistsError:
        pass


def put(source: Path, target: Path, how: str) -> None:
    """Link or copy a file or folder, unless the target exists. A copy appears under its name when
    it is complete, and others may not write it."""
    make_folder(target.parent)
    if target.is_symlink() or target.exists():
        return
    if how == "link":
        target.symlink_to(source)
        return
    part = target.with_name(f".{target.name}.part")
    with contextlib.suppress(OSError):
        remove_tree(part)
    if source.is_dir():
        shutil.copytree(source, part, symlinks=True)  # plain: to a name that is free
    else:
        shutil.copy2(source, part)  # plain: to a name that is free
    close_to_others(part)
    part.rename(target)


def holds_output(path: Path) -> bool:
    """Return whether a job has written in the directory of a run. Raises OSError."""
    if os.path.lexists(f"{path}/events.jsonl"):
        return True
    try:
        return os.stat(f"{path}/stdout").st_size > 0  # noqa: PTH116
    except FileNotFoundError:
        return False


def set_aside(path: Path) -> Path:
    """Rename the directory of a run, and return its new name. Raises OSError."""
    number = 1
    while os.path.lexists(f"{path}.before-{number}"):
        number += 1
    return path.rename(f"{path}.before-{number}")


def cut_file(path: Path, end: ScriptEnded, names: Iterable[str]) -> str:
    """Return which of these files of a run is shorter here than it was where its script ended, in
    words; "" where none is. It was cut by a crash of a host, or is not visible here yet."""
    for name in names:
        size = (end.sizes or {}).get(name, 0)
        try:
            there = os.stat(f"{path}/{name}").st_size  # noqa: PTH116
        except OSError:
            there = 0
        if there < size:
            return f"{name} has {there} bytes here and had {size} when the script ended"
    return ""


class JobEvents(Struct, frozen=True):
    """The events that a job wrote: the first start and the last end of its script, None where there
    is none: its own script writes first and last. ``claimed``: the job has claimed its
    directory. ``compat``: how its nodes answered, of a compat job. ``refused``: the names of other
    events in its file, which a driver alone may write."""

    claimed: bool
    start: ScriptStarted | None
    end: ScriptEnded | None
    compat: CompatStarted | None = None
    refused: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int | None:
        return self.end.exit_code if self.end else None

    @property
    def elapsed(self) -> float | None:
        """Seconds from the start of its script to the end; None where one of them is missing."""
        if self.start is None or self.end is None or self.end.time < self.start.time:
            return None
        return (self.end.time - self.start.time) / SECOND_NS


def job_events(path: Path) -> JobEvents:
    """Read the events of a job; skip lines that are torn or no events of a job. A start with an
    impossible time is skipped, an end with one gets the present time. Of events that only a driver
    may write the names are told."""
    try:
        descriptor = open_descriptor(f"{path}/events.jsonl", os.O_RDONLY)
    except OSError as error:
        return JobEvents(error.errno == errno.EINVAL, None, None)  # what is no file claims it, too
    try:
        data = os.pread(descriptor, EVENTS_LIMIT, 0)
        size = os.fstat(descriptor).st_size
        if size > EVENTS_LIMIT:  # the job itself wrote more; the end of its script is last
            data += b"\n" + os.pread(descriptor, EVENTS_LIMIT, size - EVENTS_LIMIT)
    except OSError:
        data = b""
    finally:
        os.close(descriptor)
    if data.endswith(_FILLED):
        data = data.removesuffix(_FILLED) + b"}"
    start: ScriptStarted | None = None
    end: ScriptEnded | None = None
    compat: CompatStarted | None = None
    begun = False
    refused: dict[str, None] = {}
    now = time.time_ns()
    for line in filter(None, data.split(b"\n")):
        try:
            event = decode(line)
        except DAMAGED:
            continue
        likely = now - _OLDEST_NS < event.time < now + _AHEAD_NS
        if isinstance(event, ScriptStarted):
            start = _bounded(event) if likely and not begun else start
            begun = True
        elif isinstance(event, CompatStarted) and compat is None and likely:
            missing, text = event.missing[:TEXT_LIMIT], event.text[:TEXT_LIMIT]
            compat = replace(event, mode=event.mode[:64], missing=missing, text=text)
        elif isinstance(event, ScriptEnded) and event.exit_code in range(256):
            at = event.time if likely else now
            job_id = event.job_id[:64]
            told = islice((event.sizes or {}).items(), MAX_SIZES)
            sizes = {name[:255]: size for name, size in told} or None
            end = ScriptEnded(time=at, exit_code=event.exit_code, job_id=job_id, sizes=sizes)
        elif not isinstance(event, JobsOwnEvent) and event.name and len(refused) < MAX_REFUSED:
            refused[event.name[:64]] = None
    return JobEvents(True, start, end, compat, tuple(refused))


def _bounded(event: ScriptStarted) -> ScriptStarted:
    """Return a copy of a start whose texts have at most the usual lengths."""
    facts = islice((event.facts or {}).items(), MAX_FACTS)
    return ScriptStarted(
        time=event.time,
        nodes=event.nodes[:TEXT_LIMIT],
        job_id=event.job_id[:64],
        modules=event.modules[:TEXT_LIMIT],
        environment=event.environment[:64],
        gpus=event.gpus[:TEXT_LIMIT],
        facts={name[:64]: text[:LONGEST_FACT] for name, text in facts} or None,
    )
