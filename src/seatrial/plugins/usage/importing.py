"""The import of jobs: what all sources have in common, what was imported, and what was not.

    class Log:                                     # a Source
        name = "mylog"
        cluster = ""

        def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
            yield Batch(jobs, origin="/var/log/jobs", asked=time.time_ns(), covered=(since, until))

    @click.command("mylog")
    @import_options
    def command(folders: Folders, **chosen: Any) -> int:
        '''Import jobs of ...'''
        return bring_in(folders, Log(), **chosen)

A batch becomes one segment of the archive, whole or not at all. Where a source fails in the middle
(it raises a SeatrialError), the batches before are kept, and the rest is a gap. Jobs are streamed:
nobody holds all of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol

import click
from msgspec import Struct

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page, tell
from seatrial.errors import UsageError, suggest
from seatrial.escaping import plain_line
from seatrial.model.file_model import NAME
from seatrial.model.machine_file import described
from seatrial.plugins.usage.archive import (
    IMPORTS,
    Archive,
    Covered,
    Ended,
    Rejects,
    Segment,
    StoredImport,
    archives,
    changing,
)
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.privacy import Audit, Pseudonyms, anonymous
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.results.store.ingest import sync
from seatrial.results.store.schema import Store
from seatrial.show.page import Column, Page, Part, Section, Table, Text
from seatrial.show.text import show_minute
from seatrial.units import SECOND_NS, count, show_seconds

NOT_ALL = 3  # exit code: jobs were brought in, and rows could not be read
MAX_GAPS = 3


class Ask(NamedTuple):
    """What a source is asked for. Times are in s."""

    machine: str
    #: As the user said; None: from where the last import of this source ended.
    since: int | None
    #: As the user said; None: until now.
    until: int | None
    #: Where the last import of this source ended: the end of what its batches covered, 0 if there
    #: was none, and the cursor of the last batch.
    covered_until: int = 0
    cursor: str = ""

    @property
    def covered(self) -> Covered:
        """The span of a file of all jobs: what the user said; None where he said nothing."""
        return None if self.since is None and self.until is None else (self.since, self.until)

    def of_span(self, jobs: Iterable[UserJob]) -> Iterable[UserJob]:
        """Return those of a file's jobs that were in the queue or ran within the span that the user
        said; all where he said none."""
        if self.since is None and self.until is None:
            return jobs
        since, until = self.since or 0, self.until or 1 << 62
        return (
            job
            for job in jobs
            if job.submitted < until and (job.ended is None or job.ended >= since)
        )


class Batch(NamedTuple):
    """What a source knows of one span of time."""

    #: Each with the name of the machine; streamed.
    jobs: Iterable[UserJob]
    #: The file or the command, for people.
    origin: str
    #: When the batch system was asked, or the file was written, in ns: of two records of an
    #: attempt the later one counts.
    asked: int
    #: All jobs that were in the queue or ran within this span (s, its end excluded) are there.
    #: None: from the first submission to the last time of any of the jobs.
    covered: Covered = None
    #: What the source wants to be told at the next import, such as how far it read a file.
    cursor: str = ""
    #: What takes the place of ``covered`` and ``cursor``, if they are known only when all jobs have
    #: been taken; it is called then.
    ended: Ended | None = None
    #: Whether ``asked`` is when a file was written: of a copy that is later than what it tells.
    of_file: bool = False


class Source(Protocol):
    """Where jobs come from. It may raise SeatrialError."""

    #: What people call it: ``sacct``, ``swf``.
    name: str
    #: The cluster by the batch system's name, where a machine has several: gaps are told of each.
    cluster: str

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield batches, the earliest first. A row that cannot be read goes to ``rejects``."""


def bring_in(
    folders: Folders,
    source: Source,
    *,
    machine: str | None,
    since: int | None,
    until: int | None,
    anonymous: bool,
) -> int:
    """Import what a source has, bring the store up to date, and tell of it. Returns the exit
    code."""
    name = _checked_name(name_of_machine(machine), since, until)
    _tell_new(folders.trials, name)
    rejects = Rejects()
    work = _Import(folders, name, machine or name, anonymous, source)
    with changing(folders.trials, adding=True), opened(folders) as store:
        before = _jobs_of(store, name)
        try:
            work.run(since, until, rejects)
        finally:
            if work.written:
                told = list(store.notices)
                sync(store, folders.trials)
                for notice in store.notices[len(told) :]:
                    if notice not in told:
                        tell(notice)
                work.tell(_jobs_of(store, name) - before if store.writable else None)
                for gap in gaps(store, name)[-MAX_GAPS:]:
                    tell(gap.sentence)
        if not work.written:
            raise UsageError(_nothing(work, source, rejects))
    return NOT_ALL if work.rejected else 0


