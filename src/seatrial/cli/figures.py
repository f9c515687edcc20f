"""``seatrial figures``: figures that somebody else measured, such as a vendor."""

from pathlib import Path

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.options import text_option
from seatrial.escaping import plain_line
from seatrial.execute.same_settings import import_figures
from seatrial.units import count


@click.group("figures")
def command() -> None:
    """Bring in figures that others give, such as a vendor's."""


@command.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--as", "tag", required=True, metavar="TAG", help="Name that they are compared by.")
@click.option(
    "-m", "--machine", default="", help="System that they were measured on; default: the TAG."
)
@text_option("--by", "WHO", "Who gave them; default: you.")
@text_option("--source", "TEXT", "Where they stand, such as a paper; default: who gave them.")
@text_option("--date", "DATE", "When they were measured: 2013, 2013-03 or 2013-03-14.")
@text_option("--case", "CASE", "Of JSON: the case, such as ior{nodes=160}.")
@click.pass_obj
def import_(folders: Folders, /, file: Path, tag: str, machine: str, by: str, **usual: str) -> int:
    """Import a file of figures as one side of comparisons.

    The first line of a CSV file names the columns: case (or test, parameters, toolchain), metric,
    unit, value and n; if there are, stage, better, sd, min, max, system, source and date. A JSON
    file is what `seatrial parse` prints. The figures are kept like a trial and are marked as given
    everywhere. No verdict, statistic or criterion takes them for measured ones.

    \b
    seatrial figures import vt.csv --as vt --by "Example Corp."
    seatrial figures import out.json --as vt --case "ior{nodes=160}"
    seatrial compare vt accept-pt:stage=alone
    """
    by = by.strip() or account()
    folder = import_figures(folders.trials, tag, machine or tag, file, by, **usual)
    about = f"figures of {count(len(folder.cases()), 'case')}, given by {plain_line(by)}"
    click.echo(f"{folder.tag}: {about}")
    click.echo(f"next   {folders.command('compare', folder.tag, 'TRIAL')}")
    return 0
