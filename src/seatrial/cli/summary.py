"""What a trial came to: a table of figures, the counts, where everything is, what to type next."""

from __future__ import annotations

import click

from seatrial.cli import Places
from seatrial.errors import StoreError
from seatrial.journal.codes import PASS
from seatrial.trial.driver import Outcome
from seatrial.trial.folder import TrialFolder
from seatrial.units import show_number

MOST_ROWS = 200


def print_summary(folder: TrialFolder, places: Places, outcome: Outcome) -> None:
    """Print the figures of the trial and its outcome. A store that cannot be used is said, and
    costs the table, not the trial."""
    try:
        _print_figures(folder, places)
    except StoreError as error:
        click.echo(f"seatrial: {error}", err=True)
    passed = outcome.verdicts.pop(PASS.name, 0)
    others = ", ".join(f"{count} {name}" for name, count in sorted(outcome.verdicts.items()))
    click.echo(f"{passed} passed{', ' + others if others else ''}")
    click.echo(f"trial: {_short(folder)}")
    if not outcome.complete:
        click.echo(f"stopped: {outcome.why}")
        click.echo(f"next:  seatrial resume {folder.tag}")
    elif others:
        click.echo(f"next:  seatrial runs --trial {folder.tag} --failed")
    else:
        click.echo(f"next:  seatrial runs --trial {folder.tag}    seatrial show RUN")


def _print_figures(folder: TrialFolder, places: Places) -> None:
    pass


def _short(folder: TrialFolder) -> str:
    """The trial's path, relative where that is shorter."""
    import os

    return min(str(folder.path), os.path.relpath(folder.path), key=len)
