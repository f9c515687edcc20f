"""Gather the content of a report on trials.

    report = gather(Planned([TrialFolder(path)]), store)

Each journal is read once; its checksum is that of the bytes that were read.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from seatrial import __version__
from seatrial.acceptance.criteria import Result, TrialView, judge, overall
from seatrial.acceptance.documents import with_documents, with_evidence
from seatrial.acceptance.evidence_status import evidence_of
from seatrial.acceptance.outages import outages_of
from seatrial.acceptance.plan_records import PlanRecords
from seatrial.acceptance.status import Status, accounts_of, references_now, status
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.draw import ShadedSpan
from seatrial.errors import UsageError
from seatrial.gc_pause import uncollected
from seatrial.journal.journal import Reading, read
from seatrial.machine.facts import groups_of
from seatrial.plan.model import Component as Written
from seatrial.plan.model import Criterion
from seatrial.report import people, tables
from seatrial.report.as_found import Facts, as_found, told
from seatrial.report.checksums import NAMES, NOTES, File, document_of, file_of, sum_of
from seatrial.report.content import (
    Decision,
    Other,
    Report,
    ReportComponent,
    ReportMachine,
    Table,
    titled,
)
from seatrial.report.elapsed_figures import courses
from seatrial.report.expected import expected
from seatrial.report.failed import failed
from seatrial.report.figures import figures, scaling_figures, spread
from seatrial.report.given import beside_given, given_side
from seatrial.report.judged_again import corrected_references, judged_again
from seatrial.report.operator_actions import operator_actions
from seatrial.report.planned import Planned
from seatrial.report.ran import plan_texts, ran, scripts, tests
from seatrial.report.reviewed import causes, excluded_by_agreement
from seatrial.report.traceability import JudgedComponent, traceability
from seatrial.runs.launchers import launchers_of
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
from seatrial.trial.folder import Record, TrialFolder, user_name
from seatrial.units import SECOND_NS, count, listed
from seatrial.verify.checks import unlearned_sums

MAX_NAMED = 8  # items in a notice


class Author(NamedTuple):
    """Who makes a report, and what was decided. Without a name it is the account's."""

    name: str = ""
    organisation: str = ""
    decision: Decision = ""
    reservations: Sequence[str] = ()


def gather(planned: Planned, store: Store, author: Author | None = None, given: str = "") -> Report:
    """Return a report on trials, in their order. ``given``: figures that somebody else gave, which
    are shown beside the measured ones. Raises UsageError if some of the trials were measured and
    some rehearsed."""
    author = author or Author()
    records = [folder.record() for folder in planned.trials]
    _require_one_kind(records)
    kept, kept_files = _records(planned.records)
    with uncollected():
        side = given_side(store, given) if given else None
        gathered = [
            _trial(*each, store, kept, side) for each in zip(planned.trials, records, strict=True)
        ]
    parts = [one.part for one in gathered]
    files = [*chain.from_iterable(one.files for one in gathered), *kept_files]
    files += [*_notes_file(planned.trials, records), *_documents(planned, parts)]
    for folder in [TrialFolder(Path(each.path)) for each in (side.trials if side else ())]:
        files += [file_of(folder, name) for name in NAMES]
    damaged = [f"{each.trial}: {_unread(each.damaged)}" for each in files if each.damaged]
    results = [one for part in parts for one in part.status.criteria]
    waiting = [each for each in planned.others if each.state == "not begun"]
    notices = list(_notices(parts, planned.others))
    verdict = overall(results).state
    verdicts = {part.status.verdict for part in parts}
    states = {each.state for each in planned.others}
    if verdict in ("met", "met with waivers", "waived"):
        if waiting or "undecided" in verdicts or "evidence changed" in states:
            verdict = "undecided"
        elif "awaited" in verdicts | states:
            verdict = "awaited"
    plans = list(dict.fromkeys(record.plan for record in records))
    plan = plans[0] if len(plans) == 1 else ""
    machines = ", ".join(dict.fromkeys(record.machine.machine for record in records))
    return Report(
        title=_title(plan, machines, parts),
        about=planned.about,
        plan=plan,
        made=time.time_ns(),
        made_by=author.name or f"{user_name()}@{socket.gethostname()}",
        organisation=author.organisation,
        version=__version__,
        rehearsed=any(record.rehearsed for record in records),
        assumed=list(dict.fromkeys(chain.from_iterable(record.assumed for record in records))),
        verdict=verdict,
        complete=not waiting
        and not damaged
        and not any(part.status.awaited or part.status.unsound for part in parts)
        and not states & {"awaited", "evidence changed"}
        and all(p.status.state == "ended" for p in parts),
        remarks=[*planned.remarks, *damaged, *_versions(records)],
        notices=notices,
        issues=kept.open_issues,
        records=list(people.tables_of(kept)),
        clauses=traceability([one.judged for one in gathered], planned.others),
        phases=tables.phases(parts),
        components=parts,
        others=list(planned.others),
        machines=_machines(gathered),
        tests=tests(records),
        versions=_versions_of(gathered, planned),
        annexes=[*plan_texts(records), *scripts(records)],
        files=files,
        decision=author.decision,
        reservations=list(author.reservations),
    )