def _checked_name(name: str, since: int | None, until: int | None) -> str:
    """Return the name of a machine. Raises UsageError."""
    if not NAME.fullmatch(name):
        raise UsageError(f"-m {name!r}: a name must be letters, digits, ._-")
    if since is not None and until is not None and since >= until:
        raise UsageError("--since is not before --until; name a span of time")
    return name


def _tell_new(trials: Path, name: str) -> None:
    """Tell where a name is new and like one that is known: it may be mistyped."""
    known = [*described(), *(archive.machine for archive in archives(trials))]
    if name not in known and (near := suggest(name, known, 0.8)):
        tell(f"{name}: is a new machine; {near}")


def _nothing(work: _Import, source: Source, rejects: Rejects) -> str:
    """Return the message that nothing was imported, and why."""
    if work.left_out:
        reasons = ", ".join(f"{number} {reason}" for reason, number in work.left_out.items())
        return f"{source.name}: no job was left to import: {reasons}"
    if not rejects.count:
        return f"{source.name}: no job is in it; nothing was imported"
    first = rejects.examples[0]
    return (
        f"{first.place}: {first.reason}; none of {count(rejects.count, 'row')} could be read: "
        "nothing was imported"
    )


class _Import:
    """One import: its batches become segments."""

    def __init__(
        self, folders: Folders, name: str, given: str, hidden: bool, source: Source
    ) -> None:
        settings = settings_of(given)
        self.name = name
        self.source = source
        self.archive = Archive(folders.trials, name)
        self.hidden = hidden or settings.anonymous
        self.written: list[Segment] = []
        #: Jobs that were not imported, by reason.
        self.left_out: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self._rejects = Rejects()
        self._pseudonyms = Pseudonyms(folders.trials)
        if self.hidden:
            self._pseudonyms.require_known(self.archive)
        self._forgotten = Audit(folders.trials).forgotten(name, self._pseudonyms)
        self._kept_from = int(time.time() - settings.keep.seconds) if settings.keep else 0

    @property
    def rejected(self) -> int:
        return sum(segment.rejects for segment in self.written)

    def run(self, since: int | None, until: int | None, rejects: Rejects) -> None:
        """Ask the source, and keep its batches."""
        self._rejects = rejects
        last = self.archive.last_of(self.source.name, self.source.cluster)
        ask = Ask(
            self.name,
            None if since is None else since // SECOND_NS,
            None if until is None else until // SECOND_NS,
            last.until if last else 0,
            last.cursor if last else "",
        )
        for batch in self.source.batches(ask, rejects):
            segment = self._keep(batch, rejects)
            if segment.until:
                self.written.append(segment)
                self.notes += rejects.notes
                rejects.clear()

    def _keep(self, batch: Batch, rejects: Rejects) -> Segment:
        about = Segment(
            machine=self.name,
            source=self.source.name,
            cluster=self.source.cluster,
            origin=batch.origin,
            asked=min(max(batch.asked, 1), time.time_ns()),  # a file may be from the future
            imported=time.time_ns(),
            by=account(),
            anonymous=self.hidden,
            cursor=batch.cursor,
        )
        jobs = self._wanted(batch.jobs)
        of_file = batch.of_file
        kept = self.archive.write(about, jobs, batch.covered, rejects, batch.ended, of_file=of_file)
        if kept.unfinished and kept.asked < about.asked:
            tell(
                f"{batch.origin}: was written {minute(about.asked // SECOND_NS)}, long after the "
                f"last time in it; its {count(kept.unfinished, 'job')} that had not ended count "
                f"until that, {minute(kept.asked // SECOND_NS)}"
            )
        return kept

    def _wanted(self, jobs: Iterable[UserJob]) -> Iterable[UserJob]:
        """Return those jobs that are kept, as they are kept."""
        if (forgotten := self._forgotten) is not None:
            reason = "of users who were forgotten"
            jobs = self._without(jobs, reason, lambda job: forgotten(job.user))
        if kept_from := self._kept_from:
            reason = "that ended before `keep` of the machine file"
            jobs = self._without(jobs, reason, lambda job: 0 < (job.ended or 0) < kept_from)
        return anonymous(jobs, self._pseudonyms) if self.hidden else jobs

    def _without(
        self, jobs: Iterable[UserJob], reason: str, is_out: Callable[[UserJob], bool]
    ) -> Iterator[UserJob]:
        for job in jobs:
            if is_out(job):
                self.left_out[reason] += 1
            else:
                yield job

    def tell(self, new: int | None) -> None:
        """Tell what was imported; ``new``: how many jobs the store has more, None if it cannot be
        written."""
        jobs = sum(segment.jobs for segment in self.written)
        first = min(segment.since for segment in self.written)
        last = max(segment.until for segment in self.written)
        parts = f" in {len(self.written)} parts" if len(self.written) > 1 else ""
        known = ""
        if new is None:
            known = " (kept; the store cannot be written, so answers from it do not know them yet)"
        elif new != jobs:
            known = f" ({count(new, 'new job')}, the others were known)"
        click.echo(
            plain_line(
                f"{self.name}: {count(jobs, 'job')}{known} of {minute(first)} to {minute(last)}"
                f"{parts}, from {self.written[-1].origin}"
            )
        )
        for reason, number in self.left_out.items():
            click.echo(f"left out: {count(number, 'job')} {reason}")
        for note, number in sorted(self.notes.items()):
            click.echo(f"{count(number, 'job')}: {note}")
        if self.rejected:
            self._tell_rejects()

    def _tell_rejects(self) -> None:
        for reject in self._rejects.examples:
            tell(f"{reject.place}: {reject.reason}")
        files = [self.archive.rejects_file(segment) for segment in self.written if segment.rejects]
        more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        rows = count(self.rejected, "row")
        tell(f"{rows} could not be read; kept in {files[0]}{more}")


