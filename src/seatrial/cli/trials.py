"""``seatrial trials``: list the trials."""

import click

from seatrial.cli import Folders
from seatrial.cli.options import format_option
from seatrial.cli.query_common import nothing, opened, show_time, tell_damage
from seatrial.cli.tables import TextTable
from seatrial.results.store import queries
from seatrial.results.store.export import record, to_json
from seatrial.results.store.tables import TrialRow
from seatrial.units import count, show_seconds

USUAL_LIMIT = 50


@click.command("trials")
@click.option("--limit", type=click.IntRange(min=0), help="Most trials; 0: all. Default: 50.")
@click.option("--rehearsed", is_flag=True, help="Rehearsals, too.")
@format_option("table", "json")
@click.pass_obj
def command(folders: Folders, limit: int | None, rehearsed: bool, form: str) -> int:
    """List the trials, newest first: state, and how many runs passed.

    The state is running, paused, cancelled, ended, abandoned, imported from another tool, or
    interrupted: nobody drives it any more, and `seatrial resume` would continue it. Rehearsals are
    listed with --rehearsed, or where there is nothing else. On a narrow terminal, columns are left
    out before tags are folded.
    """
    with opened(folders) as store:
        known = queries.trials(store)
        measured = [row for row in known if not row.rehearsed]
        found = known if rehearsed else measured or known
        if limit is None:
            limit = USUAL_LIMIT if form == "table" else 0
        shown = found[:limit] if limit else found
        tell_damage(store, shown)
    if form == "json":
        click.echo(to_json([record(row) for row in shown]), nl=False)
        return 0
    if not found:
        click.echo(nothing(folders))
        return 0
    click.echo(_table(shown))
    _tell_hidden(len(known), len(found), len(shown))
    return 0


def _tell_hidden(known: int, listed: int, shown: int) -> None:
    """Tell which trials are not shown: rehearsals among those that are known, and older ones."""
    if listed < known:
        click.echo(f"{count(known - listed, 'rehearsal')} not shown; --rehearsed shows them, too")
    if shown < listed:
        click.echo(f"{listed - shown} older trials are not shown; --limit 0 shows all")


def _table(found: list[TrialRow]) -> TextTable:
    shown = TextTable(
        "trial~ | machine~?6 | state | started?1 | elapsed>?3 | runs>?2 | pass> | fail> | known>?4"
        " | going>?4 | wait>?5 | note"
    )
    for row in found:
        elapsed = None if row.elapsed is None else show_seconds(row.elapsed)
        times = (show_time(row.started), elapsed)
        numbers = (
            row.runs,
            row.passed,
            row.failed,
            row.known or None,
            row.running or None,
            row.waiting or None,
        )
        note = "rehearsed" if row.rehearsed else None
        shown.add(row.tag, row.machine, row.state, *times, *numbers, note)
    return shown
