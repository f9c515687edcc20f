"""Drive a trial from the command line: handle signals, show progress, print a summary."""

import asyncio
import contextlib
import functools
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell, tell_damage
from seatrial.cli.tables import TextTable, print_first
from seatrial.decide.conductor import Conductor
from seatrial.errors import JournalError, Owned, SeatrialError, UsageError
from seatrial.escaping import plain, plain_line
from seatrial.execute import requests
from seatrial.execute.beside_loop import Shell
from seatrial.execute.driver import Driver
from seatrial.execute.ledger import Observer
from seatrial.execute.requests import (
    INTERRUPTED,
    TWICE,
    WAS_COMPLETE,
    DriveOutcome,
    FailOn,
    Request,
    Stop,
)
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import opened_folder, origin_of, touch
from seatrial.hooks import load, provided
from seatrial.journal import events
from seatrial.journal.clock import present
from seatrial.journal.events import Event, JobEnded, RequestRefused, RunJudged, RunSubmitted
from seatrial.journal.journal import read
from seatrial.journal.trial import RunLife, RunState, TrialLife
from seatrial.judge.log_rules import is_left_out, node_of
from seatrial.judge.promises import COLUMN, Promised, beside, share_cell, told
from seatrial.judge.references import References
from seatrial.log import log_to
from seatrial.model.codes import (
    BUILD_FAILED,
    CHECK_ERROR,
    KNOWN,
    PASS,
    PERFORMANCE,
    RECALLED,
    failure_words,
)
from seatrial.model.figures import ELAPSED
from seatrial.model.node_set import fold
from seatrial.model.test import Case
from seatrial.results.references import (
    expected,
    promises_in,
    references_for,
    unreferenced,
    with_elapsed,
)
from seatrial.results.store import queries
from seatrial.results.store.queries import owned
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import CaseRow, Filters, MetricRow, RunRow, SummaryRow, TrialRow
from seatrial.show.text import folded
from seatrial.units import SECOND_NS, count, in_per_cent, listed, show_figure, show_seconds

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
    with alerting_if_it_stops(folder, alert):
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
    """Return a trial's driver. What sends its events elsewhere is told of them, too."""
    observer = observer or Observer()
    for delivery in provided("seatrial_deliveries"):
        observer = load(delivery.observe)(folder, observer, folders.log_level)
    driver = Driver(folder, observer, alert)
    tell_shared(folder.path.parent)
    if driver.origin.loose:
        click.echo(f"seatrial: {folder.tag}: {plain_line(driver.origin.loose)}", err=True)
    for rule in chain.from_iterable(file.rules for file in driver.record.rules):
        if is_left_out(rule):
            tell(f"{folder.tag}: {rule.name}: {rule.about}")
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


def cancel_trial(folder: TrialFolder, folders: Folders) -> int:
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
    reason = f"run {next(iter(over))} is over" if over else f"it has no run {run!r}"
    raise UsageError(f"{folder.tag}: {reason}; `seatrial runs --trial {folder.tag}` lists them")


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


def abandon(folder: TrialFolder, folders: Folders, reason: str, again: str) -> int:
    """Abandon a trial, through its driver or by driving it for that; return 0. ``again``: the
    command that begins anew."""
    folders = folders.around(folder.path)
    try:
        _drive(_driver(folder, folders), folders, abandon=reason)
    except Owned:
        requests.ask(folder, Request(request="abandon", text=reason))
        click.echo(f"{folder.tag}: its driver was asked to abandon it; it will say when it has.")
        return 0
    click.echo(f"{folder.tag}: abandoned; `{again}` begins anew.")
    return 0


# ---- progress ------------------------------------------------------------------------------------
#
# Live progress of a trial: one line for each verdict, and on a terminal a status line below.


if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


FIGURES_SHOWN = 2


