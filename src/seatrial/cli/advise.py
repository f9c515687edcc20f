"""``seatrial advise``: the best setting that a tuning found, and what it could not tell."""

from __future__ import annotations

import click
from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.cli import Folders, options
from seatrial.cli.options import format_option, per_option
from seatrial.cli.query_common import tell_damaged_journal
from seatrial.cli.study import HOW, print_or_draw
from seatrial.execute.trial_folder import find
from seatrial.results.tuned import Tuned, tuned
from seatrial.results.tuned_basis import on_basis
from seatrial.show.page import Page
from seatrial.show.tune import basis_sections, tuning_page


@click.command("advise")
@click.argument("trial", shell_complete=options.complete("trials"))
@per_option
@format_option("table", "json", "csv", "svg", help=HOW)
@click.pass_obj
def command(folders: Folders, trial: str, per: str | None, form: str) -> int:
    """Show which setting to use by the tuning TRIAL, how sure that is, and what it cost.

    With --per also which setting is best by what a run took: a faster one may need more nodes.
    """
    folder = find(folders.trials, trial)
    tell_damaged_journal(folder)
    found = tuned(folder)
    page = tuning_page(found)
    if per:
        based = on_basis(found, folder.cases(), per, str(folder.path))
        page = replace(
            page,
            sections=[*page.sections, *basis_sections(found, based)],
            records=lambda: to_builtins(found) | {"per": to_builtins(based)},
        )
    print_tuning(folders, found, page, form)
    return 0


def print_tuning(folders: Folders, found: Tuned, page: Page, form: str) -> None:
    """Print the page of a tuning, and what shows more of it."""
    print_or_draw(page, form)
    if form == "table":
        click.echo(f"\nall settings: {folders.command('tune', '--status', found.trial)}")
        click.echo(f"picture: {folders.command('advise', found.trial, '--format', 'svg')}")
