"""The real driver: binds the conductor to a backend, with asyncio and the wall clock.

    outcome = asyncio.run(Driver(folder, observer).drive())

Updates come from the backend, builds, gauges and people. The ledger records each. The driver then
records what the conductor decides, and does it. To start a trial and to resume one are the same:
the journal is replayed.
"""

import asyncio
import os
from collections.abc import Sequence
from logging import DEBUG, INFO, WARNING
from pathlib import Path
from typing import Any

from seatrial.account import user_name
from seatrial.decide.conductor import Conductor, Finish, Launch, carry_out, in_bundles
from seatrial.decide.state import ConductorState
from seatrial.errors import TrialError
from seatrial.execute import building, requests
from seatrial.execute import requests as answers
from seatrial.execute.alerts import (
    AlertCommand,
    Company,
    alert_of,
    beat,
    beat_regularly,
    opens_alerts,
)
from seatrial.execute.backends import (
    Backend,
    Disturbed,
    Doubled,
    NodesDown,
    NodesUp,
    Trouble,
    Unfollowed,
)
from seatrial.execute.background import GaugeWatch, JobStats, News, Tasks
from seatrial.execute.batch.batch import BatchBackend, client_of
from seatrial.execute.beside_loop import run_in_thread
from seatrial.execute.building import Building
from seatrial.execute.creation import Staging, write_scripts
from seatrial.execute.environment import inherited
from seatrial.execute.jobs import CleanUp, Jobs, watch_followed
from seatrial.execute.ledger import Ledger, Observer
from seatrial.execute.local import LocalBackend
from seatrial.execute.requests import (
    INTERRUPTED,
    TWICE,
    WAS_COMPLETE,
    DriveOutcome,
    Request,
    Stop,
    WaitingRequest,
    remedy,
)
from seatrial.execute.run_collector import RunCollector
from seatrial.execute.runs import HangDetector
from seatrial.execute.trial_folder import Record, TrialFolder, require_own
from seatrial.execute.trial_paths import require_plain
from seatrial.hooks import load, provided
from seatrial.journal import events
from seatrial.journal.journal import Journal
from seatrial.journal.trial import RecordedRun
from seatrial.log import logger
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold
from seatrial.model.plan import Tell
from seatrial.model.policy import Limits
from seatrial.units import SECOND_NS

__all__ = ["DriveOutcome", "Driver", "Stop"]

_log = logger(__name__)

REFILL_SHARE = 4
SYNC_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0  # for an update, as somebody may set the clock


def choose_backend(machine: Machine, submissions: Path) -> Backend:
    """Return the backend of a machine; ``submissions`` is the folder for the files of a
    scheduler."""
    if machine.jobs_run_elsewhere:
        return BatchBackend(machine, client_of(machine), submissions)

    node = machine.nodes[0]
    return LocalBackend(node.cores, inherited(machine), node.gpus, submissions)


