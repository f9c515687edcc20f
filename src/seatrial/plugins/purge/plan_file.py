"""The plan of a purge on disk: what is to be removed, and all that it is compared with before.

    with create_plan(path, header) as writer: writer.write(batch)
    with open_plan(path) as plan: plan.header; plan.end; plan.batches()

A plan is a line of text that names the form, a line of JSON (the header), blocks, and an end: a
last block with JSON. Blocks are as ``purge_files.c`` writes and reads them, so that nothing is
parsed and no name is escaped; that file describes them. The last 8 bytes are the offset of the end.
A plan without its end is none, and neither is one whose SHA-256 is not that of its end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec
from msgspec import Struct, field

from seatrial.errors import UsageError
from seatrial.files import make_folder, open_descriptor, open_regular, origin_of
from seatrial.lazy import np
from seatrial.model.file_model import DAMAGED, decoder

FORM = b"seatrial purge plan 1\n"
BLOCK, SKIP, END = 0x4B4C4253, 0x50494B53, 0x20444E45
REGULAR, LINK, OTHER = 0, 1, 3
BATCH = 8192
"""Entries of a batch: what stands between two records of the audit."""

FATES = {
    "r": "removed",
    "b": "removed by an act that was killed",
    "a": "moved aside",
    "x": "swapped: another file lies aside",
    "u": "put back",
    "o": "aside, as a new file has its name",
    "c": "stays: changed since the plan",
    "g": "was gone already",
    "k": "stays: it is open",
    "e": "stays: error",
    "n": "not tried",
    "-": "not meant",
    "?": "not known: the audit is damaged",
}
"""What the letters of an audit mean."""

_LONGEST_HEADER = 64 << 20
_MOST_ENTRIES = 1 << 20
_LONGEST_TEXT = 1 << 28
_HASHED_AT_ONCE = 1 << 20

_HEAD = [("magic", "u4"), ("root", "u4"), ("folders", "u4"), ("entries", "u4")]
_HEAD += [("text", "u8"), ("number", "u8")]
_FOLDER = [("inode", "u8"), ("mode", "u4"), ("uid", "u4"), ("gid", "u4"), ("length", "u4")]
_FOLDER += [("at", "u8")]
_ENTRY = [("ino", "u8"), ("size", "i8"), ("bytes", "i8")]
_ENTRY += [("atime", "i8"), ("mtime", "i8"), ("ctime", "i8")]
_ENTRY += [("uid", "u4"), ("gid", "u4"), ("nlink", "u4"), ("folder", "u4"), ("at", "u4")]
_ENTRY += [("length", "u2"), ("kind", "u1"), ("take", "u1"), ("rule", "i4"), ("spare", "u4")]


# ---- batches -------------------------------------------------------------------------------------


class Batch:
    """Entries of some folders of a root. ``entries`` is an array with ``ino``, ``size``, ``bytes``
    (on the disk), ``atime``, ``mtime``, ``ctime`` (in ns), ``uid``, ``gid``, ``nlink``, ``folder``
    (index in ``table``, the array of folders), ``kind`` (REGULAR, LINK, OTHER), ``take`` (whether
    it is to be removed) and ``rule``. Paths and names are slices of ``text``. ``number`` counts the
    batches of a plan."""

    def __init__(
        self, entries: Any, table: Any, text: bytes, *, root: int = 0, number: int = 0
    ) -> None:
        self.entries, self.table, self.text = entries, table, text
        self.root, self.number = root, number

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def folders(self) -> list[bytes]:
        """The paths of the folders below the root; b"" is the root itself."""
        return _slices(self.text, self.table)

    @cached_property
    def names(self) -> list[bytes]:
        """The name of each entry."""
        return _slices(self.text, self.entries)

    @cached_property
    def paths(self) -> list[bytes]:
        """The path of each entry below the root."""
        folders = [path + b"/" if path else b"" for path in self.folders]
        indices = self.entries["folder"].tolist()
        return [folders[index] + name for index, name in zip(indices, self.names, strict=True)]

    def only(self, chosen: Any) -> Batch:
        """Return some of its entries: ``chosen`` is a mask or a slice."""
        entries = self.entries[chosen].copy()
        used, entries["folder"] = np.unique(entries["folder"], return_inverse=True)
        table = self.table[used]
        text = np.frombuffer(self.text, dtype=np.uint8)
        paths = _gathered(text, table)
        names = _gathered(text, entries)
        table["at"] = _starts(table["length"])
        entries["at"] = len(paths) + _starts(entries["length"])
        return Batch(entries, table, paths + names, root=self.root, number=self.number)

    def block(self) -> bytes:
        """Return it as a block."""
        text = self.text + bytes(-len(self.text) % 8)
        sizes = (BLOCK, self.root, len(self.table), len(self.entries), len(text), self.number)
        head = np.array([sizes], dtype=_HEAD)
        return b"".join((head.tobytes(), self.table.tobytes(), self.entries.tobytes(), text))


def joined(batches: Sequence[Batch]) -> Batch:
    """Return the entries of several batches of one root."""
    if len(batches) == 1:
        return batches[0]
    entries = np.concatenate([batch.entries for batch in batches])
    table = np.concatenate([batch.table for batch in batches])
    texts = [batch.text for batch in batches]
    for rows, column, sizes in (
        (entries, "folder", [len(batch.table) for batch in batches]),
        (entries, "at", [len(text) for text in texts]),
    ):
        rows[column] += np.repeat(_starts(sizes), [len(batch) for batch in batches]).astype("u4")
    lengths = [len(batch.table) for batch in batches]
    table["at"] += np.repeat(_starts([len(text) for text in texts]), lengths).astype("u8")
    return Batch(entries, table, b"".join(texts), root=batches[0].root)


def made(root: int, folders: Sequence[tuple[Any, ...]], entries: Sequence[tuple[Any, ...]],
         paths: Sequence[bytes], names: Sequence[bytes]) -> Batch:  # fmt: skip
    """Return a batch of rows, as its arrays have them; their places in the text are set here."""
    table = np.array(folders, dtype=_FOLDER)
    rows = np.array(entries, dtype=_ENTRY)
    table["length"], rows["length"] = list(map(len, paths)), list(map(len, names))
    table["at"] = _starts(table["length"])
    text = b"".join(paths)
    rows["at"] = len(text) + _starts(rows["length"])
    return Batch(rows, table, text + b"".join(names), root=root)


def _slices(text: bytes, rows: Any) -> list[bytes]:
    starts, ends = rows["at"].tolist(), (rows["at"] + rows["length"]).tolist()
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _starts(lengths: Any) -> Any:
    """Return where each of some slices begins when they lie one behind the other."""
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    return ends - lengths


def _gathered(text: Any, rows: Any) -> bytes:
    """Return the slices of a text that belong to rows, one behind the other."""
    lengths = rows["length"].astype(np.int64)
    shift = np.repeat(rows["at"].astype(np.int64) - _starts(lengths), lengths)
    gathered: bytes = text[shift + np.arange(len(shift))].tobytes()
    return gathered


# ---- blocks --------------------------------------------------------------------------------------


def skip_block(inodes: Sequence[int]) -> bytes:
    """Return the block that names inodes which stay, as their files are open."""
    head = np.array([(SKIP, 0, 0, len(inodes), 0, 0)], dtype=_HEAD)
    return head.tobytes() + np.array(sorted(inodes), dtype="u8").tobytes()


class BlockDamaged(ValueError):
    """What should be a block is none."""


def read_block(file: BinaryIO) -> Batch | bytes | None:
    """Return the next block of a stream: a batch, the text of an end, or None behind the last.
    Raises BlockDamaged."""
    data = file.read(np.dtype(_HEAD).itemsize)
    if not data:
        return None
    try:
        head = np.frombuffer(data, dtype=_HEAD)[0]
        folders, entries, length = int(head["folders"]), int(head["entries"]), int(head["text"])
        if max(folders, entries) > _MOST_ENTRIES or length > _LONGEST_TEXT:
            raise ValueError
        if head["magic"] == END:
            return _read_exactly(file, length)
        if head["magic"] != BLOCK:
            raise ValueError
        table = np.frombuffer(_read_exactly(file, folders * 32), dtype=_FOLDER)
        rows = np.frombuffer(_read_exactly(file, entries * 80), dtype=_ENTRY)
        text = _read_exactly(file, length)
    except (ValueError, IndexError) as error:
        raise BlockDamaged from error
    _require_inside(table, rows, length)
    return Batch(rows, table, text, root=int(head["root"]), number=int(head["number"]))


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError
    return data


def _require_inside(table: Any, rows: Any, length: int) -> None:
    """Raise BlockDamaged where a slice is outside of its text, or an entry has no folder."""
    for each in (table, rows):
        ends = each["at"].astype(np.uint64) + each["length"]
        if len(each) and (ends.max() > length or each["at"].max() > length):
            raise BlockDamaged
    if len(rows) and rows["folder"].max() >= len(table):
        raise BlockDamaged


# ---- header and end ------------------------------------------------------------------------------


class PlannedRoot(Struct, frozen=True, omit_defaults=True):
    """A root as it was when the plan was made. ``size``, ``used``, ``free``: of its file system, in
    bytes; ``mount``: its kind and options."""

    path: str
    device: int
    inode: int
    size: int = 0
    used: int = 0
    free: int = 0
    mount: str = ""


class PlannedRule(Struct, frozen=True, omit_defaults=True):
    """A rule of the policy: whether it ``takes`` what it fits, and why, in words."""

    name: str
    takes: bool = False
    words: str = ""


class PlanHeader(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a plan was made of. Times are in ns since 1970. ``rehearsed``: ``now_ns`` was given, so
    that it cannot be carried out."""

    made_ns: int
    now_ns: int
    host: str = ""
    by: str = ""
    policy_path: str = ""
    policy_sha256: str = ""
    policy: dict[str, Any] = {}
    roots: list[PlannedRoot] = []
    rules: list[PlannedRule] = []
    rehearsed: bool = False