def fall_silent() -> None:
    """Discard all further output, because nobody reads it any more, as in ``seatrial run | head``.
    The trial continues."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


_FOLLOWS = {
    INTERRUPTED: ": starting nothing more, waiting for what runs; again to cancel it",
    TWICE: ": cancelling what runs; again to leave at once, jobs go on",
}


def _note_of(event: events.Event) -> str:
    """Return the line to print for an event about the trial; after Ctrl-C it says what follows."""
    parts = [event.nodes, event.test]
    parts += [getattr(event, name, "") for name in ("io", "asked", "reason", "text")]
    parts.append(event.by and f"by {event.by}")
    if isinstance(event, events.TrialExtended):
        parts = [show_seconds(event.seconds)]
    said = ": ".join(filter(None, (event.told_as, *parts)))
    return f"{said}{_FOLLOWS.get(event.reason, '')}"


def _left(trial: TrialLife, now: int) -> str:
    return f"{show_seconds(max(0.0, trial.duration - trial.elapsed(now)))} to go"


def _sustained(conductor: Conductor, passed: int) -> list[str]:
    """Return the status of a sustained trial: the time left, and what it keeps running."""
    state = conductor.state
    flights = [flight for flight in list(state.in_flight.values()) if flight.has_job]
    started = [flight for flight in flights if flight.state is RunState.RUNNING]
    room = state.limits.cores
    busy = sum(flight.request.width for flight in started)
    there = room or state.nodes.usable
    share = f" ({100 * busy / there:.0f} %)" if there else ""
    return [
        _left(state.trial, present(state.trial.opened)),
        f"{busy}/{there} {'cores' if room else 'nodes'}{share}",
        f"{len(flights)} in flight",
        f"{passed} passed",
    ]


class Progress(Observer):
    """An observer that prints. It keeps the runs in flight and forgets those that have ended."""

    def __init__(self, quiet: bool, label: str = "") -> None:
        """``label`` begins each line where several trials are driven at once; there is no status
        line then."""
        self.quiet = quiet
        self._label = label
        self.finished = 0
        self.wanted = 0
        self.began = time.monotonic()
        self.running: dict[str, str] = {}
        self.building: dict[str, events.BuildStarted] = {}
        self.tally: Counter[str] = Counter()
        self._figures: dict[str, list[str]] = {}
        self._lives: dict[str, RunLife] = {}
        self._live: Live | None = None
        self.conductor: Conductor | None = None  # of the trial, for facts that only it knows

    def close(self) -> None:
        """End the status line."""
        live, self._live = self._live, None
        if live is not None:
            try:
                live.stop()
            except OSError:
                fall_silent()

    # ---- events ---------------------------------------------------------------------------

    def on_open(self, finished: int, wanted: int) -> None:
        """Keep the state of the trial, which is known only once its journal has been read."""
        self.finished, self.wanted = finished, wanted
        if sys.stdout.isatty() and not self.quiet and not self._label:
            from rich.live import Live  # takes 30 ms, and only terminals have a status line

            self._live = Live(get_renderable=self._status, refresh_per_second=4, transient=True)
            self._live.start()

    def on_event(self, event: events.Event, case: Case | None) -> None:
        if isinstance(event, events.RunEvent):
            if case is not None and not self.quiet:
                self._on_run(event, case)
        elif isinstance(event, events.BuildStarted):
            self.building[event.key] = event
        elif isinstance(event, events.BuildEnded):
            self._on_build_end(event)
        elif event.told_as is not None:
            self._print(click.style("note", fg="yellow"), _note_of(event))
        elif isinstance(event, events.TrialOpened) and not self.quiet:
            about = f"{self._to_come(event)} on {event.machine}"
            self._print("", about if self._label else f"{event.trial}: {about}")

    def _on_run(self, event: events.RunEvent, case: Case) -> None:
        life = self._lives.setdefault(event.run_id, RunLife())
        if life.apply(event) and life.state is RunState.RUNNING:
            self.running[event.run_id] = case.name
        if isinstance(event, events.MetricRecorded):
            self._add_figure(event)
        elif isinstance(event, events.RunJudged):
            self._on_verdict(event, case, self._lives.pop(event.run_id))

    def _to_come(self, event: events.TrialOpened) -> str:
        conductor = self.conductor
        if conductor is None or not conductor.state.trial.duration:
            return count(self.wanted - self.finished, "run")
        return _left(conductor.state.trial, event.time)

    def _add_figure(self, event: events.MetricRecorded) -> None:
        figures = self._figures.setdefault(event.run_id, [])
        if len(figures) >= FIGURES_SHOWN or node_of(event.metric):
            return
        if isinstance(event.value, int | float):
            figures.append(f"{event.metric} {show_figure(event.value, event.unit)}")

    def _on_verdict(self, event: events.RunJudged, case: Case, life: RunLife) -> None:
        run = event.run_id
        self.running.pop(run, None)
        self.tally[event.verdict] += 1
        self.finished += not event.will_rerun
        took = show_seconds(life.elapsed) if life.elapsed else ""
        figures = self._figures.pop(run, [])
        good = event.code == PASS.number
        reason = event.reason.partition("\n")[0]
        if event.code == BUILD_FAILED.number:
            reason = "see the build above"
        why = failure_words(event.cause, event.cause_line, reason)
        said = ", ".join(figures) if good else why
        bad = event.code not in (RECALLED.number, KNOWN.number)
        colour = "green" if good else "red" if bad else "yellow"
        self._print(click.style(event.verdict, fg=colour), f"{case.name}  {took}  {said}".rstrip())

    def _on_build_end(self, event: events.BuildEnded) -> None:
        begun = self.building.pop(event.key, event)
        if self.quiet:
            return
        if event.code == PASS.number:
            took = show_seconds((event.time - begun.time) / SECOND_NS)
            text = f"{begun.test} ({event.key[:8]})"
            if event.made_by:
                self._print("found", f"{text}, built by {event.made_by}")
            else:
                self._print("built", f"{text}  {took}")
            if event.anew:
                self._print("", f"  | built anew: {event.anew}")
            return
        self._print(click.style("build failed", fg="red"), f"{begun.test}: {event.path}/build.log")
        for line in event.log.splitlines()[-10:]:
            self._print("", f"  | {line}")

    def _print(self, word: str, text: str) -> None:
        line = f"{word} {plain(text)}" if word else plain(text)
        line = f"{self._label}: {line}" if self._label else line
        try:
            if self._live is not None:
                from rich.text import Text

                self._live.console.print(Text.from_ansi(line), soft_wrap=True)
            else:
                click.echo(line)
        except OSError:
            fall_silent()
            self.close()

    # ---- the status line ------------------------------------------------------------------

    def _status(self) -> "Text":
        from rich.markup import escape
        from rich.text import Text

        parts = [f"{self.finished}/{self.wanted} done"]
        if self.conductor is not None and self.conductor.state.trial.duration:
            parts = _sustained(self.conductor, self.tally[PASS.name])
        fine = (PASS.name, RECALLED.name, KNOWN.name)
        failed = sum(number for name, number in self.tally.items() if name not in fine)
        if failed:
            parts.append(f"[red]{failed} not passed[/red]")
        if self.building:
            names = [begun.test for begun in self.building.values()]
            parts.append(f"building {', '.join(names[:2])}")
        if self.running:
            first = escape(next(iter(self.running.values())))
            more = f" and {len(self.running) - 1} more" if len(self.running) > 1 else ""
            parts.append(f"running {first}{more}")
        parts.append(show_seconds(time.monotonic() - self.began))
        return Text.from_markup("  ".join(parts))


# ---- summary -------------------------------------------------------------------------------------
#
# The summary of a trial: a table of figures, the counts, its folder, the next command.


MAX_ROWS = 100

MAX_REASON = 120  # characters of why a failure is known
COLUMNS = f"case~ | metric~ | value> | spread>?-1 | n> | {COLUMN}> | reference> | verdict~"


def print_summary(folder: TrialFolder, folders: Folders, outcome: DriveOutcome) -> bool:
    """Print the figures of the trial and its outcome. If the store cannot be used, only the table
    is missing, with a message. Return whether each figure is known to have a reference."""
    name, has_references = folder.tag, False
    try:
        name, has_references = _print_figures(folder, folders)
    except SeatrialError as error:
        click.echo(f"seatrial: no table of figures: {plain_line(str(error))}", err=True)
    click.echo(counts(outcome))
    path = min(str(folder.path), os.path.relpath(folder.path), key=len)
    click.echo(f"trial  {plain_line(path)}")
    if not outcome.complete:
        click.echo(f"ended before all cases ran: {outcome.reason}")
        click.echo(f"next   {folders.command('resume', folder.tag)}")
    elif outcome.failed:
        click.echo(f"next   {folders.command('runs', '--trial', name, '--failed')}")
    else:
        click.echo(f"next   {folders.command('runs', '--trial', name)}")
        click.echo(f"       {folders.command('show', 'RUN')}")
    return has_references


def _print_figures(folder: TrialFolder, folders: Folders) -> tuple[str, bool]:
    """Print the table, and how many figures have no reference; return the name by which to ask the
    store for the trial, as it may hold its tag twice, and whether each figure has a reference."""
    with opened(folders) as store:
        trial, name = _trial_and_name(store, folder)
        tell_damage(store, [trial])
        references = references_for(store, trial)
        measured, accused = _measured(store, trial, references)
        failed = queries.runs(store, Filters(trial=name, failed=True))
        known = queries.runs(store, Filters(trial=name, states=["known"]))
        slow = [run for run in failed if run.code == PERFORMANCE.number]
        figures = queries.figures(store, [run.row for run in slow])
        cases = {case.id: case for case in queries.cases_of(store, trial)}
    missed, judged = _missed(slow, figures, cases, references)
    wrong = _verdicts([run for run in failed if run.row not in judged], known)
    shown: list[list[object]] = []
    promised: list[Promised | None] = []
    for case in cases.values():
        verdicts: Mapping[str, int] = wrong.get(case.id, {})
        rows = [row for row in measured.get(case.id, ()) if row.n or not verdicts]
        of_case = _promised(trial, case, rows)
        shares = map(share_cell, of_case)
        shown += map(partial(_row, case, missed, references), rows, shares)
        promised += of_case
        shown += _verdict_rows(case, verdicts)
    more = folders.command("export", name, "--format", "json")
    print_first(TextTable(COLUMNS, shown[:MAX_ROWS]), len(shown), MAX_ROWS, f": {more}")
    for words in told(promised):
        click.echo(folded(plain_line(words)))
    if accused:
        text = f"findings on {count(len(accused), 'node')}: {fold(accused)}"
        click.echo(folded(plain_line(text)))
    lacking = unreferenced(chain.from_iterable(measured.values()), cases, references)
    if lacking.words:
        click.echo(folded(plain_line(lacking.words)))
    return name, not lacking.without


def _measured(
    store: Store, trial: TrialRow, references: References
) -> tuple[dict[str, list[SummaryRow]], set[str]]:
    """Return the figures of a trial by case; with the time of the script where that has a reference
    and is not among them. Return also the nodes with findings, whose numbers are left out where
    they have no reference."""
    timed = [test for test, metric in references.by_metric if metric == ELAPSED]
    referenced = {metric for _, metric in references.by_metric}
    rows: dict[str, list[SummaryRow]] = {}
    accused = set[str]()
    for row in (*queries.summary(store, trial), *queries.elapsed_summary(store, trial, timed)):
        of_case = rows.setdefault(row.case, [])
        if node := node_of(row.metric):
            accused.add(node)
            if row.metric not in referenced:
                continue
        if row.metric != ELAPSED or all(one.metric != ELAPSED for one in of_case):
            of_case.append(row)
    return rows, accused


def _verdicts(failed: Sequence[RunRow], known: Sequence[RunRow]) -> dict[str, Counter[str]]:
    """Return by case how many runs have which verdict other than pass; known failures with the
    reason for which they are known."""
    verdicts: dict[str, Counter[str]] = {}
    for run in failed:
        verdicts.setdefault(run.case, Counter())[run.verdict] += 1
    for run in known:
        reason = plain_line(run.why.partition("\n")[0])[:MAX_REASON]
        verdicts.setdefault(run.case, Counter())[f"{run.verdict}: {reason}"] += 1
    return verdicts


def _verdict_rows(case: CaseRow, verdicts: Mapping[str, int]) -> list[list[object]]:
    """Return the row of the verdicts of a case; none if all runs passed."""
    text = ", ".join(_of_runs(number, case, what) for what, number in verdicts.items())
    return [[case.name, "", "", "", "", "", "", text]] if text else []


def _missed(
    slow: Sequence[RunRow],
    figures: dict[int, list[MetricRow]],
    cases: dict[str, CaseRow],
    references: References,
) -> tuple[Counter[tuple[str, str]], set[int]]:
    """Return by case and metric how many runs have a figure that misses its reference, and the rows
    of these runs: a script can judge a run as too slow, too."""
    missed: Counter[tuple[str, str]] = Counter()
    told: set[int] = set()
    for run in slow:
        for figure in with_elapsed(figures.get(run.row, ()), run, references):
            wanted = expected(figure, cases[run.case], references, run.stage)
            if wanted is not None and wanted.meets is False:
                missed[run.case, figure.name] += 1
                told.add(run.row)
    return missed, told


def _of_runs(number: int, case: CaseRow, verdict: str) -> str:
    return f"{number} of {case.repeat} {verdict}" if case.repeat > 1 else verdict


def _trial_and_name(store: Store, folder: TrialFolder) -> tuple[TrialRow, str]:
    """Return the trial and its name: its tag, or its path if the tag could be another trial's."""
    path = os.path.realpath(folder.path)
    with contextlib.suppress(UsageError):
        trial = queries.trial(store, folder.tag)
        if os.path.realpath(trial.path) == path:
            return trial, folder.tag
    return queries.trial(store, path), path


