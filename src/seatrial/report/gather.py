"""Gather the content of a report on trials.

    report = gather(Planned([TrialFolder(path)]), store)

Each journal is read once; its checksum is that of the bytes that were read.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from itertools import chain

from seatrial import __version__
from seatrial.acceptance.criteria import Result, TrialView, judge, overall
from seatrial.acceptance.outages import outages_of
from seatrial.acceptance.status import Status, accounts_of, status
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.draw import ShadedSpan
from seatrial.errors import UsageError
from seatrial.gc_pause import uncollected
from seatrial.journal.journal import read
from seatrial.machine.facts import groups_of
from seatrial.plan.model import Component as Written
from seatrial.plan.model import Criterion
from seatrial.report import tables
from seatrial.report.checksums import NAMES, File, file_of
from seatrial.report.content import Report, ReportComponent, ReportMachine, titled
from seatrial.report.elapsed_figures import courses
from seatrial.report.expected import expected
from seatrial.report.failed import failed
from seatrial.report.figures import figures, scaling_figures, spread
from seatrial.report.judged_again import judged_again
from seatrial.report.planned import Planned
from seatrial.store import queries
from seatrial.store.by_case import NUMBERS
from seatrial.store.liveness import owned
from seatrial.store.schema import Store
from seatrial.studies import note_file
from seatrial.studies.note_file import Note
from seatrial.studies.scaling import ScalingQuery, scaling
from seatrial.studies.scaling import ScalingTable as Scaled
from seatrial.studies.selection import Side, SideSelection
from seatrial.studies.selection import gather as gather_side
from seatrial.studies.variability import Variability, variability
from seatrial.suite.model import Case
from seatrial.trial.folder import Record, TrialFolder, references_of, user_name
from seatrial.units import SECOND_NS, count


def gather(planned: Planned, store: Store) -> Report:
    """Return a report on trials, in their order. Raises UsageError if some of them were measured
    and some rehearsed."""
    records = [folder.record() for folder in planned.trials]
    _require_one_kind(records)
    with uncollected():
        pairs = [_trial(*each, store) for each in zip(planned.trials, records, strict=True)]
    parts = [part for part, _ in pairs]
    files = list(chain.from_iterable(files for _, files in pairs))
    damaged = [f"{each.trial}: {_unread(each.damaged)}" for each in files if each.damaged]
    results = [one for part in parts for one in part.status.criteria]
    waiting = [each for each in planned.others if each.state == "not begun"]
    verdict = overall(results)
    if waiting and verdict in ("met", "waived"):
        verdict = "undecided"
    plans = list(dict.fromkeys(record.plan for record in records))
    plan = plans[0] if len(plans) == 1 else ""
    machines = ", ".join(dict.fromkeys(record.machine.machine for record in records))
    return Report(
        title=f"{plan or ', '.join(part.tag for part in parts[:3])} on {machines}",
        about=planned.about,
        plan=plan,
        made=time.time_ns(),
        made_by=f"{user_name()}@{socket.gethostname()}",
        version=__version__,
        rehearsed=any(record.rehearsed for record in records),
        assumed=list(dict.fromkeys(chain.from_iterable(record.assumed for record in records))),
        verdict=verdict,
        complete=not waiting and not damaged and all(p.status.state == "ended" for p in parts),
        remarks=[*planned.remarks, *damaged, *_versions(records)],
        components=parts,
        others=list(planned.others),
        machines=_machines(records),
        versions=tables.versions(records, planned.file, planned.skipped),
        files=files,
    )


def _require_one_kind(records: Sequence[Record]) -> None:
    rehearsed = [record.tag for record in records if record.rehearsed]
    measured = [record.tag for record in records if not record.rehearsed]
    if rehearsed and measured:
        raise UsageError(
            f"{', '.join(rehearsed)}: rehearsed, but {', '.join(measured)} measured; no report "
            "holds both: make one of each kind"
        )


def _versions(records: Sequence[Record]) -> Iterator[str]:
    versions = sorted({record.version for record in records} - {__version__})
    if versions:
        yield (
            f"Trials were run with Seatrial {', '.join(versions)}; this report was made with "
            f"{__version__}, whose criteria decide here."
        )


def _machines(records: Sequence[Record]) -> list[ReportMachine]:
    """Return each machine as the trials knew it; trials that knew the same share an entry."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(tables.digest_of_struct(record.machine), []).append(record)
    return [tables.machine(same, len(found) > 1) for same in found.values()]


# ---- one trial ----------------------------------------------------------------------------


