"""The jobs of a trial's runs that have no verdict: made, announced, submitted, followed, collected.

Each step is noted in the ledger: the intent before the act, the fact after it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.backends.protocol import (
    Backend,
    Ended,
    Job,
    NeverStarted,
    Queued,
    Refused,
    Started,
    Submission,
)
from seatrial.conduct.commands import RECALLED, Launch, Reject
from seatrial.errors import TrialError
from seatrial.journal.codes import CANCELLED, LAUNCH_FAILED, Code, Name, code_of
from seatrial.runs.directory import job_events
from seatrial.runs.script import RunPlace, ScriptWriter
from seatrial.suite.model import Case
from seatrial.trial.folder import TrialFolder
from seatrial.trial.ledger import Ledger, Unresolved
from seatrial.trial.remedies import remedy
from seatrial.trial.run_collector import CollectedRun, RunCollector
from seatrial.trial.staging import Room, Staging
from seatrial.trial.tasks import Tasks
from seatrial.units import show_seconds

TOGETHER_SECONDS = 1.0  # for which the first runs that are made wait for others of their array

RunUpdate = Queued | Started | Refused | Ended | NeverStarted


class Attempt(NamedTuple):
    """A run without a verdict: its job, the target that it is placed on, its stage."""

    job: Job
    target: str = ""
    stage: str = ""


class Jobs:
    """Keeps the jobs of one trial."""

    def __init__(
        self,
        folder: TrialFolder,
        ledger: Ledger,
        backend: Backend,
        tasks: Tasks,
        staging: Staging,
        collector: RunCollector,
    ) -> None:
        self._folder = folder
        self._record = ledger.record
        self._ledger = ledger
        self._conductor = ledger.conductor
        self._backend = backend
        self._tasks = tasks
        self._staging = staging
        self._collector = collector
        self._scripts = ScriptWriter(self._record.machine, self._record.tag)
        self._attempts: dict[str, Attempt] = {}
        self._cancelled: set[str] = set()
        self._recalled: set[str] = set()
        self._again: list[Job] = []  # announced by an earlier driver, never submitted

    def path(self, run_id: str) -> Path:
        """The directory of a run without a verdict."""
        return self._attempts[run_id].job.path

    def place(self, run_id: str) -> str:
        """Where that directory is: FILESYSTEM/TARGET, or "" for the trial's own folder."""
        file_system = self._staging.file_system(self._ledger.case(run_id).test)
        return self._attempts[run_id].target or file_system

    async def take_up(self, unresolved: Sequence[Unresolved]) -> None:
        """Have the backend find the jobs of an earlier driver; collect those that had ended."""
        grouped: dict[str, list[Job]] = {}
        for run in unresolved:
            number = self._ledger.runs[run.run_id]
            before = Launch(number, run.run_id, run.target, stage=run.stage)
            job = self._make_job(before, run.path)
            if run.ended is not None:
                self._collect(_ended_again(run))
            else:
                grouped.setdefault(run.submission, []).append(job)
        self._ledger.journal.flush()
        if grouped:
            submissions = [Submission(name, tuple(jobs)) for name, jobs in grouped.items()]
            known = {run.run_id: run.job_id for run in unresolved if run.job_id}
            await self._backend.find(submissions, known)

    # ---- starting and ending --------------------------------------------------------------

    async def launch(self, launches: Sequence[Launch]) -> None:
        """Make and submit runs, and those that an earlier driver did not get to."""
        jobs, self._again = self._again, []
        await self._submit([*jobs, *(self._begin(each) for each in launches)])

    def reject(self, command: Reject) -> None:
        """Record a run that cannot start."""
        self._begin(Launch(command.case, command.run_id))
        self._verdict(command.run_id, code_of(command.code), command.why)

    async def cancel(self, run_ids: Sequence[str]) -> None:
        """End runs; what was asked of the backend is not asked again."""
        new = [run_id for run_id in run_ids if run_id not in self._cancelled]
        if new:
            self._cancelled.update(new)
            await self._backend.cancel(new)

    async def recall(self, run_ids: Sequence[str]) -> None:
        """Take back runs that have not started; asked once, too."""
        new = [run_id for run_id in run_ids if run_id not in self._recalled]
        if new:
            self._recalled.update(new)
            await self._backend.cancel(new, pending_only=True)

    def write(self, launches: Sequence[Launch]) -> None:
        """Make the directories and scripts of runs, and submit nothing."""
        for submission in self._backend.arrange([self._begin(each) for each in launches]):
            for job in submission.jobs:
                self._make(self._room(job))
            self._backend.write(submission)

    def _begin(self, launch: Launch) -> Job:
        job = self._make_job(launch)
        self._ledger.begin(launch.run_id, launch.case, str(job.path))
        return job

    def _make_job(self, launch: Launch, path: str = "") -> Job:
        """The job of a run. One that was made before keeps its directory, as the journal has it
        where it is on a file system of its own."""
        case = self._conductor.cases[launch.case]
        usual = self._staging.path(case.test, launch.run_id, launch.target)
        own = bool(path) and bool(self._staging.place(case.test, launch.target).file_system)
        job = Job(
            run_id=launch.run_id,
            path=Path(path) if own else usual,
            nodes=case.nodes,
            tasks=case.tasks,
            tasks_per_node=case.tasks_per_node,
            threads=case.threads,
            walltime=case.walltime,
            node=case.node,
            exclusive=case.exclusive,
            features=tuple(self._record.tests[case.test].requires.features),
            avoid=launch.avoid,
        )
        self._attempts[launch.run_id] = Attempt(job, launch.target, launch.stage)
        return job

    async def _submit(self, jobs: Sequence[Job]) -> None:
        """Announce, prepare, submit: the intents are in the journal before the first act."""
        if not jobs:
            return
        (submissions,) = self._announce(jobs)
        for submission in submissions:
            rooms = [self._room(job) for job in submission.jobs]
            if all(self._staging.is_quick(room.case.test) for room in rooms):
                for room in rooms:
                    self._make(room)
                await self._backend.submit(submission)
            else:
                self._tasks.spawn(self._make_and_submit(submission, rooms))

    def _announce(self, *groups: Sequence[Job]) -> list[list[Submission]]:
        """Note the intents of groups of jobs; the submissions of each."""
        arranged = [self._backend.arrange(jobs) for jobs in groups]
        for submission in chain.from_iterable(arranged):
            for job in submission.jobs:
                attempt = self._attempts[job.run_id]
                about: dict[str, Any] = {"target": attempt.target, "stage": attempt.stage}
                self._ledger.note(Name.SUBMIT_START, job.run_id, alias=submission.name, **about)
        self._ledger.journal.require_there()
        self._ledger.journal.flush(durable=self._backend.durable)
        return arranged

    async def _make_and_submit(self, submission: Submission, rooms: Sequence[Room]) -> None:
        """Beside the loop, as file systems and copies may take their time. Runs that are made do
        not wait for others of their submission: both are announced again, apart."""
        making = {
            self._tasks.spawn(self._make_beside(room)): job
            for room, job in zip(rooms, submission.jobs, strict=True)
        }
        announced, together = [submission], TOGETHER_SECONDS
        while making:
            await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait(making, timeout=together)
            together *= 2  # long copies make a few arrays, not one each second
            if any(task.exception() for task in done):
                return  # the drive ends for it
            made = [making.pop(task) for task in list(making) if task in done]
            ready = announced
            if making:
                ready, announced = self._announce(made, list(making.values()))
            for each in ready:
                await self._backend.submit(each)

    async def _make_beside(self, room: Room) -> None:
        try:
            await self._staging.make_beside(room)
        except OSError as error:
            raise _cannot_be_made(error, room.path) from error

    def _room(self, job: Job) -> Room:
        case = self._ledger.case(job.run_id)
        test = self._record.tests[case.test]
        build = str(self._folder.builds / case.build) if case.build else ""
        place = RunPlace(job.run_id, str(job.path), build, str(self._folder.script(case.test)))
        script = self._scripts.job_script(test, case, place)
        target = self._attempts[job.run_id].target
        return Room(case, job.path, self._staging.place(case.test, target), script)

    def _make(self, room: Room) -> None:
        try:
            self._staging.make(room)
        except OSError as error:
            raise _cannot_be_made(error, room.path) from error

    # ---- updates --------------------------------------------------------------------------

    def on_update(self, update: RunUpdate) -> None:
        """Note what became of a run."""
        run_id = update.run_id
        note = self._ledger.note
        if run_id not in self._attempts:
            return
        if isinstance(update, Queued):
            note(Name.SUBMIT_END, run_id, value=0)
            note(Name.JOB_QUEUED, run_id, job_id=update.job_id)
        elif isinstance(update, Started):
            note(Name.JOB_START, run_id, nodes=update.nodes)
        elif isinstance(update, Refused):
            note(Name.SUBMIT_END, run_id, value=1, text=update.why)
            self._verdict(run_id, LAUNCH_FAILED, update.why)
        elif isinstance(update, Ended):
            self._on_ended(update)
        elif self._conductor.cancelling:
            self._on_ended(Ended(run_id, CANCELLED.number, "never started", None))
        else:
            self._submit_again(run_id)

    def _submit_again(self, run_id: str) -> None:
        """It never got to the backend. Nodes that were excluded meanwhile are kept off."""
        attempt = self._attempts[run_id]
        avoid = self._conductor.nodes.avoid(self._ledger.runs[run_id], attempt.job.nodes)
        attempt = attempt._replace(job=attempt.job._replace(avoid=avoid))
        self._attempts[run_id] = attempt
        self._again.append(attempt.job)

    def _on_ended(self, update: Ended) -> None:
        if self._was_taken_back(update):
            update = replace(update, state=RECALLED)
        code = 0 if update.code is None else update.code
        text = "" if update.exit_code is None else f"{_EXIT}{update.exit_code}"
        about: dict[str, Any] = {
            "value": code,
            "alias": update.state,
            "text": text,
            "nodes": update.nodes,
        }
        self._ledger.note(Name.JOB_END, update.run_id, **about)
        self._collect(update)

    def _was_taken_back(self, ended: Ended) -> bool:
        """Whether it ended as we took it back, before it started."""
        flight = self._conductor.in_flight.get(ended.run_id)
        never = ended.code == CANCELLED.number and not ended.nodes and flight and not flight.started
        return bool(never) and ended.run_id in self._recalled

    def _collect(self, ended: Ended) -> None:
        """Collect what the job wrote of itself and judge the run: at once where that is quick, and
        never on the loop where the run is on a file system of its own, which may hang."""
        case = self._ledger.case(ended.run_id)
        path = self.path(ended.run_id)
        file_system = self._staging.file_system(case.test)
        if file_system:
            self._tasks.spawn(self._settle_away(case, path, ended, file_system))
            return
        broken = self._may_be_broken(ended) and job_events(path).end is None
        ended = self._with_reason(ended, broken)
        collected = self._collector.collect_at_once(case, path, ended)
        if collected is not None:
            self._note_outcome(ended.run_id, collected)
            return

        async def work() -> None:
            self._note_outcome(ended.run_id, await self._collector.collect(case, path, ended))
            self._tasks.nudge()

        self._tasks.spawn(work())

    async def _settle_away(self, case: Case, path: Path, ended: Ended, file_system: str) -> None:
        collector = self._collector
        broken = (
            self._may_be_broken(ended)
            and (await collector.beside(file_system, lambda: job_events(path))).end is None
        )
        ended = self._with_reason(ended, broken)
        collected = await collector.collect_away(case, path, ended, file_system)
        self._note_outcome(ended.run_id, collected)
        self._tasks.nudge()

    def _may_be_broken(self, ended: Ended) -> bool:
        """Whether a run that we end is said to have ended by itself: a scheduler that is restarted
        meanwhile may call it failed, though its script never came to an end."""
        return ended.code is None and self._conductor.ended_for(ended.run_id) is not None

    def _with_reason(self, ended: Ended, broken: bool) -> Ended:
        """What a cancellation of our own was for; ``broken``: its script came to no end."""
        code = self._conductor.ended_for(ended.run_id)
        if ended.code != CANCELLED.number and not broken:
            return ended
        if code is not None:
            entry = self._conductor.policy.entry_of[self._ledger.runs[ended.run_id]]
            quiet = show_seconds(self._conductor.policy.entries[entry].quiet_after)
            return replace(ended, code=code, state=f"no output for {quiet}")
        if ended.run_id in self._cancelled and ended.state != RECALLED:
            return replace(ended, state=self._conductor.held)
        return ended

    def _note_outcome(self, run_id: str, collected: CollectedRun) -> None:
        for event in collected.job_events:
            self._ledger.note_of_job(run_id, event)
        self._ledger.note(Name.CHECK_START, run_id)
        for figure in collected.figures:
            self._ledger.note(
                Name.METRIC,
                run_id,
                alias=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
        self._verdict(run_id, collected.code, collected.why)

    def _verdict(self, run_id: str, code: Code, why: str) -> None:
        test = self._ledger.case(run_id).test
        self._ledger.verdict(run_id, code, why)
        attempt = self._attempts.pop(run_id)
        self._cancelled.discard(run_id)
        self._recalled.discard(run_id)
        self._staging.drop_deck(test, attempt.job.path)


def _cannot_be_made(error: OSError, path: Path) -> TrialError:
    """Of an act on two files the second one is named, which was to be made."""
    where, why = error.filename2 or error.filename or path, error.strerror or error
    if isinstance(error, shutil.Error):  # of a folder: from, to and why, for each of its files
        _, where, why = error.args[0][0]
    return TrialError(
        f"{where}: the run cannot be made: {why}; {remedy(error)}, then resume the trial"
    )


_EXIT = "exit code "


def _ended_again(run: Unresolved) -> Ended:
    """The end of a job that was noted, but not judged, before the driver died."""
    event = run.ended
    assert event is not None
    code = event.value if isinstance(event.value, int) and event.value else None
    exit_code = event.text.removeprefix(_EXIT)
    known = int(exit_code) if exit_code.lstrip("-").isdigit() else None
    return Ended(run.run_id, code, event.alias, known, event.nodes)
