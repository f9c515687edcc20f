"""The directory of a run: prepared before the run is submitted, read after it has ended."""

import contextlib
import errno
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import shell_word
from seatrial.execute.environment import ENVIRONMENT, write_script
from seatrial.files import (
    SAFE_FOLDER,
    close_to_others,
    make_folder,
    open_descriptor,
    opened_folder,
    remove_tree,
)
from seatrial.journal.encoding import decode
from seatrial.journal.events import CompatStarted, Event, JobsOwnEvent, ScriptEnded, ScriptStarted
from seatrial.model.build import name_of
from seatrial.model.file_model import DAMAGED
from seatrial.model.run_settings import DIRECTORY_FILE
from seatrial.model.test import Case, Input, Test
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


E = TypeVar("E", bound=Event)


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
            here = os.stat(f"{path}/{name}").st_size  # noqa: PTH116
        except OSError:
            here = 0
        if here < size:
            return f"{name} has {here} bytes here and had {size} when the script ended"
    return ""


class JobEvents(Struct, frozen=True):
    """The events that a job wrote: the first start and the last end of its script, None where there
    is none: its own script writes first and last."""

    #: Whether the job has claimed its directory.
    claimed: bool
    start: ScriptStarted | None
    end: ScriptEnded | None
    #: How its nodes answered, of a compat job.
    compat: CompatStarted | None = None
    #: The names of other events in its file, which a driver alone may write.
    refused: tuple[str, ...] = ()
    #: Which file is shorter here than it was there, in words; "" if none is.
    cut: str = ""

    def __iter__(self) -> Iterator[JobsOwnEvent]:
        """Yield the events, in their order."""
        yield from filter(None, (self.compat, self.start, self.end))

    @property
    def exit_code(self) -> int | None:
        return self.end.exit_code if self.end else None

    @property
    def elapsed(self) -> float | None:
        """Seconds from the start of its script to the end; None where one of them is missing."""
        if self.start is None or self.end is None or self.end.time < self.start.time:
            return None
        return (self.end.time - self.start.time) / SECOND_NS


NO_EVENTS = JobEvents(claimed=False, start=None, end=None)
"""Those of a run that had no job."""


def job_events(path: Path) -> JobEvents:
    """Read the events of a job; skip lines that are torn or no events of a job. A start with an
    impossible time is skipped, an end with one gets the present time. Of events that only a driver
    may write the names are told."""
    try:
        descriptor = open_descriptor(f"{path}/events.jsonl", os.O_RDONLY)
    except OSError as error:
        return JobEvents(error.errno == errno.EINVAL, None, None)  # what is no file claims it, too
    try:
        data = _bounded_data(descriptor)
    finally:
        os.close(descriptor)
    return _events_in(data, time.time_ns())


def _events_in(data: bytes, now: int) -> JobEvents:
    decoded = list(_decoded(data))
    starts, compat = _of_kind(decoded, ScriptStarted), _of_kind(decoded, CompatStarted)
    ends = [end for end in _of_kind(decoded, ScriptEnded) if end.exit_code in range(256)]
    refused = dict.fromkeys(e.name[:64] for e in decoded if not isinstance(e, JobsOwnEvent))
    refused.pop("", None)
    return JobEvents(
        True,
        _bounded(starts[0]) if starts and _is_likely(starts[0], now) else None,
        _bounded_end(ends[-1], now) if ends else None,
        next((_bounded_answer(event) for event in compat if _is_likely(event, now)), None),
        tuple(refused)[:MAX_REFUSED],
    )


def _of_kind(decoded: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in decoded if isinstance(event, kind)]


def _is_likely(event: Event, now: int) -> bool:
    """Return whether the time of an event may be right."""
    return now - _OLDEST_NS < event.time < now + _AHEAD_NS


def _decoded(data: bytes) -> Iterator[Event]:
    """Yield the events of lines, without lines that are torn or no events."""
    for line in filter(None, data.split(b"\n")):
        try:
            event = decode(line)
        except DAMAGED:
            continue
        yield event


def _bounded_data(descriptor: int) -> bytes:
    """Return the first and the last bytes of a file of events; none where it cannot be read."""
    try:
        data = os.pread(descriptor, EVENTS_LIMIT, 0)
        size = os.fstat(descriptor).st_size
        if size > EVENTS_LIMIT:  # the job itself wrote more; the end of its script is last
            data += b"\n" + os.pread(descriptor, EVENTS_LIMIT, size - EVENTS_LIMIT)
    except OSError:
        return b""
    return data.removesuffix(_FILLED) + b"}" if data.endswith(_FILLED) else data


def _bounded_answer(event: CompatStarted) -> CompatStarted:
    """Return a copy of what is known of the nodes of a compat job, with texts of usual lengths."""
    missing, text = event.missing[:TEXT_LIMIT], event.text[:TEXT_LIMIT]
    return replace(event, mode=event.mode[:64], missing=missing, text=text)


def _bounded_end(event: ScriptEnded, now: int) -> ScriptEnded:
    """Return a copy of an end, at the present time if its own cannot be right, with so many sizes
    of files at most."""
    sizes = islice((event.sizes or {}).items(), MAX_SIZES)
    return ScriptEnded(
        time=event.time if _is_likely(event, now) else now,
        exit_code=event.exit_code,
        job_id=event.job_id[:64],
        sizes={name[:255]: size for name, size in sizes} or None,
        unwritten=event.unwritten,
    )


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


