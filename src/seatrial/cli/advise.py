"""``seatrial advise``: the best setting that a tuning found, and what it could not tell."""

import click
import msgspec

from seatrial.cli import Folders, options
from seatrial.cli.best import print_advice
from seatrial.cli.options import format_option, per_option
from seatrial.cli.query_common import tell_damaged_journal
from seatrial.cli.study import print_or_draw
from seatrial.cli.tables import TextTable, print_first
from seatrial.escaping import plain_line
from seatrial.execute.trial_folder import find
from seatrial.results.store.export import to_json
from seatrial.results.tuned import Tuned, interval_text, tuned
from seatrial.results.tuned_basis import BasedTuning, basis_text, on_basis
from seatrial.show.sweep import sweep_page
from seatrial.show.text import folded
from seatrial.units import show_unit

MAX_ROWS = 15


@click.command("advise")
@click.argument("trial", shell_complete=options.complete("trials"))
@per_option
@format_option("table", "json", "csv", "svg", help="csv, svg: of a sweep.")
@click.pass_obj
def command(folders: Folders, trial: str, per: str | None, form: str) -> int:
    """Show which setting to use by the tuning TRIAL, how sure that is, and what it cost.

    With --per also which setting is best by what a run took: a faster one may need more nodes.
    """
    folder = find(folders.trials, trial)
    tell_damaged_journal(folder)
    found = tuned(folder)
    based = on_basis(found, folder.cases(), per, str(folder.path)) if per else None
    if form == "json":
        record = msgspec.to_builtins(found)
        click.echo(to_json(record | ({"per": based} if based else {})), nl=False)
        return 0
    if form in ("csv", "svg"):
        print_or_draw(sweep_page(found), form)
        return 0
    print_advice(found, folders)
    if based is not None:
        _print_basis(found, based)
    return 0


def _print_basis(found: Tuned, based: BasedTuning) -> None:
    click.echo("\n" + click.style(folded(plain_line(basis_text(found, based))), bold=True) + "\n")
    table = TextTable(
        f"setting~ | {based.metric}{show_unit(based.unit, ' ({})')}> | ratio | interval?1"
    )
    for each in based.settings[:MAX_ROWS]:
        ratio = each.to_best
        table.add(
            found.settings[each.number].name,
            each.figure,
            "" if ratio is None else f"{ratio.ratio:.3f}",
            "" if ratio is None else interval_text(ratio),
        )
    print_first(table, len(based.settings), MAX_ROWS)
    if found.best is not None:
        name = found.settings[found.best].name
        click.echo(folded(plain_line(f"ratio: to {name}, the best by {based.metric} alone")))
