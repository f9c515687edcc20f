"""Shared by the commands that read the store: bring it up to date, parse times, show times."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from seatrial.cli import Folders
from seatrial.store.ingest import synced
from seatrial.store.schema import Store
from seatrial.units import SECOND_NS, moment_of, share_of
from seatrial.units import show_figure as show_figure
from seatrial.verify.reading import plain_line


def opened(folders: Folders) -> Store:
    """Open the store, brought up to date with the journals. Notices about it go to stderr."""
    store = synced(folders.store, folders.trials)
    for notice in store.notices:
        print(f"seatrial: {plain_line(notice)}", file=sys.stderr)
    return store


def moment(text: str, option: str = "--since") -> int:
    """Return the time (ns) of a date, a time, or a while ago: 2026-11-20, 2026-11-20T14:03, 2h."""
    try:
        return moment_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def share(text: str, option: str) -> float:
    """Return a share below 1, written as 2% or 0.02."""
    try:
        found = share_of(text if "%" in text else float(text))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a share; write e.g. 2% or 0.02", param_hint=option
        ) from None
    if found >= 1:
        raise click.BadParameter(f"{text} is not less than 100%", param_hint=option)
    return found


def show_time(time_ns: int | None) -> str:
    """Return a time in the local time zone; "" for none."""
    if time_ns is None:
        return ""
    return f"{datetime.fromtimestamp(time_ns // SECOND_NS):%m-%d %H:%M:%S}"


def nothing(folders: Folders) -> str:
    """Return the message for a folder without trials."""
    return f"No trials in {folders.trials} yet. Start one: seatrial run SUITE"
