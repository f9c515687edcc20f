"""``seatrial note``: notes about the machine."""

import click

from seatrial.cli.actions import action
from seatrial.cli.options import MOMENT, value_option


@click.command("note")
@click.argument("text", required=False)
@value_option("--at", "TIME", "When it was: 2h (ago), 2026-11-20T14:03; default: now.", type=MOMENT)
@click.option("-m", "--machine", default="", help="Machine that it is about; default: every one.")
@click.option("--list", "listed", is_flag=True, help="List the notes.")
@value_option("--remove", "ID", "Remove the note of that id, or its beginning.")
@click.pass_obj
@action
def command() -> None:
    """Note what happened to the machine: an upgrade, a reset, an outage.

    `seatrial history` shows the notes on its time lines, and beside each change the nearest one.
    They are kept in notes.jsonl in the folder of the trials.
    """