def _promised(trial: TrialRow, case: CaseRow, rows: Sequence[SummaryRow]) -> list[Promised | None]:
    """Return what was promised of the medians of a case."""
    promises = promises_in(trial.path, case.test, case.id)
    return [beside(promises, row.metric, row.median, row.unit) for row in rows]


def _row(
    case: CaseRow,
    missed: Counter[tuple[str, str]],
    references: References,
    row: SummaryRow,
    share: str,
) -> list[object]:
    """Return the row of a case and metric. Value: the median. Spread: (maximum - minimum) / median,
    if there are two or more. ``share``: of what was promised. Verdict: of the metric by its
    reference, "" without one."""
    value = show_figure(row.median, row.unit) if row.median is not None else "none"
    spread = in_per_cent(row.spread)
    reference = verdict = ""
    if row.median is not None:
        figure = MetricRow(row.metric, row.median, row.unit, row.better)
        if (wanted := expected(figure, case, references, row.stage)) is not None:
            code = CHECK_ERROR if wanted.meets is None else PASS if wanted.meets else PERFORMANCE
            reference, verdict = wanted.text, code.name
    if number := missed[case.id, row.metric]:  # of single runs: they take precedence
        verdict = _of_runs(number, case, PERFORMANCE.name)
    return [row.case_name, row.metric, value, spread, row.n, share, reference, verdict]