def _limits(record: Record, backend: Backend) -> Limits:
    jobs = record.asked.jobs or record.machine.jobs or backend.jobs
    return Limits(
        cores=backend.room,
        jobs=jobs,
        builds=record.machine.builds.at_most or max(2, os.cpu_count() or 2),
        refill=1 if backend.room else max(1, jobs // REFILL_SHARE),
        max_failures=record.asked.max_failures,
        gpus=backend.gpus,
    )


class Driver:
    """Drives one trial, from its folder, until nothing is left to do."""

    def __init__(
        self,
        folder: TrialFolder,
        observer: Observer | None = None,
        alert: str = "",
        backend: Backend | None = None,
    ) -> None:
        """``alert`` is a command for alerts, where the trial's record names none. ``backend`` runs
        the jobs in place of the machine's."""
        self.folder = folder
        self.record, self.origin = record, _ = folder.record_and_origin()
        require_plain(folder.path)
        require_real(folder.tag, record)
        self.backend = backend or choose_backend(record.machine, folder.submissions)
        # Two trials may have one tag, in another folder or after a deletion; their jobs may not.
        unique = f"{record.tag} {record.created}"
        limits = _limits(record, self.backend)
        self.conductor = Conductor(unique, folder.cases(), limits, record.policy)
        self._tasks = Tasks(self.backend.inbox)
        tell = record.alerts or (Tell(command=alert) if alert else None)
        self._alert_command = AlertCommand(record, tell, observer or Observer(), self._tasks)
        self.ledger = Ledger(record, self.conductor, self._alert_command)
        use = record.machine.file_use
        job_stats = JobStats(use, self._tasks) if use is not None and use.job_stats else None
        self._collector = RunCollector(record, folder.environments, folder.path.parent, job_stats)
        self._staging = Staging(folder, record, self._tasks, self.backend.free_directory)
        self._clean_up = CleanUp(self.ledger, self._tasks)
        in_jobs = None
        if record.machine.jobs_run_elsewhere:
            nodes = self.conductor.state.nodes
            in_jobs = building.JobBuilds(
                folder, record.machine, self.backend, unique, lambda: fold(nodes.excluded)
            )
        self._building = Building(folder, self.ledger, self._tasks, in_jobs)
        self._jobs = Jobs(
            folder,
            self.ledger,
            self.backend,
            self._tasks,
            self._staging,
            self._collector,
            self._building,
            self._clean_up,
        )
        self.was_complete = False  # whether the trial was complete before this drive
        self._gauges = GaugeWatch(record.machine, self._tasks)
        self._answered: list[str] = []  # requests whose answers may not be in the journal yet
        self._company = Company()
        self._interrupts = 0
        self._drive: asyncio.Task[Any] | None = None
        self._stop: Stop | None = None

    # ---- driving --------------------------------------------------------------------------

    async def drive(
        self, cancel: str = "", host_is_gone: bool = False, abandon: str = ""
    ) -> DriveOutcome:
        """Start or resume the trial, and drive it to its end. Where ``cancel`` is a reason, cancel
        its jobs instead; where ``abandon`` is one, abandon the trial. ``host_is_gone``: the host
        that drove it is down, and its processes with it. Raises JournalError, TrialError,
        BackendError and Stop."""
        self._drive = asyncio.current_task()
        try:
            return await self._drive_to_end(cancel, abandon, host_is_gone)
        except asyncio.CancelledError:
            if self._stop is None:
                raise
            raise self._stop from None

    async def _drive_to_end(self, cancel: str, abandon: str, host_is_gone: bool) -> DriveOutcome:
        with Journal.take(self.folder.journal, host_is_gone) as journal:
            require_own(self.folder.tag, self.origin)
            self.ledger.journal = journal
            unresolved = self._replay()
            if cancel:
                require_to_cancel(self.folder.tag, self.ledger, unresolved)
            if self.was_complete and not abandon:
                return DriveOutcome(self.ledger.verdicts, True, WAS_COMPLETE)
            if not unresolved:
                require_not_abandoned(self.folder.tag, self.conductor.state)
            elif self.backend.room and not host_is_gone:
                require_host(self.folder.tag, self.conductor.state.trial.host)
            self._restore_scripts()
            await self.backend.open()
            try:
                beat(self.folder)
                self.ledger.open()
                if cancel:
                    self._on_event(events.TrialCancelled(reason=cancel))
                if abandon:
                    self._on_event(events.TrialAbandoned(reason=abandon))
                self._jobs.tidy_up(self.ledger.judged)
                await self._jobs.take_up(unresolved)
                self._begin_to_watch()
                _log.info("driving %s, runs without a verdict: %d", journal.path, len(unresolved))
                return await self._loop()
            except Exception:
                _log.exception("the drive ends")
                raise
            finally:
                try:
                    await self._tasks.end()
                    await self._building.end()
                    await self.backend.close()
                finally:
                    journal.flush()

    def _replay(self) -> list[RecordedRun]:
        """Apply the journal, and answer the requests that were left. Return the runs that were
        submitted and have no verdict."""
        unresolved = self.ledger.replay()
        self._collector.references = self.ledger.references or self._collector.references
        self._answer_left()
        self._alert_command.remember(self.ledger.alerts, self.ledger.journal.now())
        self.was_complete = self.ledger.complete and not self.ledger.lost_verdicts
        return unresolved

    def _restore_scripts(self) -> None:
        try:
            write_scripts(self.folder, self.record)
        except OSError as error:
            raise TrialError(
                f"{self.folder.path}: the scripts of the tests cannot be written: "
                f"{error.strerror}; {remedy(error)}, then resume the trial"
            ) from error

    def _begin_to_watch(self) -> None:
        policy = self.conductor.state.policy
        self._tasks.spawn(beat_regularly(self.folder, self.ledger.journal.require_own))
        if not self.record.machine.jobs_run_elsewhere:
            self._tasks.spawn(self._sync_regularly())
        requests.open_to_group(self.folder)
        self._tasks.spawn(requests.watch(self.folder, self._tasks.put, self._on_cancel))
        if policy.kind == "sustained" or policy.exclusion.after or policy.placing:
            self.backend.watch_nodes(self.conductor.state.nodes.down)
        self._gauges.watch(policy)
        HangDetector(self.conductor, self._jobs.runs, self._tasks).start(self.ledger.journal.now)
        self._tasks.spawn(watch_followed(self._jobs.unfollowed, self._tasks))
        for name in provided("seatrial_alerts"):
            self._tasks.spawn(load(name)(self.record, self._tasks))

    async def _loop(self) -> DriveOutcome:
        inbox = self._tasks.inbox
        while True:
            self.conductor.state.changed = False
            self.ledger.watch_clock()
            now = self.ledger.journal.now()
            decision = self.conductor.decide(now)
            if decision.finish is not None and (not self._jobs.reading or self._interrupts):
                return await self._finish(decision.finish)
            for name, each in decision.acts():
                _log.log(WARNING if name == "alerts" else INFO, "%s: %s", name, each)
            for step in carry_out(decision, self._jobs):
                await step
            self._flush()
            if not self.conductor.state.changed:  # else there may be more to decide
                wait = LONGEST_WAIT_SECONDS
                if decision.wake is not None:
                    wait = min(wait, (decision.wake - now) / SECOND_NS)
                _log.debug("waiting for %.1f s at most", wait)
                timer = asyncio.get_running_loop().call_later(wait, self._tasks.nudge)
                self._receive(await inbox.get())
                timer.cancel()
            while not inbox.empty():
                self._receive(inbox.get_nowait())

    async def _finish(self, finish: Finish) -> DriveOutcome:
        """Record the end of the drive, and wait a while for what is done beside the loop."""
        left = max(0, self.conductor.state.wanted - self.conductor.state.finished)
        for trouble in self.backend.recovered():
            self._receive(trouble)
        if alert := self._company.at_end():
            self.ledger.note(alert)
        outcome = DriveOutcome(self.ledger.verdicts, finish.complete, finish.reason, left)
        if finish.complete:
            use = self.record.machine.file_use
            looks = use is not None and use.every.seconds > 0
            policy = self.conductor.state.policy
            for alert in opens_alerts(policy, self.ledger.open_files, looks):
                self.ledger.note(alert)
            reason = finish.reason if self.conductor.unbuildable else ""
            self.ledger.note(events.TrialEnded(failed=1 if outcome.failed else 0, reason=reason))
        elif self.conductor.state.trial.clock_runs and not self._interrupts:
            self.ledger.note(events.TrialPaused(reason=finish.reason))
        _log.info("ended: %s", outcome)
        self._flush()
        await self._alert_command.end()
        await self._staging.end()
        await self._clean_up.end()
        return outcome

    def interrupt(self) -> None:
        """Handle Ctrl-C. The first stops launches and waits for the jobs, the second cancels the
        jobs, the third leaves at once, as a scheduler that does not answer cannot cancel."""
        self._interrupts += 1
        if self._interrupts == 1:
            self._tasks.put(events.TrialPaused(reason=INTERRUPTED))
        elif self._interrupts == 2:
            self._tasks.put(events.TrialCancelled(reason=TWICE))
        else:
            self.stop("interrupted three times; jobs go on")

    def _on_cancel(self) -> None:
        """Handle `seatrial cancel`."""
        self._interrupts += 1
        self._tasks.put(events.TrialCancelled(reason="cancelled by `seatrial cancel`"))

    def stop(self, reason: str = "told to stop; jobs go on") -> None:
        """Leave at once, as on SIGTERM and SIGHUP."""
        self._stop = Stop(reason)
        if self._drive is not None:
            self._drive.cancel()

    async def write_scripts(self) -> int:
        """Make the directory and scripts of every run, and submit none (a dry run). Returns the
        number of runs. When the trial is resumed, these runs are submitted."""
        with Journal.take(self.folder.journal) as self.ledger.journal:
            self.ledger.replay()
            self.ledger.open()
            runs = [
                Launch(number, self.conductor.state.run_id(number, ahead))
                for number, case in enumerate(self.conductor.state.cases)
                if not case.only_builds
                for ahead in range(case.repeat)
            ]
            if groups := self.record.policy.bundle_of:
                runs = in_bundles(runs, [groups[run.case] for run in runs])
            self._jobs.write(runs)
            self.ledger.note(events.TrialPaused(reason="dry run: nothing was submitted"))
            return len(runs)

    # ---- updates --------------------------------------------------------------------------

    def _receive(self, update: News | BaseException) -> None:
        _log.log(WARNING if isinstance(update, Trouble) else DEBUG, "told %s", update)
        if isinstance(update, BaseException):
            raise update
        if isinstance(update, events.Event):
            self._on_event(update)
        elif isinstance(update, WaitingRequest):
            self._answer(update.request, update.by, update.file)
        elif isinstance(update, Trouble | Doubled | Unfollowed):
            self.ledger.note(alert_of(update))
        elif isinstance(update, Disturbed):
            if alert := self._company.met(update):
                self.ledger.note(alert)
            self.ledger.notices[update.run_id] = self._company.notice(update.run_id)
        elif isinstance(update, NodesDown):
            self.ledger.note(events.NodeDown(nodes=update.nodes, reason=update.reason))
        elif isinstance(update, NodesUp):
            self.ledger.note(events.NodeUp(nodes=update.nodes))
        elif update is not None and not self._building.receive(update):
            self._jobs.on_update(update)

    def _on_event(self, event: events.Event) -> None:
        if isinstance(event, events.TrialCancelled | events.TrialAbandoned):
            self._building.cancel()
        is_of_run = isinstance(event, events.RunEvent) and not isinstance(event, events.PERSONAL)
        if is_of_run and event.run_id not in self.ledger.runs:
            return
        self.ledger.note(event)
        if isinstance(event, events.PolicyChanged):
            self._gauges.watch(self.conductor.state.policy)

    def _flush(self) -> None:
        """Write the recorded events to the journal, then remove the files that they stand for."""
        self.ledger.journal.flush()
        self._collector.drop_captured()
        if self._answered:
            requests.drop(self.folder, self._answered)
            self._answered.clear()

    async def _sync_regularly(self) -> None:
        """Have the journal on the disk itself every few seconds, so that a crash of this host costs
        the records of a few runs at most."""
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            await run_in_thread(self.ledger.journal.sync, "sync")

    # ---- requests -------------------------------------------------------------------------

    def _answer_left(self) -> None:
        """Record the requests that came too late for an earlier driver. Of a trial that is
        complete, only requests to extend or abandon it count, and what people record."""
        for each in requests.left(self.folder, self.ledger.recorded.answered):
            if self.ledger.complete and each.request.request not in ("extend", "abandon", "record"):
                requests.drop(self.folder, [each.file])
            else:
                self._answer(each.request, each.by, each.file)
        self._flush()

    def _answer(self, request: Request, by: str, file: str = "") -> events.Event:
        """Record the answer to a request of a person; return it."""
        now = self.ledger.journal.now()
        event = answers.answer_to(
            request, self.conductor.state, self.record, by=by, file=file, now=now
        )
        self._on_event(event)
        if file:
            self._answered.append(file)
        return event

    def answer_left(self) -> None:
        """Record the requests that came in the last moments of a drive. Raises Owned where another
        process drives the trial."""
        with Journal.take(self.folder.journal) as self.ledger.journal:
            self.ledger.replay()
            self._answer_left()

    def answer(self, request: Request) -> events.Event | None:
        """Record a request to a trial that nobody drives. Return the event, None where there was
        nothing to record. Raises Owned where another process drives it, and TrialError where it is
        over."""
        with Journal.take(self.folder.journal) as self.ledger.journal:
            self.ledger.replay()
            require_not_abandoned(self.folder.tag, self.conductor.state)
            if self.ledger.complete and request.request != "extend":
                raise TrialError(f"{self.folder.tag} is complete; start a new trial")
            if request.request == "pause" and not self.conductor.state.trial.clock_runs:
                return None
            return self._answer(request, user_name())


# ---- refusals ------------------------------------------------------------------------------------
#
# What keeps a trial from being driven, or cancelled. Each function raises TrialError for it.


def require_real(tag: str, record: Record) -> None:
    """Refuse a rehearsal, figures that others gave, results of other tools, and a checklist: none
    is mixed with real runs."""
    if record.policy.kind == "checklist":
        raise TrialError(
            f"{tag} is a checklist: nothing runs; `seatrial accept tick` gives its items their "
            "results"
        )
    if record.given is not None:
        raise TrialError(f"{tag} has the figures of {record.given.file}; nothing of it runs")
    if (made := record.imported) is not None:
        raise TrialError(
            f"{tag} has results of {made.tool}, from {made.file}; nothing of it runs here; "
            "`seatrial run` starts a trial"
        )
    if record.rehearsed:
        raise TrialError(f"{tag} is a rehearsal; `seatrial accept` runs its plan for real")


def require_not_abandoned(tag: str, state: ConductorState) -> None:
    if state.abandoned:
        raise TrialError(f"{tag} was abandoned: {state.held}")


def require_host(tag: str, there: str) -> None:
    """Refuse any host but the one where processes of runs were started: another cannot see them,
    and would run them a second time. ``there`` is "" where no host is known."""
    here = os.uname().nodename
    if there not in ("", here):
        raise TrialError(
            f"{tag}: its runs were started on {there}, and this is {here}; "
            f"resume it there, or with --host-is-gone if {there} is down for good"
        )


def require_to_cancel(tag: str, ledger: Ledger, unresolved: Sequence[RecordedRun]) -> None:
    """Refuse to cancel where all runs have ended and some have no verdict: that would keep them
    from it."""
    state = ledger.conductor.state
    ended = state.finished + sum(run.job_end is not None for run in unresolved)
    judged = state.finished == state.wanted
    if ledger.lost_verdicts or (0 < state.wanted <= ended and not judged):
        raise TrialError(
            f"{tag}: all its runs have ended, there is nothing to cancel; "
            f"`seatrial resume {tag}` judges those that have no verdict"
        )
