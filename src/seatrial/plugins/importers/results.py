"""Results of another tool, and the trial that is made of them.

    run = ImportedRun(test="osu/latency", id="1612137600.12", time=now, code=0)
    run.figures = [ImportedFigure("latency", 1.93, "us", "lower")]
    made = make_trial(trials, "oth-2021", source, results)
    made.folder, made.new, made.known

Each reader (``oth_results.py``, ``table_results.py``, ...) returns results with notes on what it
could not bring. The trial is as any other, in the state ``imported``: record, cases, a journal. So
all that shows or compares runs works on it, and the store can be rebuilt. Nothing of it runs. A
result that another imported trial has already is left out.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import JournalError, SeatrialError, TrialError, UsageError
from seatrial.execute.batch.scheduler_client import ACTIVE, ENDED
from seatrial.execute.creation import create, record_from_elsewhere
from seatrial.execute.trial_folder import ImportedFrom, TrialFolder
from seatrial.execute.trial_paths import tags
from seatrial.journal import events
from seatrial.journal.journal import Journal, read
from seatrial.judge.check_tests import check_judging
from seatrial.judge.references import Reference
from seatrial.model import codes
from seatrial.model.expand import case_id
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import run_id_of
from seatrial.model.suite import load
from seatrial.model.test import Case, Test
from seatrial.units import SECOND_NS, count, listed, show_number

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


# ---- the trial -----------------------------------------------------------------------------------


class ImportSource(NamedTuple):
    """Where results are from: the tool, its file or folder, the machine, and who brings them."""

    tool: str
    file: Path
    machine: str
    by: str


class MadeTrial(NamedTuple):
    """A trial of imported results. ``runs`` are those that are new; ``known`` counts results that
    other trials have, by their tags; ``notes`` are about results that are there twice."""

    folder: TrialFolder
    runs: list[ImportedRun]
    known: Counter[str]
    notes: list[ImportNote]


class _KnownRun(msgspec.Struct):
    """A result that a trial has: the trial's tag, its verdict, its figures."""

    tag: str
    code: int = 0
    figures: dict[str, float | None] = {}


def make_trial(trials: Path, tag: str, source: ImportSource, results: ImportedResults) -> MadeTrial:
    """Make the trial ``tag`` of all results that no imported trial has. Raises UsageError where
    none is new, or where a trial has this tag."""
    once, notes = _once(results.runs, source)
    there = _there(trials, source, once)
    notes += [
        note_on(once[run_id], _other_values_in(known.tag, source))
        for run_id, known in there.items()
        if _difference(once[run_id], known)
    ]
    counts = Counter(known.tag for known in there.values())
    new = {run_id: run for run_id, run in once.items() if run_id not in there}
    if not new:
        raise UsageError(f"{source.file}: {_nothing_new(once, there, counts, source)}")
    return MadeTrial(_make(trials, tag, source, results, new), list(new.values()), counts, notes)


def _nothing_new(
    once: Mapping[str, ImportedRun],
    there: Mapping[str, _KnownRun],
    counts: Counter[str],
    source: ImportSource,
) -> str:
    """Return why no trial is made of results that other trials have."""
    where = ", ".join(f"{number} in {other}" for other, number in counts.items())
    text = f"its results were all imported before ({where}); nothing was made"
    differ = {run_id: _difference(once[run_id], known) for run_id, known in there.items()}
    differing = [run_id for run_id, said in differ.items() if said]
    if not differing:
        return text
    first = differing[0]
    said = f"{count(len(differing), 'time')} {_other_values_in(there[first].tag, source)}"
    return f"{text}\n{said}\n{once[first].place}: {differ[first]}"


def _other_values_in(tag: str, source: ImportSource) -> str:
    if source.tool != "CSV":
        return f"{tag} has the same result with other values: left out"
    remedy = "--id names a column that tells them apart"
    return f"{tag} has a result of the same case and time with other values: left out; {remedy}"


def _difference(run: ImportedRun, known: _KnownRun) -> str:
    """Return the first difference of a result from the one that is known; "" if there is none."""
    if run.code != known.code:
        return f"{codes.code_of(run.code).name} here, {codes.code_of(known.code).name} there"
    here = {figure.name: figure.value for figure in run.figures}
    for name in sorted(here.keys() | known.figures.keys()):
        if (value := here.get(name)) != (before := known.figures.get(name)):
            return (
                f"{name} {show_number(value) or 'none'} here, {show_number(before) or 'none'} there"
            )
    return ""


