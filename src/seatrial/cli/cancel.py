"""``seatrial cancel``: cancel the jobs of a trial and the runs still to start, or one run."""

import os

import click

from seatrial.cli import Folders, options, query_common, run_driver
from seatrial.execute.trial_folder import find


@click.command("cancel")
@click.argument("trial", metavar="TRIAL[/RUN]", shell_complete=options.complete("trials"))
@click.option("--reason", default="", help="Why one run is cancelled; recorded with your name.")
@click.pass_obj
def command(folders: Folders, trial: str, reason: str) -> int:
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
    tag, run = trial, ""
    if "/" in trial and not os.path.exists(f"{trial}/trial.json"):  # noqa: PTH110
        tag, _, run = trial.rpartition("/")
    folder = find(folders.trials, tag)
    query_common.tell_damaged_journal(folder)
    if run:
        return run_driver.cancel_run(folder, folders, run, reason)
    if reason:
        raise click.UsageError("--reason is for one run: TRIAL/RUN")
    return run_driver.cancel(folder, folders)