def _records(folder: TrialFolder | None) -> tuple[PlanRecords, list[File]]:
    """Return what people recorded about the plan, and the files that has it."""
    found = PlanRecords()
    if folder is None:
        return found, []
    reading = read(folder.journal)
    found.fold(reading)
    files = [file_of(folder, name) for name in NAMES[:-1]]
    return found, [*files, *_journal_of(folder, reading)]


def _journal_of(folder: TrialFolder, reading: Reading) -> Iterator[File]:
    """Yield the journal that was read, if there is one: a checklist that nobody ticked has none."""
    if folder.journal.exists() or folder.record().policy.kind != "checklist":
        yield file_of(folder, NAMES[-1], reading.end, reading.number, reading.damaged)


def _notices(parts: Sequence[ReportComponent], others: Sequence[Other]) -> Iterator[str]:
    """Yield what is to be read first: what is awaited, what failed, what changed."""
    for part in parts:
        status = part.status
        if status.awaited:
            yield f"{part.title}: awaited: {', '.join(status.awaited)}."
        bad = [item.id for item in status.items if item.state == "fail"]
        if bad:
            yield f"{part.title}: {count(len(bad), 'item')} failed: {listed(bad, MAX_NAMED)}."
        if status.unsound:
            yield f"{part.title}: {'; '.join(status.unsound)}."
    for other in others:
        awaited = [each.document for each in other.evidence if each.state == "awaited"]
        changed = [each.document for each in other.evidence if each.state == "changed"]
        gone = [each.document for each in other.evidence if each.state == "not here"]
        for names, words in (
            (awaited, "awaited"),
            (changed, "changed since it was signed for"),
            (gone, "not here"),
        ):
            if names:
                yield f"{other.title}: {words}: {', '.join(names)}."


def _notes_file(trials: Sequence[TrialFolder], records: Sequence[Record]) -> Iterator[File]:
    """Yield the notes of the folder that all trials are in, which the report shows."""
    folders = {folder.path.parent for folder in trials}
    path = next(iter(folders)) / NOTES
    if len(folders) > 1 or all(record.rehearsed for record in records):
        return
    try:
        size = path.stat().st_size
        sha256, there = sum_of(path, size)
    except OSError:
        return
    yield File(trial="", name=NOTES, sha256=sha256, bytes=there)


def _documents(planned: Planned, parts: Sequence[ReportComponent]) -> Iterator[File]:
    """Yield the documents of evidence and of items, with the checksums that were signed for."""
    evidence = [each for one in parts for each in one.evidence]
    evidence += [each for other in planned.others for each in other.evidence]
    shown = [(each.file, each.sha256) for each in evidence if each.state != "awaited"]
    ticks = [item.tick for one in parts for item in one.status.items if item.tick]
    shown += [(tick.document, tick.sha256) for tick in ticks if tick.sha256]
    folder = planned.file.parent if planned.file else Path()
    for document, sha256 in dict.fromkeys(shown):
        try:
            size = (folder / document).stat().st_size
        except OSError:
            size = 0
        yield document_of(document, sha256, size)


def _title(plan: str, machines: str, parts: Sequence[ReportComponent]) -> str:
    """Return the subject of a report, without a name twice."""
    what = plan or ", ".join(part.tag for part in parts[:3])
    return what if what == machines else f"{what} on {machines}"


def _require_one_kind(records: Sequence[Record]) -> None:
    if given := [record.tag for record in records if record.given is not None]:
        raise UsageError(f"{', '.join(given)}: its figures were given, and a report is of runs")
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


