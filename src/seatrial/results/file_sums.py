"""The checksums of files that must be the same bit for bit: learned from trials, and compared.

learned = learn_sums([trial])            # one reference for each case and file
sums_of(TrialFolder(path), record)       # {(case id, "restart.nc"): Counter({"5d41...": 3})}
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.judge.learning import learned_files
from seatrial.judge.references import Learned, Reference
from seatrial.model.codes import PASS, PERFORMANCE
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import case_name, show
from seatrial.model.test import Case, Test
from seatrial.results.selection import Side
from seatrial.results.store.tables import TrialRow
from seatrial.units import count

RIGHT = (PASS.number, PERFORMANCE.number)
DIGITS = 12  # of a sum, as people see it

Sums = Mapping[tuple[str, str], Counter[str]]
"""How many runs wrote a file with which sum, by (case id, file)."""


def files_of(tests: "Iterable[Test]") -> dict[str, list[str]]:
    """Return the files that must be the same bit for bit, by test."""
    found = {}
    for test in tests:
        names = [check.identical for check in test.verify if check.identical is not None]
        if names:
            found[test.name] = list(dict.fromkeys(names))
    return found


def sums_of(folder: TrialFolder, record: "Record", right_only: bool = True) -> Sums:
    """Return the sums of such files, by the journal: those of runs with a right answer, or of all
    runs that were judged. A trial without such files is not read. Raises JournalError."""
    files = files_of(record.tests.values())
    if not files:
        return {}
    found: dict[tuple[str, str], Counter[str]] = {}
    for run in folder.runs(lambda event: event.test in files):
        if right_only and run.code not in RIGHT:
            continue
        for name in files[run.test]:
            if sha256 := (run.sha256 or {}).get(name):
                found.setdefault((run.case, name), Counter())[sha256] += 1
    return found


def sums_of_side(
    side: Side, records: "Iterable[tuple[TrialRow, Record]]"
) -> dict[tuple[str, str], set[str]]:
    """Return the sums that all runs of a side wrote, right or wrong, by (case, file). Where the
    side has one toolchain, cases do not name it: sides of two toolchains are compared."""
    shares_one = len(side.all_of("toolchain")) == 1
    of_side = {(one.test, _bound(one.key_parameters), one.toolchain) for one in side.cases}
    found: dict[tuple[str, str], set[str]] = {}
    for trial, record in records:
        if not files_of(record.tests.values()):
            continue
        folder = TrialFolder(Path(trial.path))
        try:
            cases = {case.id: case for case in folder.cases()}
            sums = sums_of(folder, record, right_only=False)
        except SeatrialError:
            continue
        for (case_id, file), counted in sums.items():
            case = cases.get(case_id)
            if case is None or (case.test, _bound(case.parameters), case.toolchain) not in of_side:
                continue
            chain = "" if shares_one else case.toolchain
            name = case_name(case.test, dict(sorted(case.parameters.items())), chain)
            found.setdefault((name, file), set()).update(counted)
    return found


def _bound(parameters: Mapping[str, Scalar]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, show(value)) for name, value in parameters.items()))


def learn_sums(trials: Iterable[TrialRow]) -> tuple[list[Reference], list[tuple[str, str]]]:
    """Return a reference for each case and file whose sum is learned, of the newest trial that has
    it (``trials``: the newest first), and what was left out: (what, why)."""
    references: dict[tuple[object, ...], Reference] = {}
    left_out: list[tuple[str, str]] = []
    for trial in trials:
        try:
            folder = TrialFolder(Path(trial.path))
            record = folder.record()
            learned = {name: learned_files(test) for name, test in record.tests.items()}
            if not any(learned.values()):
                continue
            cases = {case.id: case for case in folder.cases()}
            found = sums_of(folder, record)
        except SeatrialError as error:
            left_out.append((trial.tag, str(error)))
            continue
        for (case_id, name), sums in found.items():
            case = cases.get(case_id)
            if case is None or name not in learned[case.test]:
                continue
            key = _identity(case, name)
            if key in references:
                continue
            if len(sums) > 1:
                shown = ", ".join(f"{n} x {one[:DIGITS]}" for one, n in sums.most_common(3))
                reason = f"its runs wrote {count(len(sums), 'different file')}: {shown}"
                left_out.append((f"{case.name} {name}", reason))
            else:
                references[key] = _reference(case, name, sums, trial.tag)
    return list(references.values()), left_out


def _identity(case: "Case", name: str) -> tuple[object, ...]:
    return case.test, name, case.toolchain, _bound(case.parameters)


def _reference(case: "Case", name: str, sums: Counter[str], tag: str) -> Reference:
    ((sha256, runs),) = sums.items()
    return Reference(
        test=case.test,
        file=name,
        where=case.parameters,
        toolchain=case.toolchain or None,
        sha256=sha256,
        learned=Learned(trial=tag, runs=runs, at=time.strftime("%Y-%m-%d")),
    )
