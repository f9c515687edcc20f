"""The real driver: binds the conductor to a backend, with asyncio and the wall clock.

    outcome = asyncio.run(Driver(folder, observer).drive())

Facts come in from the backend, from builds and from people; each is noted in the ledger, and what
the conductor then decides is noted before it is done. Starting a trial and resuming one are the
same: the journal is replayed, however long it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

from seatrial.backends.choose import choose_backend
from seatrial.backends.protocol import (
    Ended,
    Fact,
    Job,
    NeverStarted,
    NodesDown,
    NodesUp,
    Queued,
    Refused,
    Started,
    Submission,
    Trouble,
)
from seatrial.conduct.commands import Cancel, Command, Finish, Launch, Reject, StartBuild
from seatrial.conduct.conductor import Conductor, Limits
from seatrial.errors import TrialError
from seatrial.journal.codes import CANCELLED, LAUNCH_FAILED, PASS, Code, Name, code_of
from seatrial.journal.journal import Journal
from seatrial.runs.builds import build
from seatrial.runs.directory import prepare
from seatrial.runs.script import RunPlace, ScriptWriter
from seatrial.trial.folder import TrialFolder
from seatrial.trial.ledger import Ledger, Unresolved
from seatrial.trial.observer import Observer, Silent
from seatrial.trial.remedies import remedy
from seatrial.trial.settle import Judge, Settled

REFILL_SHARE = 4
CANCEL_LOOK_SECONDS = 1.0


class Outcome(NamedTuple):
    """How a drive ended: verdicts by name, whether all cases have their runs, why if not, and the
    number of runs that are left."""

    verdicts: Counter[str]
    complete: bool
    why: str
    left: int = 0

    @property
    def failed(self) -> bool:
        """Whether some verdict is not pass."""
        return not set(self.verdicts) <= {PASS.name}


class Stop(Exception):
    """The driver leaves at once; jobs go on, and the trial can be resumed."""


class _Note(NamedTuple):
    """Something of the driver's own happened: an event to note, none for a mere nudge."""

    event: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012  (never changed)


