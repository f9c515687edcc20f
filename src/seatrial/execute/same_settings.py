"""Settings of a tuning that run in the same way: on a full node all spreads give one launch line.

    kept, left_out = merged(cases, test, machine, axes, default)
    left_out        # [(case of spread=pack, "it runs as spread=numa does: ...")]

Only an axis that the test names in keys of ``run`` alone, such as ``spread: spread``, can have such
values: a script that names it, or a file of the test that does, may do something else with each.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.decide.state import ConductorState
from seatrial.errors import TrialError
from seatrial.execute.creation import create
from seatrial.execute.figures_file import GivenRow, read_figures
from seatrial.execute.launchers import launch_of
from seatrial.execute.ledger import Ledger
from seatrial.execute.options import TrialOptions
from seatrial.execute.script import run_variables
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import GivenFrom, Record
from seatrial.files import FileOrigin, replace_file
from seatrial.journal.events import Event, FigureGiven, FiguresImported
from seatrial.journal.journal import Journal
from seatrial.journal.run_life import RecordedRun
from seatrial.judge.reading import Unreadable, read_text
from seatrial.model.file_model import Scalar, encode, plain
from seatrial.model.identifiers import bindings_text, run_id_of, show
from seatrial.model.machine import Machine
from seatrial.model.test import Case, RunSpec, Test
from seatrial.model.tune_file import TOOLCHAIN

MAX_BYTES = 1 << 20  # of a file of the test that is searched for the name of an axis
SAME = "the same launch, environment and script"
_OWN = ("test.yaml", "tune.yaml")


def merged(
    cases: Sequence[Case],
    test: Test,
    machine: Machine,
    axes: Sequence[str],
    default: Mapping[str, Scalar],
) -> tuple[list[Case], list[tuple[Case, str]]]:
    """Return the cases, of those that run in the same way one: the default, else the first; and
    the others with the reason."""
    idle = [axis for axis in axes if axis != TOOLCHAIN and _is_of_run_alone(axis, test)]
    if not idle:
        return list(cases), []
    groups: dict[bytes, list[Case]] = {}  # by the way in which they run
    for case in cases:
        groups.setdefault(_way(case, test, machine, idle), []).append(case)
    usual = {axis: show(value) for axis, value in default.items()}
    dropped = [each for group in groups.values() for each in _dropped(group, axes, usual)]
    gone = {case.id for case, _ in dropped}
    return [case for case in cases if case.id not in gone], dropped


def _dropped(
    group: Sequence[Case], axes: Sequence[str], usual: Mapping[str, str]
) -> Iterator[tuple[Case, str]]:
    """Yield all but one of cases that run in the same way, each with the reason."""
    kept = next((case for case in group if _setting(case, axes) == usual), group[0])
    reason = f"it runs as {bindings_text(_setting(kept, axes))} does: {SAME}"
    yield from ((case, reason) for case in group if case is not kept)


def _setting(case: Case, axes: Sequence[str]) -> dict[str, str]:
    return {
        axis: show(case.toolchain if axis == TOOLCHAIN else case.parameters[axis]) for axis in axes
    }


def _way(case: Case, test: Test, machine: Machine, idle: Sequence[str]) -> bytes:
    """Return how a case runs; cases for which it is equal run in the same way."""
    launch = launch_of(machine, test, case)
    others = {name: show(value) for name, value in case.parameters.items() if name not in idle}
    like = replace(case, id="", parameters=others, placement=type(case.placement)())
    return msgspec.json.encode(
        [like, launch.line, launch.before, run_variables(machine, test, case)]
    )


def _is_of_run_alone(axis: str, test: Test) -> bool:
    """Return whether a test names an axis in keys of ``run``, and nowhere where it may do anything
    with it. One that it names nowhere is a variable that its programs may read."""
    word = re.compile(rf"\b{re.escape(axis)}\b")
    keys = plain(replace(test.run, script=""))
    if not any(isinstance(value, str) and word.search(value) for value in keys.values()):
        return False
    rest = replace(test, run=RunSpec(script=test.run.script), parameters={}, defaults={}, name="")
    if word.search(encode(replace(rest, folder="")).decode()):
        return False
    for path in Path(test.folder).rglob("*"):
        if path.is_file() and path.name not in _OWN:
            try:
                if word.search(read_text(path.parent, path.name, MAX_BYTES, "")):
                    return False
            except Unreadable:
                return False
    return True


# ---- refusals ------------------------------------------------------------------------------------
#
# What keeps a trial from being driven, or cancelled. Each function raises TrialError for it.


def require_real(tag: str, record: Record) -> None:
    """Refuse a rehearsal, figures that others gave, results of other tools, and a checklist: none
    is mixed with real runs."""
    if record.policy.kind == "checklist":
        raise TrialError(
            f"{tag} is a checklist: nothing runs; `seatrial accept tick` gives its items their "
            "results"
        )
    if record.given is not None:
        raise TrialError(f"{tag} has the figures of {record.given.file}; nothing of it runs")
    if (made := record.imported) is not None:
        raise TrialError(
            f"{tag} has results of {made.tool}, from {made.file}; nothing of it runs here; "
            "`seatrial run` starts a trial"
        )
    if record.rehearsed:
        raise TrialError(f"{tag} is a rehearsal; `seatrial accept` runs its plan for real")


def require_own(tag: str, origin: FileOrigin) -> None:
    """Refuse the trial of another user: what its folder names would run under the own name."""
    if origin.other:
        raise TrialError(
            f"{tag} is not yours: {origin.other}, and its scripts would run under your name; its "
            "owner resumes it, or you start a trial of your own"
        )


def require_not_abandoned(tag: str, state: ConductorState) -> None:
    if state.abandoned:
        raise TrialError(f"{tag} was abandoned: {state.held}")


def require_host(tag: str, there: str) -> None:
    """Refuse any host but the one where processes of runs were started: another cannot see them,
    and would run them a second time. ``there`` is "" where no host is known."""
    here = os.uname().nodename
    if there not in ("", here):
        raise TrialError(
            f"{tag}: its runs were started on {there}, and this is {here}; "
            f"resume it there, or with --host-is-gone if {there} is down for good"
        )


def require_to_cancel(tag: str, ledger: Ledger, unresolved: Sequence[RecordedRun]) -> None:
    """Refuse to cancel where all runs have ended and some have no verdict: that would keep them
    from it."""
    state = ledger.conductor.state
    ended = state.finished + sum(run.job_end is not None for run in unresolved)
    judged = state.finished == state.wanted
    if ledger.lost_verdicts or (0 < state.wanted <= ended and not judged):
        raise TrialError(
            f"{tag}: all its runs have ended, there is nothing to cancel; "
            f"`seatrial resume {tag}` judges those that have no verdict"
        )


# ---- given ---------------------------------------------------------------------------------------
#
# Makes a trial of figures that somebody else gave, such as a vendor's: nothing of it ran.
#
#     folder = import_figures(trials, "vt", "aurora", Path("vt.csv"), by="me@login1")
#
# It has a record, cases and a journal, as each trial has, so that the store can be rebuilt. Its
# events are of kinds of their own, which nothing that counts runs or measurements takes for these.


def import_figures(
    trials: Path, tag: str, machine: str, file: Path, by: str, **usual: str
) -> TrialFolder:
    """Make the trial ``tag`` of the figures in a file, on a machine of that name. ``usual``: case,
    source and date of figures that have none. Raises InvalidFiles for faults in the file, and
    UsageError where there is such a trial."""
    rows, data = read_figures(file, {"system": machine, "source": by} | _given(usual))
    now, digest = time.time_ns(), hashlib.sha256(data).hexdigest()
    cases = {_case_id(row): _case(row) for row in rows}
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
    kept = "figures.json" if data.lstrip()[:1] in (b"[", b"{") else "figures.csv"
    replace_file(folder.path / kept, data)
    imported = FiguresImported(figures=len(rows), file=str(file.absolute()), sha256=digest, by=by)
    _write(folder, machine, [imported, *(_event(folder.tag, row) for row in rows)])
    return folder


def _given(usual: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in usual.items() if value}


def _write(folder: TrialFolder, machine: str, events: Sequence[Event]) -> None:
    with Journal.take(folder.journal) as journal:
        for event in events:
            named = replace(event, time=journal.now(), trial=folder.tag, machine=machine)
            journal.append(named)
        journal.flush(durable=True)


def _case_id(row: GivenRow) -> str:
    bound = sorted(row.parameters.items())
    text = "\0".join([row.test, row.system, row.toolchain, *(f"{n}={v}" for n, v in bound)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _case(row: GivenRow) -> Case:
    """Return the case of a row. How many nodes it had is not known."""
    return Case(
        id=_case_id(row),
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


def _event(tag: str, row: GivenRow) -> FigureGiven:
    case = _case_id(row)
    run_id = run_id_of(tag, case, row.line)
    return FigureGiven(
        test=row.test,
        case=case,
        run_id=run_id,
        metric=row.metric,
        figure=row.value,
        unit=row.unit,
        better=row.better,
        n=row.n,
        sd=row.sd,
        least=row.least,
        greatest=row.greatest,
        stage=row.stage,
        line=row.line,
        system=row.system,
        source=row.source,
        date=row.date,
    )
