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
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Protocol, Self

from msgspec.structs import replace

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.c_programs import kept_or_reason
from seatrial.files import open_folder
from seatrial.plugins.purge import in_python
from seatrial.plugins.purge.in_python import Answer, Deed
from seatrial.plugins.purge.names import shown_name
from seatrial.plugins.purge.plan_file import (
    Batch,
    BlockDamaged,
    RootSeen,
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
        counts = in_python.Counts()
        yield from in_python.walk(self._root, counts)
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
        yield in_python.PythonHands(root, deed)
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
