"""Settling a run that has ended: what its job wrote of itself, its figures, its verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.backends.protocol import Ended
from seatrial.journal.codes import FAILED, LOST, Code, code_of
from seatrial.journal.events import Event
from seatrial.runs.directory import JobEvents, job_events
from seatrial.suite.model import Case
from seatrial.trial.folder import Record
from seatrial.verify.figures import Figure
from seatrial.verify.references import load as load_references
from seatrial.verify.verdict import judge

INLINE_BYTES = 1 << 20
PATIENCE_SECONDS = 15.0
LOOK_AGAIN_SECONDS = 0.5


class Settled(NamedTuple):
    """The outcome of one run."""

    job_events: Sequence[Event]
    figures: Sequence[Figure]
    code: Code
    why: str


class Judge:
    """Settles the runs of one trial."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.references = load_references(Path(record.references))

    async def settle(self, case: Case, path: Path, ended: Ended, patient: bool) -> Settled:
        """``patient``: the job ran elsewhere, so what it wrote may be seen here a little later."""
        own = job_events(path)
        if patient and ended.code is None:
            own = await _own_end(path, own)
        events = [event for event in (own.start, own.end) if event is not None]
        if ended.code is not None:
            return Settled(events, (), code_of(ended.code), _why(ended))
        exit_code = own.exit_code if own.end is not None else ended.exit_code
        if exit_code is None:
            return Settled(events, (), LOST, "the job ended without a word and left no exit code")
        if own.start is None and exit_code != 0:
            why = f"the job script ended with {exit_code} before the test's own: see stderr"
            return Settled(events, (), FAILED, why)
        test = self.record.tests[case.test]
        arguments = (test, case, path, exit_code, self.references)
        if "python" in test.metrics or _size(path / "stdout") > INLINE_BYTES:
            verdict = await asyncio.to_thread(judge, *arguments)
        else:
            verdict = judge(*arguments)
        return Settled(events, verdict.figures, verdict.code, verdict.why)


async def _own_end(path: Path, own: JobEvents) -> JobEvents:
    """Wait for the job's own end to be seen through a shared file system."""
    waited = 0.0
    while own.end is None and waited < PATIENCE_SECONDS:
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
        waited += LOOK_AGAIN_SECONDS
        own = job_events(path)
    return own


def _why(ended: Ended) -> str:
    where = f" on {ended.nodes}" if ended.nodes else ""
    return f"{code_of(ended.code or 0).meaning}: the scheduler says {ended.state}{where}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
