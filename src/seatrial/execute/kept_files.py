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
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.files import open_descriptor, opened_folder
from seatrial.model.codes import LOST, PASS, Code
from seatrial.model.machine import Machine
from seatrial.model.run_settings import JOB_STATS_FILE
from seatrial.model.suite import PATTERN_FILE
from seatrial.model.task_placement import COUNTED_FILE
from seatrial.model.test import Case, Keep, KeepWord

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
        for file in _matching(folder, rule):
            files, size = files + 1, size + file.size
            if len(names) < MAX_NAMES:
                names.append(file.name)
    return RemovedFiles(files, size, sorted(names))


def remove(path: Path, rule: RemovalRule) -> None:
    """Remove what a rule removes of the run in this directory, and folders that are empty then.
    Raises OSError."""
    with opened_folder(path) as folder:
        for file in _matching(folder, rule):
            with contextlib.suppress(FileNotFoundError):
                if file.name in OUTPUTS and rule.tail:
                    _keep_tail(folder, file.name, rule.tail)
                os.unlink(file.base, dir_fd=file.folder)
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
    for file in _files(folder, "", MAX_DEPTH):
        if removes(rule, file.name, file.size):
            yield file


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
        about = os.fstat(source)
        data = os.pread(source, limit, max(0, about.st_size - limit))
        mode = stat.S_IMODE(about.st_mode)
    finally:
        os.close(source)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name + TAIL, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    target = open_descriptor(name + TAIL, flags, mode, at=folder)
    with os.fdopen(target, "wb") as file:
        file.write(data)


# ---- file use ------------------------------------------------------------------------------------
#
# The parts of a job script that look at the files of a run, and that tell the number of its job.
#
# ``file_use.sh`` runs on each node of the run beside the script of the test: it reads /proc, and
# the number of locks of the node's Lustre client. What file servers counted for the job, the
# driver asks after its end (``execute/background.py``).


FILE_USE_SCRIPT = "file_use.sh"
"""Its name in the folder of a trial in which jobs tell facts."""

# Counters of a job that runs share are those of none. With PBS, the other nodes are not reached.
_NUMBER = f"""\
if [ -z "${{_together-}}" ]; then
  printf 'job %s\\n' "${{SLURM_JOB_ID-${{PBS_JOBID-}}}}" >| {JOB_STATS_FILE}
fi
"""

_LOOKS = """\
_words=(bash "$_told/%s" "$SEATRIAL_RUN" "$_run" %d %s)
_looks=
if [ "$NODES" -gt 1 ] && [ -n "${SLURM_JOB_ID-}" ] && [ -z "${_together-}" ]; then
  _words=(srun --overlap --quiet --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 --mem=0 \\
    --cpu-bind=none --input=none "${_words[@]}")
fi
if [ "$NODES" -eq 1 ] || [ "${_words[0]}" = srun ]; then
  env -u SEATRIAL_RUN "${_words[@]}" < /dev/null > /dev/null 2>&1 &
  _looks=$!
  disown
fi
"""

_END_OF_LOOKS = '[ -z "$_looks" ] || kill "$_looks" 2> /dev/null\n'


def file_use_script() -> str:
    """Return the script that looks at the files of a run on a node."""
    return Path(__file__).with_name(FILE_USE_SCRIPT).read_text()


def before_script(machine: Machine, case: Case) -> str:
    """Return bash that tells the number of the job and begins to look, as the machine asks."""
    about = machine.file_use
    if about is None:
        return ""
    number = _NUMBER if about.job_stats else ""
    if not about.every.seconds:
        return number
    paths = about.paths or [each.path for each in machine.file_systems.values()]
    words = " ".join(map(shell_word, paths))
    return number + _LOOKS % (FILE_USE_SCRIPT, max(1, round(about.every.seconds)), words)


def after_script(machine: Machine) -> str:
    """Return bash that ends the looks."""
    return _END_OF_LOOKS if machine.file_use and machine.file_use.every.seconds else ""


# ---- checksums -----------------------------------------------------------------------------------
#
# Checksums of what a run wrote, by which `seatrial report verify` finds later changes.


MAX_BYTES: Final = 16 << 30  # of a file whose checksum is made
CHUNK: Final = 1 << 20
OF_NOTHING: Final = hashlib.sha256().hexdigest()


def sizes_of(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Return the bytes of those files of a run that are there and are regular ones."""
    sizes = {}
    start = f"{folder}/"
    for name in names:
        try:
            status = os.stat(start + name)  # noqa: PTH116
        except (OSError, ValueError):  # ValueError: a NUL in the name
            continue
        if stat.S_ISREG(status.st_mode):
            sizes[name] = status.st_size
    return sizes


def checksums(
    folder: Path, sizes: Mapping[str, int], limits: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Return the SHA-256 of files of a run, in hexadecimal by their names: "" for one that is too
    large, also by its own of the ``limits``, none for one that cannot be read. Empty files are not
    opened."""
    sums = {}
    for name, size in sizes.items():
        if limits and size > limits.get(name, MAX_BYTES):
            sums[name] = ""
            continue
        try:
            sums[name] = checksum(f"{folder}/{name}") if size else OF_NOTHING
        except OSError:
            continue
    return sums


def changed_file(folder: Path, sums: Mapping[str, str], names: Iterable[str]) -> str:
    """Return which of these files of a run is there and is not as its checksum says; "" where none
    is."""
    for name in names:
        if sums.get(name):
            now = checksums(folder, sizes_of(folder, [name]))
            if now.get(name, sums[name]) != sums[name]:
                return name
    return ""


def checksum(path: str) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal; "" for one that is too large. Bytes
    that are appended meanwhile do not count. Raises OSError, and ValueError for an impossible
    name."""
    descriptor = open_descriptor(path, os.O_RDONLY)
    try:
        left = os.fstat(descriptor).st_size
        if not left:
            return OF_NOTHING
        if left > MAX_BYTES:
            return ""
        summed = hashlib.sha256()
        while left and (data := os.read(descriptor, min(left, CHUNK))):
            summed.update(data)
            left -= len(data)
        return summed.hexdigest()
    finally:
        os.close(descriptor)