def _trial(folder: TrialFolder, record: Record, store: Store) -> tuple[ReportComponent, list[File]]:
    """Return the content about one trial, and the files that it is based on."""
    cases = folder.cases()
    reading = read(folder.journal)
    history = accounts_of(record, cases)
    driven = owned(str(folder.path))
    found = status(record, cases, reading, driven=driven, history=history)
    files = [file_of(folder, name) for name in NAMES[:-1]]
    files.append(file_of(folder, NAMES[-1], reading.end, reading.number, reading.damaged))
    component = record.component or Written(component="", kind=record.policy.kind)
    row = queries.trial(store, str(folder.path))
    varied = variability(store, row, groups_of(record.machine))
    view = TrialView(history, found.now, references_of(record))
    notes = _notes(folder, record, history, found.now)
    made = [
        failed(history),
        judged_again(history),
        expected(view),
        *tables.node_shares(found),
        *tables.node_hours(found),
        *tables.sub_phases(found),
    ]
    made += tables.conditions(record, history, found.now)
    made += [tables.spreads(varied), tables.shared(varied), tables.notes_table(notes)]
    drawn = [*figures(found, _pairs(view, found)), *courses(varied.kinds, notes, _outages(history))]
    drawn += [*spread(varied.kinds), *scaling_figures(_scaled(store, folder, cases, varied))]
    part = ReportComponent(
        title=titled(component.component, record.phase) or folder.tag,
        tag=folder.tag,
        about=component.about,
        seed=record.seed,
        created=record.created,
        begun=history.start,
        # when its clock stopped for good
        ended=history.spans[-1].end if history.over and history.spans else None,
        remarks=list(_remarks(found, reading.damaged)),
        status=found,
        waivers=component.waivers,
        evidence=component.evidence,
        tables=[table for table in made if table.rows],
        figures=drawn,
        excluded=tables.excluded(record, history, found, varied, reading.damaged),
        versions=tables.tests(folder, record, cases),
    )
    return part, files


def _notes(folder: TrialFolder, record: Record, history: TrialHistory, now: int) -> list[Note]:
    """Return what people noted about its machine while it ran; a rehearsal has no real time."""
    if record.rehearsed or history.start is None:
        return []
    start, end = history.start, max([now, *(span.end or 0 for span in history.spans)])
    notes = note_file.read(folder.path.parent / note_file.FILE).of(record.machine.machine)
    return [note for note in notes if start <= note.time <= end]


def _outages(history: TrialHistory) -> list[ShadedSpan]:
    """Return the planned outages within the trial's time, in s since the epoch."""
    first, last = history.start or 0, history.last
    spans = outages_of(history) if history.spans else ()
    inside = [(max(first, each.start), min(last, each.end)) for each in spans]
    return [
        ShadedSpan(start / SECOND_NS, end / SECOND_NS, "outage")
        for start, end in inside
        if start < end
    ]


def _remarks(found: Status, damaged: int) -> Iterator[str]:
    if found.state in ("abandoned", "cancelled"):
        yield f"This trial was {found.state}: it did not come to its end."
    elif found.state != "ended":
        yield (
            f"Interim: this trial is {found.state}; what is said of it is as of its journal's end "
            "in this report."
        )
    if found.sharing:
        yield (
            f"In this trial {found.sharing}. Utilisation counts each node-hour once; in the shares "
            "of tests it is divided among the runs, by their cores."
        )
    if damaged:
        yield _unread(damaged)


def _unread(damaged: int) -> str:
    are = "is" if damaged == 1 else "are"
    return f"{count(damaged, 'line')} of its journal could not be read, and {are} not counted."


def _pairs(view: TrialView, found: Status) -> list[Result]:
    """Return the slowdown results: the plan's own, or without a bound if cases ran both ways."""
    own = [results for results in found.criteria if results[0].criterion == "slowdown"]
    if own:
        return own[0]
    stages = {run.stage for run in view.history.runs}
    if not {"alone", "full"} <= stages:
        return []
    return judge(Criterion(criterion="slowdown"), view)


def _scaled(
    store: Store, folder: TrialFolder, cases: Sequence[Case], varied: Variability
) -> list[Scaled]:
    """Return how tests scale that ran with several numbers of nodes, threads or tasks.

    The metric is the test's first, or the elapsed time.
    """
    side = gather_side(store, SideSelection(folder.tag, str(folder.path), {}))
    found: list[Scaled] = []
    for test in dict.fromkeys(case.test for case in cases):
        members = [member for member in side.cases if member.test == test]
        names = [row.metric for row in varied.rows if row.test == test and row.metric != "elapsed"]
        x = next((n for n in NUMBERS if len({m.attribute(n) for m in members}) > 1), None)
        if x is None:
            continue
        try:
            asked = ScalingQuery(x=x, metric=names[0] if names else "elapsed")
            found += scaling([Side(side.text, side.trials, members)], asked)
        except UsageError:
            continue  # no two of its cases differ in that alone, or nothing was measured
    return [one for one in found if any(cell.speedup for line in one.lines for cell in line.cells)]
