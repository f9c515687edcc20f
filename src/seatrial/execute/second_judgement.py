"""Judge the runs of a trial again, by the checks, metrics and references as they are now.

now = definitions_now(record, suites, references)        # raises InvalidFiles, UsageError
for judgement in judge_again(folder, record, now):       # changes nothing
    judgement.was, judgement.verdict.code, judgement.cannot
now, judgements = record_judgements(folder, record, suites, references, by, why)   # appends

A run is judged again if its own end, and not the scheduler's word, gave its verdict, and what it
wrote is still there. What was measured stays: figures that were recorded are judged as they are,
and only those that had not been found are added.
"""

import contextlib
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial.errors import TrialError, UsageError
from seatrial.execute.directory import cut_file
from seatrial.execute.kept_files import changed_file
from seatrial.execute.ledger import header_of, run_header
from seatrial.execute.plan_trials import policy_by_now
from seatrial.execute.script import judged_files
from seatrial.execute.trial_folder import (
    Record,
    TrialFolder,
    checksum_of,
    known_by,
    references_by_now,
)
from seatrial.execute.trial_paths import run_directory
from seatrial.files import read_regular
from seatrial.journal import events
from seatrial.journal.journal import Damage, Journal, damage_of, damage_text, read
from seatrial.journal.trial import RECORDED_KINDS, RecordedRun, Trial
from seatrial.judge.check_tests import check_bounds, check_judging
from seatrial.judge.check_values import names_of
from seatrial.judge.file_use import UNITS
from seatrial.judge.isolated import SearchTookLong
from seatrial.judge.metrics import PYTHON
from seatrial.judge.reading import HostFailed
from seatrial.judge.references import References, load_for
from seatrial.judge.verdict import KnownFailures, RunConditions, Verdict, judge, known_failures_of
from seatrial.model import codes
from seatrial.model.codes import Code, code_of
from seatrial.model.documents import Faults
from seatrial.model.figures import MetricValue
from seatrial.model.file_model import encode
from seatrial.model.identifiers import show
from seatrial.model.parameters import ParameterSpace
from seatrial.model.suite import load
from seatrial.model.test import Case, Test

OF_CHECKS = frozenset(
    code.number
    for code in (
        codes.PASS,
        codes.FAILED,
        codes.WRONG_ANSWER,
        codes.PERFORMANCE,
        codes.NO_FIGURE,
        codes.TOO_LARGE,
        codes.CHECK_ERROR,
        codes.KNOWN,
    )
)
"""The verdicts that a run's own output gave."""

_RIGHT = (codes.PASS.number, codes.PERFORMANCE.number)

MAX_JUDGE_BYTES = 64 << 20


class Definitions(NamedTuple):
    """What the runs of a trial are judged by: its tests and the references, as they are now, with
    the SHA-256 of each test's checks and metrics, and of the references."""

    tests: dict[str, Test]
    references: References
    checks: dict[str, str]
    references_sha256: str


class SecondJudgement(NamedTuple):
    """The judgement of one run again."""

    run: RecordedRun
    case: Case
    #: With the figures that had not been recorded.
    verdict: Verdict
    #: Why it cannot be judged, and keeps its verdict; "" if it can.
    cannot: str = ""

    @property
    def was(self) -> Code:
        """The verdict before."""
        return code_of(self.run.code)

    @property
    def changed(self) -> bool:
        before = (self.run.code, self.run.reason)
        return not self.cannot and (self.verdict.code.number, self.verdict.why) != before


# ---- what is judged by ------------------------------------------------------------------------


def definitions_now(
    record: Record, cases: Sequence[Case], suites: Sequence[str], references: Path | None
) -> Definitions:
    """Return what a trial is judged by as it is now: the tests of ``suites`` (none: those that the
    trial was made of) and a file of references (None: the trial's). Raises InvalidFiles, and
    UsageError where a test or the file is not there."""
    tests = _tests_now(record, cases, suites)
    path = references or Path(record.references)
    if not path.exists() and (references is not None or record.expected):
        raise UsageError(f"{path}: is not there; put it back, or name a file with --references")
    references_now, _ = load_for(path, record.tests)
    sums = {name: _sha256(_judging(test)) for name, test in tests.items()}
    return Definitions(tests, references_now, sums, checksum_of(references_now))