def _jobs_of(store: Store, machine: str) -> int:
    rows = store.rows("SELECT count(*) FROM usage_jobs WHERE machine = ?", (machine,))
    return int(rows[0][0])


# ---- gaps ----------------------------------------------------------------------------------------
#
# What was imported, and what was not: spans, and the gaps between them.
#
#     for gap in gaps(store, "hopper", since, until):
#         notice(gap.sentence)             # beside each answer about this span
#
# A gap is a span of which nobody was asked: an answer that touches it knows less than it seems to.


NO_IMPORT = "nothing of it was imported; `seatrial usage import` does"


class Gap(NamedTuple):
    """A span of which it is not known what ran, in s."""

    machine: str
    #: By the batch system's name, where the machine has several.
    cluster: str
    since: int
    until: int

    @property
    def name(self) -> str:
        """The machine, with the cluster."""
        return _name(self.machine, self.cluster)

    @property
    def sentence(self) -> str:
        """What is missing, for people."""
        if not self.until:
            return f"{self.name}: {NO_IMPORT}"
        return (
            f"{self.name}: no jobs were imported of {minute(self.since)} to {minute(self.until)} "
            f"({show_seconds(self.until - self.since)}); what ran then is missing here"
        )


def gaps(store: Store, machine: str = "", since: int = 0, until: int = 0) -> list[Gap]:
    """Return the spans between two times (s) of which no import tells what ran on a machine; "": on
    each of which something was imported. ``since`` 0: from the first import's span on; ``until`` 0:
    up to the end of the last one's. A machine of which nothing was imported is one gap, which has
    no end where none was asked for."""
    rows = [row for row in stored_imports(store, machine) if not row.fault]
    if not rows:
        return [Gap(machine, "", since, until)] if machine else []
    return [
        Gap(name, cluster, *span)
        for name, of_machine in groupby(rows, lambda row: row.machine)
        for cluster, spans in _spans_by_cluster(list(of_machine), since, until).items()
        for span in spans
    ]


def _spans_by_cluster(
    rows: Sequence[StoredImport], since: int, until: int
) -> dict[str, list[tuple[int, int]]]:
    """Return the spans that are not covered, of each cluster of a machine."""
    since = since or min(row.since for row in rows)
    until = until or max(row.until for row in rows)
    covered: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        covered.setdefault(row.cluster, []).append((row.since, row.until))
    return {cluster: uncovered(spans, since, until) for cluster, spans in covered.items()}


def uncovered(covered: Iterable[tuple[int, int]], since: int, until: int) -> list[tuple[int, int]]:
    """Return the parts of a span that no other span covers."""
    left = []
    for first, last in sorted(span for span in covered if span[0] < span[1]):
        if first > since:
            left.append((since, min(first, until)))
        since = max(since, last)
        if since >= until:
            return left
    return [*left, (since, until)] if since < until else left


def stored_imports(store: Store, machine: str = "") -> list[StoredImport]:
    """Return what was imported of a machine, or of all, by the time when it was asked."""
    columns = ", ".join(IMPORTS.names)
    where, values = _of_machine(machine)
    sql = f"SELECT {columns} FROM usage_imports {where} ORDER BY machine, cluster, name"
    return [
        StoredImport(**dict(zip(IMPORTS.names, row, strict=True)))
        for row in store.rows(sql, values)
    ]


def _of_machine(machine: str) -> tuple[str, list[str]]:
    """Return the condition of a query for rows of a machine, and its values; "": of all."""
    return ("WHERE machine = ?", [machine]) if machine else ("", [])


def minute(time: int) -> str:
    """Return a time in s for people, in the local time zone."""
    return show_minute(time * SECOND_NS)


