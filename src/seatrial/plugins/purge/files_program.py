"""What touches the file system: the C program ``purge_files.c``, or the same in Python.

    with open_root("/scratch") as root:
        walk = Walk(root.descriptor)
        for batch in walk: ...                  # every entry below the root
        walk.seen                               # counts, known at the end
        with Hands(root.descriptor, Deed("remove")) as hands:
            answer = hands.carry_out(batch)     # what became of each entry

The program is compiled at its first use; without a compiler Python does the same, more slowly.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.c_programs import kept_or_reason
from seatrial.files import names_in, open_folder
from seatrial.lazy import np
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.plan_file import (
    LINK,
    OTHER,
    REGULAR,
    Batch,
    BlockDamaged,
    RootSeen,
    made,
    read_block,
    skip_block,
)

SOURCE = Path(__file__).parent / "purge_files.c"
WITHOUT_PROGRAM = "SEATRIAL_PURGE_IN_PYTHON"
"""The variable that, set to 1, has Python do what the C program does."""

OPENING = "SEATRIAL_PURGE_OPEN"
"""The variable that, set to ``steps``, has folders opened without openat2."""

_LEAST_THREADS, _MOST_THREADS = 8, 16


# ---- roots ---------------------------------------------------------------------------------------


class OpenRoot(NamedTuple):
    """A root that is open."""

    path: str
    descriptor: int
    device: int
    inode: int


@contextlib.contextmanager
def open_root(path: str) -> Iterator[OpenRoot]:
    """Have a root open while the block runs. Raises UsageError where it is no folder, or where a
    link leads to it: what is removed is what was named."""
    if os.path.realpath(path) != os.path.normpath(path):
        raise UsageError(
            f"{path}: a link leads to it; name the folder itself: {os.path.realpath(path)}"
        )
    try:
        descriptor = open_folder(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be opened as a folder: {error.strerror}") from error
    try:
        about = os.fstat(descriptor)
        yield OpenRoot(path, descriptor, about.st_dev, about.st_ino)
    finally:
        os.close(descriptor)


# ---- the program ---------------------------------------------------------------------------------


def program_or_reason() -> tuple[Path | None, str]:
    """Return the compiled program; None, and why, where there is none."""
    if os.environ.get(WITHOUT_PROGRAM) == "1":
        return None, f"{WITHOUT_PROGRAM} is set"
    return _compiled()


@cache
def _compiled() -> tuple[Path | None, str]:
    return kept_or_reason("purge", SOURCE, "the walker of purge")


def tell_way(tell: Callable[[str], None]) -> None:
    """Tell where Python does what the program would."""
    program, reason = program_or_reason()
    if program is None:
        tell(f"Python does what a C program does ten times as fast: {reason}")


def threads() -> int:
    """Return how many threads the program uses: one a core, and more on few cores, as those of a
    file system of the network wait most of their time."""
    return max(_LEAST_THREADS, min(_MOST_THREADS, len(os.sched_getaffinity(0))))


def _way() -> str:
    return "steps" if os.environ.get(OPENING) == "steps" else "beneath"


def _start(
    words: Sequence[object], descriptors: Sequence[int], stdin: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(word) for word in words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[each for each in descriptors if each >= 0],
        bufsize=-1,
    )


def _stopped(process: subprocess.Popen[bytes]) -> SeatrialError:
    process.kill()
    assert process.stderr is not None
    text = process.stderr.read().decode(errors="replace").strip()
    code = process.wait()
    return SeatrialError(
        f"the program of purge stopped with {code}: {text or 'it said nothing'}; what was done is "
        "in the audit; go on with `seatrial purge resume`"
    )


# ---- walking -------------------------------------------------------------------------------------


class Walk:
    """All entries below an open root but folders, in batches. ``seen`` counts them and the folders
    when all are read."""

    def __init__(self, root: int, number: int = 0) -> None:
        self._root, self._number = root, number
        self.seen = RootSeen()

    def __iter__(self) -> Iterator[Batch]:
        program, _ = program_or_reason()
        entries = size = 0
        for batch in self._in_python() if program is None else self._in_c(program):
            batch.root = self._number
            entries += len(batch)
            size += int(batch.entries["bytes"].sum())
            yield batch
        self.seen = replace(self.seen, entries=entries, bytes=size)

    def _in_python(self) -> Iterator[Batch]:
        counts = Counts()
        yield from walk(self._root, counts)
        self.seen = counts.seen()

    def _in_c(self, program: Path) -> Iterator[Batch]:
        words = (program, "walk", self._root, threads(), _way())
        process = _start(words, [self._root], subprocess.DEVNULL)
        assert process.stdout is not None
        try:
            while isinstance(block := _next_block(process), Batch):
                yield block
            self.seen = _seen_of(block)
            if process.wait():
                raise _stopped(process)
        finally:
            process.kill()
            process.wait()
            _close(process)


def _next_block(process: subprocess.Popen[bytes]) -> Batch | bytes:
    assert process.stdout is not None
    try:
        block = read_block(process.stdout)  # type: ignore[arg-type]
    except BlockDamaged:
        block = None
    if block is None:
        raise _stopped(process)
    return block


def _seen_of(text: bytes) -> RootSeen:
    """Return what the end of a walk says."""
    numbers: dict[str, int] = {}
    failures = []
    for line in text.rstrip(b"\0").split(b"\n")[:-1]:
        name, _, rest = line.partition(b" ")
        if name == b"error":
            number, _, path = rest.partition(b" ")
            failures.append(f"{shown_name(path) or '.'}: {os.strerror(int(number))}")
        else:
            numbers[name.decode()] = int(rest)
    return RootSeen(
        folders=numbers["folders"],
        others=numbers["other_devices"],
        vanished=numbers["vanished"],
        failed=numbers["errors"],
        failures=failures,
    )


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


# ---- acting --------------------------------------------------------------------------------------


class Hands(Protocol):
    """Who carries out a deed. Batches are given one after the other; an answer is asked for each,
    in their order, and one batch may be given before the answer to the one before it is asked
    for."""

    def skip(self, inodes: Sequence[int]) -> None:
        """Leave these inodes, as they are open."""

    def give(self, batch: Batch) -> None:
        """Begin with a batch."""

    def answer(self) -> Answer:
        """Return what became of the earliest batch that has no answer yet."""


@contextlib.contextmanager
def hands(root: int, deed: Deed) -> Iterator[Hands]:
    """Have who carries out a deed below an open root, while the block runs."""
    program, _ = program_or_reason()
    if program is None:
        yield PythonHands(root, deed)
        return
    with _ProgramHands(program, root, deed) as found:
        yield found


class _ProgramHands:
    """The C program, and its pipes."""

    def __init__(self, program: Path, root: int, deed: Deed) -> None:
        words = (program, deed.act, root, threads(), _way())
        more = (deed.aside, int(deed.atime), deed.depth, deed.errors)
        self._process = _start((*words, *more), [root, deed.aside], subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        self._from: IO[bytes] = self._process.stdout

    def skip(self, inodes: Sequence[int]) -> None:
        self._send(skip_block(inodes))

    def give(self, batch: Batch) -> None:
        self._send(batch.block())

    def _send(self, block: bytes) -> None:
        try:
            self._to.write(block)
            self._to.flush()
        except OSError as error:
            raise _stopped(self._process) from error

    def answer(self) -> Answer:
        words = self._from.readline(200).split()
        if len(words) != 7 or words[0] != b"done":
            raise _stopped(self._process)
        entries, freed, errors, _, size = map(int, words[2:])
        letters = self._from.read(entries)
        lines = [self._from.readline(40).split() for _ in range(errors)]
        folders = self._from.read(size)
        if len(letters) != entries or len(folders) != size:
            raise _stopped(self._process)
        reasons = {int(index): int(reason) for index, reason in lines}
        return Answer(letters, freed, reasons, folders.split(b"\0")[:-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._to.close()
        if self._process.wait() and kind is None:
            raise _stopped(self._process)
        _close(self._process)


# ---- in python -----------------------------------------------------------------------------------
#
# What ``purge_files.c`` does, in Python, for hosts without a C compiler: slowly, and by the walk
# of openat alone. The rules, letters and forms are those of that file.


ASIDE_NAME = b".seatrial-aside"
"""The folder below a root of what was moved aside. It is not walked."""

_MOST_ENTRIES = 8192
_ERRORS_TOLD = 20
_NO_REPLACE = 1
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH = os.O_PATH | _FOLDER


# ---- folders -------------------------------------------------------------------------------------


def open_beneath(root: int, path: bytes, flags: int = _PATH) -> int:
    """Open a folder below an open root, one component after the other: no link is followed, and no
    other device entered. Raises OSError."""
    device = os.fstat(root).st_dev
    at = os.dup(root)
    steps = path.split(b"/") if path else []
    if any(step in (b"", b".", b"..") or b"\0" in step for step in steps) or (
        steps[:1] == [ASIDE_NAME]
    ):
        os.close(at)
        raise OSError(errno.EINVAL, "it is no plain path", path)
    try:
        for number, step in enumerate(steps, 1):
            how = flags if number == len(steps) else _PATH
            below = os.open(step, how, dir_fd=at)  # plain: a folder, which is not followed
            os.close(at)
            at = below
            if os.fstat(at).st_dev != device:
                raise OSError(errno.EXDEV, "it is on another device", path)
    except BaseException:
        os.close(at)
        raise
    return at


@contextlib.contextmanager
def _opened(root: int, path: bytes) -> Iterator[int]:
    descriptor = open_beneath(root, path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# ---- walking -------------------------------------------------------------------------------------


class Counts(Struct):
    """What a walk counts beside its entries."""

    folders: int = 0
    others: int = 0
    vanished: int = 0
    failed: int = 0
    failures: list[str] = []

    def fail(self, error: OSError, path: bytes) -> None:
        """Count what could not be read; what is gone, or elsewhere, is no error."""
        if error.errno == errno.ENOENT:
            self.vanished += 1
        elif error.errno == errno.EXDEV:
            self.others += 1
        else:
            self.failed += 1
            if len(self.failures) < _ERRORS_TOLD:
                self.failures.append(f"{shown_name(path) or '.'}: {error.strerror}")

    def seen(self) -> RootSeen:
        return RootSeen(
            folders=self.folders,
            others=self.others,
            vanished=self.vanished,
            failed=self.failed,
            failures=self.failures,
        )


class _Rows:
    """The rows of a batch that is being made."""

    def __init__(self) -> None:
        self.folders: list[tuple[Any, ...]] = []
        self.entries: list[tuple[Any, ...]] = []
        self.paths: list[bytes] = []
        self.names: list[bytes] = []

    def batch(self) -> Batch:
        return made(0, self.folders, self.entries, self.paths, self.names)


def walk(root: int, counts: Counts) -> Iterator[Batch]:
    """Yield all entries below an open root but folders."""
    rows = _Rows()
    waiting = deque([b""])
    while waiting:
        path = waiting.pop()
        for name, about in _listed(root, path, counts, rows, waiting):
            rows.entries.append(_entry(about, len(rows.folders) - 1))
            rows.names.append(name)
            if len(rows.entries) == _MOST_ENTRIES:
                folder = rows.folders[-1]
                yield rows.batch()
                rows.__init__()  # type: ignore[misc]
                rows.folders.append(folder)
                rows.paths.append(path)
    if rows.entries:
        yield rows.batch()


def _listed(
    root: int, path: bytes, counts: Counts, rows: _Rows, waiting: deque[bytes]
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield the entries of a folder, and let its folders wait."""
    try:
        descriptor = open_beneath(root, path, os.O_RDONLY | _FOLDER)
    except OSError as error:
        counts.fail(error, path)
        return
    try:
        about = os.fstat(descriptor)
        counts.folders += 1
        mode = stat.S_IMODE(about.st_mode)
        rows.folders.append((about.st_ino, mode, about.st_uid, about.st_gid, 0, 0))
        rows.paths.append(path)
        for text in names_in(descriptor):
            name = os.fsencode(text)
            below = path + b"/" + name if path else name
            try:
                entry = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError as error:
                counts.fail(error, below)
                continue
            if entry.st_dev != about.st_dev:
                counts.others += 1
            elif not stat.S_ISDIR(entry.st_mode):
                yield name, entry
            elif below != ASIDE_NAME:
                waiting.append(below)
    except OSError as error:
        counts.fail(error, path)
    finally:
        os.close(descriptor)