# ---- end alert -----------------------------------------------------------------------------------
#
# Tell people that a trial has ended, or could not go on: by the command of ``--alert``.


KIND = "end"
TIMEOUT_SECONDS = 30.0


@contextmanager
def alerting_if_it_stops(folder: TrialFolder, command: str) -> Iterator[None]:
    """Run the command if the block, which drives a trial, does not come to its end. That another
    process drives the trial is no news."""
    try:
        yield
    except Owned:
        raise
    except SeatrialError as error:
        tell_end(folder, command, f"{folder.tag} cannot go on: {error}", 3)
        raise
    except SystemExit:
        said = "its driver was told to stop; jobs that run go on"
        tell_end(folder, command, f"{folder.tag}: {said}", 3)
        raise


def counts(outcome: DriveOutcome) -> str:
    """Return the verdicts of a drive as people read them: ``9 passed, 1 failed``."""
    verdicts = dict(outcome.verdicts)
    parts = [f"{verdicts.pop(PASS.name, 0)} passed"]
    parts += [f"{number} {name}" for name, number in sorted(verdicts.items())]
    if outcome.left:
        parts.append(f"{outcome.left} left to run")
    return ", ".join(parts)


def outcome_text(folder: TrialFolder, outcome: DriveOutcome) -> str:
    """Return the outcome of a drive in one line."""
    early = "" if outcome.complete else f"; ended before all cases ran: {outcome.reason}"
    return f"{folder.tag}: {counts(outcome)}{early}"


