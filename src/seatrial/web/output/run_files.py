"""Read the files of a run for other users: a few files by name, bounded, through no link.

    tail(run, "stdout", 65536)           # FilePiece(text, size, start), or FileMissing

The journal says where a run's directory is. Its last parts are opened one by one without following
links, so a job cannot make the server read another file by a link. A file system may hang: call
these functions within ``state.background.in_time``.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from seatrial.lazy import regex
from seatrial.runs.keep import OUTPUTS, TAIL
from seatrial.store.rows import RunRow
from seatrial.suite.proving import PLACEMENT_FILE
from seatrial.suite.recording import PATTERN_FILE

BUILD_LOG = "build.log"
NAMES = (
    BUILD_LOG,
    "job.sh",
    "stdout",
    "stderr",
    "pairs.matrix",
    PLACEMENT_FILE,
    PATTERN_FILE,
    *(name + TAIL for name in OUTPUTS),
)

_KEY = regex("[0-9a-f]{1,64}")
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FilePiece(NamedTuple):
    """A part of a file: its text, the size of the whole file and the start of the part, in bytes.
    ``kept_tail``: ``keep`` of the test removed the file, and the text is of its end, which was
    kept."""

    text: str
    size: int
    start: int
    kept_tail: bool = False


class FileMissing(NamedTuple):
    """The reason why there is no text, as a sentence without its subject."""

    why: str


def tail(run: RunRow, name: str, limit: int) -> FilePiece | FileMissing:
    """Return the last bytes of a file of a run, at most ``limit``, as text; of the end that was
    kept of stdout or stderr, where the file itself was removed."""
    found = _read(run, name, limit, from_end=True)
    if isinstance(found, FileMissing) and name in OUTPUTS:
        kept = _read(run, name + TAIL, limit, from_end=True)
        return found if isinstance(kept, FileMissing) else kept._replace(kept_tail=True)
    return found


def head(run: RunRow, name: str, limit: int) -> FilePiece | FileMissing:
    """Return the first bytes of a file of a run, at most ``limit``, as text."""
    return _read(run, name, limit, from_end=False)


def _read(run: RunRow, name: str, limit: int, from_end: bool) -> FilePiece | FileMissing:
    if name not in NAMES:
        return FileMissing("is no file that is shown")
    if run.rehearsed:
        return FileMissing("is not there: a rehearsed run leaves no files")
    if not run.path:
        return FileMissing("is not there: the run has no directory yet")
    has_folder = False
    try:
        with _build_folder(run) if name == BUILD_LOG else _folder(run) as folder:
            has_folder = True
            with _opened(name, _FILE, folder) as file:
                return _piece(file, limit, from_end)
    except FileNotFoundError:
        return FileMissing("is not there" if has_folder else "is gone with its directory")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return FileMissing(f"is not shown: {reason}")


@contextlib.contextmanager
def _folder(run: RunRow) -> Iterator[int]:
    """Open the run's directory. The last parts of its path must be the test and the run; links
    before these are followed. Raises OSError, ValueError."""
    path = PurePosixPath(run.path)
    parts = PurePosixPath(run.test, run.run_id).parts
    if not path.is_absolute() or ".." in path.parts or path.parts[-len(parts) :] != parts:
        raise ValueError("its directory is not that of a run")
    base = "/" + "/".join(path.parts[1 : -len(parts)])
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_opened(base, _FOLDER, None))
        for part in parts:
            folder = stack.enter_context(_opened(part, _FOLDER | os.O_NOFOLLOW, folder))
        yield folder


@contextlib.contextmanager
def _build_folder(run: RunRow) -> Iterator[int]:
    """Open the directory of the build of a run without a job: ``builds/KEY`` of its trial, which
    may be a link to a shared build. Raises OSError, ValueError."""
    path = PurePosixPath(run.path)
    if not path.is_absolute() or path.parts[-2:-1] != ("builds",) or not _KEY.fullmatch(path.name):
        raise ValueError("its directory is not that of a build")
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(_opened(str(path.parent.parent), _FOLDER, None))
        builds = stack.enter_context(_opened("builds", _FOLDER | os.O_NOFOLLOW, base))
        yield stack.enter_context(_opened(path.name, _FOLDER, builds))


@contextlib.contextmanager
def _opened(name: str, flags: int, folder: int | None) -> Iterator[int]:
    try:
        # plain: by the open folder above, with O_NOFOLLOW and O_NONBLOCK
        descriptor = os.open(name, flags, dir_fd=folder)
    except NotADirectoryError as error:
        raise ValueError("a link or a file is where its directory was") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError("it is a link, and links are not followed here") from error
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _piece(file: int, limit: int, from_end: bool) -> FilePiece:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")
    start = max(0, found.st_size - limit) if from_end else 0
    data = os.pread(file, limit, start)
    if start:  # do not begin in the middle of a character
        cut = len(data)
        data = data.lstrip(bytes(range(0x80, 0xC0)))
        start += cut - len(data)
    return FilePiece(data.decode("utf-8", errors="replace"), max(found.st_size, len(data)), start)
