"""``seatrial store``: create, update, rebuild or inspect the store of results."""

import sys
import time
from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_notices, show_time
from seatrial.errors import StoreError, UsageError
from seatrial.escaping import plain_line
from seatrial.results.store import opening, queries
from seatrial.results.store.ingest import sync
from seatrial.results.store.location import shown
from seatrial.results.store.opening import open_store, reopen_empty
from seatrial.results.store.schema import Store
from seatrial.results.store.upserts import gaps
from seatrial.units import show_bytes, show_seconds

MAX_GAPS = 20


def print_path(folders: Folders) -> int:
    """Do ``seatrial store path``; return the exit code."""
    place = folders.store
    click.echo(str(place.absolute()) if isinstance(place, Path) else shown(place))
    return 0


def print_info(folders: Folders) -> int:
    """Do ``seatrial store info``; return the exit code."""
    with opened(folders) as store:
        counts = {
            name: store.rows(f"SELECT count(*) FROM {name}")[0][0]
            for name in ("trials", "cases", "runs", "events", "metrics")
        }
        counts["events"] += store.rows("SELECT count(*) FROM trial_events")[0][0]
        damaged = store.rows("SELECT coalesce(sum(damaged), 0) FROM trials")[0][0]
        gaps = _gaps(store)
        size, kind = store.size(), store.kind()
    click.echo(f"{store.place}  ({show_bytes(size)}, {kind})")
    for name, count in counts.items():
        click.echo(f"{count:>10}  {name}")
    if damaged:
        click.echo(f"{damaged:>10}  lines of journals that could not be read:")
        for line in gaps[:MAX_GAPS]:
            click.echo(f"{'':>12}{line}")
        if len(gaps) > MAX_GAPS:
            click.echo(f"{'':>12}and {len(gaps) - MAX_GAPS} more gaps")
    return 0


def create(url: str, writer: str, viewers: tuple[str, ...]) -> int:
    """Do ``seatrial store create``; return the exit code."""
    done = opening.create(url, writer, viewers)
    click.echo(f"{shown(url)}: {done}; collect into it: seatrial --store URL store update")
    return 0


def update(folders: Folders) -> int:
    """Do ``seatrial store update``; return the exit code."""
    _require_trials(folders)
    with open_store(folders.store) as store:
        if not store.writable:
            raise StoreError(f"{store.place}: cannot be written; connect as its writer")
        synced = sync(store, folders.trials, _progress)
        print_notices(store)
    click.echo(f"{store.place}: {synced.events} new events of {synced.trials} trials")
    return 0


def rebuild(folders: Folders) -> int:
    """Do ``seatrial store rebuild``; return the exit code."""
    _require_trials(folders)
    began = time.monotonic()
    with reopen_empty(folders.store) as store:
        synced = sync(store, folders.trials, _progress)
        print_notices(store)
    took = show_seconds(time.monotonic() - began)
    click.echo(f"{store.place}: {synced.trials} trials, {synced.events} events in {took}")
    return 0


def _gaps(store: Store) -> list[str]:
    """Return a line for each damaged part of a journal."""
    found = []
    for trial in queries.trials(store):
        for gap in gaps(store, trial) if trial.damaged else ():
            where = f"{gap.line}" if gap.lines == 1 else f"{gap.line}, {gap.lines} lines,"
            around = f"after {show_time(gap.before) or 'its beginning'}"
            around += f", before {show_time(gap.after)}" if gap.after else ""
            found.append(plain_line(f"{trial.path}/journal.jsonl:{where} {around}"))
    return found


def _require_trials(folders: Folders) -> None:
    if not folders.trials.is_dir():
        raise UsageError(f"{folders.trials}: is not a folder of trials; name it with --trials")


def _progress(tag: str, done: int, whole: int) -> None:
    """Show progress in one line, on a terminal only, for journals that take a while."""
    if sys.stderr.isatty() and whole > 0:
        end = "" if done < whole else "\r\x1b[K"
        click.echo(f"\r\x1b[K{tag}: {100 * done // whole} %{end}", err=True, nl=False)