def tell_end(folder: TrialFolder, command: str, text: str, code: int) -> None:
    """Run the command, if there is one, with the text and the exit code in its environment. Say so
    on stderr if it fails."""
    if not command:
        return
    variables = {"ALERT": text, "ALERT_KIND": KIND, "ALERT_SUBJECT": "", "EXIT_CODE": str(code)}
    variables |= {"TRIAL": folder.tag, "MACHINE": folder.record().machine.machine}
    shell = Shell(command, TIMEOUT_SECONDS)
    told = {name: value.replace("\0", "") for name, value in variables.items()}
    if failure := asyncio.run(shell.run(told)).failure:
        click.echo(f"seatrial: the command of --alert fails: {failure}", err=True)


# ---- shared folder -------------------------------------------------------------------------------
#
# Tell where a folder of trials lets others put one trial in the place of another.


@functools.cache
def tell_shared(trials: Path) -> None:
    """Tell, once, that others may rename and replace the trials of a folder, and what ends that."""
    with contextlib.suppress(OSError), opened_folder(trials, follow=True) as folder:
        if origin_of(folder, trials).loose:
            where = plain_line(str(trials))
            click.echo(
                f"seatrial: {where}: whoever may write there can put another trial in the place of "
                f"yours; `chmod +t {where}` leaves that to you",
                err=True,
            )
