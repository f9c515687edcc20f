"""``seatrial advise``: the best setting that a tuning found, and what it could not tell."""

import click

from seatrial.cli import Folders, options
from seatrial.cli.best import print_advice
from seatrial.cli.options import format_option
from seatrial.cli.query_common import tell_damaged_journal
from seatrial.execute.trial_folder import find
from seatrial.results.store.export import to_json
from seatrial.results.tuned import tuned


@click.command("advise")
@click.argument("trial", shell_complete=options.complete("trials"))
@format_option("table", "json")
@click.pass_obj
def command(folders: Folders, trial: str, form: str) -> int:
    """Show which setting to use by the tuning TRIAL, how sure that is, and what it cost."""
    folder = find(folders.trials, trial)
    tell_damaged_journal(folder)
    found = tuned(folder)
    if form == "json":
        click.echo(to_json(found), nl=False)
    else:
        print_advice(found, folders)
    return 0