def _tests_now(record: Record, cases: Sequence[Case], suites: Sequence[str]) -> dict[str, Test]:
    """Return the tests of a trial as they are now, checked with its cases."""
    folders = suites or record.asked.suites
    suite = load([Path(each) for each in folders]).only(record.tests)
    check_judging(suite)
    suite.require_sound()
    tests = suite.tests
    for name, old in record.tests.items():
        if name not in tests:
            raise UsageError(f"there is no test {name} in {', '.join(folders)}; name --with")
        if not suites and tests[name].folder != old.folder:
            raise UsageError(
                f"{tests[name].folder}: the trial's test {name} was in {old.folder}; go to the "
                "folder in which the trial was started, or name the suite with --with"
            )
    bound = [_with_new_parameters(case, tests[case.test], record) for case in cases]
    faults = Faults()
    check_bounds(suite, bound, record.machine, faults)
    faults.raise_any()
    return tests


def _judging(test: Test) -> Iterator[bytes]:
    """Yield what a test judges by: its checks and metrics, and the files of its own judges."""
    yield encode([test.verify, test.metrics])
    for file in _own_judges(test):
        with contextlib.suppress(OSError):
            yield read_regular(Path(test.folder) / file, MAX_JUDGE_BYTES)


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _with_new_parameters(case: Case, test: Test, record: Record) -> Case:
    """Return a case with the parameters that its test has got since, such as an expected value that
    is zipped with a size: those of the only binding that agrees with the case, if there is one."""
    new = [name for name in test.parameters if name not in case.parameters]
    if not new:
        return case
    facts = names_of(test, case, record.machine)
    rows = {
        tuple(show(binding[name]) for name in new): binding
        for binding in ParameterSpace.parse(test).bindings(facts)
        if all(show(binding.get(n, v)) == show(v) for n, v in case.parameters.items())
    }
    if len(rows) != 1:
        return case
    (binding,) = rows.values()
    return msgspec.structs.replace(case, parameters={**binding, **case.parameters})


# ---- judging ------------------------------------------------------------------------------


def judged_runs(folder: TrialFolder, cases: Collection[str]) -> list[RecordedRun]:
    """Return the runs of a trial that have a verdict which their own output gave. Raises TrialError
    where the journal is damaged. ``cases``: their ids."""

    def new_run(event: events.RunEvent) -> RecordedRun | None:
        return RecordedRun.begin(event) if event.case in cases else None

    trial = Trial(new_run, kinds={*RECORDED_KINDS, events.MetricRecorded})
    reading = read(folder.journal)
    for event in reading:
        trial.apply(event)
    if reading.damaged:
        damage = damage_of(folder.journal) or Damage(reading.damaged, 1)
        raise TrialError(
            f"{damage_text(folder.tag, folder.journal, damage)}; a damaged trial is not judged "
            "again by other checks, as its verdicts are not surely known"
        )
    return [run for run in trial.runs_by_id.values() if is_of_checks(run)]


def is_of_checks(run: RecordedRun) -> bool:
    """Return whether a run's own output gave its verdict."""
    known = run.judged is not None and run.code in OF_CHECKS
    return known and run.ended_by_itself and run.script_end is not None


def judge_again(folder: TrialFolder, record: Record, now: Definitions) -> Iterator[SecondJudgement]:
    """Yield the judgement of every run that can be judged by its output, and of those of which the
    output is gone. Changes nothing."""
    of_trial = known_by(record, policy_by_now(folder, record))
    known = KnownFailures([*of_trial, *known_failures_of(now.tests)])
    cases = {case.id: case for case in folder.cases()}
    with ThreadPoolExecutor(max_workers=1) as aside:
        for run in judged_runs(folder, cases):
            case, kept = cases[run.case], Verdict(code_of(run.code), run.reason)
            path = _directory(folder, run)
            if gone := _gone(path, run, record.tests[case.test], now.tests[case.test]):
                yield SecondJudgement(run, case, kept, gone)
                continue
            try:
                try:
                    verdict = _verdict(path, run, case, record, now)
                except SearchTookLong:
                    verdict = aside.submit(_verdict, path, run, case, record, now).result()
            except HostFailed as error:
                yield SecondJudgement(run, case, kept, str(error))
                continue
            new = [figure for figure in verdict.figures if figure.name not in run.figures]
            about = (run.judged or 0, run.cause)
            code, reason, _ = known.judged(case, verdict.code, verdict.why, *about)
            yield SecondJudgement(run, case, Verdict(code, reason, new))


def _verdict(path: Path, run: RecordedRun, case: Case, record: Record, now: Definitions) -> Verdict:
    test = now.tests[case.test]
    names = names_of(test, _with_new_parameters(case, test, record), record.machine)
    exit_code = run.script_end.exit_code if run.script_end is not None else None
    known = {
        name: (float(event.value), event.unit)
        for name, event in run.figures.items()
        if event.value is not None
    }
    of_files = [
        MetricValue(name, *known[name], "none")
        for name in (UNITS if record.machine.file_use is not None else ())
        if name in known
    ]
    ran = RunConditions(run.stage, run.elapsed, of_files)
    return judge(test, case, path, exit_code, now.references, names, ran, known)


