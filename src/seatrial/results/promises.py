"""What was promised of the figures of trials: by the record that each trial keeps, or else by the
machine's file as it is now.

promised_of(case_runs, kind, median)     # Promised(advertised="50 GB/s", share=0.988, ...)
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import UNSET

from seatrial.errors import SeatrialError
from seatrial.execute.plan.component import file_system_of
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.judge.promises import NOTHING, Beside, Promises, beside, promises_of
from seatrial.model.machine import Machine
from seatrial.model.machine_file import described, is_path, load_machine, machine_file
from seatrial.model.test import Test
from seatrial.results.store import queries
from seatrial.results.store.by_case import CaseRuns, Kind
from seatrial.results.store.schema import Store

MAX_KNOWN = 5000  # trials, or cases, whose promises are remembered
FRESH_S = 5.0  # the machine's file may be changed while a server runs
MAX_ASKED = 5  # trials of a figure, the latest ones


def promised_of(cases: Sequence[CaseRuns], kind: Kind, figure: float | None) -> Beside:
    """Return what was promised of a figure of some cases: the latest of them whose trial tells."""
    name, unit, _ = kind
    latest = {(case.folder, case.test): case.case for case in cases}
    for (folder, test), case in list(latest.items())[: -MAX_ASKED - 1 : -1]:
        if found := beside(promises_in(folder, test, case), name, figure, unit):
            return found
    return UNSET


def folders_of(store: Store) -> dict[tuple[str, str], str]:
    """Return the folders of the trials, by their tags and machines."""
    return {(trial.tag, trial.machine): trial.path for trial in queries.trials(store)}


def promises_in(folder: str, test: str, case: str) -> Promises:
    """Return what was promised of the metrics of a case, by its id; nothing where the trial in a
    folder cannot be read any more."""
    if not folder:
        return NOTHING
    try:
        changed = (Path(folder) / "trial.json").stat().st_mtime_ns
        span = int(time.monotonic() / FRESH_S)
        asked = _of_tests(folder, changed, span).get(test, NOTHING)
        return _of_case(folder, changed, span, test, case) if asked is None else asked
    except (OSError, SeatrialError, ValueError):
        return NOTHING


@lru_cache(MAX_KNOWN)
def _of_tests(folder: str, _changed: int, _span: int) -> dict[str, Promises | None]:
    """Return what was promised of the metrics of each test of a trial; None of a test whose cases
    ask for a directory, each for its own."""
    record = _record(folder, _changed)
    return {
        name: None
        if test.run.directory
        else _promises(record, test, _place_of(record, name, folder))
        for name, test in record.tests.items()
    }


@lru_cache(MAX_KNOWN)
def _of_case(folder: str, _changed: int, _span: int, test: str, case: str) -> Promises:
    record = _record(folder, _changed)
    found = TrialFolder(Path(folder)).case(case)
    asked = found.settings.directory if found is not None else ""
    return _promises(record, record.tests[test], asked or _place_of(record, test, folder))


@lru_cache(16)
def _record(folder: str, _changed: int) -> Record:
    return TrialFolder(Path(folder)).record()


def _place_of(record: Record, test: str, folder: str) -> str:
    """Return the folder in which the runs of a test work that ask for no directory; "" if it is not
    known. ``folder``: that of the trial."""
    if record.given is not None or record.imported is not None:
        return ""
    name = file_system_of(record.component, test) if record.component else ""
    systems = record.machine.file_systems
    return systems[name].path if name in systems else folder


def _promises(record: Record, test: Test, folder: str) -> Promises:
    """Return what was promised as the trial's record tells it; where that tells nothing, as the
    machine's file says it now: it may have been written later."""
    found = promises_of(record.machine, test, folder)
    machine = None if found or not folder else _machine_now(record.machine.machine)
    return found if machine is None else promises_of(machine, test, folder)


def _machine_now(name: str) -> Machine | None:
    """Return the machine of a name as its file says it now; None if no file describes it."""
    if is_path(name) or name not in described():
        return None
    file = machine_file(name)
    return None if file is None else _loaded(file.absolute(), file.stat().st_mtime_ns)


@lru_cache(16)
def _loaded(file: Path, _changed: int) -> Machine:
    return load_machine(file).machine