def _name(machine: str, cluster: str) -> str:
    return f"{machine} ({cluster})" if cluster else machine


# ---- seatrial usage imports ----------------------------------------------------------------------


class _ImportSpan(Struct, frozen=True):
    """A span that the imports of one source cover without a gap. Times are in s, ``asked`` (the
    latest) in ns."""

    machine: str
    cluster: str
    source: str
    since: int
    until: int
    asked: int
    imports: int = 0
    jobs: int = 0
    unfinished: int = 0
    rejects: int = 0
    removed: int = 0


def _import_spans(rows: Sequence[StoredImport]) -> list[_ImportSpan]:
    """Return the spans that imports cover, those of one source that touch each other as one. Jobs
    that several imports brought are counted in each."""
    touching: list[list[StoredImport]] = []
    before, until = ("", "", ""), 0
    for row in sorted(rows, key=lambda row: (row.machine, row.cluster, row.source, row.since)):
        source = (row.machine, row.cluster, row.source)
        if source != before or row.since > until:
            touching.append([])
            until = 0
        touching[-1].append(row)
        before, until = source, max(until, row.until)
    return list(map(_span_of, touching))


def _span_of(rows: Sequence[StoredImport]) -> _ImportSpan:
    """Return the span of imports of one source that touch each other, the earliest first."""
    first = rows[0]
    sums = {
        name: sum(getattr(row, name) for row in rows)
        for name in ("jobs", "unfinished", "rejects", "removed")
    }
    return _ImportSpan(
        machine=first.machine,
        cluster=first.cluster,
        source=first.source,
        since=first.since,
        until=max(row.until for row in rows),
        asked=max(row.asked for row in rows),
        imports=len(rows),
        **sums,
    )


def imports_page(store: Store, machine: str = "") -> Page:
    """Return what was imported: spans by machine and source, gaps, and files with faults."""
    rows = stored_imports(store, machine)
    spans = _import_spans([row for row in rows if not row.fault])
    left = gaps(store, machine) if rows or not machine else []
    faults = [row.fault for row in rows if row.fault]
    parts: list[Part] = [Table.of(_SPANS, spans)]
    if left:
        parts.append(Table.of(_GAPS, left, title="Gaps"))
    parts += [Text(f"{fault}; its jobs are left out", "notice") for fault in faults]
    return Page(
        "Imported jobs",
        [Section("Spans", parts)],
        _summary(store, machine, rows, left),
        records=lambda: {"spans": spans, "gaps": [gap._asdict() for gap in left], "faults": faults},
        lines=lambda: _lines(spans, left),
    )


def _summary(store: Store, machine: str, rows: Sequence[StoredImport], left: Sequence[Gap]) -> str:
    if not rows:
        return f"{machine or 'no machine'}: {NO_IMPORT}"
    where, values = _of_machine(machine)
    jobs = store.rows(f"SELECT count(*) FROM usage_jobs {where}", values)[0][0]
    machines = count(len({row.machine for row in rows}), "machine")
    return f"{count(jobs, 'job')} of {machines}, {count(len(left), 'gap')}"


_SPANS = (
    Column("machine", value=lambda span: _name(span.machine, span.cluster)),
    Column("source", value=lambda span: span.source),
    Column("from", "time", lambda span: span.since * SECOND_NS),
    Column("to", "time", lambda span: span.until * SECOND_NS),
    Column("jobs", "count", lambda span: span.jobs),
    Column("not ended", "count", lambda span: span.unfinished or None, spare=2),
    Column("rejected", "count", lambda span: span.rejects or None, spare=1),
    Column("removed", "count", lambda span: span.removed or None, spare=1),
    Column("imports", "count", lambda span: span.imports, spare=4),
    Column("asked", "time", lambda span: span.asked, spare=3),
)
_GAPS = (
    Column("machine", value=lambda gap: gap.name),
    Column("from", "time", lambda gap: gap.since * SECOND_NS),
    Column("to", "time", lambda gap: gap.until * SECOND_NS),
    Column("length", "seconds", lambda gap: gap.until - gap.since),
)


def _lines(spans: Sequence[_ImportSpan], left: Sequence[Gap]) -> Iterable[Sequence[object]]:
    yield "kind", "machine", "cluster", "source", "since", "until", "jobs", "rejects"
    for span in spans:
        yield (
            *("span", span.machine, span.cluster, span.source),
            *(span.since, span.until, span.jobs, span.rejects),
        )
    for gap in left:
        yield "gap", gap.machine, gap.cluster, "", gap.since, gap.until, "", ""


def print_imports(folders: Folders, machine: str, form: str) -> int:
    """Do ``seatrial usage imports``; return the exit code."""
    with opened(folders) as store:
        page = imports_page(store, machine)
    print_page(page, form)
    return 0
