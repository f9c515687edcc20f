"""Gather the content of a report on trials.

    report = gather(Planned([TrialFolder(path)]), store)

Each journal is read once; its checksum is that of the bytes that were read.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from seatrial import __version__
from seatrial.account import account
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.journal.events import BuildEnded, Event, ScriptStarted
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
from seatrial.results.case_figures import NUMBERS
from seatrial.results.criteria.mix import OverallState, overall
from seatrial.results.criteria.view import Result, TrialView
from seatrial.results.notes import Note
from seatrial.results.records import PlanRecords, evidence_of
from seatrial.results.scaling import ScalingQuery, scaling
from seatrial.results.scaling import ScalingTable as Scaled
from seatrial.results.selection import Side, SideSelection
from seatrial.results.selection import gather as gather_side
from seatrial.results.status import (
    Status,
    accounts_of,
    judge,
    references_now,
    status,
    with_documents,
    with_evidence,
)
from seatrial.results.store import queries
from seatrial.results.store.queries import owned
from seatrial.results.store.schema import Store
from seatrial.results.trial_history import Span, TrialHistory, outages_of
from seatrial.results.variability import Variability, variability
from seatrial.show.page import Cell, Table
from seatrial.show.report import figures as tables
from seatrial.show.report import people
from seatrial.show.report.content import (
    Decision,
    Other,
    Report,
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
from seatrial.show.report.people import conditions, excluded, traceability
from seatrial.show.report.planned import Planned, beside_given, expected, given_side
from seatrial.show.report.ran import (
    definitions,
    digest_of_struct,
    failed,
    plan_texts,
    ran,
    scripts,
    tests,
    versions,
)
from seatrial.show.report.sign import NAMES, NOTES, File, document_of, file_of, sum_of
from seatrial.units import count, listed, show_bytes, show_number

Facts = dict[str, str]
"""What a job told of its node, or a build of its compilers, by name."""

MAX_NAMED = 8  # items in a notice
_OF_DOCUMENTS = {
    "awaited": "awaited",
    "changed": "changed since it was signed for",
    "not here": "not here",
}


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
    side = given_side(store, given) if given else None
    gathered = [
        gathered_trial(*each, store, kept, side)
        for each in zip(planned.trials, records, strict=True)
    ]
    parts = [one.part for one in gathered]
    files = [*chain.from_iterable(one.files for one in gathered), *kept_files]
    files += _files_beside(planned, records, parts, side)
    damaged = [f"{each.trial}: {unread(each.damaged)}" for each in files if each.damaged]
    used = [(one.record, one.toolchains, one.facts) for one in gathered]
    plan = _plan(records)
    return Report(
        title=_title(plan, records, parts),
        about=planned.about,
        plan=plan,
        made=time.time_ns(),
        made_by=author.name or account(),
        organisation=author.organisation,
        version=__version__,
        rehearsed=records[0].rehearsed,
        assumed=list(dict.fromkeys(chain.from_iterable(record.assumed for record in records))),
        verdict=_verdict(parts, planned.others),
        complete=not damaged and _is_complete(parts, planned.others),
        remarks=[*planned.remarks, *damaged, *_other_versions(records)],
        notices=list(_notices(parts, planned.others)),
        issues=kept.open_issues,
        records=people.tables_of(kept),
        clauses=traceability([(one.written, one.part) for one in gathered], planned.others),
        phases=tables.phases(parts),
        components=parts,
        others=list(planned.others),
        machines=machines_of(gathered),
        tests=tests(records),
        versions=versions(used, planned.file, planned.skipped),
        annexes=[*plan_texts(records), *scripts(records)],
        files=files,
        decision=author.decision,
        reservations=list(author.reservations),
    )


def _verdict(parts: Sequence[ReportComponent], others: Sequence[Other]) -> OverallState:
    """Return the verdict of all criteria together. What is met is not so yet while a component is
    not begun or not decided, or a document is awaited or was changed."""
    verdict = overall([one for part in parts for one in part.status.criteria]).state
    states = {part.status.verdict for part in parts} | {other.state for other in others}
    if verdict not in ("met", "met with waivers", "waived"):
        return verdict
    if states & {"undecided", "not begun", "evidence changed"}:
        return "undecided"
    return "awaited" if "awaited" in states else verdict


def _is_complete(parts: Sequence[ReportComponent], others: Sequence[Other]) -> bool:
    """Return whether all components ended, with all of their documents."""
    if any(other.state in ("not begun", "awaited", "evidence changed") for other in others):
        return False
    statuses = [part.status for part in parts]
    return all(
        each.state in ("ended", "imported") and not each.awaited and not each.unsound
        for each in statuses
    )


def _files_beside(
    planned: Planned, records: Sequence[Record], parts: Sequence[ReportComponent], side: Side | None
) -> Iterator[File]:
    """Yield the files that a report rests on besides those of its trials: notes, documents, and
    the trials of given figures."""
    yield from _notes_file(planned.trials, records)
    yield from _documents(planned, parts)
    for trial in side.trials if side else ():
        folder = TrialFolder(Path(trial.path))
        yield from (file_of(folder, name) for name in NAMES)


def _records(folder: TrialFolder | None) -> tuple[PlanRecords, list[File]]:
    """Return what people recorded about the plan, and the files that has it."""
    records = PlanRecords()
    if folder is None:
        return records, []
    reading = read(folder.journal)
    records.fold(reading)
    files = [file_of(folder, name) for name in NAMES[:-1]]
    return records, [*files, *journal_of(folder, reading)]


def _notices(parts: Sequence[ReportComponent], others: Sequence[Other]) -> Iterator[str]:
    """Yield what is to be read first: what is awaited, what failed, what changed."""
    for part in parts:
        yield from (f"{part.title}: {notice}." for notice in _notices_of(part.status))
    for other in others:
        for state, words in _OF_DOCUMENTS.items():
            names = [each.document for each in other.evidence if each.state == state]
            if names:
                yield f"{other.title}: {words}: {', '.join(names)}."


def _notices_of(status: Status) -> Iterator[str]:
    if status.awaited:
        yield f"awaited: {', '.join(status.awaited)}"
    failed = [item.id for item in status.items if item.state == "fail"]
    if failed:
        yield f"{count(len(failed), 'item')} failed: {listed(failed, MAX_NAMED)}"
    if status.unsound:
        yield "; ".join(status.unsound)


def _notes_file(trials: Sequence[TrialFolder], records: Sequence[Record]) -> Iterator[File]:
    """Yield the notes of the folder that all trials are in, which the report shows."""
    folders = {folder.path.parent for folder in trials}
    path = next(iter(folders)) / NOTES
    if len(folders) > 1 or all(record.rehearsed for record in records):
        return
    try:
        size = path.stat().st_size
        sha256, read_bytes = sum_of(path, size)
    except OSError:
        return
    yield File(trial="", name=NOTES, sha256=sha256, bytes=read_bytes)


def _documents(planned: Planned, parts: Sequence[ReportComponent]) -> Iterator[File]:
    """Yield the documents of evidence and of items, with the checksums that were signed for."""
    papers: list[ReportComponent | Other] = [*parts, *planned.others]
    evidence = chain.from_iterable(one.evidence for one in papers)
    shown = [(each.file, each.sha256) for each in evidence if each.state != "awaited"]
    for item in chain.from_iterable(part.status.items for part in parts):
        if item.tick and item.tick.sha256:
            shown.append((item.tick.document, item.tick.sha256))
    folder = planned.file.parent if planned.file else Path()
    for document, sha256 in dict.fromkeys(shown):
        try:
            size = (folder / document).stat().st_size
        except OSError:
            size = 0
        yield document_of(document, sha256, size)


def _plan(records: Sequence[Record]) -> str:
    """Return the name of the plan of all trials, "" where they are of several."""
    plans = {record.plan for record in records}
    return plans.pop() if len(plans) == 1 else ""


def _title(plan: str, records: Sequence[Record], parts: Sequence[ReportComponent]) -> str:
    """Return the subject of a report, without a name twice."""
    machines = ", ".join(dict.fromkeys(record.machine.machine for record in records))
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


def _other_versions(records: Sequence[Record]) -> Iterator[str]:
    versions = sorted({record.version for record in records} - {__version__})
    if versions:
        yield (
            f"Trials were run with Seatrial {', '.join(versions)}; this report was made with "
            f"{__version__}, whose criteria decide here."
        )


# ---- a trial -------------------------------------------------------------------------------------
#
# A component of its plan in a phase.
#
#     gathered = gathered_trial(folder, record, store, kept)
#     gathered.part        # what the report says of it


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


# ---- machine as found ----------------------------------------------------------------------------
#
# What the first job of each toolchain told of its node.
#
#     facts = []
#     status(record, cases, told(events, facts))     # the events are read once
#     tables = as_found(facts)

MAX_FOUND: Final = 200
_OF_TOOLCHAIN: Final = {
    "cc": "C compiler",
    "cxx": "C++ compiler",
    "fc": "Fortran compiler",
    "mpicc": "compiler of the MPI",
    "mpi": "MPI",
    "spack": "package of Spack",
    "easybuild": "module of EasyBuild",
    "launcher": "launcher",
}
_OF_NODE: Final = {
    "os": "operating system",
    "cpu": "CPU",
    "processors": "processors (logical)",
    "gpus": "GPUs",
    "gpu driver": "GPU driver",
    "slurm": "Slurm",
}
_ABOUT_RUN: Final = ("host", "toolchain")


def told(events: Iterable[Event], facts: list[Facts]) -> Iterator[Event]:
    """Yield the events; append what jobs told of their nodes, and builds of their compilers."""
    for event in events:
        if isinstance(event, ScriptStarted | BuildEnded) and event.facts:
            facts.append(event.facts)
        yield event


def as_found(facts: Sequence[Facts]) -> list[Table]:
    """Return the tables of nodes and of toolchains as jobs found them, those that have rows."""
    of_nodes: dict[str, dict[str, set[str]]] = {}  # hosts by name and text
    of_chains: dict[tuple[str, str, str], set[str]] = {}
    for each in facts:
        host, chain = each.get("host", ""), each.get("toolchain", "")
        for name, text in each.items():
            if name in _OF_TOOLCHAIN:
                of_chains.setdefault((chain, name, text), set()).add(host)
            elif name not in _ABOUT_RUN:
                of_nodes.setdefault(name, {}).setdefault(text, set()).add(host)
    rows = [
        [_OF_NODE.get(name, name), text, _hosts(hosts)]
        for name, texts in of_nodes.items()
        for text, hosts in texts.items()
    ]
    chains = [
        [chain, _OF_TOOLCHAIN[name], text, _hosts(hosts)]
        for (chain, name, text), hosts in sorted(of_chains.items())
    ]
    about = "As the jobs of the trials found the nodes that they ran on"
    about_chains = "What the toolchains that ran say of their versions, in jobs and in builds"
    columns = columns_of("toolchain", "what", "version", "on")
    return filled(
        bounded("Machine as found", columns_of("what", "as found", "on"), rows, about, MAX_FOUND),
        bounded("Compilers and MPI as found", columns, chains, about_chains, MAX_FOUND),
    )


def _hosts(hosts: Iterable[str]) -> str:
    return fold(sorted(plain_line(host) for host in hosts if host))
