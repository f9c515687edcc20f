"""Drive a trial from the command line: handle signals, show progress, print a summary."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, NamedTuple

import click

from seatrial.cli import Folders
from seatrial.cli.end_alert import outcome_text, tell_end, told_if_it_stops
from seatrial.cli.progress import Progress, fall_silent
from seatrial.cli.shared_folder import tell_shared
from seatrial.cli.summary import print_summary
from seatrial.errors import JournalError, Owned, SeatrialError, UsageError
from seatrial.files import touch
from seatrial.journal.events import Event, JobEnded, RequestRefused, RunJudged, RunSubmitted
from seatrial.journal.journal import read
from seatrial.lazy import LazyModule
from seatrial.log import log_to
from seatrial.store.liveness import owned
from seatrial.trial import requests
from seatrial.trial.driver import DriveOutcome, Driver, Stop
from seatrial.trial.folder import TrialFolder
from seatrial.trial.observer import Observer
from seatrial.trial.outcome import WAS_COMPLETE, FailOn
from seatrial.trial.requests import Request
from seatrial.units import count, listed
from seatrial.verify.reading import plain_line

if TYPE_CHECKING:
    from seatrial.sinks import process
else:  # for machines that name sinks
    process = LazyModule("seatrial.sinks.process")

UNDECIDED = 3  # exit code: all passed, and not each figure could be judged
ANSWER_SECONDS = 10.0  # in which a driver is to answer


def drive_and_tell(
    folder: TrialFolder,
    folders: Folders,
    quiet: bool = False,
    host_is_gone: bool = False,
    alert: str = "",
    fail_on: FailOn = "any",
    require_references: bool = False,
) -> int:
    """Drive the trial to its end, show it live, print its summary; return the exit code. ``alert``
    is a command that is run for alerts, and at the end; with ``require_references`` the code is
    not 0 if a figure has no reference."""
    folders = folders.around(folder.path)
    with told_if_it_stops(folder, alert):
        outcome = drive(folder, folders, quiet, host_is_gone, alert)
    has_references = False
    try:
        has_references = print_summary(folder, folders, outcome)
    except BrokenPipeError:
        fall_silent()
    code = outcome.exit_code(fail_on)
    if code == 0 and require_references and not has_references:
        code = UNDECIDED
    if outcome.reason != WAS_COMPLETE:
        tell_end(folder, alert, outcome_text(folder, outcome), code)
    return code


def drive(
    folder: TrialFolder,
    folders: Folders,
    quiet: bool = False,
    host_is_gone: bool = False,
    alert: str = "",
) -> DriveOutcome:
    """Drive the trial to its end, and show it live."""
    progress = Progress(quiet)
    driver = _driver(folder, folders, progress, alert)
    progress.conductor = driver.conductor
    with closing(progress):
        outcome = _drive(driver, folders, host_is_gone=host_is_gone)
    if driver.was_complete:
        try:
            click.echo(f"{folder.tag} is complete; nothing was left to run.")
        except BrokenPipeError:
            fall_silent()
    elif outcome.complete and driver.conductor.unbuildable:
        click.echo(f"{folder.tag} has ended early: {outcome.reason}")
    return outcome


def drive_together(
    folders_of_trials: Sequence[TrialFolder], folders: Folders, quiet: bool
) -> list[DriveOutcome | None]:
    """Drive several trials at the same time, in one event loop. Return the outcome of each; None
    for one that could not go on, which is told at once and keeps none of the others from its
    end. A signal is for all of them."""
    drivers = []
    for folder in folders_of_trials:
        progress = Progress(quiet, label=folder.tag)
        driver = _driver(folder, folders, progress)
        progress.conductor = driver.conductor
        drivers.append(driver)
    with ExitStack() as logs:
        for driver in drivers:
            logs.enter_context(log_to(driver.folder.log("driver"), folders.log_level))
        return asyncio.run(_together(drivers))


async def _together(drivers: Sequence[Driver]) -> list[DriveOutcome | None]:
    async def work(driver: Driver) -> DriveOutcome | None:
        try:
            return await driver.drive()
        except (SeatrialError, Stop) as error:
            print(f"seatrial: {driver.folder.tag}: {plain_line(str(error))}", file=sys.stderr)
            return None

    _heed_signals(drivers)
    return list(await asyncio.gather(*map(work, drivers)))


def _heed_signals(drivers: Sequence[Driver]) -> None:
    """Have SIGINT interrupt all drivers, and SIGTERM and SIGHUP stop them."""

    def each(act: Callable[[Driver], None]) -> None:
        for driver in drivers:
            act(driver)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, each, Driver.interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, each, Driver.stop)


def _driver(
    folder: TrialFolder, folders: Folders, observer: Observer | None = None, alert: str = ""
) -> Driver:
    """Return a trial's driver. If the trial's machine names sinks, it also starts their process."""
    if folder.record().machine.sinks:
        observer = process.Starting(folder, observer or Observer(), folders.log_level)
    driver = Driver(folder, observer, alert)
    tell_shared(folder.path.parent)
    if driver.origin.loose:
        click.echo(f"seatrial: {folder.tag}: {plain_line(driver.origin.loose)}", err=True)
    return driver


def _drive(
    driver: Driver,
    folders: Folders,
    cancel: str = "",
    host_is_gone: bool = False,
    abandon: str = "",
) -> DriveOutcome:
    async def work() -> DriveOutcome:
        _heed_signals([driver])
        return await driver.drive(cancel, host_is_gone, abandon)

    try:
        with log_to(driver.folder.log("driver"), folders.log_level):
            return asyncio.run(work())
    except Stop as stop:
        resume = folders.command("resume", driver.folder.tag)
        print(f"seatrial: {plain_line(str(stop))}; continue with `{resume}`", file=sys.stderr)
        sys.exit(3)


def write_scripts(folder: TrialFolder, folders: Folders) -> int:
    """Write every script and submit nothing (a dry run); return 0. `seatrial resume` would run
    them."""
    driver = Driver(folder)
    number = asyncio.run(driver.write_scripts())
    where = plain_line(str(folder.path))
    click.echo(f"{count(number, 'script')} written, nothing submitted: {where}")
    click.echo(f"To run them: {folders.command('resume', folder.tag)}")
    return 0


def cancel(folder: TrialFolder, folders: Folders) -> int:
    """Cancel through the trial's driver, or by driving the trial for that; return 0."""
    folders = folders.around(folder.path)
    try:
        outcome = _drive(_driver(folder, folders), folders, cancel="cancelled by `seatrial cancel`")
    except Owned:
        touch(folder.cancel_request)
        click.echo(f"{folder.tag}: its driver was asked to cancel; it will say when it has.")
        return 0
    if outcome.complete:
        click.echo(f"{folder.tag}: it is complete; there is nothing to cancel.")
    else:
        resume = folders.command("resume", folder.tag)
        click.echo(f"{folder.tag}: cancelled; `{resume}` takes it up again.")
    return 0


