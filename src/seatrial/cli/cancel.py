"""``seatrial cancel``: cancel the jobs of a trial and the runs still to start, or one run."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action


@click.command("cancel")
@click.argument("trial", metavar="TRIAL[/RUN]", shell_complete=complete.trials)
@click.option("--reason", default="", help="Why one run is cancelled; recorded with your name.")
@click.pass_obj
@action
def command() -> None:
    """Cancel the jobs of a trial and the runs still to start, or one run.

    The trial keeps everything that it has recorded. `seatrial resume` continues it.

    With the id of a run, or the beginning of it, only that run is cancelled. Whether its case runs
    again is decided as for any cancelled run (`retry:` of a plan).

    \b
    seatrial cancel stability
    seatrial cancel stability/5m6iok73kdae --reason "it hangs on n017"

    \b
    Exit codes:  0  cancelled, or its driver was asked to
                 2  no such trial or run, the run is over, or usage
                 3  the driver has not answered yet, or nothing can be cancelled
    """
