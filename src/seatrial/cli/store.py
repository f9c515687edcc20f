"""``seatrial store``: create, update, rebuild or inspect the store of results."""

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.actions import action
from seatrial.cli.options import list_option, text_option
from seatrial.store.location import shown


@click.group("store")
def command() -> None:
    """Create, update, rebuild or inspect the store of results."""


@command.command("path")
@click.pass_obj
def path(folders: Folders) -> int:
    """Print the store's path."""
    place = folders.store
    click.echo(str(place.absolute()) if isinstance(place, Path) else shown(place))
    return 0


@command.command("info")
@click.pass_obj
@action
def info() -> None:
    """Show the contents of the store, and where it is."""


@command.command("create", short_help="Make a site's store in a database of PostgreSQL.")
@click.argument("url")
@text_option("--writer", "ROLE", "Who collects; default: you.")
@list_option("--viewer", "viewers", "ROLE", "Who may read it.")
@action
def create() -> None:
    """Make a site's store in a PostgreSQL database: schema, tables, roles.

    Connect as the owner of the database. The roles must exist; repeat the command to add what is
    missing. A store in a file needs no such command: it is made when it is first used.

    \b
    seatrial store create postgresql://postgres@db/seatrial \\
        --writer collector --viewer grafana
    """


@command.command("update", short_help="Bring the store up to date with the journals.")
@click.pass_obj
@action
def update() -> None:
    """Bring the store up to date with the journals below the folder of trials.

    Commands that read the store do so themselves. A store that others only read must be updated by
    somebody.
    """


@command.command("rebuild", short_help="Empty the store, and fill it from the journals.")
@click.pass_obj
@action
def rebuild() -> None:
    """Empty the store and fill it again from the journals below the folder of trials.

    Trials whose folder is gone are then gone from the store too.
    """
