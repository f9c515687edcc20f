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
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.options import MOMENT, complete, together, value_option
from seatrial.cli.query_common import opened
from seatrial.escaping import plain_line
from seatrial.model.settings import setting
from seatrial.plugins.usage.archive import Archive, Ended, Rejects, Segment
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.show.text import show_clock
from seatrial.units import SECOND_NS, count

NOT_ALL = 3  # exit code: jobs were brought in, and something could not be


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
    covered: tuple[int, int] | None = None
    #: What the source wants to be told at the next import, such as how far it read a file.
    cursor: str = ""
    #: What takes the place of ``covered`` and ``cursor``, if they are known only when all jobs have
    #: been taken; it is called then.
    ended: Ended | None = None


class Source(Protocol):
    """Where jobs come from. It may raise SeatrialError."""

    #: What people call it: ``sacct``, ``swf``.
    name: str
    #: The cluster by the batch system's name, where a machine has several: gaps are told of each.
    cluster: str

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield batches, the earliest first. A row that cannot be read goes to ``rejects``."""


import_options = together(
    click.option(
        "-m",
        "--machine",
        envvar="SEATRIAL_MACHINE",
        shell_complete=complete("machines"),
        default=lambda: setting("machine") or None,
        help="Machine on which the jobs ran, by name or file.",
    ),
    value_option(
        "--since", "TIME", "From then on; default: where the last import ended.", type=MOMENT
    ),
    value_option("--until", "TIME", "Before then; default: now.", type=MOMENT),
    click.option(
        "--anonymous", is_flag=True, help="Keep no names of users: a keyed hash stands for each."
    ),
    click.pass_obj,
)
"""What each import takes. They are passed on to `bring_in` as they are."""


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
    name = name_of_machine(machine)
    hidden = anonymous or settings_of(machine or "").anonymous
    archive = Archive(folders.trials, name)
    last = archive.last_of(source.name, source.cluster)
    ask = Ask(
        name,
        None if since is None else since // SECOND_NS,
        None if until is None else until // SECOND_NS,
        last.until if last else 0,
        last.cursor if last else "",
    )
    written: list[Segment] = []
    rejects = Rejects()
    for batch in source.batches(ask, rejects):
        about = Segment(
            machine=name,
            source=source.name,
            cluster=source.cluster,
            origin=batch.origin,
            asked=batch.asked,
            imported=time.time_ns(),
            by=account(),
            anonymous=hidden,
            cursor=batch.cursor,
        )
        segment = archive.write(about, batch.jobs, batch.covered, rejects, batch.ended)
        written.append(segment)
        click.echo(_told(segment))
    with opened(folders):
        pass
    return _told_rejects(written)


def _told(segment: Segment) -> str:
    """Return the line on a segment that was written."""
    span = f"{show_clock(segment.since * SECOND_NS)} to {show_clock(segment.until * SECOND_NS)}"
    jobs = count(segment.jobs, "job")
    return plain_line(f"{segment.machine}: {jobs}, {span}, from {segment.origin}")


def _told_rejects(written: Sequence[Segment]) -> int:
    return NOT_ALL if any(segment.rejects for segment in written) else 0