class RootSeen(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a walk of a root has seen. ``others``: mounts that were not entered. ``failed``: what
    could not be read, of which the first are ``failures``, each with its reason."""

    entries: int = 0
    bytes: int = 0
    folders: int = 0
    others: int = 0
    vanished: int = 0
    failed: int = 0
    failures: list[str] = []


class PlanEnd(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The totals of a plan. ``taken`` entries of ``bytes`` on the disk are to be removed, which
    frees ``freed``: an inode with several names counts once, and only if all names are taken.
    ``seen``: of each root. ``sums`` and ``notes``: what the rules say."""

    taken: int = 0
    bytes: int = 0
    freed: int = 0
    batches: int = 0
    seen: list[RootSeen] = []
    sums: Any = None
    notes: list[str] = []
    sha256: str = field(default="")


# ---- writing and reading -------------------------------------------------------------------------


class PlanWriter:
    """A plan that is being written, under another name until it is whole."""

    def __init__(self, path: Path, header: PlanHeader) -> None:
        self.path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self._file = os.fdopen(open_descriptor(self._part, how, 0o600), "wb")
        self._hash = hashlib.sha256()
        self.batches = 0
        self._write(FORM + msgspec.json.encode(header) + b"\n")

    def _write(self, data: bytes) -> None:
        self._hash.update(data)
        self._file.write(data)

    def write(self, batch: Batch) -> None:
        batch.number = self.batches
        self.batches += 1
        self._write(batch.block())

    def close(self, end: PlanEnd) -> None:
        """Write the end, and give the plan its name when it is on the disk itself."""
        where = self._file.tell()
        end = msgspec.structs.replace(end, batches=self.batches, sha256=self._hash.hexdigest())
        text = msgspec.json.encode(end)
        head = np.array([(END, 0, 0, 0, len(text), 0)], dtype=_HEAD)
        self._file.write(head.tobytes() + text + where.to_bytes(8, "little"))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.rename(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._file.close()
        if kind is not None:
            with contextlib.suppress(OSError):
                self._part.unlink()  # plain: a file that this process made beside its plan


class Plan:
    """A plan that is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        try:
            self.header, self._first = self._read_header()
            self._end_at, self.end = self._read_end()
        except BaseException:
            self._file.close()
            raise

    def _read_header(self) -> tuple[PlanHeader, int]:
        if self._file.read(len(FORM)) != FORM:
            raise UsageError(f"{self.path}: is no plan of `seatrial purge plan`")
        line = self._file.readline(_LONGEST_HEADER)
        try:
            return decoder(PlanHeader).decode(line), len(FORM) + len(line)
        except DAMAGED as error:
            raise self._damaged() from error

    def _read_end(self) -> tuple[int, PlanEnd]:
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - 8))
        where = int.from_bytes(self._file.read(8), "little")
        if not self._first <= where < size:
            raise self._damaged()
        self._file.seek(where)
        try:
            text = read_block(self._file)
            if isinstance(text, bytes):
                return where, decoder(PlanEnd).decode(text)
        except (BlockDamaged, *DAMAGED):
            pass
        raise self._damaged()

    def _damaged(self) -> UsageError:
        return UsageError(
            f"{self.path}: the plan is damaged or was cut off; make it again: `seatrial purge plan`"
        )

    def batches(self) -> Iterator[Batch]:
        """Yield its batches, one at a time. Raises UsageError where it is damaged."""
        self._file.seek(self._first)
        while self._file.tell() < self._end_at:
            try:
                batch = read_block(self._file)
            except BlockDamaged as error:
                raise self._damaged() from error
            if not isinstance(batch, Batch) or batch.root >= len(self.header.roots):
                raise self._damaged()
            yield batch

    def require_whole(self) -> None:
        """Read all of it. Raises UsageError where it is not what was written, or where another user
        can have written it."""
        origin = origin_of(self._file.fileno(), self.path)
        if origin.stranger:
            raise UsageError(f"{origin.stranger}; what it names is not removed for others")
        self.require_unchanged()

    def require_unchanged(self) -> None:
        """Read all of it. Raises UsageError where it is not what was written, by its SHA-256."""
        self._file.seek(0)
        found = hashlib.sha256()
        left = self._end_at
        while left and (data := self._file.read(min(left, _HASHED_AT_ONCE))):
            found.update(data)
            left -= len(data)
        if found.hexdigest() != self.end.sha256:
            raise self._damaged()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def open_plan(path: Path) -> Plan:
    """Open a plan. Raises UsageError for what is none, or is damaged."""
    return Plan(path)


def create_plan(path: Path, header: PlanHeader) -> PlanWriter:
    """Begin a plan, which appears when its end is written. Raises OSError."""
    return PlanWriter(path, header)


# ---- where plans are -----------------------------------------------------------------------------


def plans_folder(trials: Path) -> Path:
    """Return the folder of plans, in that of the trials."""
    return trials / ".purges"


def plan_path(trials: Path, text: str) -> Path:
    """Return the plan that a text names: by its name in the folder of plans, or by its path."""
    named = plans_folder(trials) / text
    return named if text and "/" not in text and named.is_file() else Path(text)


def new_plan(trials: Path, text: str, policy: Path) -> Path:
    """Return where a new plan goes: to a path with a slash, or under a name to the folder of
    plans, which is made if it is missing. Raises OSError."""
    if "/" in text:
        return Path(text)
    make_folder(plans_folder(trials), 0o700)
    return plans_folder(trials) / (text or f"{policy.stem}-{datetime.now():%Y%m%d-%H%M%S}")
