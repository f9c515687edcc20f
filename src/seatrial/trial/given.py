"""Makes a trial of figures that somebody else gave, such as a vendor's: nothing of it ran.

    folder = import_figures(trials, "vt", "aurora", Path("vt.csv"), by="me@login1")

It has a record, cases and a journal, as each trial has, so that the store can be rebuilt. Its
events are of kinds of their own, which nothing that counts runs or measurements takes for these.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.conduct.run_ids import run_id_of
from seatrial.files import replace_file
from seatrial.journal.events import Event, FigureGiven, FiguresImported
from seatrial.journal.journal import Journal
from seatrial.machine.model import Machine
from seatrial.structs import copied
from seatrial.suite.model import Case
from seatrial.trial.creation import create
from seatrial.trial.figures_file import GivenRow, read_figures
from seatrial.trial.folder import TrialFolder
from seatrial.trial.options import TrialOptions
from seatrial.trial.record import GivenFrom, Record


def import_figures(trials: Path, tag: str, machine: str, file: Path, by: str) -> TrialFolder:
    """Make the trial ``tag`` of the figures in a file, on a machine of that name. Raises
    InvalidFiles for faults in the file, and UsageError where there is such a trial."""
    rows, data = read_figures(file)
    now, digest = time.time_ns(), hashlib.sha256(data).hexdigest()
    cases = {_case_id(row, machine): _case(row, machine) for row in rows}
    record = Record(
        tag=tag,
        created=now,
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=TrialOptions(suites=[]),
        machine=Machine(machine=machine, nodes=[]),
        references="",
        tests={},
        given=GivenFrom(file=str(file.absolute()), sha256=digest, by=by, on=now),
    )
    folder = create(trials, record, cases.values())
    replace_file(folder.path / "figures.csv", data)
    imported = FiguresImported(figures=len(rows), file=str(file.absolute()), sha256=digest, by=by)
    _write(folder, machine, [imported, *(_event(folder.tag, row, machine) for row in rows)])
    return folder


def _write(folder: TrialFolder, machine: str, events: Sequence[Event]) -> None:
    with Journal.own(folder.journal) as journal:
        for event in events:
            named = replace(event, time=journal.now(), trial=folder.tag, machine=machine)
            journal.append(named)
        journal.flush(durable=True)


def _case_id(row: GivenRow, machine: str) -> str:
    bound = sorted(row.parameters.items())
    text = "\0".join([row.test, machine, row.toolchain, *(f"{n}={v}" for n, v in bound)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _case(row: GivenRow, machine: str) -> Case:
    """Return the case of a row. How many nodes it had is not known."""
    return Case(
        id=_case_id(row, machine),
        test=row.test,
        parameters=dict(row.parameters),
        toolchain=row.toolchain,
        nodes=0,
        tasks=0,
        tasks_per_node=0,
        threads=0,
        walltime=0.0,
        repeat=0,
    )


def _event(tag: str, row: GivenRow, machine: str) -> FigureGiven:
    case = _case_id(row, machine)
    run_id = run_id_of(tag, case, row.line)
    return copied(FigureGiven, row, case=case, run_id=run_id, figure=row.value)
