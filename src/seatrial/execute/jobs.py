"""The jobs of the runs of a trial that have no verdict yet, and the clean-up after those that have.

A job is created, announced, submitted, followed and collected. The ledger records the intent before
each act, and the outcome after it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from seatrial.decide.conductor import BuildVerdict, Launch
from seatrial.errors import TrialError
from seatrial.escaping import plain_line
from seatrial.execute import backends
from seatrial.execute.alerts import UNFOLLOWED
from seatrial.execute.background import Tasks
from seatrial.execute.beside_loop import run_in_thread
from seatrial.execute.building import Building
from seatrial.execute.creation import Staging
from seatrial.execute.directory import NO_EVENTS, JobEvents, job_events
from seatrial.execute.kept_files import (
    OF_NOTHING,
    RemovalRule,
    RemovedFiles,
    removal_rule,
    remove,
    removed_by,
)
from seatrial.execute.ledger import Ledger
from seatrial.execute.run_collector import Collected, RunCollector, cancellation
from seatrial.execute.runs import COLLECT_SECONDS, RunUnderWay, write_waits
from seatrial.execute.trial_folder import TrialFolder
from seatrial.hooks import load, provided
from seatrial.journal import events
from seatrial.journal.events import OutputRemoved
from seatrial.journal.trial import RecordedRun, RunState
from seatrial.judge.verdict import Verdict
from seatrial.log import logger
from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.model.test import Case, Test
from seatrial.units import count


class LaunchGuard(Protocol):
    """What may refuse runs: a plug-in makes it by the hook ``seatrial_guards``."""

    async def refusal(self, case: Case, test: Test, build: str) -> str:
        """Return why the runs of a case may not start, "" if they may. ``build``: the directory of
        their build, "" if there is none."""


# ---- jobs ----------------------------------------------------------------------------------------


TOGETHER_SECONDS = 1.0  # how long the runs of an array that are ready first wait for the others

RunUpdate = (
    backends.Queued | backends.Started | backends.Refused | backends.JobEnd | backends.NeverStarted
)


@dataclass
class Jobs:
    """Carries out the commands of the conductor, and keeps the jobs of one trial."""

    _folder: TrialFolder
    _ledger: Ledger
    _backend: backends.Backend
    _tasks: Tasks
    _staging: Staging
    _collector: RunCollector
    _building: Building
    _clean_up: "CleanUp"

    def __post_init__(self) -> None:
        self._record = self._ledger.record
        self._conductor = self._ledger.conductor
        self.start_build = self._building.start
        self.note = self._ledger.note
        made = (
            load(name)(self._record.machine, self._tasks) for name in provided("seatrial_guards")
        )
        self._guards: list[LaunchGuard] = list(filter(None, made))
        self._cancelled: set[str] = set()
        self._given: set[str] = set()  # to the backend, which has not reported their ends
        self._forgers: set[str] = set()  # tests whose jobs wrote events of a driver
        self._recalled: set[str] = set()
        self._again: list[str] = []  # announced by an earlier driver, never submitted
        #: How many readers still find out something about runs that have their verdict.
        self.reading = 0
        #: The runs without a verdict, by their ids.
        self.runs: dict[str, RunUnderWay] = {}

    def tidy_up(self, judged: Iterable[RecordedRun]) -> None:
        """Remove what an earlier driver, which died, left of runs that it had judged."""
        for run in judged:
            under_way = self._as_launched(run)
            self._staging.tidy_up(under_way)
            self._clean_up.on_judged(under_way, codes.code_of(run.code))

    async def take_up(self, unresolved: Sequence[RecordedRun]) -> None:
        """Take over the jobs of an earlier driver: collect those that ended, and have the backend
        find the others."""
        grouped: dict[str, list[backends.Job]] = {}
        for run in unresolved:
            under_way = self.runs[run.run_id] = self._as_launched(run)
            if not self._has_ended(run, under_way.job):
                grouped.setdefault(run.submission, []).append(under_way.job)
        self._ledger.journal.flush()
        if grouped:
            submissions = [backends.Submission(name, tuple(jobs)) for name, jobs in grouped.items()]
            known = {run.run_id: run.job_id for run in unresolved if run.job_id}
            self._given.update(run.run_id for run in unresolved if run.job_end is None)
            await self._backend.find(submissions, known)

    def _as_launched(self, run: RecordedRun) -> RunUnderWay:
        """Return a run of an earlier driver as it was launched."""
        state = self._conductor.state
        launch = Launch(
            case=state.index[run.case],
            run_id=run.run_id,
            target=run.target,
            stage=run.stage,
            bundle=run.bundle,
            position=run.position,
            nodes=run.placed,
        )
        return self._staging.begin(launch, state.cases[launch.case], run.path)

    def _has_ended(self, run: RecordedRun, job: backends.Job) -> bool:
        """Collect a run of an earlier driver if its end was recorded and not judged, or if the host
        crashed after it. Returns whether it was."""
        if (end := run.job_end) is not None:
            code = codes.RECALLED.number if end.recalled else end.code or None
            self._collect(backends.JobEnd(run.run_id, code, end.state, end.exit_code, end.nodes))
            return True
        before_boot = self._ledger.before_boot[run.run_id]
        if before_boot and self._backend.room and job_events(job.path).end is not None:
            # What it wrote may be cut, as it was not on the disk when the host crashed.
            self._on_ended(backends.JobEnd(run.run_id, codes.LOST.number, "host restarted", None))
            return True
        return False

    def unfollowed(self) -> set[str]:
        """Return the runs, those that stand for builds among them, that were given to the backend,
        that have no end, and that it does not follow."""
        given = (self._given & self.runs.keys()) | self._building.given
        return given - set(self._backend.followed())

    # ---- starting and ending --------------------------------------------------------------

    async def launch(self, launches: Sequence[Launch]) -> None:
        """Create and submit runs, together with those that an earlier driver announced and did not
        submit."""
        jobs = [self.runs[run_id].job for run_id in self._again]
        self._again.clear()
        jobs += [self._begin(launch) for launch in launches]
        refused = await self._refused(jobs) if self._guards else {}
        if refused:
            self._announce([job for job in jobs if job.run_id in refused])
        for run_id, reason in refused.items():
            self.on_update(backends.Refused(run_id, reason, codes.REFUSED.number))
        await self._submit([job for job in jobs if job.run_id not in refused])

    async def _refused(self, jobs: Sequence[backends.Job]) -> dict[str, str]:
        """Return why launch guards refuse runs, by their ids."""
        refused: dict[str, str] = {}
        for job in jobs:
            run = self.runs[job.run_id]
            build = self._staging.build(run.case.build)
            for guard in self._guards:
                if reason := await guard.refusal(run.case, run.test, build):
                    refused.setdefault(job.run_id, reason)
        return refused

    def judge_by_build(self, command: BuildVerdict) -> None:
        """Record a run without a job, which has no directory."""
        self._under_way(Launch(command.case, command.run_id))
        self._ledger.begin(command.run_id, command.case, "")
        self._verdict(command.run_id, Verdict(codes.code_of(command.code), command.reason))

    async def cancel(self, run_ids: Sequence[str]) -> None:
        """Cancel runs, each once."""
        new = [run_id for run_id in run_ids if run_id not in self._cancelled]
        if new:
            self._cancelled.update(new)
            hung = [
                each for each in new if self._conductor.state.ended_for(each) == codes.HUNG.number
            ]
            for run_id in hung:
                self._tasks.spawn(self._end_hung(run_id))
            await self._backend.cancel([each for each in new if each not in hung])

    async def _end_hung(self, run_id: str) -> None:
        """Cancel a hung run, after what its processes wait in was written to its directory."""
        job = self.runs[run_id].job
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(COLLECT_SECONDS):
                printed = await self._backend.inspect(job, str(self._folder.hung_script))
                await run_in_thread(lambda: write_waits(job.path, printed), "hung")
        await self._backend.cancel([run_id])

    async def recall(self, run_ids: Sequence[str]) -> None:
        """Recall runs that have not started; what was asked of the backend is not asked again."""
        new = [run_id for run_id in run_ids if run_id not in self._recalled]
        if new:
            self._recalled.update(new)
            await self._backend.cancel(new, pending_only=True)

    def write(self, launches: Sequence[Launch]) -> None:
        """Make the directories and scripts of runs, and submit none."""
        for submission in self._backend.arrange([self._begin(launch) for launch in launches]):
            for job in submission.jobs:
                self._staging.make(self.runs[job.run_id])
            self._backend.write(submission)

    def _begin(self, launch: Launch) -> backends.Job:
        job = self._under_way(launch).job
        self._ledger.begin(launch.run_id, launch.case, str(job.path))
        return job

    def _under_way(self, launch: Launch) -> RunUnderWay:
        run = self._staging.begin(launch, self._conductor.state.cases[launch.case])
        self.runs[launch.run_id] = run
        return run

    async def _submit(self, jobs: Sequence[backends.Job]) -> None:
        """Announce jobs, make their directories, submit them."""
        if not jobs:
            return
        (submissions,) = self._announce(jobs)
        for submission in submissions:
            runs = [self.runs[job.run_id] for job in submission.jobs]
            if all(self._staging.is_quick(run.test.name) for run in runs):
                for run in runs:
                    self._staging.make(run)
                await self._give(submission)
            else:
                self._tasks.spawn(self._make_and_submit(submission))

    def _announce(self, *groups: Sequence[backends.Job]) -> list[list[backends.Submission]]:
        """Record on disk that jobs will be submitted. Return the submissions of each group."""
        arranged = [self._backend.arrange(jobs) for jobs in groups]
        for submission in chain.from_iterable(arranged):
            for job in submission.jobs:
                launch = self.runs[job.run_id].launch
                announced = events.RunSubmitted(
                    run_id=job.run_id,
                    submission=submission.name,
                    target=launch.target,
                    stage=launch.stage,
                    bundle=launch.bundle,
                    position=launch.position,
                    nodes=launch.nodes,
                )
                self._ledger.note(announced)
        self._ledger.journal.require_there()
        # Jobs that run elsewhere outlive this host.
        self._ledger.journal.flush(durable=self._record.machine.jobs_run_elsewhere)
        return arranged

    async def _make_and_submit(self, submission: backends.Submission) -> None:
        """Make the directories of a submission in the background, as file systems and copies may be
        slow. Jobs that are ready do not wait for the others: the submission is split in two, and
        both parts are announced. A bundle is never split."""
        making = {
            self._tasks.spawn(self._staging.make_in_background(self.runs[job.run_id])): job
            for job in submission.jobs
        }
        announced, together = [submission], TOGETHER_SECONDS
        if submission.is_bundle:
            await asyncio.wait(making)
        while making:
            await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait(making, timeout=together)
            together *= 2  # slow copies: a few arrays, not one each second
            if any(task.exception() for task in done):
                return  # the failure ends the drive
            made = [making.pop(task) for task in list(making) if task in done]
            ready = announced
            if making:
                ready, announced = self._announce(made, list(making.values()))
            for ready_submission in ready:
                await self._give(ready_submission)

    async def _give(self, submission: backends.Submission) -> None:
        self._given.update(job.run_id for job in submission.jobs)
        await self._backend.submit(submission)

    # ---- updates --------------------------------------------------------------------------

    def on_update(self, update: RunUpdate) -> None:
        """Record an update of the backend about a run."""
        run_id = update.run_id
        note = self._ledger.note
        if run_id not in self.runs:
            return
        if not isinstance(update, backends.Queued | backends.Started):
            self._given.discard(run_id)
        if isinstance(update, backends.Queued):
            self._on_queued(update)
        elif isinstance(update, backends.Started):
            note(events.JobStarted(run_id=run_id, nodes=update.nodes))
        elif isinstance(update, backends.Refused):
            note(events.SubmitEnded(run_id=run_id, refused=1, reason=update.reason))
            self._verdict(run_id, Verdict(codes.code_of(update.code), update.reason))
        elif isinstance(update, backends.JobEnd):
            self._on_ended(update)
        elif self._conductor.state.cancelling:
            self._on_ended(backends.JobEnd(run_id, codes.CANCELLED.number, "never started", None))
        else:
            self._submit_again(run_id)

    def _on_queued(self, update: backends.Queued) -> None:
        flight = self._conductor.state.in_flight.get(update.run_id)
        if flight is not None and flight.queued and flight.job_id == update.job_id:
            return  # an earlier driver recorded it
        self._ledger.note(events.SubmitEnded(run_id=update.run_id, refused=0))
        self._ledger.note(events.JobQueued(run_id=update.run_id, job_id=update.job_id))

    def _submit_again(self, run_id: str) -> None:
        """Submit with the next launches a job that never reached the scheduler. It avoids nodes
        that were excluded in the meantime."""
        run = self.runs[run_id]
        state, case = self._conductor.state, run.launch.case
        avoid = state.nodes.avoid(case, run.case.nodes, unfit=state.requests[case].unfit)
        self.runs[run_id] = replace(run, job=run.job._replace(avoid=avoid))
        self._again.append(run_id)

    def _on_ended(self, ended: backends.JobEnd) -> None:
        flight = self._conductor.state.in_flight.get(ended.run_id)
        waited = flight is not None and flight.state is not RunState.RUNNING and not ended.nodes
        recalled = (
            waited and ended.code == codes.CANCELLED.number and ended.run_id in self._recalled
        )
        if recalled:
            ended = replace(ended, code=codes.RECALLED.number)
        self._ledger.note(
            events.JobEnded(
                run_id=ended.run_id,
                code=ended.code or 0,
                state=ended.state,
                text="" if ended.exit_code is None else f"exit code {ended.exit_code}",
                nodes=ended.nodes,
                exit_code=ended.exit_code,
                recalled=recalled,
            )
        )
        self._collect(ended)

    def _collect(self, end: backends.JobEnd) -> None:
        """Collect a run and record its verdict: at once, or in the background."""
        collected = self._collector.collect(self.runs[end.run_id], partial(self._explain, end))
        if isinstance(collected, Coroutine):
            self._tasks.spawn(self._note_later(end.run_id, collected))
        else:
            self._note_collected(end.run_id, *collected)

    async def _note_later(self, run_id: str, collected: Coroutine[None, None, Collected]) -> None:
        self._note_collected(run_id, *await collected)
        self._tasks.nudge()

    def _explain(self, ended: backends.JobEnd, own: JobEvents) -> backends.JobEnd:
        """Return the end of a job, with the verdict and the reason of Seatrial if Seatrial
        cancelled the job. A scheduler that is restarted in the meantime may report that such a job
        failed; its script then left no end (``own``)."""
        code, reason = cancellation(self._conductor.state, ended.run_id)
        ended_alone = self._conductor.state.ended_for(ended.run_id) is not None
        broken = ended_alone and ended.code is None and own.end is None
        if broken or (
            ended.code == codes.CANCELLED.number
            and (ended_alone or ended.run_id in self._cancelled)
        ):
            return replace(ended, code=code, state=reason)
        return ended

    def _note_collected(self, run_id: str, own: JobEvents, verdict: Verdict) -> None:
        for event in own:
            self._ledger.note(replace(event, run_id=run_id))
        self._ledger.note(events.CheckStarted(run_id=run_id))
        for figure in verdict.figures:
            recorded = events.MetricRecorded(
                run_id=run_id,
                metric=figure.name,
                value=figure.value,
                unit=figure.unit,
                better=figure.better,
            )
            self._ledger.note(recorded)
        if own.refused:
            self._tell_refused(run_id, own.refused)
        self._verdict(run_id, verdict, own)
        if verdict.stop:
            self._tasks.fail(TrialError(verdict.stop))

    def _tell_refused(self, run_id: str, names: Sequence[str]) -> None:
        """Tell people, once for each test, that a job wrote events that are not its own."""
        test = self.runs[run_id].test.name
        if test not in self._forgers:
            self._forgers.add(test)
            text = (
                f"{test}: the job of {run_id} wrote events that only a driver may write, and they "
                f"are ignored: {plain_line(', '.join(names))}; see its events.jsonl"
            )
            self._tasks.alert("job events", test, text)

    def _verdict(self, run_id: str, verdict: Verdict, own: JobEvents = NO_EVENTS) -> None:
        run = self.runs.pop(run_id)
        life = self._conductor.state.in_flight.get(run_id)
        if verdict.sums and not run.job.file_system:
            filled = (name for name, sha256 in verdict.sums.items() if sha256 != OF_NOTHING)
            self._ledger.journal.rest_on(f"{run.path}/{name}" for name in filled)
        self._ledger.verdict(run_id, verdict)
        self._cancelled.discard(run_id)
        self._recalled.discard(run_id)
        self._staging.tidy_up(run)
        self._clean_up.on_judged(run, verdict.code)
        for work in self._collector.events_later(run, life, own) if life is not None else ():
            self.reading += 1
            self._tasks.spawn(self._note_found(run.case, work))

    async def _note_found(
        self, case: Case, work: Coroutine[None, None, Sequence[events.Event]]
    ) -> None:
        """Record what a reader finds out about a run that has its verdict."""
        for event in await work:
            self._ledger.note(event, case if isinstance(event, events.RunEvent) else None)
        self.reading -= 1
        self._tasks.nudge()


# ---- follow watch --------------------------------------------------------------------------------
#
# A watchdog: runs that were given to the backend, and that the backend does not follow.
#
# Nobody would report their ends, so the trial would wait for ever. None is expected: whatever
# becomes of a submission, the backend reports each of its runs.


LOOK_SECONDS = 30.0


async def watch_followed(unfollowed: Callable[[], Collection[str]], tasks: Tasks) -> None:
    """Alert people, once for each run, of runs that were not followed at two looks. What the
    backend has just reported, and the driver has not received, is gone at the second look."""
    alerted: set[str] = set()
    before: set[str] = set()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = set(unfollowed())
        new = sorted((now & before) - alerted)
        before = now
        if new:
            alerted.update(new)
            text = (
                f"{count(len(new), 'run')} in flight, {', '.join(new[:3])} first: nothing follows "
                "the job, so its end would not be noticed; this is a fault of Seatrial: stop the "
                "driver (SIGTERM; jobs go on) and `seatrial resume` the trial"
            )
            tasks.alert(UNFOLLOWED, new[0], text)


# ---- clean-up ------------------------------------------------------------------------------------
#
# Removes outputs of judged runs, as far as ``keep:`` of a test or a component says so.
#
# First the verdict and an event that announces the removal are on the disk itself, then files go.
# So whoever misses a file finds out why, whatever happens to this host in between.


REMOVED_AT_ONCE = 200  # runs whose removal one write of the journal announces
LONGEST_END_SECONDS = 300.0

_log = logger(__name__)


_WaitingRemoval = tuple[RunUnderWay, RemovalRule]
"""A run that is judged, and which of its outputs are to be removed."""


class CleanUp:
    """Removes outputs in the background, in one thread for each place, as a file system may
    hang."""

    def __init__(self, ledger: Ledger, tasks: Tasks) -> None:
        self._ledger = ledger
        self._tasks = tasks
        # by the directory of the runs' tests
        self._waiting: dict[Path, deque[_WaitingRemoval]] = {}
        self._workers: dict[Path, asyncio.Task[None]] = {}
        self._alerted = False

    def on_judged(self, run: RunUnderWay, verdict: Code) -> None:
        """Have the outputs of a run removed, once its verdict is on the disk."""
        rule = removal_rule(self._ledger.record.keep_of(run.test.name), verdict)
        if rule is None:
            return
        place = run.path.parent
        self._waiting.setdefault(place, deque()).append((run, rule))
        if place not in self._workers or self._workers[place].done():
            self._workers[place] = self._tasks.spawn(self._work(self._waiting[place]))

    async def _work(self, waiting: deque[_WaitingRemoval]) -> None:
        while waiting:
            batch = [waiting.popleft() for _ in range(min(REMOVED_AT_ONCE, len(waiting)))]
            removed = await run_in_thread(partial(_to_remove, batch), "keep")
            reported = [each for each, files in zip(batch, removed, strict=True) if files.files]
            if not reported:
                continue
            for (run, rule), files in zip(batch, removed, strict=True):
                if files.files:
                    self._announce(run, rule, files)
            self._ledger.journal.flush()
            await run_in_thread(self._ledger.journal.sync, "sync")
            failed = await run_in_thread(partial(_remove, reported), "keep")
            if failed and not self._alerted:
                self._alerted = True
                self._tasks.alert("keep", "", f"outputs could not be removed: {failed}")

    def _announce(self, run: RunUnderWay, rule: RemovalRule, removed: RemovedFiles) -> None:
        event = OutputRemoved(
            run_id=run.launch.run_id,
            keep=rule.word,
            files=removed.files,
            size=removed.size,
            names=removed.names,
        )
        self._ledger.note(event, run.case)

    async def end(self) -> None:
        """Wait up to 5 minutes for what is being removed."""
        if working := [task for task in self._workers.values() if not task.done()]:
            await asyncio.wait(working, timeout=LONGEST_END_SECONDS)


def _to_remove(runs: Sequence[_WaitingRemoval]) -> list[RemovedFiles]:
    """Return what is removed of each run: nothing where its directory cannot be read, as when a
    person removed it."""
    removed = []
    for run, rule in runs:
        try:
            removed.append(removed_by(run.path, rule))
        except OSError as error:
            _log.info("%s: is not cleaned up: %s", run.path, error)
            removed.append(RemovedFiles(0, 0, []))
    return removed


def _remove(runs: Sequence[_WaitingRemoval]) -> str:
    """Remove the outputs of runs; return why the first failed that did, or ""."""
    failed = ""
    for run, rule in runs:
        try:
            remove(run.path, rule)
        except OSError as error:
            _log.warning("%s: outputs could not be removed: %s", run.path, error)
            failed = failed or f"{run.path}: {error.strerror or error}"
    return failed
