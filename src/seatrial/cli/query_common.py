"""Shared by the commands that read the store: bring it up to date, show times, print CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.errors import SeatrialError
from seatrial.machine.facts import groups_of
from seatrial.store.ingest import synced
from seatrial.store.rows import TrialRow
from seatrial.store.schema import Store
from seatrial.trial.folder import TrialFolder
from seatrial.units import SECOND_NS
from seatrial.verify.reading import plain_line


def opened(folders: Folders) -> Store:
    """Open the store, brought up to date with the journals. Notices about it go to stderr."""
    store = synced(folders.store, folders.trials)
    print_notices(store)
    return store


def print_notices(store: Store) -> None:
    for notice in store.notices:
        click.echo(f"seatrial: {plain_line(notice)}", err=True)


def known_groups(trial: TrialRow) -> dict[str, str] | None:
    """Return the group of each node of a trial's machine; None if its record cannot be read: it is
    gone, or another version wrote it."""
    try:
        return groups_of(TrialFolder(Path(trial.path)).record().machine)
    except (SeatrialError, ValueError):
        return None


def show_time(time_ns: int | None) -> str:
    """Return a time in the local time zone; "" for none."""
    if time_ns is None:
        return ""
    return f"{datetime.fromtimestamp(time_ns // SECOND_NS):%m-%d %H:%M:%S}"


def nothing(folders: Folders) -> str:
    """Return the message for a folder without trials."""
    return f"No trials in {folders.trials} yet. Start one: seatrial run SUITE"


def print_csv(rows: Iterable[Sequence[object]]) -> None:
    """Print rows as CSV, the titles first."""
    out = io.StringIO()
    safe = ([plain_line(c) if isinstance(c, str) else c for c in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(safe)
    click.echo(out.getvalue(), nl=False)
