"""``seatrial tune``: find the best setting of a test by a race, or show how one stands."""

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.advise import print_tuning
from seatrial.cli.options import (
    alert_option,
    consent_option,
    format_option,
    machine_option,
    quiet_option,
)
from seatrial.cli.query_common import print_page, tell_damaged_journal
from seatrial.cli.run_driver import drive
from seatrial.errors import UsageError
from seatrial.execute.batch.batch import require_scheduler
from seatrial.execute.creation import create
from seatrial.execute.detect import require_chosen
from seatrial.execute.prepare import MAX_TOLD, left_out_of, new_tag
from seatrial.execute.trial_folder import find
from seatrial.execute.trial_record import Record
from seatrial.execute.tuning import PreparedTuning, prepare_tuning
from seatrial.execute.tuning_odds import rehearse_sweep, rehearse_tuning
from seatrial.results.tuned import tuned
from seatrial.show.text import folded
from seatrial.show.tune import race_page, rehearsal_page, tuning_page
from seatrial.units import show_seconds


@click.command("tune")
@click.argument("file", required=False, metavar="[TUNE]", type=click.Path(path_type=Path))
@machine_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and tuning.")
@click.option("--status", metavar="TRIAL", help="Show how a tuning stands, and run nothing.")
@click.option(
    "--rehearse", "rehearsed", is_flag=True, help="Run nothing; how likely is the best found?"
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Rehearsed tunings.",
)
@click.option(
    "--noise",
    type=click.FloatRange(min=0, min_open=True, max=100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Rehearsal: spread of the runs of one setting on the same nodes.",
)
@consent_option
@alert_option
@quiet_option
@format_option("table", "json")
@click.pass_obj
def command(
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
    """Find the best setting of a test: a race over the axes of a tune.yaml.

    TUNE is the file. All settings run once; those that may still be best run again, round by round
    beside the default, each block in one allocation. What cannot win is dropped. With `search:
    sweep` the axes are ordered, and few points run, from small to large. Both are trials like any
    other: `seatrial resume` continues them.

    \b
    seatrial tune tune.yaml -m frost
    seatrial tune tune.yaml -m frost --rehearse   its cost and odds
    seatrial tune --status TRIAL
    seatrial advise TRIAL
    """
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