def _make(
    trials: Path,
    tag: str,
    source: ImportSource,
    results: ImportedResults,
    runs: dict[str, ImportedRun],
) -> TrialFolder:
    ids = {key: _case_id(run, source) for key, run in runs.items()}
    cases = {ids[key]: _case(run, ids[key]) for key, run in runs.items()}
    record = record_from_elsewhere(tag, source.machine)
    record = replace(
        record,
        tests=_tests(runs.values(), source),
        expected=list(results.references),
        imported=ImportedFrom(
            tool=source.tool, file=str(source.file.absolute()), by=source.by, on=record.created
        ),
    )
    folder = create(trials, record, cases.values())
    header: dict[str, Any] = {"trial": folder.tag, "machine": source.machine}
    of_runs: list[events.Event] = []
    for key, run in runs.items():
        of_runs += _events(run, {**header, "case": ids[key], "run_id": key})
    of_runs.sort(key=attrgetter("time"))
    failed = any(run.code != codes.PASS.number for run in runs.values())
    imported = events.ResultsImported(
        time=of_runs[-1].time,
        results=len(runs),
        tool=source.tool,
        file=str(source.file.absolute()),
        by=source.by,
        **header,
    )
    start = events.TrialStarted(time=of_runs[0].time, host=os.uname().nodename, **header)
    end = events.TrialEnded(time=of_runs[-1].time, failed=int(failed), **header)
    with Journal.take(folder.journal) as journal:
        journal.extend([start, *of_runs, end, imported])
        journal.flush(durable=True)
    return folder


def _there(trials: Path, source: ImportSource, wanted: Collection[str]) -> dict[str, _KnownRun]:
    """Return those of the results that were imported from the tool for the machine before."""
    there: dict[str, _KnownRun] = {}
    for tag in tags(trials):
        folder = TrialFolder(trials / tag)
        try:
            record = folder.record_as(_Origin)
            if record.imported is None or record.imported.tool != source.tool:
                continue
            if record.machine.machine == source.machine:
                _take(folder, tag, wanted, there)
        except (TrialError, JournalError):
            continue
    return there


def _take(
    folder: TrialFolder, tag: str, wanted: Collection[str], there: dict[str, _KnownRun]
) -> None:
    """Add the results of a trial to those that are ``there``. Raises JournalError."""
    for event in read(folder.journal):
        if event.run_id not in wanted:
            continue
        known = there.setdefault(event.run_id, _KnownRun(tag))
        if isinstance(event, events.MetricRecorded):
            known.figures[event.metric] = event.value
        elif isinstance(event, events.RunJudged):
            known.code = event.code


class _MachineName(msgspec.Struct):
    machine: str = ""


class _Origin(msgspec.Struct):
    machine: _MachineName
    imported: ImportedFrom | None = None


def _once(
    runs: Iterable[ImportedRun], source: ImportSource
) -> tuple[dict[str, ImportedRun], list[ImportNote]]:
    """Return the runs by their ids, each once, and notes on those that are there again."""
    once: dict[str, ImportedRun] = {}
    notes = []
    key = f"{source.tool}\n{source.machine}"
    for run in runs:
        run_id = run_id_of(key, f"{run.test}\n{run.id}", 0)
        first = once.setdefault(run_id, run)
        if first is run:
            continue
        is_same = replace(run, place="", path="") == replace(first, place="", path="")
        text = "the result is there twice; one was imported"
        if not is_same:
            text = "the result is there twice and differs; the first was imported"
        notes.append(note_on(run, text, lost=not is_same))
    return once, notes


def _tests(runs: Iterable[ImportedRun], source: ImportSource) -> dict[str, Test]:
    """Return the tests of runs: of each, the tool has told its name and application alone."""
    about = f"of {source.tool}"
    apps = {run.test: run.app or run.test for run in runs}
    return {name: Test(name=name, app=app, folder="", about=about) for name, app in apps.items()}


def _case_id(run: ImportedRun, source: ImportSource) -> str:
    size = (run.nodes, run.tasks, run.threads)
    return case_id(run.test, run.parameters, source.machine, run.toolchain, "", size)


def _case(run: ImportedRun, identity: str) -> Case:
    return Case(
        id=identity,
        test=run.test,
        parameters=run.parameters,
        toolchain=run.toolchain,
        nodes=run.nodes,
        tasks=run.tasks,
        tasks_per_node=run.tasks // run.nodes if run.nodes else 0,
        threads=run.threads,
        walltime=0.0,
        repeat=1,
    )


def _events(run: ImportedRun, header: dict[str, Any]) -> Iterator[events.Event]:
    """Yield the events of a run that its tool knew of; each has the members in ``header``."""
    of = {**header, "app": run.app, "test": run.test}
    times = [at for at in (run.time, run.queued, run.started, run.ended, run.judged) if at]
    yield events.RunCreated(time=min(times), path=run.path, **of)
    if run.queued is not None:
        yield events.JobQueued(time=run.queued, job_id=run.job_id, **of)
    if run.started is not None:
        yield events.ScriptStarted(time=run.started, nodes=run.hosts, job_id=run.job_id, **of)
    if run.ended is not None:
        yield events.ScriptEnded(time=run.ended, exit_code=run.exit_code, job_id=run.job_id, **of)
    judged = run.judged or max(times)
    for name, value, unit, better in run.figures:
        yield events.MetricRecorded(
            time=judged, metric=name, value=value, unit=unit, better=better, **of
        )
    yield events.RunJudged(
        time=judged,
        code=run.code,
        verdict=codes.code_of(run.code).name,
        reason=run.reason,
        cause=run.cause,
        **of,
    )
