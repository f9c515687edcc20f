"""``seatrial tune``: find the best setting of a test by a race, or show how one stands."""

from pathlib import Path

import click
from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.cli.query_common import print_page, tell_damaged_journal
from seatrial.cli.run_driver import drive
from seatrial.cli.study import print_or_draw
from seatrial.errors import UsageError
from seatrial.execute.batch.batch import require_scheduler
from seatrial.execute.creation import create
from seatrial.execute.detect import require_chosen
from seatrial.execute.prepare import MAX_TOLD, left_out_of, new_tag
from seatrial.execute.trial_folder import Record, find
from seatrial.execute.tuning import PreparedTuning, prepare_tuning
from seatrial.execute.tuning_odds import rehearse_sweep, rehearse_tuning
from seatrial.results.tuned import Tuned, tuned
from seatrial.results.tuned_basis import on_basis
from seatrial.show.page import Page
from seatrial.show.text import folded
from seatrial.show.tune import basis_sections, race_page, rehearsal_page, tuning_page
from seatrial.units import show_seconds


def tune(
    folders: Folders,
    /,
    file: Path | None,
    machine: str | None,
    tag: str | None,
    status: str | None,
    rehearsed: bool,
    seeds: int,
    noise: float,
    consent: tuple[str, ...],
    alert: str,
    quiet: bool,
    form: str,
) -> int:
    """Do ``seatrial tune``; return the exit code."""
    if status is not None:
        if file is not None or rehearsed:
            raise UsageError("--status TRIAL: name the trial alone")
        folder = find(folders.trials, status)
        tell_damaged_journal(folder)
        print_page(race_page(tuned(folder)), form)
        return 0
    if file is None:
        raise UsageError("name the file of a tuning, such as tune.yaml, or --status TRIAL")
    prepared = prepare_tuning(file, machine, with_builds=not rehearsed)
    if rehearsed:
        rehearse = rehearse_sweep if prepared.rules.search == "sweep" else rehearse_tuning
        odds = rehearse(prepared.rules, seeds, noise / 100)
        print_page(rehearsal_page(odds, prepared), form)
        return 0

    require_chosen(machine, "-m")
    require_scheduler(prepared.prepared.site.machine)
    record = prepared.record(tag or new_tag(folders.trials, [prepared.tune.tune]), consent)
    folder = create(folders.trials, record, prepared.cases)
    _tell_notes(prepared, record)
    outcome = drive(folder, folders, quiet, alert=alert)
    found = tuned(folder)
    print_tuning(folders, found, tuning_page(found), form)
    if not outcome.complete:
        return 3
    return 0 if found.best is not None else 1


def _tell_notes(prepared: PreparedTuning, record: Record) -> None:
    """Tell on stderr what is left out, and what the allocations of a tuning need."""
    for line in left_out_of(prepared.prepared.skipped, prepared.prepared.broken, at_most=MAX_TOLD):
        click.echo(line, err=True)
    if len(set(record.policy.bundle_of)) > 1:
        note = "the settings need different nodes, so a block has more than one allocation"
        click.echo(folded(f"note: {note}, whose nodes may differ"), err=True)
    if prepared.rules.search != "largest" and record.machine.scheduler != "local":
        longest = show_seconds(prepared.longest_block)
        note = f"an allocation may take up to {longest}; a partition whose limit is less"
        click.echo(folded(f"note: {note} never starts it"), err=True)


def advise(folders: Folders, trial: str, per: str | None, form: str) -> int:
    """Do ``seatrial advise``; return the exit code."""
    folder = find(folders.trials, trial)
    tell_damaged_journal(folder)
    found = tuned(folder)
    page = tuning_page(found)
    if per:
        based = on_basis(found, folder.cases(), per, str(folder.path))
        page = replace(
            page,
            sections=[*page.sections, *basis_sections(found, based)],
            records=lambda: to_builtins(found) | {"per": to_builtins(based)},
        )
    print_tuning(folders, found, page, form)
    return 0


def print_tuning(folders: Folders, found: Tuned, page: Page, form: str) -> None:
    """Print the page of a tuning, and what shows more of it."""
    print_or_draw(page, form)
    if form == "table":
        click.echo(f"\nall settings: {folders.command('tune', '--status', found.trial)}")
        click.echo(f"picture: {folders.command('advise', found.trial, '--format', 'svg')}")
