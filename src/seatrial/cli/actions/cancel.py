"""``seatrial cancel``: cancel the jobs of a trial and the runs still to start, or one run."""

import os

import click

from seatrial.cli import Folders, run_driver
from seatrial.cli.query_common import tell_damaged_journal
from seatrial.trial.folder import find


def command(folders: Folders, trial: str, reason: str) -> int:
    tag, run = trial, ""
    if "/" in trial and not os.path.exists(f"{trial}/trial.json"):  # noqa: PTH110
        tag, _, run = trial.rpartition("/")
    folder = find(folders.trials, tag)
    tell_damaged_journal(folder)
    if run:
        return run_driver.cancel_run(folder, folders, run, reason)
    if reason:
        raise click.UsageError("--reason is for one run: TRIAL/RUN")
    return run_driver.cancel(folder, folders)
