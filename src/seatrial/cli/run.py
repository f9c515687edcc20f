"""``seatrial run``: build, launch, verify, record."""

import click

from seatrial.cli import options
from seatrial.cli.actions import action


@click.command("run")
@options.selection_options
@options.repeat_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Most runs at a time.")
@click.option("--max-failures", type=click.IntRange(min=1), help="Stop at so many failures.")
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
@click.option("--dry-run", is_flag=True, help="Write the scripts, submit nothing.")
@options.alert_option
@options.fail_on_option
@options.require_references_option
@options.quiet_option
@click.pass_obj
@action
def command() -> None:
    """Run a suite: build, launch, verify, record.

    SUITE is a folder with tests (default: the current one). A trial, below the folder of trials,
    records everything. After an interruption or a crash, `seatrial resume` continues it.

    \b
    seatrial run suites/probes                   everything, on this machine
    seatrial run suites/probes -k "stream and touch=all" --repeat 5
    seatrial run suites/probes --machine c5 --dry-run
    """
