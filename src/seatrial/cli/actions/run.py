"""``seatrial run``: build, launch, verify, record."""

from typing import Any

import click

from seatrial.backends.choose import require_scheduler
from seatrial.cli import Folders, options
from seatrial.cli.run_driver import drive_and_tell, write_scripts
from seatrial.errors import UsageError
from seatrial.machine.login_node import require_chosen
from seatrial.suite.shared_allocations import described_groups
from seatrial.trial import creation, suite_record
from seatrial.trial.outcome import FailOn
from seatrial.trial.prepare import Prepared, new_tag, notes_of, prepare_trial, require_cases
from seatrial.verify.learned_sums import unlearned_sums


def command(
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
    if not dry_run:
        require_chosen(machine, "-m")
    asked = options.asked_of(**selection, labels=dict(labels))
    prepared = prepare_trial(asked, machine)
    require_cases(prepared)
    if asked.failed_from:
        prepared = _only_failed(prepared, folders, asked.failed_from)
    if not dry_run:
        require_scheduler(prepared.site.machine)
    folder = creation.create(
        folders.trials,
        suite_record.suite_record(prepared, tag or new_tag(folders.trials, asked.suites)),
        prepared.cases,
    )
    for what, why in prepared.skipped[:10]:
        click.echo(f"left out: {what}: {why}", err=True)
    if note := described_groups(prepared.cases, prepared.groups, asked.allocations):
        click.echo(f"together: {note}", err=True)
    for note in notes_of(prepared):
        click.echo(f"note: {note}", err=True)
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
    from seatrial.cli.query_common import opened, tell_damage
    from seatrial.store import queries

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
