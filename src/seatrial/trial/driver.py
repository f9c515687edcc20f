"""The real driver: binds the conductor to a backend, with asyncio and the wall clock.

    outcome = asyncio.run(Driver(folder, observer).drive())

Facts come in from the backend, from builds, from judging and from people; each is recorded in the
journal and applied to the conductor; what the conductor then decides is recorded before it is done.
Starting a new trial and resuming one are the same: the journal is replayed, however long it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from seatrial.backends.choose import choose_backend
from seatrial.backends.protocol import (
    Backend,
    Ended,
    Fact,
    Job,
    NeverStarted,
    Queued,
    Refused,
    Submission,
    Trouble,
)
from seatrial.conduct.commands import Cancel, Command, Finish, Launch, Reject, StartBuild
from seatrial.conduct.conductor import Conductor, Limits
from seatrial.errors import TrialError
from seatrial.journal.codes import CANCELLED, LAUNCH_FAILED, PASS, Code, Name, code_of
from seatrial.journal.events import Event
from seatrial.journal.journal import Journal, read
from seatrial.runs.builds import BuildResult, build
from seatrial.runs.directory import prepare
from seatrial.runs.script import RunPlace, ScriptWriter
from seatrial.suite.model import Case
from seatrial.trial.folder import Record, TrialFolder
from seatrial.trial.observer import Observer, Silent
from seatrial.trial.settle import Judge

REFILL_SHARE = 4
DEFAULT_STOP = "interrupted; waiting for what runs, starting nothing more"


class Outcome(NamedTuple):
    """How a drive ended: verdicts by name, whether all cases have their runs, and why if not."""

    verdicts: Counter[str]
    complete: bool
    why: str

    @property
    def passed(self) -> bool:
        return self.complete and set(self.verdicts) <= {PASS.name}


class Stop(Exception):
    """The driver leaves at once; jobs go on, and the trial can be resumed."""


class Driver:
    """Drives one trial, from its folder, until nothing is left to do."""

    def __init__(self, folder: TrialFolder, observer: Observer | None = None) -> None:
        self.folder = folder
        self.record: Record = folder.record()
        self.cases: list[Case] = folder.cases()
        self.observer = observer or Silent()
        self.backend: Backend = choose_backend(self.record.machine, folder.submissions)
        self.conductor = Conductor(self.record.tag, self.cases, self._limits())
        self.verdicts: Counter[str] = Counter()
        self._judge = Judge(self.record)
        self._scripts = ScriptWriter(self.record.machine, self.record.tag)
        self._journal: Journal
        self._inbox: asyncio.Queue[Fact | _Done | BaseException] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._build_tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, int] = {}  # run id -> case, of runs that have no verdict yet
        self._job_ids: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self._again: list[Job] = []  # announced by an earlier driver, never submitted
        self._interrupts = 0

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

    async def drive(self, cancel: str = "") -> Outcome:
        """Start or resume the trial and see it through. With ``cancel`` (a reason) its jobs are
        cancelled instead. Raises JournalError, TrialError, BackendError and Stop."""
        with Journal.own(self.folder.journal) as self._journal:
            unresolved = self._replay()
            await self.backend.open()
            try:
                if cancel:
                    self._note(Name.TRIAL_CANCEL, text=cancel)
                await self._take_up(unresolved)
                self._spawn(self._pump())
                self._spawn(self._watch_for_cancel())
                return await self._loop()
            finally:
                await self._end_tasks()
                await self.backend.close()
                self._journal.flush()

    async def _loop(self) -> Outcome:
        while True:
            commands = self.conductor.decide()
            finish = next((c for c in commands if isinstance(c, Finish)), None)
            if finish is not None:
                return self._finish(finish)
            await self._carry_out(commands)
            again, self._again = self._again, []
            await self._submit(again)
            self._journal.flush()
            self._receive(await self._inbox.get())
            while not self._inbox.empty():
                self._receive(self._inbox.get_nowait())

    def _finish(self, finish: Finish) -> Outcome:
        outcome = Outcome(self.verdicts, finish.complete, finish.why)
        if finish.complete:
            self._note(Name.TRIAL_END, value=0 if outcome.passed else 1)
        elif not self._interrupts:
            self._note(Name.TRIAL_PAUSE, text=finish.why)
        return outcome

    def interrupt(self) -> None:
        """A person pressed Ctrl-C: first stop launching and wait, then cancel the jobs."""
        self._interrupts += 1
        if self._interrupts == 1:
            self._inbox.put_nowait(_Done(Name.TRIAL_PAUSE, text=DEFAULT_STOP))
        else:
            self._inbox.put_nowait(_Done(Name.TRIAL_CANCEL, text="interrupted twice; cancelling"))

    def stop(self) -> None:
        """Leave at once (SIGTERM, SIGHUP)."""
        self._inbox.put_nowait(Stop("told to stop; jobs that run go on"))

    # ---- replay ---------------------------------------------------------------------------

    def _replay(self) -> list[Submission]:
        """Fold the journal; the submissions whose runs have no verdict yet."""
        reading = read(self.folder.journal)
        fresh = True
        ended: dict[str, Event] = {}
        names: dict[str, str] = {}
        for event in reading.events:
            fresh = False
            self.conductor.apply(event)
            if event.event == Name.SUBMIT_START:
                self._runs[event.run_id] = self.conductor.index[event.case]
                names[event.run_id] = event.alias
            elif event.event == Name.JOB_QUEUED:
                self._job_ids[event.run_id] = event.job_id
            elif event.event == Name.JOB_END:
                ended[event.run_id] = event
            elif event.event == Name.CHECK_END:
                self._runs.pop(event.run_id, None)
                self._count(event)
        if reading.damaged:
            self._note(Name.ALERT, text=f"the journal has {reading.damaged} damaged lines")
        self._note(Name.TRIAL_START if fresh else Name.TRIAL_RESUME, path=str(self.folder.path))
        grouped: dict[str, list[Job]] = {}
        for run_id, number in self._runs.items():
            if run_id in ended:
                self._inbox.put_nowait(_ended_again(ended[run_id]))
            else:
                grouped.setdefault(names[run_id], []).append(self._job(run_id, number))
        return [Submission(name, tuple(jobs)) for name, jobs in grouped.items()]

    async def _take_up(self, unresolved: Sequence[Submission]) -> None:
        self._journal.flush()
        if unresolved:
            await self.backend.find(unresolved, dict(self._job_ids))

    # ---- commands -------------------------------------------------------------------------

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        jobs: list[Job] = []
        cancels: list[str] = []
        for command in commands:
            if isinstance(command, Launch):
                jobs.append(self._make_run(command))
            elif isinstance(command, StartBuild):
                self._start_build(command.key)
            elif isinstance(command, Reject):
                self._begin_run(command.run_id, command.case)
                self._verdict(command.run_id, code_of(command.code), command.why)
            elif isinstance(command, Cancel) and command.run_id not in self._cancelled:
                cancels.append(command.run_id)
        await self._submit(jobs)
        if cancels:
            self._cancelled.update(cancels)
            await self.backend.cancel(cancels)

    def _make_run(self, launch: Launch) -> Job:
        self._begin_run(launch.run_id, launch.case)
        return self._job(launch.run_id, launch.case)

    def _begin_run(self, run_id: str, number: int) -> None:
        self._runs[run_id] = number
        path = str(self.folder.run(self.cases[number].test, run_id))
        self._note(Name.LOGGING_START, run_id, path=path)

    async def _submit(self, jobs: Sequence[Job]) -> None:
        """Announce, prepare, submit: the intents are in the journal before the first act."""
        if not jobs:
            return
        submissions = self.backend.arrange(jobs)
        for submission in submissions:
            for job in submission.jobs:
                self._note(Name.SUBMIT_START, job.run_id, alias=submission.name)
        self._journal.flush(durable=self.backend.durable)
        for submission in submissions:
            for job in submission.jobs:
                self._prepare(job)
            await self.backend.submit(submission)

    def _prepare(self, job: Job) -> None:
        case = self.cases[self._runs[job.run_id]]
        test = self.record.tests[case.test]
        build_folder = str(self.folder.builds / case.build) if case.build else ""
        script = self.folder.script(case.test)
        place = RunPlace(job.run_id, str(job.path), build_folder, str(script))
        try:
            prepare(job.path, self._scripts.job_script(test, case, place), test)
        except OSError as error:
            raise TrialError(
                f"{job.path}: the run cannot be made: {error.strerror}; "
                f"free space or restore access, then `seatrial resume {self.folder.tag}`"
            ) from error

    def _job(self, run_id: str, number: int) -> Job:
        case = self.cases[number]
        return Job(
            run_id=run_id,
            path=self.folder.run(case.test, run_id),
            nodes=case.nodes,
            tasks=case.tasks,
            tasks_per_node=case.tasks_per_node,
            threads=case.threads,
            walltime=case.walltime,
            node=case.node,
            exclusive=case.exclusive,
        )

    def _start_build(self, key: str) -> None:
        case = next(case for case in self.cases if case.build == key)
        directory = self.folder.builds / key
        self._note(Name.BUILD_START, alias=key, test=case.test, path=str(directory))

        async def work() -> None:
            test, machine = self.record.tests[case.test], self.record.machine
            result: BuildResult = await build(directory, test, case, machine)
            self._inbox.put_nowait(
                _Done(
                    Name.BUILD_END,
                    value=result.code,
                    alias=key,
                    test=case.test,
                    text=result.text,
                    path=str(directory),
                )
            )

        self._build_tasks[key] = self._spawn(work())

    async def write_scripts(self) -> int:
        """A dry run: make every run's directory and scripts, and submit nothing; their number.
        A resumed trial takes up these very runs, as ones that were announced and never submitted."""
        with Journal.own(self.folder.journal) as self._journal:
            self._note(Name.TRIAL_START, path=str(self.folder.path), text="dry run")
            runs = [
                Launch(number, self.conductor.run_id(number, ahead))
                for number, case in enumerate(self.cases)
                for ahead in range(case.repeat)
            ]
            for submission in self.backend.arrange([self._make_run(run) for run in runs]):
                for job in submission.jobs:
                    self._prepare(job)
                self.backend.write(submission)
            self._note(Name.TRIAL_PAUSE, text="dry run: nothing was submitted")
            return len(runs)

    # ---- facts ----------------------------------------------------------------------------

    def _receive(self, fact: Fact | _Done | BaseException) -> None:
        if isinstance(fact, BaseException):
            raise fact
        if isinstance(fact, _Done):
            self._on_done(fact)
        elif isinstance(fact, Trouble):
            self._note(Name.ALERT, text=fact.text)
        elif fact.run_id in self._runs:
            self._on_run_fact(fact)

    def _on_run_fact(self, fact: Queued | Refused | Ended | NeverStarted) -> None:
        if isinstance(fact, Queued):
            if self._job_ids.get(fact.run_id) != fact.job_id:
                self._job_ids[fact.run_id] = fact.job_id
                self._note(Name.SUBMIT_END, fact.run_id, value=0)
                self._note(Name.JOB_QUEUED, fact.run_id, job_id=fact.job_id)
        elif isinstance(fact, Refused):
            self._note(Name.SUBMIT_END, fact.run_id, value=1, text=fact.why)
            self._verdict(fact.run_id, LAUNCH_FAILED, fact.why)
        elif isinstance(fact, NeverStarted):
            self._on_never_started(fact)
        else:
            self._note(
                Name.JOB_END,
                fact.run_id,
                value=fact.code if fact.code is not None else 0,
                alias=fact.state,
                text="" if fact.exit_code is None else f"exit code {fact.exit_code}",
                nodes=fact.nodes,
            )
            self._spawn(self._settle(fact))

    def _on_never_started(self, fact: NeverStarted) -> None:
        if self.conductor.cancelling:
            self._note(Name.JOB_END, fact.run_id, value=CANCELLED.number, alias="never started")
            self._verdict(fact.run_id, CANCELLED, "cancelled before it was submitted")
        else:
            self._again.append(self._job(fact.run_id, self._runs[fact.run_id]))

    async def _settle(self, ended: Ended) -> None:
        """Collect what the job wrote of itself and judge the run."""
        case = self.cases[self._runs[ended.run_id]]
        path = self.folder.run(case.test, ended.run_id)
        settled = await self._judge.settle(case, path, ended, patient=self.backend.durable)
        if ended.run_id not in self._runs:
            return
        for event in settled.job_events:
            self._note(event.event, ended.run_id, event)
        self._note(Name.CHECK_START, ended.run_id)
        for figure in settled.figures:
            self._note(
                Name.METRIC,
                ended.run_id,
                alias=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
        self._verdict(ended.run_id, settled.code, settled.why)
        self._inbox.put_nowait(_Done(""))  # the conductor may have something to do

    def _verdict(self, run_id: str, code: Code, why: str) -> None:
        event = self._note(Name.CHECK_END, run_id, value=code.number, alias=code.name, text=why)
        self._count(event)
        self._runs.pop(run_id, None)
        self._job_ids.pop(run_id, None)
        self._cancelled.discard(run_id)

    def _on_done(self, done: _Done) -> None:
        if not done.event:
            return
        if done.event == Name.TRIAL_CANCEL:
            for task in self._build_tasks.values():
                task.cancel()
        elif done.event == Name.BUILD_END:
            self._build_tasks.pop(done.alias, None)
        self._note(
            done.event,
            value=done.value,
            alias=done.alias,
            text=done.text,
            path=done.path,
            test=done.test,
        )

    # ---- recording ------------------------------------------------------------------------

    def _note(self, name: str, run_id: str = "", of: Event | None = None, **more: Any) -> Event:
        """Append an event to the journal and apply it. ``of`` is an event that a job wrote."""
        case = self.cases[self._runs[run_id]] if run_id else None
        test = case.test if case else more.pop("test", "")
        if of is not None:
            more = {"time": of.time, "value": of.value, "alias": of.alias, "text": of.text[:4000]}
            more |= {"nodes": of.nodes, "job_id": of.job_id}
        event = Event(
            time=more.pop("time", 0) or self._journal.now(),
            event=name,
            trial=self.record.tag,
            machine=self.record.machine.machine,
            app=self.record.tests[test].app if test else "",
            test=test,
            case=case.id if case else "",
            run_id=run_id,
            **more,
        )
        self._journal.append(event)
        self.conductor.apply(event)
        self.observer.on_event(event, case)
        return event

    def _count(self, event: Event) -> None:
        self.verdicts[event.alias] += 1

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
            if request.exists():
                with contextlib.suppress(OSError):
                    request.unlink()
                self._interrupts += 1
                done = _Done(Name.TRIAL_CANCEL, text="cancelled by `seatrial cancel`")
                self._inbox.put_nowait(done)
            await asyncio.sleep(1)

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Done(NamedTuple):
    """Something of the driver's own came to its end, or a person spoke: an event to record."""

    event: str
    value: int | None = None
    alias: str = ""
    test: str = ""
    text: str = ""
    path: str = ""


def _ended_again(event: Event) -> Ended:
    """The end of a job that was recorded, but not judged, before the driver died."""
    code = event.value if isinstance(event.value, int) and event.value else None
    exit_code = event.text.removeprefix("exit code ")
    known = int(exit_code) if exit_code.lstrip("-").isdigit() else None
    return Ended(event.run_id, code, event.alias, known, event.nodes)
