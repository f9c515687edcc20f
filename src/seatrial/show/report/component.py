"""Gather the content of a report on one trial: a component of its plan in a phase.

gathered = gathered_trial(folder, record, store, kept)
gathered.part        # what the report says of it
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.journal.journal import Reading, read
from seatrial.judge.learning import unlearned_sums
from seatrial.model.figures import ELAPSED
from seatrial.model.machine import Machine as MachineFile
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import node_names
from seatrial.model.plan import Component as Written
from seatrial.model.plan import Criterion
from seatrial.model.schedulers import scheduler_of
from seatrial.model.task_placement import launchers_of
from seatrial.model.test import Case
from seatrial.results import notes as note_file
from seatrial.results.criteria.decision import judge
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.evidence import evidence_of
from seatrial.results.notes import Note
from seatrial.results.outages import Span, outages_of
from seatrial.results.records import PlanRecords
from seatrial.results.scaling import ScalingQuery, scaling
from seatrial.results.scaling import ScalingTable as Scaled
from seatrial.results.selection import Side, SideSelection
from seatrial.results.selection import gather as gather_side
from seatrial.results.status import (
    Status,
    accounts_of,
    references_now,
    status,
    with_documents,
    with_evidence,
)
from seatrial.results.store import queries
from seatrial.results.store.by_case import NUMBERS
from seatrial.results.store.queries import owned
from seatrial.results.store.schema import Store
from seatrial.results.trial_history import TrialHistory
from seatrial.results.variability import Variability, variability
from seatrial.show.page import Cell, Table
from seatrial.show.report import figures as tables
from seatrial.show.report import people
from seatrial.show.report.as_found import Facts, as_found, told
from seatrial.show.report.content import (
    ReportComponent,
    ReportMachine,
    bounded,
    columns_of,
    filled,
    titled,
)
from seatrial.show.report.figures import (
    MAX_ROWS,
    courses,
    figures,
    gauge_figures,
    parts_figures,
    scaling_figures,
    spread,
)
from seatrial.show.report.people import conditions, excluded
from seatrial.show.report.planned import beside_given, expected
from seatrial.show.report.ran import definitions, digest_of_struct, failed, ran
from seatrial.show.report.sign import NAMES, File, file_of
from seatrial.units import count, show_bytes, show_number


class GatheredTrial(NamedTuple):
    """What a trial gave: its content, the files that this is based on, what its jobs found."""

    record: Record
    cases: Sequence[Case]
    part: ReportComponent
    files: list[File]
    facts: list[Facts]

    @property
    def written(self) -> Written:
        """The component as the trial was made with it."""
        return self.record.component or Written(component="")

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
    made = filled(
        people.items(found.items),
        failed(history),
        people.judged_again(history),
        people.causes(found.reviews),
        people.operator_actions(history),
        expected(view),
        *tables.node_shares(found),
        *tables.node_hours(found),
        *tables.sub_phases(found),
        *conditions(record, history, found.now),
        *tables.variability_tables(varied),
        tables.notes_table(notes),
    )
    drawn = [
        *figures(found, _pairs(view, found)),
        *gauge_figures(history, found.now, _gauge_limits(component, history)),
        *courses(varied.kinds, notes, _outages(history), history.start or 0),
    ]
    drawn += [*spread(varied.kinds), *scaling_figures(_scaled(store, folder, cases, varied))]
    drawn += parts_figures(record, history)
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
        tables=made,
        figures=drawn,
        excluded=filled(
            people.excluded_by_agreement(found.reviews),
            *excluded(record, history, found, varied, reading.damaged),
        ),
        ran=ran(record, cases, found.node_shares),
        versions=definitions(folder, record, cases),
    )
    return GatheredTrial(record, cases, part, files, facts)


def _gauge_limits(component: Written, history: TrialHistory) -> dict[str, list[tuple[float, str]]]:
    """Return what throttles and criteria ask of gauges: values with their words, by gauge."""
    limits: dict[str, list[tuple[float, str]]] = {}
    for rule in history.policy.throttles:
        word = "closes above" if rule.target is None else "target"
        text = f"{word} {show_number(rule.highest)}"
        limits.setdefault(rule.gauge, []).append((rule.highest, text))
    for each in component.criteria:
        for word, written in (("at least", each.at_least), ("at most", each.at_most)):
            if each.gauge and isinstance(written, int | float):
                text = f"{word} {show_number(written)}"
                limits.setdefault(each.gauge, []).append((float(written), text))
    return limits


def _notes(folder: TrialFolder, record: Record, history: TrialHistory, now: int) -> list[Note]:
    """Return what people noted about its machine while it ran; a rehearsal has no real time."""
    if record.rehearsed or history.start is None:
        return []
    start, end = history.start, max([now, *(span.end or 0 for span in history.spans)])
    notes = note_file.read(folder.path.parent / note_file.FILE).of(record.machine.machine)
    return [note for note in notes if start <= note.time <= end]


def _outages(history: TrialHistory) -> list[Span]:
    """Return the planned outages within the trial's time, in ns since the epoch."""
    first, last = history.start or 0, history.last
    spans = outages_of(history) if history.spans else ()
    inside = [(max(first, each.start), min(last, each.end)) for each in spans]
    return [(start, end) for start, end in inside if start < end]