# ---- working directory ---------------------------------------------------------------------------
#
# The directory in which the script of a run works, where its test asks for one by ``directory``:
#
#     PATH/seatrial-UID/TRIAL+RUN/
#
# The job makes it, so that it may be on a disk or in the memory of the job's own node. Inputs are
# copied to it; what the checks and metrics of the test read is copied to the run directory when
# the script has ended; then it is removed. A job that is killed leaves it: the driver removes it
# where it sees it, and else the next run there by the same user on that node.


def working_directory(case: Case, trial: str, run_id: str) -> Path | None:
    """Return the directory in which the script of a run works; None for the run directory."""
    if not case.settings.directory:
        return None
    return Path(case.settings.directory) / f"seatrial-{os.getuid()}" / f"{trial}+{run_id}"


def make_lines(directory: Path | None) -> str:
    """Return bash that makes the directory, and tells its file system or why it is not made."""
    return _MAKE % shell_word(str(directory)) if directory else ""


def fill_lines(directory: Path | None) -> str:
    """Return bash that copies the inputs of the run to its directory."""
    return _FILL if directory else ""


def enter_lines(directory: Path | None) -> str:
    """Return bash that changes to the directory, or ends the script where it was not made."""
    return _ENTER if directory else ""


def leave_lines(directory: Path | None, files: Sequence[str]) -> str:
    """Return bash that copies files to the run directory, and removes the directory."""
    return _LEAVE % " ".join(map(shell_word, files)) if directory else ""


def remove(directory: Path) -> None:
    """Remove what a killed job left of its directory, if the folder above is this user's own."""
    with contextlib.suppress(OSError):
        above = directory.parent.lstat()
        if stat.S_ISDIR(above.st_mode) and above.st_uid == os.getuid():
            with contextlib.suppress(OSError), opened_folder(directory.parent) as folder:
                remove_tree(directory.name, at=folder)
            directory.parent.rmdir()  # plain: an empty folder alone, where no other run is there


# The file .seatrial names the job's process. It fills a block, so that a full file system is
# noticed here. A run that ends may remove the empty folder above just as this one makes its own, so
# mkdir tries again. Another user may have a directory or a link of our name where all may write.
_MAKE = rf"""
_work=%s
seatrial_directory() {{
  local top=${{_work%%/*}} host=$HOSTNAME own each there pid
  [ -d "${{top%%/*}}" ] || {{ echo "${{top%%/*}}: No such directory"; return 1; }}
  [ ! -L "$top" ] || {{ echo "$top is a link"; return 1; }}
  read -r host < /proc/sys/kernel/hostname
  own="$host:$(readlink /proc/self/ns/pid)"
  for each in "$top"/*/.seatrial; do
    read -r there pid < "$each" && [ "$there" = "$own" ] && [ ! -e "/proc/$pid" ] \
      && rm -rf -- "${{each%%/*}}"
  done 2> /dev/null
  rm -rf -- "$_work" || return
  (umask 077 && for _ in 1 2 3; do mkdir -p -- "$_work" && exit; done; exit 1) || return
  [ -O "$top" ] || {{ rm -rf -- "$_work"; echo "$top is another user's"; return 1; }}
  printf '%%s %%s%%4096s\n' "$own" "$$" '' 2>&1 > "$_work/.seatrial" || return
  if [ "$NODES" -gt 1 ] && [ -n "${{SLURM_JOB_ID-}}" ]; then
    timeout -k 5 60 srun --overlap --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 \
      test -d "$_work" > /dev/null 2>&1 || {{ echo 'not all nodes of the job see it'; return 1; }}
  fi
  df -B1 --output=fstype,avail,target -- "$_work" | tail -n 1 >| "$_run/{DIRECTORY_FILE}"
}}
_unmade=
_said=$(seatrial_directory 2>&1) || _unmade=${{_said:-unknown}}
"""

# Inputs that are links stay links.
_FILL = rf"""
seatrial_inputs() {{
  local each files=()
  for each in "$_run"/*; do
    case ${{each##*/}} in
      stdout | stderr | events.jsonl | job.sh | job.environment | *.part) ;;
      {DIRECTORY_FILE} | stripes.txt | placement.txt) ;;
      *) files+=("$each") ;;
    esac
  done
  [ ${{#files[@]}} -eq 0 ] || cp -a -- "${{files[@]}}" "$_work/" 2>&1
}}
[ -n "$_unmade" ] || _said=$(seatrial_inputs) || _unmade=${{_said:-unknown}}
[ -z "$_unmade" ] || echo "failed: ${{_unmade##*$'\n'}}" >| "$_run/{DIRECTORY_FILE}"
"""

_ENTER = """\
[ -z "$_unmade" ] || { echo "seatrial: $_work could not be made" >&2; exit 1; }
cd -- "$_work" || exit
"""

_LEAVE = r"""
for _file in %s; do
  case /$_file/ in //* | */../*) continue ;; esac
  if [ -f "$_work/$_file" ] && [ ! -L "$_work/$_file" ]; then
    [ "$_file" = "${_file##*/}" ] || mkdir -p -- "$_run/${_file%%/*}"
    cp --remove-destination -- "$_work/$_file" "$_run/$_file"
  fi
done
if [ -O "${_work%%/*}" ] && [ ! -L "${_work%%/*}" ]; then
  rm -rf -- "$_work"
  rmdir -- "${_work%%/*}" 2> /dev/null
fi
"""
