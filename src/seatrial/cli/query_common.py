"""Shared by the commands that read the store: bring it up to date, show times, print CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime

import click

from seatrial.cli import Folders
from seatrial.store.schema import Store
from seatrial.units import SECOND_NS
from seatrial.verify.reading import plain_line


def opened(folders: Folders) -> Store:
    """Open the store, brought up to date with the journals. Notices about it go to stderr."""
    from seatrial.store.ingest import synced  # with SQLite, which no help needs

    store = synced(folders.store, folders.trials)
    print_notices(store)
    return store


def print_notices(store: Store) -> None:
    for notice in store.notices:
        click.echo(f"seatrial: {plain_line(notice)}", err=True)


def show_time(time_ns: int | None) -> str:
    """Return a time in the local time zone; "" for none."""
    if time_ns is None:
        return ""
    return f"{datetime.fromtimestamp(time_ns // SECOND_NS):%m-%d %H:%M:%S}"


def nothing(folders: Folders) -> str:
    """Return the message for a folder without trials."""
    return f"No trials in {plain_line(str(folders.trials))} yet. Start one: seatrial run SUITE"


def print_csv(rows: Iterable[Sequence[object]]) -> None:
    """Print rows as CSV, the titles first. No text of a user or a job becomes a formula."""
    from seatrial.store.export import no_formula

    out = io.StringIO()
    safe = ([no_formula(plain_line(c)) if isinstance(c, str) else c for c in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(safe)
    click.echo(out.getvalue(), nl=False)
