"""``seatrial cancel``: cancel the jobs of a trial and the runs still to start, or one run."""

import os
from typing import TYPE_CHECKING

import click

from seatrial.cli import Folders
from seatrial.lazy import LazyModule
from seatrial.trial.folder import find

if TYPE_CHECKING:
    from seatrial.cli import query_common, run_driver
else:  # for a trial that was found
    query_common = LazyModule("seatrial.cli.query_common")
    run_driver = LazyModule("seatrial.cli.run_driver")


def command(folders: Folders, trial: str, reason: str) -> int:
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
