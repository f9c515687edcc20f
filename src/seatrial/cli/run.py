"""``seatrial run``: build, launch, verify, record."""

from typing import Any

import click

from seatrial.cli import Folders, options
from seatrial.cli.query_common import opened, tell_damage
from seatrial.cli.run_driver import drive_and_tell, write_scripts
from seatrial.cli.selection import asked_of, repeat_option, selection_options
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
from seatrial.judge.learning import unlearned_sums
from seatrial.model.job_options import described_groups
from seatrial.results.store import queries
from seatrial.show.text import folded


@click.command("run")
@selection_options
@repeat_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    help="Maximum runs at a time: started on this host, or queued at a scheduler.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(min=1),
    help="Launch no more after so many verdicts other than pass; running jobs are waited for.",
)
@options.text_option("--failed-from", "TRIAL", "Only cases that did not pass in that trial.")
@options.list_option(
    "--label",
    "labels",
    "NAME=VALUE",
    "Say how it is run, e.g. load=dedicated; sides are chosen by it. May be repeated.",
    type=options.Parsed(options.parsed_label),
)
@click.option(
    "--together",
    is_flag=True,
    help="All runs in one allocation, on the same nodes, in rounds; one for each size.",
)
@click.option(
    "--allocations",
    type=click.IntRange(min=1),
    default=1,
    help="With --together: so many allocations, each with all rounds.",
)
@click.option("--rebuild", is_flag=True, help="Build anew, whatever builds other trials share.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Write the scripts, submit nothing; `seatrial resume` would then run them.",
)
@options.consent_option
@options.alert_option
@options.fail_on_option
@options.require_references_option
@options.quiet_option
@click.pass_obj
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
    """Run a suite: build, launch, verify, record.

    SUITE is a folder with tests (default: the current one). A trial, below the folder of trials,
    records everything. After an interruption or a crash, `seatrial resume` continues it.

    \b
    seatrial run suites/probes                   everything, on this machine
    seatrial run suites/probes -k "stream and touch=all" --repeat 5
    seatrial run suites/probes --machine c5 --dry-run
    """
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
