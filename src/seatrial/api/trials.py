"""Suites, plans and trials from Python: what ``seatrial list``, ``run`` and ``resume`` do.

machine, suite = seatrial.load_machine("machine.yaml"), seatrial.load_suite("suite")
cases = seatrial.expand(suite, machine, keyword="stream")
trial = seatrial.Trial.create(["suite"], "machine.yaml", repeat=3)
outcome = trial.run()
outcome.verdicts                     # Counter({"pass": 3})
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.execute import creation
from seatrial.execute.backends import Backend
from seatrial.execute.batch.batch import require_scheduler
from seatrial.execute.creation import suite_record
from seatrial.execute.detect import find_machine
from seatrial.execute.driver import Driver
from seatrial.execute.ledger import Observer
from seatrial.execute.plan.check import check_plan
from seatrial.execute.plan.check import load_plan as read_plan
from seatrial.execute.prepare import new_tag, prepare_trial, require_cases
from seatrial.execute.requests import DriveOutcome
from seatrial.execute.trial_folder import TrialFolder, find
from seatrial.journal.events import Event
from seatrial.journal.journal import read
from seatrial.judge.check_tests import check_judging
from seatrial.judge.references import References
from seatrial.judge.verdict import Verdict
from seatrial.judge.verdict import judge as judge_run
from seatrial.model.documents import Faults
from seatrial.model.expand import expand as expand_cases
from seatrial.model.machine import Machine
from seatrial.model.plan import Plan
from seatrial.model.suite import Suite, load
from seatrial.model.test import Case, CaseSelection, Test, TrialOptions

Place = str | os.PathLike[str]


def load_machine(name: Place | None = None) -> Machine:
    """Return a machine, by its file or its name; None means this host. Raises
    seatrial.InvalidFiles with every fault, and seatrial.UsageError."""
    return find_machine(os.fspath(name) if name is not None else None).machine


def load_suite(*folders: Place) -> Suite:
    """Return the tests of a suite. Raises seatrial.InvalidFiles with every fault."""
    suite = load([Path(folder) for folder in folders])
    check_judging(suite)
    suite.require_sound()
    return suite


def load_plan(path: Place) -> Plan:
    """Return a plan; its suites and its machine are checked with it. Raises seatrial.InvalidFiles
    with every fault."""
    faults = Faults()
    loaded = read_plan(Path(path), faults)
    if loaded is not None:
        check_plan(loaded, faults)
    faults.raise_any()
    assert loaded is not None  # a plan that cannot be read has a fault
    return loaded.plan


def expand(suite: Suite, machine: Machine, **selection: Any) -> list[Case]:
    """Return the cases of a suite on a machine. ``selection``: keyword, tags, toolchains, settings
    and repeat, as the options of ``seatrial run``. Raises seatrial.InvalidFiles."""
    faults = Faults()
    cases = expand_cases(suite, machine, _asked(CaseSelection, selection), faults).cases
    faults.raise_any()
    return cases


def verdict_of(
    test: Test,
    case: Case,
    folder: Place,
    exit_code: int | None = 0,
    references: References | None = None,
) -> Verdict:
    """Return the verdict on what a run left in a folder: its stdout and other files. ``exit_code``
    is that of its script, None where it left none."""
    return judge_run(test, case, Path(folder), exit_code, references or References())


class Trial:
    """One trial: a folder with its record and its journal."""

    def __init__(self, path: Place) -> None:
        """``path``: the folder of a trial that is there."""
        self._folder = TrialFolder(Path(path))

    @classmethod
    def create(
        cls,
        suites: list[Place],
        machine: Place | None = None,
        trials: Place = "trials",
        name: str = "",
        **asked: Any,
    ) -> Trial:
        """Create a trial of suites on a machine; nothing is run. ``asked``: options of ``seatrial
        run``, such as keyword, repeat, jobs. Raises seatrial.InvalidFiles with every fault,
        seatrial.UsageError where no case is left or the tag ``name`` exists."""
        options = _asked(TrialOptions, {"suites": [os.fspath(each) for each in suites], **asked})
        prepared = prepare_trial(options, os.fspath(machine) if machine is not None else None)
        require_cases(prepared)
        tag = name or new_tag(Path(trials), options.suites)
        record = suite_record(prepared, tag)
        return cls(creation.create(Path(trials), record, prepared.cases).path)

    @classmethod
    def open(cls, tag: str, trials: Place = "trials") -> Trial:
        """Return the trial of that tag, or of a unique beginning of it. Raises
        seatrial.SeatrialError for others."""
        return cls(find(Path(trials), tag).path)

    @property
    def tag(self) -> str:
        return self._folder.tag

    @property
    def path(self) -> Path:
        return self._folder.path

    def run(
        self,
        on_event: Callable[[Event], None] | None = None,
        scheduler: Callable[[Machine, Path], Backend] | None = None,
    ) -> DriveOutcome:
        """Run the trial to its end, or go on with one that was interrupted. ``on_event`` is called
        with each event, as soon as it is in the journal; ``scheduler`` makes what runs the jobs, in
        place of the machine's, such as a `seatrial.testing.SimulatedScheduler`."""
        machine = self._folder.record().machine
        if scheduler is None:
            require_scheduler(machine)
        backend = scheduler(machine, self._folder.submissions) if scheduler else None
        driver = Driver(self._folder, _Followed(on_event), backend=backend)
        return asyncio.run(driver.drive())

    resume = run
    """To start a trial and to resume one are the same: its journal tells what is left."""

    def events(self) -> Iterator[Event]:
        """Yield the events of the trial so far, in their order."""
        yield from read(self._folder.journal)


class _Followed(Observer):
    """Passes events on."""

    def __init__(self, on_event: Callable[[Event], None] | None) -> None:
        self._pass_on = on_event

    def on_event(self, event: Event, case: Case | None) -> None:
        if self._pass_on is not None:
            self._pass_on(event)


def _asked(shape: type[Any], given: dict[str, Any]) -> Any:
    unknown = [name for name in given if name not in shape.__struct_fields__]
    if unknown:
        known = ", ".join(shape.__struct_fields__)
        raise UsageError(f"{unknown[0]!r} is no option of a trial; there are {known}")
    return shape(**given)
