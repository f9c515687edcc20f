"""Logs in the Standard Workload Format, as the Parallel Workloads Archive has them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.importing import Ask, Batch, bring_in, import_options
from seatrial.plugins.usage.jobs import UserJob

STATES = {"0": "failed", "1": "completed", "5": "cancelled"}


class SwfLog:
    """A log that is asked for jobs."""

    name = "swf"
    cluster = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield all of the log."""
        asked = self.path.stat().st_mtime_ns
        yield Batch(self._jobs(ask.machine, rejects), str(self.path), asked)

    def _jobs(self, machine: str, rejects: Rejects) -> Iterator[UserJob]:
        zero = 0
        opened = gzip.open if self.path.suffix == ".gz" else open
        with opened(self.path, "rt") as lines:
            for number, line in enumerate(lines, 1):
                if line.startswith(";"):
                    name, _, value = line[1:].partition(":")
                    if name.strip() == "UnixStartTime":
                        zero = int(value)
                    continue
                try:
                    yield _job(machine, zero, line.split())
                except (ValueError, IndexError) as error:
                    rejects.add(f"{self.path}:{number}", str(error), line)


def _job(machine: str, zero: int, fields: list[str]) -> UserJob:
    submitted = zero + int(fields[1])
    started = submitted + int(fields[2])
    return UserJob(
        machine=machine,
        job=fields[0],
        submitted=submitted,
        started=started,
        ended=started + int(fields[3]),
        cores=int(fields[4]),
        state=STATES.get(fields[10], "unknown"),
        user=fields[11],
        account=fields[12],
        executable=fields[13],
        queue=fields[14],
    )


@click.command("swf")
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@import_options
def command(folders: Folders, path: Path, **chosen: Any) -> int:
    """Import a log in the Standard Workload Format.

    PATH is such a log (version 2.2), which may be compressed (.gz).

    \b
    seatrial usage import swf CTC-SP2-1996-3.1-cln.swf.gz -m ctc
    """
    return bring_in(folders, SwfLog(path), **chosen)