def _entry(about: os.stat_result, folder: int) -> tuple[Any, ...]:
    size = (about.st_ino, about.st_size, about.st_blocks * 512)
    times = (about.st_atime_ns, about.st_mtime_ns, about.st_ctime_ns)
    owner = (about.st_uid, about.st_gid, about.st_nlink)
    return (*size, *times, *owner, folder, 0, 0, _kind(about.st_mode), 0, 0, 0)


def _kind(mode: int) -> int:
    return REGULAR if stat.S_ISREG(mode) else LINK if stat.S_ISLNK(mode) else OTHER


# ---- acting --------------------------------------------------------------------------------------


class Deed(Struct, frozen=True):
    """What is done to entries. ``aside``: the open folder of what is moved aside; -1 for none.
    ``atime``: an entry that was read after the plan stays. ``depth``: folders that become empty are
    removed from this depth on; 0: none. ``errors``: after more errors nothing more is tried."""

    act: Literal["remove", "aside", "undo", "expire"]
    aside: int = -1
    atime: bool = True
    depth: int = 0
    errors: int = 1 << 60


class Answer(NamedTuple):
    """What became of the entries of a batch: a letter each, as ``purge_files.c`` lists them.
    ``freed``: bytes. ``errors``: by index, the system's number. ``folders`` were removed."""

    letters: bytes
    freed: int
    errors: dict[int, int]
    folders: list[bytes]


