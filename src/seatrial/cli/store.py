"""``seatrial store``: the store itself. It can always be deleted: the journals are the truth."""

from __future__ import annotations

import time

import click

from seatrial.cli import Folders


@click.group("store")
def command() -> None:
    """Look at the store, or rebuild it from the journals."""


@command.command("path")
@click.pass_obj
def path(folders: Folders) -> int:
    """Print the store's path."""
    click.echo(str(folders.store.absolute()))
    return 0


@command.command("info")
@click.pass_obj
def info(folders: Folders) -> int:
    """What is in the store, and where it is."""
    from seatrial.cli.asking import opened
    from seatrial.units import show_bytes

    with opened(folders) as store:
        counts = {
            name: store.rows(f"SELECT count(*) FROM {name}")[0][0]
            for name in ("trials", "cases", "runs", "events", "metrics")
        }
        damaged = store.rows("SELECT coalesce(sum(damaged), 0) FROM trials")[0][0]
        journal = store.rows("PRAGMA journal_mode")[0][0]
    size = folders.store.stat().st_size if folders.store.exists() else 0
    click.echo(f"{store.place}  ({show_bytes(size)}, journal mode {journal})")
    for name, count in counts.items():
        click.echo(f"{count:>10}  {name}")
    if damaged:
        click.echo(f"{damaged:>10}  lines of journals that could not be read")
    return 0


@command.command("rebuild")
@click.pass_obj
def rebuild(folders: Folders) -> int:
    """Empty the store and fill it again from the journals below the folder of trials.

    Trials whose folder is gone are then gone from the store too.
    """
    from seatrial.errors import UsageError
    from seatrial.store.ingest import sync
    from seatrial.store.schema import reopen_empty
    from seatrial.units import show_seconds
    from seatrial.verify.reading import plain_line

    if not folders.trials.is_dir():
        raise UsageError(f"{folders.trials}: is no folder of trials; name it with --trials")
    began = time.monotonic()
    with reopen_empty(folders.store) as store:
        synced = sync(store, folders.trials, _progress)
    for notice in store.notices:
        click.echo(f"seatrial: {plain_line(notice)}", err=True)
    took = show_seconds(time.monotonic() - began)
    click.echo(f"{folders.store}: {synced.trials} trials, {synced.events} events in {took}")
    return 0


def _progress(tag: str, done: int, whole: int) -> None:
    """A line that rewrites itself, on a terminal alone, for journals that take a while."""
    import sys

    if sys.stderr.isatty() and whole > 0:
        end = "" if done < whole else "\r\x1b[K"
        click.echo(f"\r\x1b[K{tag}: {100 * done // whole} %{end}", err=True, nl=False)
