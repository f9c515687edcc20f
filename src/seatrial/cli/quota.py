"""``seatrial quota``: jobs that Slurm refuses because of quotas."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import json_option, list_option, path_option

_rules_option = path_option(
    "--rules",
    "file",
    "FILE",
    "The quotas and the limits of a site.",
    default=Path("submit.yaml"),
    show_default=True,
)
_folder = click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")


@click.group("quota")
def command() -> None:
    """Let Slurm refuse jobs of users who are over a quota.

    `refresh` asks for quotas, by cron; slurmctld reads one small file a job.
    """


@command.command("write")
@_folder
@action
def write() -> None:
    """Write job_submit.lua for Slurm in DIR."""


@command.command("refresh")
@_folder
@_rules_option
@list_option("--user", "names", "NAME", "Only this user.")
@click.option("-y", "--yes", is_flag=True, help="Limit however many users are new at once.")
@action
def refresh() -> None:
    """Ask for the quotas of users, and write a file for each in DIR.

    Exits 1 if one could not be asked for: the user's file stays, and no longer counts when it is
    stale. So it does if more than a fifth of the users (and more than 10) would be limited that
    were not before: their files are not written without --yes.
    """


@command.command("explain")
@click.argument("user")
@_rules_option
@json_option
@action
def explain() -> None:
    """Show the quotas of USER, and which jobs are refused.

    Quotas are asked for now. Exits 1 if some jobs are refused.
    """