def _end(history: TrialHistory, status: Status, ticked: Sequence[int]) -> int | None:
    """Return when the clock of a trial stopped for good, or its last item got a result."""
    if ticked:
        return max(ticked) if all(item.tick for item in status.items) else None
    return history.spans[-1].end if history.over and history.spans else None


def _remarks(record: Record, status: Status, damaged: int, view: TrialView) -> Iterator[str]:
    if status.state in ("abandoned", "cancelled"):
        yield f"This trial was {status.state}: it did not come to its end."
    elif record.imported is not None:
        source = record.imported
        yield f"The runs of this trial were made with {source.tool}: imported from {source.file}."
    elif status.state != "ended":
        yield (
            f"Interim: this trial is {status.state}; what is said of it is as of its journal's end "
            "in this report."
        )
    if status.sharing:
        yield (
            f"In this trial {status.sharing}. Utilisation counts each node-hour once; in the "
            "shares of tests it is divided among the runs, by their cores."
        )
    yield from people.corrected_references(view.history, record)
    if note := unlearned_sums(record.tests, view.references.entries):
        yield f"{note[0].upper()}{note[1:]}."
    if damaged:
        yield unread(damaged)


def unread(damaged: int) -> str:
    are = "is" if damaged == 1 else "are"
    return f"{count(damaged, 'line')} of its journal could not be read, and {are} not counted."


def _pairs(view: TrialView, status: Status) -> list[Result]:
    """Return the slowdown results: the plan's own, or without a bound if cases ran both ways."""
    results_of_plan = [results for results in status.criteria if results[0].criterion == "slowdown"]
    if results_of_plan:
        return results_of_plan[0]
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
    metrics: dict[str, str] = {}
    for row in varied.rows:
        if row.metric != ELAPSED:
            metrics.setdefault(row.test, row.metric)
    tables: list[Scaled] = []
    for test in dict.fromkeys(case.test for case in cases):
        tables += _scaled_test(side, test, metrics.get(test, ELAPSED))
    return [one for one in tables if any(cell.speedup for line in one.lines for cell in line.cells)]


def _scaled_test(side: Side, test: str, metric: str) -> list[Scaled]:
    members = [member for member in side.cases if member.test == test]
    sizes = (name for name in NUMBERS if len({one.attribute(name) for one in members}) > 1)
    x = next(sizes, None)
    if x is None:
        return []
    try:
        return scaling([Side(side.text, side.trials, members)], ScalingQuery(x=x, metric=metric))
    except UsageError:
        return []  # no two of its cases differ in that alone, or nothing was measured


