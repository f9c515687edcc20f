"""The command ``sink``."""

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    Parsed,
    complete,
    format_option,
    list_option,
    value_option,
)
from seatrial.units import seconds


@click.command("sink")
@click.argument("trial", required=False, shell_complete=complete("trials"))
@click.option("--all", "every", is_flag=True, help="Every trial, but rehearsals.")
@list_option("--sink", "names", "NAME", "Only this one.")
@click.option(
    "-m",
    "--machine",
    help="The sinks of this machine, instead of the trial's own; needed for the trial of another "
    "user.",
)
@click.option("--follow", is_flag=True, help="Go on as long as the trial is driven.")
@value_option(
    "--patience",
    "TIME",
    "How long a sink that fails is tried: 10m, 2d; default: a minute, with --follow the "
    "sink's own.",
    type=Parsed(seconds),
)
@click.option("--again", is_flag=True, help="Send all again, from the journal's beginning.")
@click.option("--stop", is_flag=True, help="End the process that delivers the trial's events.")
@click.option("--status", is_flag=True, help="Show how far behind each sink is, and why.")
@click.option("--stdout", is_flag=True, help="Print the events as JSON lines, and nothing else.")
@format_option("table", "json", help="How the status is shown.")
@click.pass_obj
@act("seatrial.plugins.sinks.acts:sink")
def sink() -> None:
    """Send a trial's events to the sinks that its machine's file names.

    A trial's driver does this by itself, in a process of its own. By hand it catches up what an
    outage left, or sends an old trial to a new sink. What was sent is not sent again.

    \b
    seatrial sink TRIAL                   what is not sent yet
    seatrial sink --all                   of every trial
    seatrial sink TRIAL --again           all of it, from the beginning
    seatrial sink TRIAL --stop            end the process that delivers
    seatrial sink TRIAL --status          how far behind each sink is, and why
    seatrial sink TRIAL -m c5             to the sinks of machines/c5.yaml
    seatrial sink TRIAL --stdout | jq     the events as JSON lines

    \b
    Exit codes:  0  everything was delivered
                 3  something was not, or was not taken
    """
