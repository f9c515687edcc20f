"""Makes a trial of the results of another tool.

    made = make_trial(trials, "oth-2021", source, results)
    made.folder, made.new, made.known

It is a trial as any other, in the state ``imported``: record, cases, a journal. So all that shows
or compares runs works on it, and the store can be rebuilt. Nothing of it runs. A result that
another imported trial has already is left out.
"""

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.errors import JournalError, TrialError, UsageError
from seatrial.execute.creation import create
from seatrial.execute.options import TrialOptions
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import tags
from seatrial.execute.trial_record import ImportedFrom, Record
from seatrial.journal import events
from seatrial.journal.journal import Journal, read
from seatrial.model import codes
from seatrial.model.expand import case_id
from seatrial.model.identifiers import run_id_of
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test
from seatrial.plugins.importers.results import ImportedResults, ImportedRun, ImportNote, note_on
from seatrial.units import count, show_number


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
    now = time.time_ns()
    ids = {key: _case_id(run, source) for key, run in runs.items()}
    cases = {ids[key]: _case(run, ids[key]) for key, run in runs.items()}
    record = Record(
        tag=tag,
        created=now,
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=TrialOptions(suites=[]),
        machine=Machine(machine=source.machine, nodes=[]),
        references="",
        tests=_tests(runs.values(), source),
        expected=list(results.references),
        imported=ImportedFrom(
            tool=source.tool, file=str(source.file.absolute()), by=source.by, on=now
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
