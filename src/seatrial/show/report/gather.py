"""Gather the content of a report on trials.

    report = gather(Planned([TrialFolder(path)]), store)

Each journal is read once; its checksum is that of the bytes that were read.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from seatrial import __version__
from seatrial.account import account
from seatrial.errors import UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.journal.journal import read
from seatrial.results.criteria.mix import OverallState, overall
from seatrial.results.records import PlanRecords
from seatrial.results.selection import Side
from seatrial.results.status import Status
from seatrial.results.store.schema import Store
from seatrial.show.report import figures, people
from seatrial.show.report.component import (
    gathered_trial,
    journal_of,
    machines_of,
    unread,
)
from seatrial.show.report.content import Decision, Other, Report, ReportComponent
from seatrial.show.report.people import traceability
from seatrial.show.report.planned import Planned, given_side
from seatrial.show.report.ran import plan_texts, scripts, tests, versions
from seatrial.show.report.sign import NAMES, NOTES, File, document_of, file_of, sum_of
from seatrial.units import count, listed

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
        phases=figures.phases(parts),
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
