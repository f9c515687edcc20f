"""``seatrial cancel``: cancel a trial's jobs and what was still to start."""

from __future__ import annotations

import click

from seatrial.cli import Folders


@click.command("cancel")
@click.argument("trial")
@click.pass_obj
def command(folders: Folders, trial: str) -> int:
    """Cancel a trial: its jobs, and what was still to start.

    The trial keeps everything that it has recorded, and `seatrial resume` can take it up again.
    """
    from seatrial.cli.run_driver import cancel
    from seatrial.trial.folder import find

    return cancel(find(folders.trials, trial), folders)
