"""Which files of a judged run are removed, by ``keep:`` of its test, and how.

    rule = removal_rule(test.keep, PASS)       # None: everything is kept
    found = removed_by(path, rule)             # what would be removed: names, number, bytes
    remove(path, rule)

Folders are opened one by one, without following links, so nothing outside of the run's directory is
ever touched. Links themselves stay: they take no space. What disappears meanwhile, as a run's
copy of a deck does, is passed over.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from seatrial.files import open_descriptor, opened_folder
from seatrial.journal.codes import LOST, PASS, Code
from seatrial.suite.model import Keep, KeepWord
from seatrial.suite.proving import COUNTED_FILE
from seatrial.suite.recording import PATTERN_FILE

TAIL = ".tail"
OUTPUTS = ("stdout", "stderr")
ALWAYS_KEPT = frozenset(
    {"job.sh", "events.jsonl", PATTERN_FILE, COUNTED_FILE, *(name + TAIL for name in OUTPUTS)}
)
MAX_NAMES = 64
MAX_DEPTH = 64  # folders below it stay


class RemovalRule(Struct, frozen=True):
    """Files that match ``remove`` and not ``keep`` are removed; of stdout and stderr the last
    ``tail`` bytes stay. ``word`` says which runs are kept."""

    word: str
    remove: Sequence[str]
    keep: Sequence[str]
    tail: int


class RemovedFiles(Struct, frozen=True):
    """What a rule removes of a run: the number of files, their bytes, the first names."""

    files: int
    size: int
    names: list[str]


def removal_rule(keep: KeepWord | Keep, verdict: Code) -> RemovalRule | None:
    """Return what is removed of a run with this verdict; None where everything is kept. Of a lost
    run everything is, because nobody knows whether its job has ended."""
    keep = Keep(runs=keep) if isinstance(keep, str) else keep
    kept_too = {"all": True, "failed": verdict.number != PASS.number, "none": False}
    if kept_too[keep.runs] or verdict.number == LOST.number:
        return None
    return RemovalRule(keep.runs, keep.remove or ["*"], keep.files, keep.tail.bytes)


def removes(rule: RemovalRule, name: str, size: int | None) -> bool:
    """Return whether a rule removes a file of a run, by its path in the run's directory and its
    bytes (None: they are not known)."""
    if name in ALWAYS_KEPT or _fits(name, rule.keep):
        return False
    if name in OUTPUTS and size is not None and size <= rule.tail:
        return False
    return _fits(name, rule.remove)


def removed_by(path: Path, rule: RemovalRule) -> RemovedFiles:
    """Return what a rule removes of the run in this directory. Raises OSError."""
    files = size = 0
    names: list[str] = []
    with opened_folder(path) as folder:
        for found in _matching(folder, rule):
            files, size = files + 1, size + found.size
            if len(names) < MAX_NAMES:
                names.append(found.name)
    return RemovedFiles(files, size, sorted(names))


def remove(path: Path, rule: RemovalRule) -> None:
    """Remove what a rule removes of the run in this directory, and folders that are empty then.
    Raises OSError."""
    with opened_folder(path) as folder:
        for found in _matching(folder, rule):
            with contextlib.suppress(FileNotFoundError):
                if found.name in OUTPUTS and rule.tail:
                    _keep_tail(folder, found.name, rule.tail)
                os.unlink(found.base, dir_fd=found.folder)
        for parent, name in _folders(folder):
            with contextlib.suppress(OSError):  # it is not empty
                os.rmdir(name, dir_fd=parent)


class _Found(Struct, frozen=True):
    """A file: its path in the run's directory, its folder and its name there, its bytes."""

    name: str
    folder: int
    base: str
    size: int


def _matching(folder: int, rule: RemovalRule) -> Iterator[_Found]:
    for found in _files(folder, "", MAX_DEPTH):
        if removes(rule, found.name, found.size):
            yield found


def _fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file is named by a pattern: by its path, or by its last part where the pattern has
    no slash, as in .gitignore."""
    base = name.rpartition("/")[2]
    return any(fnmatchcase(name if "/" in pattern else base, pattern) for pattern in patterns)


def _files(folder: int, prefix: str, depth: int) -> Iterator[_Found]:
    """Yield what is neither a folder nor a link, in and below an open folder."""
    for entry in _entries(folder):
        if entry.is_symlink():
            continue
        if not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                size = os.stat(entry.name, dir_fd=folder, follow_symlinks=False).st_size
                yield _Found(prefix + entry.name, folder, entry.name, size)
        elif depth:
            with (
                contextlib.suppress(FileNotFoundError),
                opened_folder(entry.name, at=folder) as below,
            ):
                yield from _files(below, f"{prefix}{entry.name}/", depth - 1)


def _folders(folder: int, depth: int = MAX_DEPTH) -> Iterator[tuple[int, str]]:
    """Yield the folders below an open folder, the deepest first, each with its open parent."""
    for entry in _entries(folder):
        if not entry.is_dir(follow_symlinks=False):
            continue
        if depth:
            with (
                contextlib.suppress(FileNotFoundError),
                opened_folder(entry.name, at=folder) as below,
            ):
                yield from _folders(below, depth - 1)
        yield folder, entry.name


def _entries(folder: int) -> list[os.DirEntry[str]]:
    """Return what is in an open folder: nothing where the folder itself was removed."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _keep_tail(folder: int, name: str, limit: int) -> None:
    """Write the last bytes of a file to NAME.tail."""
    try:
        source = open_descriptor(name, os.O_RDONLY | os.O_NOFOLLOW, at=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:  # it is no regular file
            return
        raise
    try:
        found = os.fstat(source)
        data = os.pread(source, limit, max(0, found.st_size - limit))
        mode = stat.S_IMODE(found.st_mode)
    finally:
        os.close(source)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name + TAIL, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    target = open_descriptor(name + TAIL, flags, mode, at=folder)
    with os.fdopen(target, "wb") as file:
        file.write(data)
