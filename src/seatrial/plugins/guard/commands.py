"""The commands ``guard`` and ``quota``."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    json_option,
    list_option,
    path_option,
)

_rules_option = path_option(
    "--rules", "file", "FILE", "The launch rules; default: guard.yaml, if it is here."
)
_quota_rules_option = path_option(
    "--rules",
    "file",
    "FILE",
    "The quotas and the limits of a site.",
    default=Path("submit.yaml"),
    show_default=True,
)
_folder = click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")


@click.group("guard")
def guard() -> None:
    """Tell what programs are made for, and judge them by launch rules.

    MPI and its version, OpenMP runtime, glibc, x86-64 level, RPATH, build id.
    """


@guard.command("check")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@_rules_option
@json_option
@act("seatrial.plugins.guard.acts:check")
def guard_check() -> None:
    """Tell what each FILE is made for. Exits 1 if a rule refuses one."""


@guard.command("scan")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@_rules_option
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Processes that read at a time.",
)
@json_option
@act("seatrial.plugins.guard.acts:scan")
def guard_scan() -> None:
    """List the programs and libraries below DIR that use MPI.

    Those that a rule refuses or warns of are listed, too. Links are not followed. Exits 1 if a rule
    refuses one.
    """


@guard.command("write")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@_rules_option
@act("seatrial.plugins.guard.acts:write")
def guard_write() -> None:
    """Write what a site installs in DIR, so that each launch is judged.

    The guard with its rules, a cli_filter.lua for Slurm, launchers for PATH, a TaskProlog for a
    second look, a folder for logs. After a change of the rules, write again.
    """


@guard.command("log")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@json_option
@act("seatrial.plugins.guard.acts:log")
def guard_log() -> None:
    """List the launches that were refused or warned of.

    DIR is the folder of `seatrial guard write`. The last 200 are shown.
    """


@click.group("quota")
def quota() -> None:
    """Let Slurm refuse jobs of users who are over a quota.

    `refresh` asks for quotas, by cron; slurmctld reads one small file a job.
    """


@quota.command("write")
@_folder
@act("seatrial.plugins.guard.quota:quota_write")
def quota_write() -> None:
    """Write job_submit.lua for Slurm in DIR."""


@quota.command("refresh")
@_folder
@_quota_rules_option
@list_option("--user", "names", "NAME", "Only this user.")
@click.option("-y", "--yes", is_flag=True, help="Limit however many users are new at once.")
@act("seatrial.plugins.guard.quota:refresh")
def quota_refresh() -> None:
    """Ask for the quotas of users, and write a file for each in DIR.

    Exits 1 if one could not be asked for: the user's file stays, and no longer counts when it is
    stale. So it does if more than a fifth of the users (and more than 10) would be limited that
    were not before: their files are not written without --yes.
    """


@quota.command("explain")
@click.argument("user")
@_quota_rules_option
@json_option
@act("seatrial.plugins.guard.quota:explain")
def quota_explain() -> None:
    """Show the quotas of USER, and which jobs are refused.

    Quotas are asked for now. Exits 1 if some jobs are refused.
    """
