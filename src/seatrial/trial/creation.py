"""Creates the folder of a trial: its record, its cases and its scripts."""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from seatrial.decoding import encode
from seatrial.errors import TrialError, UsageError
from seatrial.files import (
    make_folder,
    read_regular,
    remove_file,
    remove_tree,
    replace_file,
    sync_folder,
    write_durably,
)
from seatrial.lazy import regex
from seatrial.runs.environment import write_script
from seatrial.runs.file_use import FILE_USE_SCRIPT, file_use_script
from seatrial.runs.hung_processes import HUNG_SCRIPT, hung_script
from seatrial.runs.job_facts import FACTS_SCRIPT, facts_script
from seatrial.suite.model import Case
from seatrial.trial.folder import TrialFolder
from seatrial.trial.outcome import remedy
from seatrial.trial.paths import require_plain
from seatrial.trial.record import Record

MAKING_SECONDS = 86_400.0  # that the making of a trial can take
_MAKING = ".making-"

_TAG = regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def create(trials: Path, record: Record, cases: Iterable[Case]) -> TrialFolder:
    """Create the folder of a trial, complete or not at all. Raises UsageError for a tag that exists
    or cannot be the name of a folder, TrialError where the folder cannot be created."""
    if not _TAG.fullmatch(record.tag):
        raise UsageError(f"--name {record.tag!r}: a tag is letters, digits, ._+- (at most 100)")
    folder = TrialFolder(trials / record.tag)
    require_plain(folder.path)
    first = not trials.exists()
    making = trials.absolute() / f"{_MAKING}{record.tag}-{os.uname().nodename}-{os.getpid()}"
    is_made = False
    _remove_left(trials)
    try:
        make_folder(making)
        lines = msgspec.json.Encoder().encode_lines(cases)
        digest = hashlib.sha256(lines).hexdigest()
        record = replace(record, cases_bytes=len(lines), cases_sha256=digest)
        pretty = msgspec.json.format(encode(record), indent=2)
        write_durably(making / "trial.json", pretty + b"\n")
        write_durably(making / "cases.jsonl", lines)
        for name in ("builds", "runs", "scripts", "submissions"):
            make_folder(making / name)
        write_scripts(TrialFolder(making), record)
        sync_folder(making)
        making.rename(folder.path)
        is_made = True
        sync_folder(trials)
        if first:
            sync_folder(trials.absolute().parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_tree(making)
        if isinstance(error, UnicodeEncodeError):
            raise UsageError(
                f"{error.object[:200]!r}: the path is not UTF-8 and cannot be recorded; rename it"
            ) from error
        if not isinstance(error, OSError):
            raise
        if is_made:
            raise TrialError(
                f"{folder.path}: the trial is there, and a crash of this host could lose it: "
                f"{error.strerror}; {remedy(error)}, then resume it"
            ) from error
        if folder.path.exists():
            raise UsageError(
                f"{folder.path}: a trial of this tag exists; choose another"
            ) from error
        raise TrialError(
            f"{folder.path}: the trial cannot be created: {error.strerror}; "
            f"{remedy(error)}, or name another place with --trials"
        ) from error
    return folder


def _remove_left(trials: Path) -> None:
    """Remove folders of trials whose making was killed: by a process of this host that is gone, or
    a day ago, as processes of other hosts cannot be seen."""
    for path in trials.glob(f"{_MAKING}*"):
        before, _, number = path.name.rpartition("-")
        with contextlib.suppress(OSError):
            here = before.endswith(f"-{os.uname().nodename}") and number.isdecimal()
            dead = here and not Path(f"/proc/{number}").exists()
            if dead or path.lstat().st_mtime < time.time() - MAKING_SECONDS:
                remove_tree(path)


def write_scripts(folder: TrialFolder, record: Record) -> None:
    """Write the run scripts of all tests that are not there whole, so that they are on the disk
    itself where jobs run elsewhere; and the scripts that tell what jobs found, what hung runs
    wait in, and what files runs hold open. Raises OSError."""
    make_folder(folder.facts)
    scripts = {FACTS_SCRIPT: facts_script(), HUNG_SCRIPT: hung_script()}
    if record.machine.file_use is not None:
        scripts[FILE_USE_SCRIPT] = file_use_script()
    for name, text in scripts.items():  # jobs may read them at this moment
        replace_file(folder.facts / name, text.encode())
    for test in record.tests.values():
        if test.only_builds:
            continue
        text = test.run.script.rstrip("\n") + "\n"
        script = folder.script(test.name)
        if _holds(script, text.encode()):
            continue
        part = script.with_name(f".{script.name}.part")  # a job may start at this moment
        remove_file(part, missing_ok=True)
        if record.machine.jobs_run_elsewhere:
            write_durably(part, text.encode())
        else:
            write_script(part, text)
        part.rename(script)
    if record.machine.jobs_run_elsewhere:
        sync_folder(folder.path / "scripts")


def _holds(script: Path, data: bytes) -> bool:
    try:
        return read_regular(script, len(data), follow=False) == data
    except OSError:
        return False
