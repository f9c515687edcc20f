"""``seatrial guard``: what programs are made for, and whether a site lets them be launched."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import json_option, path_option

_rules_option = path_option(
    "--rules", "file", "FILE", "The launch rules; default: guard.yaml, if it is here."
)


@click.group("guard")
def command() -> None:
    """Tell what programs are made for, and judge them by launch rules.

    MPI and its version, OpenMP runtime, glibc, x86-64 level, RPATH, build id.
    """


@command.command("check")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@_rules_option
@json_option
@action
def check() -> None:
    """Tell what each FILE is made for. Exits 1 if a rule refuses one."""


@command.command("scan")
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
@action
def scan() -> None:
    """List the programs and libraries below DIR that use MPI.

    Those that a rule refuses or warns of are listed, too. Links are not followed. Exits 1 if a rule
    refuses one.
    """


@command.command("write")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@_rules_option
@action
def write() -> None:
    """Write what a site installs in DIR, so that each launch is judged.

    The guard with its rules, a cli_filter.lua for Slurm, launchers for PATH, a TaskProlog for a
    second look, a folder for logs. After a change of the rules, write again.
    """


@command.command("log")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@json_option
@action
def log() -> None:
    """List the launches that were refused or warned of.

    DIR is the folder of `seatrial guard write`. The last 200 are shown.
    """
