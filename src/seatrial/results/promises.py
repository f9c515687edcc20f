"""What was promised of the figures of trials: by the record that each trial keeps.

promised_of(case_runs, kind, median)     # Promised(advertised="50 GB/s", share=0.988, ...)
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import UNSET

from seatrial.errors import SeatrialError
from seatrial.execute.plan.component_tests import file_system_of
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.judge.promises import NOTHING, Beside, Promises, beside, promises_of
from seatrial.results.store.by_case import CaseRuns, Kind

MAX_KNOWN = 1000  # trials and tests whose promises are remembered


def promised_of(cases: Sequence[CaseRuns], kind: Kind, figure: float | None) -> Beside:
    """Return what was promised of a figure of some cases: the latest of them whose trial tells."""
    name, unit, _ = kind
    for case in reversed(cases):
        if found := beside(promises_in(case.folder, case.test, case.case), name, figure, unit):
            return found
    return UNSET


def promises_in(folder: str, test: str, case: str) -> Promises:
    """Return what was promised of the metrics of a case, by its id; nothing where the trial in a
    folder cannot be read any more."""
    try:
        changed = (Path(folder) / "trial.json").stat().st_mtime_ns
        return _read(folder, changed, test, case)
    except (OSError, SeatrialError, ValueError):
        return NOTHING


@lru_cache(MAX_KNOWN)
def _read(folder: str, _changed: int, test: str, case: str) -> Promises:
    record = _record(folder, _changed)
    if test not in record.tests:
        return NOTHING
    return promises_of(record.machine, record.tests[test], _works_in(record, folder, test, case))


@lru_cache(16)
def _record(folder: str, _changed: int) -> Record:
    return TrialFolder(Path(folder)).record()


def _works_in(record: Record, folder: str, test: str, case: str) -> str:
    """Return the folder in which the runs of a case work; "" if it is not known."""
    if record.given is not None or record.imported is not None:
        return ""
    if record.tests[test].run.directory:
        found = TrialFolder(Path(folder)).case(case)
        if found is not None and found.settings.directory:
            return found.settings.directory
    name = file_system_of(record.component, test) if record.component else ""
    systems = record.machine.file_systems
    return systems[name].path if name in systems else folder