def journal_of(folder: TrialFolder, reading: Reading) -> Iterator[File]:
    """Yield the journal that was read, if there is one: a checklist that nobody ticked has none."""
    if folder.journal.exists() or folder.record().policy.kind != "checklist":
        yield file_of(folder, NAMES[-1], reading.end, reading.number, reading.damaged)


# ---- machine -------------------------------------------------------------------------------------
#
# List the machines of a report as the trials knew them.


def machines_of(trials: Sequence[GatheredTrial]) -> list[ReportMachine]:
    """Return each machine as the trials knew it; trials that knew the same share an entry."""
    by_definition: dict[str, list[GatheredTrial]] = {}
    for one in trials:
        by_definition.setdefault(digest_of_struct(one.record.machine), []).append(one)
    return [_machine(same, len(by_definition) > 1) for same in by_definition.values()]


def _machine(trials: Sequence[GatheredTrial], several: bool) -> ReportMachine:
    launchers = {
        (launcher.kind, *launcher.options): None
        for one in trials
        for launcher in launchers_of(one.record.machine, one.record.tests, one.cases)
    }
    facts = [each for one in trials for each in one.facts]
    shown = [" ".join(words) for words in launchers]
    return machine([one.record for one in trials], several, shown, as_found(facts))


def machine(
    records: Sequence[Record],
    several: bool,
    launchers: Sequence[str] = (),
    tables: Sequence[Table] = (),
) -> ReportMachine:
    """Return a machine as these trials knew it, the launchers that started their runs, and the
    tables of what their jobs ``found``; ``several``: other trials knew it differently."""
    about = records[0].machine
    names = node_names(about)
    scheduler = scheduler_of(about.scheduler).title
    facts = [
        ("nodes", f"{len(names):,}: {fold(names)}"),
        ("scheduler", scheduler),
        ("launcher", "; ".join(launchers)),
    ]
    words = ("partition", "account", "qos", "reservation", "constraint", "queue", "project")
    facts += [(word, getattr(about.batch, word, "")) for word in words]
    facts.append(("modules", ", ".join(about.modules)))
    facts.append(("variables set", ", ".join(about.environment)))
    if several:
        facts.append(("of the trials", ", ".join(record.tag for record in records)))
    facts += [(name, str(value)) for name, value in about.facts.items()]
    shown = [(name, text) for name, text in facts if text]
    made = [_nodes(about), *tables, *_file_systems(about)]
    return ReportMachine(about.machine, about.about, shown, made)


def _nodes(about: MachineFile) -> Table:
    columns = columns_of(
        "nodes",
        ("number", "count"),
        ("cores", "count"),
        ("sockets", "count"),
        ("NUMA domains", "count"),
        ("threads a core", "count"),
        "memory",
        ("GPUs", "count"),
        "features",
    )
    rows: list[Sequence[Cell]] = []
    for kind in about.nodes:
        memory = kind.memory.written
        shown = memory if isinstance(memory, str) else show_bytes(memory) if memory else ""
        cores = (kind.cores, kind.sockets, kind.numa_domains, kind.threads_per_core)
        features = ", ".join(kind.features)
        number = len(unfold(kind.names))
        rows.append((kind.names, number, *cores, shown, kind.gpus or None, features))
    return bounded("Nodes", columns, rows, max_rows=MAX_ROWS)


def _file_systems(about: MachineFile) -> Iterator[Table]:
    if not about.file_systems:
        return
    columns = columns_of(
        "file system", "path", "metadata targets", ("safe load of a target", "count", "open files")
    )
    rows = (
        (name, each.path, ", ".join(t.name for t in each.metadata_targets), each.safe_load or None)
        for name, each in about.file_systems.items()
    )
    yield bounded("File systems", columns, rows, max_rows=MAX_ROWS)
