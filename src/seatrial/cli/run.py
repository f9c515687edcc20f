"""``seatrial run``: build, launch, verify, record."""

import os
from typing import Any

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, tell_damage, tell_damaged_journal
from seatrial.cli.run_driver import cancel_run, cancel_trial, drive_and_tell, write_scripts
from seatrial.cli.suite import asked_of
from seatrial.errors import UsageError
from seatrial.execute import creation
from seatrial.execute.batch.batch import require_scheduler
from seatrial.execute.creation import suite_record
from seatrial.execute.detect import require_chosen
from seatrial.execute.prepare import (
    MAX_TOLD,
    Prepared,
    left_out_of,
    new_tag,
    notes_of,
    prepare_trial,
    require_cases,
)
from seatrial.execute.requests import FailOn
from seatrial.execute.trial_folder import find
from seatrial.judge.learning import unlearned_sums
from seatrial.model.run_settings import described_groups
from seatrial.results.store import queries
from seatrial.show.text import folded


def run(
    folders: Folders,
    /,
    machine: str | None,
    tag: str | None,
    labels: tuple[tuple[str, str], ...],
    dry_run: bool,
    alert: str,
    fail_on: FailOn,
    require_references: bool,
    quiet: bool,
    **selection: Any,
) -> int:
    """Do ``seatrial run``; return the exit code."""
    if not dry_run:
        require_chosen(machine, "-m")
    asked = asked_of(**selection, labels=dict(labels))
    prepared = prepare_trial(asked, machine, folder=str(folders.trials.absolute()))
    require_cases(prepared)
    if asked.failed_from:
        prepared = _only_failed(prepared, folders, asked.failed_from)
    if not dry_run:
        require_scheduler(prepared.site.machine)
    folder = creation.create(
        folders.trials,
        suite_record(prepared, tag or new_tag(folders.trials, asked.suites)),
        prepared.cases,
    )
    for line in left_out_of(prepared.skipped, prepared.broken, at_most=MAX_TOLD):
        click.echo(line, err=True)
    if note := described_groups(prepared.cases, prepared.groups, asked.allocations):
        click.echo(f"together: {note}", err=True)
    for note in notes_of(prepared):
        click.echo(folded(f"note: {note}"), err=True)
    if note := unlearned_sums(folder.record().tests, prepared.expected):
        click.echo(f"note: {note}; `seatrial reference accept TRIAL` learns it", err=True)
    if dry_run:
        return write_scripts(folder, folders)
    return drive_and_tell(
        folder,
        folders,
        quiet,
        alert=alert,
        fail_on=fail_on,
        require_references=require_references,
    )


def _only_failed(prepared: Prepared, folders: Folders, trial: str) -> Prepared:
    """Return only the cases that did not pass in a trial. Raises UsageError if there are none."""
    with opened(folders) as store:
        row = queries.trial(store, trial)
        tell_damage(store, [row])
        failed = set(queries.failed_cases(store, row))
    if not failed:
        raise UsageError(f"no case of {trial} failed")
    prepared = prepared.only(failed)
    if not prepared.cases:
        raise UsageError(f"no case that failed in {trial} is among those selected")
    return prepared


def resume(
    folders: Folders,
    trial: str,
    alert: str,
    fail_on: FailOn,
    require_references: bool,
    quiet: bool,
    host_is_gone: bool,
) -> int:
    """Do ``seatrial resume``; return the exit code."""
    folder = find(folders.trials, trial)
    return drive_and_tell(folder, folders, quiet, host_is_gone, alert, fail_on, require_references)


def cancel(folders: Folders, trial: str, reason: str) -> int:
    """Do ``seatrial cancel``; return the exit code."""
    tag, run = trial, ""
    if "/" in trial and not os.path.exists(f"{trial}/trial.json"):  # noqa: PTH110
        tag, _, run = trial.rpartition("/")
    folder = find(folders.trials, tag)
    tell_damaged_journal(folder)
    if run:
        return cancel_run(folder, folders, run, reason)
    if reason:
        raise click.UsageError("--reason is for one run: TRIAL/RUN")
    return cancel_trial(folder, folders)
