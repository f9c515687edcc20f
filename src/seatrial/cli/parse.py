"""``seatrial parse``: print the figures of a known output format as JSON."""

import click

from seatrial.cli.actions import action


@click.command("parse")
@click.argument("form", metavar="[FORMAT]", required=False)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--list", "listed", is_flag=True, help="List the formats.")
@action
def command() -> None:
    """Print the figures of FILE (`-`: stdin), an output of that FORMAT, as JSON.

    It prints a list of {name, value, unit, better, labels}. A file that is truncated, failed, or of
    another program is refused with the reason and exit code 2. `metrics: {from: FORMAT}` reads the
    same figures in a test.
    """