def rename_without_replacing(source: int, name: bytes, target: int, new_name: bytes) -> None:
    """Rename a file, unless there is one of the new name. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(source, name, target, new_name, _NO_REPLACE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _is_same_file(planned: Any, about: os.stat_result) -> bool:
    """Whether it is the planned file, wherever it lies."""
    return bool(
        planned["ino"] == about.st_ino
        and planned["size"] == about.st_size
        and planned["uid"] == about.st_uid
        and planned["mtime"] == about.st_mtime_ns
        and planned["kind"] == _kind(about.st_mode)
        and planned["kind"] != OTHER
    )


class PythonHands:
    """Carries out a deed below an open root; see `seatrial.plugins.purge.files_program.Hands`."""

    def __init__(self, root: int, deed: Deed) -> None:
        self._root, self._deed = root, deed
        self._device = os.fstat(root).st_dev
        self._open: frozenset[int] = frozenset()
        self._linked: dict[int, tuple[int, int]] = {}  # inode: ctime and links after our own act
        self._answers: deque[Answer] = deque()
        self._errors = 0
        self._slots = -1
        self._begin()

    def _begin(self) -> None:
        self._freed = 0
        self._reasons: dict[int, int] = {}
        self._folders: list[bytes] = []

    def skip(self, inodes: Sequence[int]) -> None:
        self._open = frozenset(inodes)

    def answer(self) -> Answer:
        return self._answers.popleft()

    def give(self, batch: Batch) -> None:
        self._begin()
        slot = str(batch.number)
        self._open_slots(slot)
        letters = bytearray(b"-" * len(batch))
        for group, path in enumerate(batch.folders):
            indices = np.flatnonzero(batch.entries["folder"] == group).tolist()
            self._carry_out_group(batch, batch.table[group], path, indices, letters)
        if self._slots >= 0:
            os.close(self._slots)
            if self._deed.act != "aside":
                with contextlib.suppress(OSError):
                    os.rmdir(slot, dir_fd=self._deed.aside)  # plain: below an open folder
        self._answers.append(Answer(bytes(letters), self._freed, self._reasons, self._folders))

    def _open_slots(self, slot: str) -> None:
        self._slots = -1
        if self._deed.aside < 0:
            return
        with contextlib.suppress(FileExistsError):
            if self._deed.act == "aside":
                os.mkdir(slot, 0o700, dir_fd=self._deed.aside)  # plain: below an open folder
        with contextlib.suppress(FileNotFoundError):
            flags = os.O_RDONLY | _FOLDER
            self._slots = os.open(slot, flags, dir_fd=self._deed.aside)  # plain: it is a folder

    def _carry_out_group(
        self, batch: Batch, folder: Any, path: bytes, indices: list[int], letters: bytearray
    ) -> None:
        descriptor, reason = self._open_group(folder, path)
        try:
            for index in indices:
                entry = batch.entries[index]
                if not entry["take"]:
                    continue
                if self._errors > self._deed.errors:
                    letter = "n"
                elif descriptor < 0 and self._deed.act != "expire":
                    letter = self._without_folder(entry, index, reason)
                else:
                    letter = self._carry_out(descriptor, batch.names[index], entry, index)
                letters[index] = ord(letter)
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        fewer = any(chr(letters[index]) in "rag" for index in indices)
        if fewer and self._deed.depth and self._deed.act in ("remove", "aside"):
            self._remove_empty(path, int(folder["inode"]))

    def _open_group(self, folder: Any, path: bytes) -> tuple[int, int]:
        """Return the open folder, or -1 and why."""
        if self._deed.act == "expire":
            return -1, 0
        try:
            if self._deed.act == "undo":
                return self._open_or_make(folder, path), 0
            descriptor = open_beneath(self._root, path)
        except OSError as error:
            return -1, error.errno or errno.EIO
        if os.fstat(descriptor).st_ino == folder["inode"]:
            return descriptor, 0
        os.close(descriptor)  # another folder has its path
        return -1, errno.ENOENT

    def _open_or_make(self, folder: Any, path: bytes) -> int:
        """Open a folder, and make what is missing of its path, with its owner and mode."""
        with contextlib.suppress(FileNotFoundError):
            return open_beneath(self._root, path)
        steps = path.split(b"/")
        for number in range(1, len(steps) + 1):
            with _opened(self._root, b"/".join(steps[: number - 1])) as above:
                try:
                    os.mkdir(steps[number - 1], 0o700, dir_fd=above)  # plain: below an open folder
                except FileExistsError:
                    continue
            made_now = open_beneath(self._root, b"/".join(steps[:number]), os.O_RDONLY | _FOLDER)
            try:
                os.fchown(made_now, int(folder["uid"]), int(folder["gid"]))
                os.fchmod(made_now, int(folder["mode"]))
            finally:
                os.close(made_now)
        return open_beneath(self._root, path)

    def _without_folder(self, entry: Any, index: int, reason: int) -> str:
        if self._deed.act == "aside" and self._is_aside(entry, index):
            return "a"
        if self._deed.act == "undo":
            return self._failed(index, reason)
        if reason == errno.ENOENT:
            return "g"
        if reason in (errno.ENOTDIR, errno.ELOOP, errno.EXDEV):
            return "c"
        return self._failed(index, reason)

    def _failed(self, index: int, reason: int | None) -> str:
        self._reasons[index] = reason or errno.EIO
        self._errors += 1
        return "e"

    def _carry_out(self, folder: int, name: bytes, entry: Any, index: int) -> str:
        if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
            return self._failed(index, errno.EINVAL)
        act = {"expire": self._remove_slot, "undo": self._put_back}.get(self._deed.act, self._take)
        try:
            return act(folder, name, entry, index)
        except FileNotFoundError:
            return "g"
        except OSError as error:
            return self._failed(index, error.errno)

    def _take(self, folder: int, name: bytes, entry: Any, index: int) -> str:
        aside = self._deed.act == "aside"
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return "a" if aside and self._is_aside(entry, index) else "g"
        if not self._is_as_planned(entry, about):
            return "a" if aside and self._is_aside(entry, index) else "c"
        if about.st_ino in self._open:
            return "k"
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        held = os.open(name, flags, dir_fd=folder)  # plain: O_PATH opens no file
        try:
            letter = (
                self._move_aside(folder, name, entry, index)
                if aside
                else self._remove(folder, name, about)
            )
            after = os.fstat(held)
        finally:
            os.close(held)
        if after.st_nlink and about.st_nlink > 1:
            self._linked[after.st_ino] = after.st_ctime_ns, after.st_nlink
        else:
            self._linked.pop(after.st_ino, None)
        return letter

    def _is_as_planned(self, entry: Any, about: os.stat_result) -> bool:
        changed, links = self._linked.get(about.st_ino, (entry["ctime"], entry["nlink"]))
        return bool(
            about.st_dev == self._device
            and _is_same_file(entry, about)
            and changed == about.st_ctime_ns
            and links == about.st_nlink
            and entry["gid"] == about.st_gid
            and (not self._deed.atime or entry["atime"] == about.st_atime_ns)
        )

    def _remove(self, folder: int, name: bytes, about: os.stat_result) -> str:
        os.unlink(name, dir_fd=folder)  # plain: a name of an open folder, compared before
        if about.st_nlink <= 1:
            self._freed += about.st_blocks * 512
        return "r"

    def _is_aside(self, entry: Any, index: int) -> bool:
        try:
            about = os.stat(str(index), dir_fd=self._slots, follow_symlinks=False)
        except OSError:
            return False
        return _is_same_file(entry, about)

    def _move_aside(self, folder: int, name: bytes, entry: Any, index: int) -> str:
        slot = b"%d" % index
        rename_without_replacing(folder, name, self._slots, slot)
        if self._is_aside(entry, index):
            return "a"
        try:
            rename_without_replacing(self._slots, slot, folder, name)
        except OSError:
            return "x"
        return "c"

    def _put_back(self, folder: int, name: bytes, entry: Any, index: int) -> str:
        try:
            if self._slots >= 0:
                rename_without_replacing(self._slots, b"%d" % index, folder, name)
                return "u"
        except FileExistsError:
            return "o"
        except FileNotFoundError:
            pass
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)  # killed, it put it there
        return "u" if _is_same_file(entry, about) else "g"

    def _remove_slot(self, folder: int, name: bytes, entry: Any, index: int) -> str:
        slot = b"%d" % index
        if self._slots < 0:
            return "g"
        about = os.stat(slot, dir_fd=self._slots, follow_symlinks=False)
        return self._remove(self._slots, slot, about) if _is_same_file(entry, about) else "c"

    def _remove_empty(self, path: bytes, inode: int) -> None:
        """Remove a folder that has become empty, and those above it that become so by that."""
        while path.count(b"/") + (path != b"") >= self._deed.depth:
            above, _, name = path.rpartition(b"/")
            try:
                with _opened(self._root, above) as parent:
                    about = os.stat(name, dir_fd=parent, follow_symlinks=False)
                    if about.st_dev != self._device or (inode and inode != about.st_ino):
                        return
                    os.rmdir(name, dir_fd=parent)  # plain: below an open folder; if it is empty
            except OSError:
                return
            self._folders.append(path)
            path, inode = above, 0
