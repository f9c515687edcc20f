"""Results of another tool, before they become a trial.

    run = ImportedRun(test="osu/latency", id="1612137600.12", time=now, code=0)
    run.figures = [ImportedFigure("latency", 1.93, "us", "lower")]

Each reader (``oth/results.py``, ``csv_results.py``, ...) returns them with notes on what it could
not bring; ``imported_trial.py`` writes them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.batch.scheduler_client import ACTIVE, ENDED
from seatrial.judge.check_tests import check_judging
from seatrial.judge.references import Reference
from seatrial.model import codes
from seatrial.model.file_model import Scalar
from seatrial.model.suite import load
from seatrial.units import SECOND_NS, listed

# ---- notes ---------------------------------------------------------------------------------------
#
# What an import did not carry over, with its place.


class ImportNote(NamedTuple):
    """A remark on a line (0: the file as a whole) of a file that was imported. What was not carried
    over is ``lost``; else a person should know how it was."""

    path: Path
    line: int
    text: str
    lost: bool = True

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


def by_text(notes: Iterable[ImportNote]) -> list[tuple[str, list[ImportNote]]]:
    """Return the texts of notes, each with its notes in the order of their places: what was lost
    first, of these the most frequent first."""
    texts: dict[tuple[bool, str], set[ImportNote]] = {}
    for note in notes:
        texts.setdefault((not note.lost, note.text), set()).add(note)
    ordered = sorted(texts.items(), key=lambda item: (item[0][0], -len(item[1])))
    return [(text, sorted(same)) for (_, text), same in ordered]


def faults_of_test(folder: Path) -> str:
    """Return the first fault of a test that an import wrote, "" if it loads."""
    try:
        suite = load([folder])
        check_judging(suite)
        suite.require_sound()
    except SeatrialError as error:
        return str(error).replace(f"{folder}/", "").partition("\n")[0]
    return ""


# ---- results -------------------------------------------------------------------------------------


class ImportedFigure(NamedTuple):
    """A figure of merit. ``better`` is ``higher``, ``lower`` or ``none``."""

    name: str
    value: float
    unit: str = "1"
    better: str = "none"


class ImportedRun(Struct, kw_only=True, gc=False):
    """A run of another tool. Times are in ns since the epoch; None: the tool does not know."""

    test: str
    #: What the tool calls the run; unique among the runs of the test.
    id: str
    #: The first time that the tool knows.
    time: int
    #: The number of the verdict.
    code: int
    app: str = ""
    parameters: dict[str, Scalar] = {}
    toolchain: str = ""
    #: Numbers of nodes, tasks and threads of each task; 0: not known.
    nodes: int = 0
    tasks: int = 0
    threads: int = 0
    queued: int | None = None
    started: int | None = None
    ended: int | None = None
    judged: int | None = None
    reason: str = ""
    cause: str = ""
    exit_code: int | None = None
    job_id: str = ""
    #: The names of its nodes, folded.
    hosts: str = ""
    #: The directory of what it wrote, "" if there is none.
    path: str = ""
    figures: list[ImportedFigure] = []
    #: The file that has the result, and the line behind a colon.
    place: str = ""


class ImportedResults(NamedTuple):
    """What a reader found: the runs, what it could not bring, and what the other tool expected of
    their figures. ``machine`` is the name that the results give themselves, "" for none."""

    runs: list[ImportedRun]
    notes: list[ImportNote]
    machine: str
    references: Sequence[Reference] = ()


def note_on(run: ImportedRun, text: str, lost: bool = True) -> ImportNote:
    """Return a note on the line that has a result."""
    path, _, line = run.place.rpartition(":")
    at = (Path(path), int(line)) if line.isdigit() else (Path(run.place), 0)
    return ImportNote(*at, text, lost)


def machine_among(root: Path, word: str, results: Counter[str], chosen: str) -> str:
    """Return the machine whose results below ``root`` are imported, "" if nothing tells it.

    ``results``: their number for each machine; ``word``: what the tool calls machines. Raises
    UsageError if there are several machines and none of them is ``chosen``.
    """
    if len(results) > 1 and chosen not in results:
        names = [f"{name} ({number})" for name, number in results.most_common()]
        raise UsageError(
            f"{root}: has results of several {word}, {listed(names, 5)}; choose one with --machine"
        )
    return chosen or next(iter(results), "")


# ---- times ---------------------------------------------------------------------------------------
#
# Read times as other tools write them.


EARLIEST_S, LATEST_S = 1e8, 4e9  # seconds since the epoch: from 1973 to 2096
MILLI, MICRO, NANO = 1e3, 1e6, 1e9


def time_of(text: str) -> int:
    """Return a time in ns since the epoch. ``text`` is a date, ``2026-11-20``, ``2026/11/20`` or
    ``2026.11.20``, perhaps with a time, ``14:03:05.25``, and a zone, ``Z``, ``UTC``, ``+01:00`` or
    ``+0100`` (that of this host if it has none); or ISO 8601 without hyphens; or a number of
    seconds, milliseconds, microseconds or nanoseconds since the epoch. Raises ValueError."""
    written = text.strip()
    try:
        number = float(written)
    except ValueError:
        pass
    else:
        for unit in (1.0, MILLI, MICRO, NANO):
            if EARLIEST_S <= number / unit < LATEST_S and not _is_day(written):
                return _exact_ns(written, number, unit)
    try:
        moment = datetime.fromisoformat(_iso(written)).astimezone()
    except (ValueError, OverflowError):
        example = "write 2026-11-20T14:03:05, or seconds since 1970"
        raise ValueError(f"{written[:40]!r} is no time; {example}") from None
    return int(moment.timestamp()) * SECOND_NS + moment.microsecond * 1000


_DATE = re.compile(
    r"(\d{4})([-./])(\d{1,2})\2(\d{1,2})"
    r"(?:(?:[T ] *)(\d{1,2}):(\d{2})(?::(\d{2}(?:[.,]\d{1,9})?))?)?"
    r" *(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII | re.IGNORECASE,
)


def _iso(written: str) -> str:
    """Return a time with separators as ISO 8601 has it; any other text as it is."""
    if (match := _DATE.fullmatch(written)) is None:
        return written
    year, _, month, day, hour, minute, second, zone = match.groups(default="")
    time = f"T{hour or 0:0>2}:{minute or '00'}:{second or '00'}"
    utc = "+00:00" if zone.isalpha() else zone
    return f"{year}-{month:0>2}-{day:0>2}{time}{utc}"


def _is_day(written: str) -> bool:
    """Return whether a number is a day without hyphens, such as 20261120."""
    return len(written) == len("20261120") and written.isdecimal()


def _exact_ns(written: str, number: float, unit: float) -> int:
    scale = round(SECOND_NS / unit)
    return int(written) * scale if written.isdecimal() else round(number * scale)


# ---- verdict words -------------------------------------------------------------------------------
#
# The words by which other tools say how a run ended.


_WORDS: dict[codes.Code, tuple[str, ...]] = {
    codes.PASS: ("pass", "passed", "ok", "success", "succeeded", "good", "true", "done", "0"),
    codes.FAILED: ("fail", "failed", "failure", "error", "bad", "false", "aborted", "1"),
    codes.WRONG_ANSWER: ("wrong", "sanity", "incorrect", "2"),
    codes.PERFORMANCE: ("perf", "slow", "5"),
    codes.NODE_FAILURE: ("node_fail", "node fail", "9"),
    codes.CANCELLED: ("canceled", "cancelled", "21"),
    codes.TIMEOUT: ("timeout", "timed out", "timedout", "time limit", "23"),
    codes.OUT_OF_MEMORY: ("oom", "out_of_memory"),
}
_CODES = {word: code for code, words in _WORDS.items() for word in words} | {
    code.name: code for code in codes.CODES.values()
}


def code_of_word(text: str) -> codes.Code | None:
    """Return the verdict that a word stands for, in any case of letters: a name of a verdict, a
    number of the OLCF Test Harness, a usual word, or a state of Slurm's jobs, such as ``CANCELLED
    by 1000``. None for another one."""
    if code := _CODES.get(text.strip().lower()):
        return code
    state = _state_of(text)
    number = ENDED.get(state)
    if number is not None:
        return codes.code_of(number)
    return {"COMPLETED": codes.PASS, "FAILED": codes.FAILED}.get(state)


def is_not_over(text: str) -> bool:
    """Return whether a word is a state of a job of Slurm that has not ended."""
    return _state_of(text) in ACTIVE


def _state_of(text: str) -> str:
    """Return a state as Slurm prints it, without who made it; of other words all of them."""
    return re.sub(r"(?i) by \w+$", "", text.strip()).upper()