class GatheredTrial(NamedTuple):
    """What a trial gave: its content, the files that this is based on, what its jobs found."""

    record: Record
    cases: Sequence[Case]
    part: ReportComponent
    files: list[File]
    facts: list[Facts]

    @property
    def judged(self) -> JudgedComponent:
        """The component as the trial was made with it, and its results."""
        return JudgedComponent(self.record.component or Written(component=""), self.part)

    @property
    def toolchains(self) -> set[str]:
        """The toolchains that ran."""
        return {case.toolchain for case in self.cases}


def _machines(trials: Sequence[GatheredTrial]) -> list[ReportMachine]:
    """Return each machine as the trials knew it; trials that knew the same share an entry."""
    found: dict[str, list[GatheredTrial]] = {}
    for one in trials:
        found.setdefault(tables.digest_of_struct(one.record.machine), []).append(one)
    return [_machine(same, len(found) > 1) for same in found.values()]


def _machine(trials: Sequence[GatheredTrial], several: bool) -> ReportMachine:
    launchers = {
        (launcher.kind, *launcher.options): None
        for one in trials
        for launcher in launchers_of(one.record.machine, one.record.tests, one.cases)
    }
    facts = [each for one in trials for each in one.facts]
    shown = [" ".join(words) for words in launchers]
    return tables.machine([one.record for one in trials], several, shown, as_found(facts))


def _versions_of(trials: Sequence[GatheredTrial], planned: Planned) -> list[Table]:
    used = [(one.record, one.toolchains, one.facts) for one in trials]
    return tables.versions(used, planned.file, planned.skipped)


# ---- one trial ----------------------------------------------------------------------------


def _trial(
    folder: TrialFolder, record: Record, store: Store, kept: PlanRecords, given: Side | None = None
) -> GatheredTrial:
    cases = folder.cases()
    reading = read(folder.journal)
    history = accounts_of(record, cases)
    driven = owned(str(folder.path))
    facts: list[Facts] = []
    found = status(record, cases, told(reading, facts), driven=driven, history=history)
    files = [file_of(folder, name) for name in NAMES[:-1]]
    component = record.component or Written(component="", kind=record.policy.component_kind)
    files += _journal_of(folder, reading)
    home = Path(record.plan_file).parent
    evidence = evidence_of(component.evidence, kept.given, home)
    found = with_evidence(with_documents(found, home), evidence)
    row = queries.trial(store, str(folder.path))
    varied = variability(store, row, groups_of(record.machine))
    view = TrialView(history, found.now, references_now(record, history))
    notes = _notes(folder, record, history, found.now)
    made = [
        people.items(found.items),
        failed(history),
        judged_again(history),
        causes(found.reviews),
        operator_actions(history),
        expected(view),
        *tables.node_shares(found),
        *tables.node_hours(found),
        *tables.sub_phases(found),
    ]
    made += tables.conditions(record, history, found.now)
    made += [tables.spreads(varied), tables.shared(varied), tables.notes_table(notes)]
    drawn = [*figures(found, _pairs(view, found)), *courses(varied.kinds, notes, _outages(history))]
    drawn += [*spread(varied.kinds), *scaling_figures(_scaled(store, folder, cases, varied))]
    drawn += beside_given(store, folder, given) if given is not None else []
    ticked = [item.tick.time for item in found.items if item.tick is not None]
    part = ReportComponent(
        title=titled(component.component, record.phase) or folder.tag,
        tag=folder.tag,
        about=component.about,
        seed=record.seed,
        created=record.created,
        begun=min(ticked) if ticked else history.start,
        ended=_end(history, found, ticked),
        remarks=list(_remarks(record, found, reading.damaged, view)),
        status=found,
        waivers=component.waivers,
        evidence=evidence,
        tables=[table for table in made if table.rows],
        figures=drawn,
        excluded=[
            *(each for each in [excluded_by_agreement(found.reviews)] if each.rows),
            *tables.excluded(record, history, found, varied, reading.damaged),
        ],
        ran=ran(record, cases, found.node_shares),
        versions=tables.tests(folder, record, cases),
    )
    return GatheredTrial(record, cases, part, files, facts)


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


def _end(history: TrialHistory, found: Status, ticked: Sequence[int]) -> int | None:
    """Return when the clock of a trial stopped for good, or its last item got a result."""
    if ticked:
        return max(ticked) if all(item.tick for item in found.items) else None
    return history.spans[-1].end if history.over and history.spans else None


def _remarks(record: Record, found: Status, damaged: int, view: TrialView) -> Iterator[str]:
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
    yield from corrected_references(view.history, record)
    if note := unlearned_sums(record.tests, view.references.entries):
        yield f"{note[0].upper()}{note[1:]}."
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
    if not cases:  # of a checklist
        return []
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