def cancel_run(folder: TrialFolder, folders: Folders, run: str, reason: str) -> int:
    """Cancel one run, by its id or the beginning of it; return the exit code."""
    folders = folders.around(folder.path)
    found = _in_flight(folder, run)
    request = Request(request="cancel", text=found, reason=reason)
    done = f"run {found} is cancelled"
    if not owned(str(folder.path)):
        resume = folders.command("resume", folder.tag)
        done = f"run {found} is to be cancelled: nobody drives the trial, `{resume}` does it"
    return tell_answer(folder, request, done)


def _in_flight(folder: TrialFolder, run: str) -> str:
    """Return the id of the only run in flight whose id begins so. Raises UsageError."""
    over: dict[str, bool] = {}
    for event in read(folder.journal):
        if event.run_id.startswith(run):
            if isinstance(event, RunSubmitted):
                over[event.run_id] = False
            elif isinstance(event, JobEnded | RunJudged):
                over[event.run_id] = True
    going = [run_id for run_id, is_over in over.items() if not is_over]
    if len(going) == 1:
        return going[0]
    if going:
        raise UsageError(f"{run!r} is the beginning of {listed(going, 5)}; give more letters")
    why = f"run {next(iter(over))} is over" if over else f"it has no run {run!r}"
    raise UsageError(f"{folder.tag}: {why}; `seatrial runs --trial {folder.tag}` lists them")


def tell_answer(folder: TrialFolder, request: Request, done: str) -> int:
    """Hand a request to a trial, tell that it is ``done`` or waits for its driver; return 0, or 3
    if it waits."""
    answer = ask(folder, request, ANSWER_SECONDS)
    if not answer.waits:
        click.echo(f"{folder.tag}: {done}.")
        return 0
    what = f"{request.request} {request.text}".strip()
    when = "its driver has not answered yet" if owned(str(folder.path)) else "nobody drives it"
    click.echo(f"{folder.tag}: {when}; the request ({what}) is left in {folder.requests} for it.")
    return 3


class RequestAnswer(NamedTuple):
    """The answer to a request: the event that records it, or None while there is none, and where
    nothing had to be recorded. ``waits``: it waits for the trial's driver."""

    event: Event | None
    waits: bool = False


def ask(folder: TrialFolder, request: Request, patience: float = 0.0) -> RequestAnswer:
    """Hand a request to the trial. If nobody drives it, it is recorded at once; else its driver is
    asked, and for so many seconds waited for. Raises UsageError if the request is refused."""
    try:
        answer = RequestAnswer(Driver(folder).answer(request))
    except JournalError as error:
        if not isinstance(error, Owned) and os.access(folder.journal, os.W_OK):
            raise
        before = folder.journal.stat().st_size  # another member of the group, who may only ask
        file = requests.ask(folder, request)
        patience = patience if owned(str(folder.path)) else 0.0
        answer = RequestAnswer(_answer_of(folder, file, before, patience), waits=True)
    if isinstance(answer.event, RequestRefused):
        raise UsageError(f"{folder.tag}: {answer.event.reason}")
    return answer._replace(waits=answer.waits and answer.event is None)


def _answer_of(folder: TrialFolder, file: str, since: int, patience: float) -> Event | None:
    """Return the event that answers a request, as soon as the journal has it (behind the byte
    ``since``); None if that takes too long."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if not (folder.path / file).exists():
            events = read(folder.journal, since)
            return next((each for each in events if getattr(each, "request", "") == file), None)
        time.sleep(0.05)
    return None


def answer_late(folder: TrialFolder) -> bool:
    """Record requests that arrived while the driver was exiting. Return True if there were any and
    no driver is running."""
    if not requests.waiting(folder):
        return False
    try:
        Driver(folder).answer_left()
    except Owned:
        return False
    return True


def abandon(folder: TrialFolder, folders: Folders, why: str, again: str) -> int:
    """Abandon a trial, through its driver or by driving it for that; return 0. ``again``: the
    command that begins anew."""
    folders = folders.around(folder.path)
    try:
        _drive(_driver(folder, folders), folders, abandon=why)
    except Owned:
        requests.ask(folder, Request(request="abandon", text=why))
        click.echo(f"{folder.tag}: its driver was asked to abandon it; it will say when it has.")
        return 0
    click.echo(f"{folder.tag}: abandoned; `{again}` begins anew.")
    return 0
