"""Shell completion of machines, and of sides of comparisons.

They stand apart from the other kinds of ``cli/complete.py``, which need less of the model.
"""

import click

from seatrial.cli.complete import beginning, trials
from seatrial.model.machine_file import LOCAL, described
from seatrial.results.selection import KEYS


def machines(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the machines that begin so, by name, and `local`."""
    return beginning([LOCAL, *described()], begun)


def sides(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the sides of a comparison that begin so: tags, behind a colon or @ the names of
    conditions."""
    if ":" not in begun and begun[:1] != "@":
        return trials(context, param, begun)
    at = max(begun.rfind(sign) for sign in ":@,") + 1
    return [begun[:at] + name for name in beginning((f"{name}=" for name in KEYS), begun[at:])]
