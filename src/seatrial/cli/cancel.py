"""``seatrial cancel``: cancel the jobs of a trial and the runs still to start."""

from __future__ import annotations

import click

from seatrial.cli import Folders, complete


@click.command("cancel")
@click.argument("trial", shell_complete=complete.trials)
@click.pass_obj
def command(folders: Folders, trial: str) -> int:
    """Cancel the jobs of a trial and the runs still to start.

    The trial keeps everything that it has recorded. `seatrial resume` continues it.
    """
    from seatrial.cli.query_common import tell_damaged_journal
    from seatrial.cli.run_driver import cancel
    from seatrial.trial.folder import find

    folder = find(folders.trials, trial)
    tell_damaged_journal(folder)
    return cancel(folder, folders)
