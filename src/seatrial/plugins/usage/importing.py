"""What all sources of jobs have in common, and the import itself.

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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell
from seatrial.errors import UsageError, suggest
from seatrial.escaping import plain_line
from seatrial.model.file_model import NAME
from seatrial.model.machine_file import described
from seatrial.plugins.usage.archive import (
    Archive,
    Covered,
    Ended,
    Rejects,
    Segment,
    archives,
    changing,
)
from seatrial.plugins.usage.gaps import gaps, minute
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.privacy import Audit, Pseudonyms, anonymous
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.results.store.ingest import sync
from seatrial.results.store.schema import Store
from seatrial.units import SECOND_NS, count

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