class Driver:
    """Drives one trial, from its folder, until nothing is left to do."""

    def __init__(self, folder: TrialFolder, observer: Observer | None = None) -> None:
        self.folder = folder
        self.record = folder.record()
        self.backend = choose_backend(self.record.machine, folder.submissions)
        # A tag may come again, in another folder or when this one is gone; its jobs' names may not.
        unique = f"{self.record.tag} {self.record.created}"
        policy = self.record.policy
        self.conductor = Conductor(unique, folder.cases(), self._limits(), policy)
        self.ledger = Ledger(self.record, self.conductor, observer or Silent())
        self._judge = Judge(self.record, folder.environments, self.backend.durable)
        self._scripts = ScriptWriter(self.record.machine, self.record.tag)
        self._inbox: asyncio.Queue[Fact | _Note | BaseException] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        # The first case of each build stands for all that share it.
        self._builds = {case.build: case for case in reversed(self.conductor.cases) if case.build}
        self._build_tasks: dict[str, asyncio.Task[None]] = {}
        self._jobs: dict[str, Job] = {}  # of the runs that have no verdict
        self._cancelled: set[str] = set()
        self._again: list[Job] = []  # announced by an earlier driver, never submitted
        self._interrupts = 0
        self._drive: asyncio.Task[Any] | None = None
        self._stop: Stop | None = None

    def _limits(self) -> Limits:
        asked, machine = self.record.asked, self.record.machine
        jobs = asked.jobs or machine.jobs or self.backend.jobs
        return Limits(
            room=self.backend.room,
            jobs=jobs,
            builds=max(2, os.cpu_count() or 2),
            refill=1 if self.backend.room else max(1, jobs // REFILL_SHARE),
            max_failures=asked.max_failures,
        )

    # ---- the course of a drive ------------------------------------------------------------

    async def drive(self, cancel: str = "", host_is_gone: bool = False) -> Outcome:
        """Start or resume the trial and see it through. With ``cancel`` (a reason) its jobs are
        cancelled instead. ``host_is_gone``: no process of another host that drove it can be alive.
        Raises JournalError, TrialError, BackendError and Stop."""
        self._drive = asyncio.current_task()
        try:
            return await self._drive_to_end(cancel, host_is_gone)
        except asyncio.CancelledError:
            if self._stop is None:
                raise
            raise self._stop from None

    async def _drive_to_end(self, cancel: str, host_is_gone: bool) -> Outcome:
        with Journal.own(self.folder.journal) as journal:
            self.ledger.journal = journal
            with contextlib.suppress(OSError):  # a request that an earlier driver did not see
                self.folder.cancel_request.unlink()
            unresolved = self.ledger.replay()
            if self.ledger.complete:
                return Outcome(self.ledger.verdicts, True, "it was complete already")
            if unresolved and not host_is_gone:
                self._require_same_host()
            await self.backend.open()
            try:
                self.ledger.open()
                if cancel:
                    self.ledger.note(Name.TRIAL_CANCEL, text=cancel)
                await self._take_up(unresolved)
                self._spawn(self._pump())
                self._spawn(self._watch_for_cancel())
                return await self._loop()
            finally:
                try:
                    await self._end_tasks()
                    await self.backend.close()
                finally:
                    journal.flush()

    def _require_same_host(self) -> None:
        """Processes of another host cannot be seen from here: their runs would run twice."""
        there, here = self.ledger.host, gethostname()
        if self.backend.room and there not in ("", here):
            raise TrialError(
                f"{self.folder.tag}: its runs were started on {there}, and this is {here}; resume "
                f"it there, or with --host-is-gone if {there} is down for good"
            )

    async def _loop(self) -> Outcome:
        while True:
            commands = self.conductor.decide(self.ledger.journal.now())
            for command in commands:
                if isinstance(command, Finish):
                    return self._finish(command)
            await self._carry_out(commands)
            self.ledger.journal.flush()
            self._receive(await self._inbox.get())
            while not self._inbox.empty():
                self._receive(self._inbox.get_nowait())

    def _finish(self, finish: Finish) -> Outcome:
        left = self.conductor.wanted - self.conductor.finished
        outcome = Outcome(self.ledger.verdicts, finish.complete, finish.why, left)
        if finish.complete:
            self.ledger.note(Name.TRIAL_END, value=1 if outcome.failed else 0)
        elif not self._interrupts:
            self.ledger.note(Name.TRIAL_PAUSE, text=finish.why)
        return outcome

    def interrupt(self) -> None:
        """A person pressed Ctrl-C: first stop launching and wait, then cancel the jobs, then leave
        at once: a scheduler that does not answer cannot cancel."""
        self._interrupts += 1
        if self._interrupts == 1:
            why = "interrupted: starting nothing more, waiting for what runs; again to cancel it"
            self._inbox.put_nowait(_Note(Name.TRIAL_PAUSE, {"text": why}))
        elif self._interrupts == 2:
            why = "interrupted twice: cancelling what runs; again to leave at once, jobs go on"
            self._inbox.put_nowait(_Note(Name.TRIAL_CANCEL, {"text": why}))
        else:
            self.stop("interrupted three times; jobs that run go on")

    def stop(self, why: str = "told to stop; jobs that run go on") -> None:
        """Leave at once (SIGTERM, SIGHUP), whatever the driver waits for."""
        self._stop = Stop(why)
        if self._drive is not None:
            self._drive.cancel()

    async def _take_up(self, unresolved: Sequence[Unresolved]) -> None:
        """Have the backend find the jobs of an earlier driver; settle those that had ended."""
        grouped: dict[str, list[Job]] = {}
        for run in unresolved:
            job = self._make_job(run.run_id, self.ledger.runs[run.run_id])
            if run.ended is not None:
                self._settle(_ended_again(run))
            else:
                grouped.setdefault(run.submission, []).append(job)
        self.ledger.journal.flush()
        if grouped:
            submissions = [Submission(name, tuple(jobs)) for name, jobs in grouped.items()]
            known = {run.run_id: run.job_id for run in unresolved if run.job_id}
            await self.backend.find(submissions, known)

    # ---- commands -------------------------------------------------------------------------

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        jobs, self._again = self._again, []
        cancels: list[str] = []
        for command in commands:
            if isinstance(command, Launch):
                jobs.append(self._begin(command))
            elif isinstance(command, StartBuild):
                self._start_build(command.key)
            elif isinstance(command, Reject):
                self._begin(command)
                self._verdict(command.run_id, code_of(command.code), command.why)
                self._inbox.put_nowait(_Note())  # nothing else may follow it
            elif isinstance(command, Cancel) and command.run_id not in self._cancelled:
                cancels.append(command.run_id)
        await self._submit(jobs)
        if cancels:
            self._cancelled.update(cancels)
            await self.backend.cancel(cancels)

    def _begin(self, command: Launch | Reject) -> Job:
        job = self._make_job(command.run_id, command.case)
        self.ledger.begin(command.run_id, command.case, str(job.path))
        return job

    async def _submit(self, jobs: Sequence[Job]) -> None:
        """Announce, prepare, submit: the intents are in the journal before the first act."""
        if not jobs:
            return
        submissions = self.backend.arrange(jobs)
        for submission in submissions:
            for job in submission.jobs:
                self.ledger.note(Name.SUBMIT_START, job.run_id, alias=submission.name)
        self.ledger.journal.flush(durable=self.backend.durable)
        for submission in submissions:
            for job in submission.jobs:
                self._prepare(job)
            await self.backend.submit(submission)

    def _prepare(self, job: Job) -> None:
        case = self.ledger.case(job.run_id)
        test = self.record.tests[case.test]
        build_folder = str(self.folder.builds / case.build) if case.build else ""
        script = self.folder.script(case.test)
        place = RunPlace(job.run_id, str(job.path), build_folder, str(script))
        try:
            prepare(job.path, self._scripts.job_script(test, case, place), test)
        except OSError as error:
            raise TrialError(
                f"{error.filename or job.path}: the run cannot be made: {error.strerror}; "
                f"{remedy(error)}, then resume the trial"
            ) from error

    def _make_job(self, run_id: str, number: int) -> Job:
        case = self.conductor.cases[number]
        job = self._jobs[run_id] = Job(
            run_id=run_id,
            path=self.folder.run(case.test, run_id),
            nodes=case.nodes,
            tasks=case.tasks,
            tasks_per_node=case.tasks_per_node,
            threads=case.threads,
            walltime=case.walltime,
            node=case.node,
            exclusive=case.exclusive,
            features=tuple(self.record.tests[case.test].requires.features),
        )
        return job

    def _start_build(self, key: str) -> None:
        case = self._builds[key]
        about: dict[str, Any] = {
            "alias": key,
            "test": case.test,
            "path": str(self.folder.builds / key),
        }
        self.ledger.note(Name.BUILD_START, **about)

        async def work() -> None:
            test, machine = self.record.tests[case.test], self.record.machine
            result = await build(self.folder.builds / key, test, case, machine)
            self._build_tasks.pop(key, None)
            more = {**about, "value": result.code, "text": result.text}
            self._inbox.put_nowait(_Note(Name.BUILD_END, more))

        self._build_tasks[key] = self._spawn(work())

    async def write_scripts(self) -> int:
        """A dry run: make every run's directory and scripts, and submit nothing; their number.
        When the trial is resumed, these very runs are submitted."""
        with Journal.own(self.folder.journal) as self.ledger.journal:
            self.ledger.replay()
            self.ledger.open()
            runs = [
                Launch(number, self.conductor.run_id(number, ahead))
                for number, case in enumerate(self.conductor.cases)
                for ahead in range(case.repeat)
            ]
            for submission in self.backend.arrange([self._begin(run) for run in runs]):
                for job in submission.jobs:
                    self._prepare(job)
                self.backend.write(submission)
            self.ledger.note(Name.TRIAL_PAUSE, text="dry run: nothing was submitted")
            return len(runs)

    # ---- facts ----------------------------------------------------------------------------

    def _receive(self, fact: Fact | _Note | BaseException) -> None:
        if isinstance(fact, BaseException):
            raise fact
        if isinstance(fact, _Note):
            self._on_note(fact)
        elif isinstance(fact, Trouble):
            self.ledger.note(Name.ALERT, alias="scheduler", text=fact.text)
        elif isinstance(fact, NodesDown):
            self.ledger.note(Name.NODE_DOWN, nodes=fact.nodes, text=fact.why)
        elif isinstance(fact, NodesUp):
            self.ledger.note(Name.NODE_UP, nodes=fact.nodes)
        elif fact.run_id in self.ledger.runs:
            self._on_run_fact(fact)

    def _on_note(self, note: _Note) -> None:
        if note.event == Name.TRIAL_CANCEL:
            for task in self._build_tasks.values():
                task.cancel()
        if note.event:
            self.ledger.note(note.event, **note.more)

    def _on_run_fact(self, fact: Queued | Started | Refused | Ended | NeverStarted) -> None:
        run_id = fact.run_id
        if isinstance(fact, Queued):
            self.ledger.note(Name.SUBMIT_END, run_id, value=0)
            self.ledger.note(Name.JOB_QUEUED, run_id, job_id=fact.job_id)
        elif isinstance(fact, Started):
            self.ledger.note(Name.JOB_START, run_id, nodes=fact.nodes)
        elif isinstance(fact, Refused):
            self.ledger.note(Name.SUBMIT_END, run_id, value=1, text=fact.why)
            self._verdict(run_id, LAUNCH_FAILED, fact.why)
        elif isinstance(fact, Ended):
            self._on_ended(fact)
        elif self.conductor.cancelling:
            self._on_ended(Ended(run_id, CANCELLED.number, "never started", None))
        else:
            self._again.append(self._jobs[run_id])

    def _on_ended(self, fact: Ended) -> None:
        code = 0 if fact.code is None else fact.code
        text = "" if fact.exit_code is None else f"{_EXIT}{fact.exit_code}"
        about: dict[str, Any] = {
            "value": code,
            "alias": fact.state,
            "text": text,
            "nodes": fact.nodes,
        }
        self.ledger.note(Name.JOB_END, fact.run_id, **about)
        self._settle(fact)

    def _settle(self, ended: Ended) -> None:
        """Collect what the job wrote of itself and judge the run: at once where that is quick."""
        case = self.ledger.case(ended.run_id)
        path = self._jobs[ended.run_id].path
        if ended.code == CANCELLED.number and ended.run_id in self._cancelled:
            ended = ended._replace(state=self.conductor.held)
        settled = self._judge.settle_at_once(case, path, ended)
        if settled is not None:
            self._note_outcome(ended.run_id, settled)
            return

        async def work() -> None:
            self._note_outcome(ended.run_id, await self._judge.settle(case, path, ended))
            self._inbox.put_nowait(_Note())  # the conductor may have something to do

        self._spawn(work())

    def _note_outcome(self, run_id: str, settled: Settled) -> None:
        for event in settled.job_events:
            self.ledger.note_of_job(run_id, event)
        self.ledger.note(Name.CHECK_START, run_id)
        for figure in settled.figures:
            self.ledger.note(
                Name.METRIC,
                run_id,
                alias=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
        self._verdict(run_id, settled.code, settled.why)

    def _verdict(self, run_id: str, code: Code, why: str) -> None:
        self.ledger.verdict(run_id, code, why)
        del self._jobs[run_id]
        self._cancelled.discard(run_id)

    # ---- tasks ----------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run beside the loop; a failure ends the drive."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._inbox.put_nowait(error)

    async def _pump(self) -> None:
        while True:
            for fact in await self.backend.facts():
                self._inbox.put_nowait(fact)

    async def _watch_for_cancel(self) -> None:
        """`seatrial cancel` leaves a file, which works from any host that sees the trial."""
        request = self.folder.cancel_request
        while True:
            if _exists(request):
                with contextlib.suppress(OSError):
                    request.unlink()
                self._interrupts += 1
                more = {"text": "cancelled by `seatrial cancel`"}
                self._inbox.put_nowait(_Note(Name.TRIAL_CANCEL, more))
            await asyncio.sleep(CANCEL_LOOK_SECONDS)

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _exists(path: Path) -> bool:
    """Whether it is there; a file server that does not say so now may in a second."""
    try:
        return path.exists()
    except OSError:
        return False


_EXIT = "exit code "


def _ended_again(run: Unresolved) -> Ended:
    """The end of a job that was noted, but not judged, before the driver died."""
    event = run.ended
    assert event is not None
    code = event.value if isinstance(event.value, int) and event.value else None
    exit_code = event.text.removeprefix(_EXIT)
    known = int(exit_code) if exit_code.lstrip("-").isdigit() else None
    return Ended(run.run_id, code, event.alias, known, event.nodes)
