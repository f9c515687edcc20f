"""Shared by the commands that read the store: bring it up to date, show times, print CSV."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from seatrial.cli import Folders, as_typed
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.trial_paths import TrialPaths
from seatrial.journal.journal import Damage, damage_of, damage_text
from seatrial.results.store import queries, upserts
from seatrial.results.store.export import to_json
from seatrial.results.store.ingest import synced
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, TrialRow
from seatrial.show.page import Page
from seatrial.show.text import csv_text, page_csv, page_text, show_clock
from seatrial.units import count

MAX_DAMAGED = 5  # trials whose damage is told


def opened(folders: Folders) -> Store:
    """Open the store, brought up to date with the journals. Notices about it go to stderr."""
    store = synced(folders.store, folders.trials)
    print_notices(store)
    return store


def print_notices(store: Store) -> None:
    for notice in store.notices:
        tell(notice)


def tell_damage(store: Store, about: Filters | Iterable[TrialRow]) -> None:
    """Tell on stderr which of the trials that an answer rests on have damaged journals."""
    trials = queries.damaged(store, about) if isinstance(about, Filters) else about
    found = [row for row in trials if row.damaged]
    for row in found[:MAX_DAMAGED]:
        first = next((gap.line for gap in upserts.gaps(store, row)), 1)
        journal = TrialPaths(Path(row.path)).journal
        settled = row.state == "ended" and not row.running and not row.waiting
        tell(damage_text(row.tag, Path(as_typed(journal)), Damage(row.damaged, first, settled)))
    more = len(found) - MAX_DAMAGED
    if more > 0:
        tell(f"{count(more, 'more trial')} with damaged journals; see `seatrial store info`")


def trial_or_file(store: Store, source: str) -> TrialRow:
    """Return the trial that is named where no file has that name, and tell of its damage. Raises
    UsageError."""
    try:
        trial = queries.trial(store, source)
    except UsageError as error:
        raise UsageError(f"{error}; and there is no file {source!r}") from None
    tell_damage(store, [trial])
    return trial


def tell_damaged_journal(folder: TrialPaths) -> None:
    """Tell on stderr where a trial's journal is damaged, without a store. Reads all of it."""
    try:
        damage = damage_of(folder.journal)
    except OSError:
        return  # whoever needs it reports that
    if damage is not None:
        tell(damage_text(folder.tag, Path(as_typed(folder.journal)), damage))


def tell(line: str) -> None:
    """Print a message on stderr; nothing that it quotes controls a terminal."""
    click.echo(f"seatrial: {plain_line(line)}", err=True)


def show_time(time_ns: int | None) -> str:
    """Return a time in the local time zone; "" for none."""
    return "" if time_ns is None else show_clock(time_ns)


def nothing(folders: Folders) -> str:
    """Return the message for a folder without trials."""
    return f"No trials in {plain_line(str(folders.trials))} yet. Start one: seatrial run SUITE"


def print_page(page: Page, form: str = "table") -> None:
    """Print a page as the ``table``, ``json`` or ``csv`` that was asked for."""
    if form == "table":
        click.echo(page_text(page))
    else:
        click.echo(to_json(page.records()) if form == "json" else page_csv(page), nl=False)


def print_csv(rows: Iterable[Sequence[object]]) -> None:
    click.echo(csv_text(rows), nl=False)
