"""Gather the content of a report on one trial: a component of its plan in a phase.

gathered = gathered_trial(folder, record, store, kept)
gathered.part        # what the report says of it
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.acceptance.criteria import Result, TrialView, judge
from seatrial.acceptance.documents import with_documents, with_evidence
from seatrial.acceptance.evidence_status import evidence_of
from seatrial.acceptance.outages import outages_of
from seatrial.acceptance.plan_records import PlanRecords
from seatrial.acceptance.status import Status, accounts_of, references_now, status
from seatrial.acceptance.trial_history import TrialHistory
from seatrial.draw import ShadedSpan
from seatrial.errors import UsageError
from seatrial.journal.journal import Reading, read
from seatrial.plan.model import Component as Written
from seatrial.plan.model import Criterion
from seatrial.report import people, tables
from seatrial.report.as_found import Facts, told
from seatrial.report.checksums import NAMES, File, file_of
from seatrial.report.content import ReportComponent, titled
from seatrial.report.elapsed_figures import courses
from seatrial.report.excluded import conditions, excluded
from seatrial.report.expected import expected
from seatrial.report.failed import failed
from seatrial.report.figures import figures, scaling_figures, spread
from seatrial.report.given import beside_given
from seatrial.report.ran import ran
from seatrial.report.traceability import JudgedComponent
from seatrial.report.versions import definitions
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
from seatrial.trial.folder import TrialFolder
from seatrial.trial.record import Record
from seatrial.units import SECOND_NS, count
from seatrial.verify.learned_sums import unlearned_sums


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


def gathered_trial(
    folder: TrialFolder, record: Record, store: Store, kept: PlanRecords, given: Side | None = None
) -> GatheredTrial:
    """Return what a report says of a trial. ``kept`` is what people recorded about its plan, and
    ``given`` the figures of others."""
    cases = folder.cases()
    reading = read(folder.journal)
    history = accounts_of(record, cases)
    driven = owned(str(folder.path))
    facts: list[Facts] = []
    found = status(
        record, cases, told(reading, facts), driven=driven, history=history, reading=reading
    )
    files = [file_of(folder, name) for name in NAMES[:-1]]
    component = record.component or Written(component="", kind=record.policy.component_kind)
    files += journal_of(folder, reading)
    home = Path(record.plan_file).parent
    evidence = evidence_of(component.evidence, kept.given, home)
    found = with_evidence(with_documents(found, home), evidence)
    row = queries.trial(store, str(folder.path))
    varied = variability(store, row, record.machine)
    view = TrialView(history, found.now, references_now(record, history))
    notes = _notes(folder, record, history, found.now)
    made = [
        people.items(found.items),
        failed(history),
        people.judged_again(history),
        people.causes(found.reviews),
        people.operator_actions(history),
        expected(view),
        *tables.node_shares(found),
        *tables.node_hours(found),
        *tables.sub_phases(found),
    ]
    made += conditions(record, history, found.now)
    made += [tables.spreads(varied), tables.shared(varied), tables.places(varied)]
    made.append(tables.notes_table(notes))
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
            *(each for each in [people.excluded_by_agreement(found.reviews)] if each.rows),
            *excluded(record, history, found, varied, reading.damaged),
        ],
        ran=ran(record, cases, found.node_shares),
        versions=definitions(folder, record, cases),
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
    elif record.imported is not None:
        source = record.imported
        yield f"The runs of this trial were made with {source.tool}: imported from {source.file}."
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
    yield from people.corrected_references(view.history, record)
    if note := unlearned_sums(record.tests, view.references.entries):
        yield f"{note[0].upper()}{note[1:]}."
    if damaged:
        yield unread(damaged)


def unread(damaged: int) -> str:
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


def journal_of(folder: TrialFolder, reading: Reading) -> Iterator[File]:
    """Yield the journal that was read, if there is one: a checklist that nobody ticked has none."""
    if folder.journal.exists() or folder.record().policy.kind != "checklist":
        yield file_of(folder, NAMES[-1], reading.end, reading.number, reading.damaged)
