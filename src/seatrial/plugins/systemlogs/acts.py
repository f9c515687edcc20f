"""``seatrial syslog``: lines themselves, on the terminal of who asks; logs that were not read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import TrialFolder, require_own
from seatrial.hooks import value_of
from seatrial.journal.journal import Journal
from seatrial.model.node_set import unfold_or_empty
from seatrial.plugins.systemlogs.collector import LogReader, RunRead, counted
from seatrial.plugins.systemlogs.findings import unread_of_trial
from seatrial.plugins.systemlogs.keys import LogSource
from seatrial.plugins.systemlogs.reading import LineCounter, LineSeen, RuleSet, rules_for
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunRow
from seatrial.show.text import show_clock
from seatrial.units import SECOND_NS, count


def syslog(folders: Folders, what: str, every: bool, unread: bool) -> int:
    """Do ``seatrial syslog``; return the exit code."""
    with opened(folders) as store:
        if unread:
            return _read_unread(folders, store, what)
        run = queries.run(store, what)
        folder = TrialFolder(Path(queries.trial_of(store, run).path))
    return _print_lines(folder, run, every)


def _print_lines(folder: TrialFolder, run: RunRow, every: bool) -> int:
    record, origin = folder.record_and_origin()
    sources: list[LogSource] = value_of(record.machine, "logs", list)
    if not sources:
        raise UsageError(f"{folder.tag}: the file of its machine has no `logs:`")
    if any(source.command for source in sources):
        require_own(folder.tag, origin)
    asked = _asked(run)
    seen: list[LineSeen] = []
    faults = []
    rules = RuleSet(rules_for(record.machine.log_rules))
    for source in sources:
        counter = LineCounter(source, [asked.window(source)], rules, on_line=seen.append)
        asyncio.run(counted(counter))
        faults += [f"{source.name}: {fault}" for fault in counter.counts[0].faults]
    for line in sorted(seen, key=lambda each: each.second):
        if every or line.rule:
            when, text = show_clock(line.second * SECOND_NS), plain_line(line.text)
            click.echo(f"{when} {line.node} {line.rule or '-'}: {text}")
    for fault in faults:
        click.echo(f"not all could be read: {fault}", err=True)
    return 1 if faults else 0


def _asked(run: RunRow) -> RunRead:
    """Return what is to be read for a run of the store."""
    times = (run.job_started, run.script_started, run.script_ended, run.job_ended)
    known = [each / SECOND_NS for each in times if each is not None]
    if not known:
        raise UsageError(f"{run.run_id}: never started, so no log is about it")
    nodes = tuple(unfold_or_empty(run.nodes))
    doubts = [] if nodes else ["it is not known on which nodes the run was"]
    return RunRead(run.run_id, nodes, min(known), max(known), doubts)


def _read_unread(folders: Folders, store: Store, tag: str) -> int:
    """Read the logs of the runs of a trial that were not read, and add them to its journal."""
    trial = queries.trial(store, tag)
    folder = TrialFolder(Path(trial.path))
    record, origin = folder.record_and_origin()
    require_own(folder.tag, origin)
    if not value_of(record.machine, "logs", list):
        raise UsageError(f"{folder.tag}: the file of its machine has no `logs:`")
    unread = set(unread_of_trial(store, trial.tag))
    runs = [run for run in queries.runs(store, Filters(trial=trial.path)) if run.run_id in unread]
    reader = LogReader(record, folders.trials)
    with Journal.take(folder.journal) as journal:
        read = asyncio.run(reader.read_now([_asked(run) for run in runs]))
        for event, run in zip(read, runs, strict=True):
            header = {"trial": record.tag, "machine": run.machine, "app": run.app}
            of_case = {"test": run.test, "case": run.case}
            journal.append(replace(event, time=journal.now(), **header, **of_case))
    click.echo(f"{folder.tag}: the logs of {count(len(runs), 'run')} were read")
    return 1 if any(source.faults for event in read for source in event.sources) else 0