def _directory(folder: TrialFolder, run: RecordedRun) -> Path:
    """Return the directory of a run, though the trial was moved or copied."""
    return Path(run_directory(folder.path, run.test, run.run_id, run.path))


def _gone(path: Path, run: RecordedRun, old: Test, new: Test) -> str:
    """Return what of a run's output is not there any more; "" if nothing."""
    if not path.is_dir():
        return "its directory is gone"
    if missing := _cut(path, run, old):
        return missing
    if changed := changed_file(path, run.sha256 or {}, ("stdout", *judged_files(new))):
        return f"{changed} was changed after the run was judged"
    if name := _missing(path, run, old, new):
        return f"{name} is not there, and whether the run wrote it is not known"
    if run.removals and _own_judges(new):
        return "files of it were removed by keep, and a function or script may need them"
    return ""


def _cut(path: Path, run: RecordedRun, test: Test) -> str:
    """Return what is shorter than the run left it, or not there, in words; "" if nothing."""
    if not (path / "stdout").exists():
        return "its stdout was removed by keep" if run.removals else "its stdout is gone"
    names = ("stdout", *judged_files(test))
    if run.script_end is None or not (cut := cut_file(path, run.script_end, names)):
        return ""
    return "files of it were removed by keep" if run.removals else cut


def _missing(path: Path, run: RecordedRun, old: Test, new: Test) -> str:
    """Return a file that the test judges now and that is not there; "" if there is none. One that
    was missing when the run was judged may well be missing now."""
    before = judged_files(old)
    surely = bool(run.removals) or run.code in _RIGHT
    names = (name for name in judged_files(new) if surely or name not in before)
    return next((name for name in names if not (path / name).exists()), "")


def _own_judges(test: Test) -> list[str]:
    """Return the files of the Python functions and of the scripts that a test judges by."""
    functions: list[Any] = [*(check.python for check in test.verify), test.metrics.get(PYTHON)]
    files = [each.rpartition(":")[0] for each in functions if isinstance(each, str)]
    return files + [check.script for check in test.verify if check.script is not None]


# ---- recording ----------------------------------------------------------------------------


def record_judgements(
    folder: TrialFolder,
    record: Record,
    suites: Sequence[str],
    references: Path | None,
    by: str,
    reason: str,
) -> tuple[Definitions, list[SecondJudgement]]:
    """Judge the runs of a trial again, and append to its journal the references if they differ, the
    verdicts that differ and the figures that had not been found; return what was judged by, and all
    judgements. Raises Owned where the trial is being run."""
    with Journal.take(folder.journal) as journal:
        now = definitions_now(record, folder.cases(), suites, references)
        judgements = list(judge_again(folder, record, now))
        before = checksum_of(references_by_now(folder, record))
        for event in read(folder.journal):
            journal.clock.follow(event)
        if now.references_sha256 != before:
            correction = _correction(now, journal.now(), by, reason)
            journal.append(msgspec.structs.replace(correction, **header_of(record, correction)))
        for judgement in judgements:
            for figure in _added(judgement, record):
                journal.append(figure)
            if judgement.changed:
                journal.append(_change(judgement, record, now, journal.now(), by, reason))
        journal.flush(durable=True)
    return now, judgements


def _added(judgement: SecondJudgement, record: Record) -> Iterator[events.MetricRecorded]:
    """Yield the figures that had not been found, as of the time of the run's verdict: what a person
    records long afterwards does not make the trial longer."""
    run = judgement.run
    header = run_header(record, judgement.case, run.run_id)
    for figure in judgement.verdict.figures:
        yield events.MetricRecorded(
            **header,
            time=run.judged or 0,
            metric=figure.name,
            value=figure.value,
            unit=figure.unit,
            better=figure.better,
        )


def _correction(now: Definitions, time: int, by: str, reason: str) -> events.ReferencesCorrected:
    """Return the event by which criteria, too, use other references from now on."""
    entries: list[dict[str, Any]] = msgspec.to_builtins(now.references.entries)
    sha256 = now.references_sha256
    return events.ReferencesCorrected(
        time=time, references=sha256, entries=entries, by=by, reason=reason
    )


def _change(
    judgement: SecondJudgement, record: Record, now: Definitions, time: int, by: str, reason: str
) -> events.RunJudgedAgain:
    run, verdict = judgement.run, judgement.verdict
    return events.RunJudgedAgain(
        time=time,
        **run_header(record, judgement.case, run.run_id),
        code=verdict.code.number,
        verdict=verdict.code.name,
        reason=verdict.why,
        will_rerun=run.will_rerun,
        before=judgement.was.number,
        by=by,
        why=reason,
        checks=now.checks[judgement.case.test],
        references=now.references_sha256,
    )
