"""``seatrial man``: man pages, made of the help."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli.command_help import pages
from seatrial.cli.man_page import SECTION, file_name, man_page
from seatrial.errors import UsageError
from seatrial.units import count


@click.command("man")
@click.argument("folder", type=click.Path(path_type=Path))
@click.pass_context
def command(context: click.Context, folder: Path) -> int:
    """Write a man page of each command to FOLDER/man1.

    \b
    seatrial man ~/.local/share/man
    man seatrial-accept-status
    """
    section = folder / f"man{SECTION}"
    found = list(pages(context.find_root().command))
    names = [page.name for page in found]
    try:
        section.mkdir(parents=True, exist_ok=True)
        for page in found:
            above = [name for name in names if name == page.name.rpartition(" ")[0]]
            below = [name for name in names if name.rpartition(" ")[0] == page.name]
            (section / file_name(page)).write_text(man_page(page, [*above, *below]), "utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from None
    click.echo(f"{count(len(found), 'page')} in {section}")
    return 0
