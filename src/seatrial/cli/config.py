"""``seatrial config``: the settings, and where each comes from."""

import os
from typing import NamedTuple

import click

from seatrial.account import home
from seatrial.cli import BUILT_IN
from seatrial.model import settings
from seatrial.results.store.location import shown

VARIABLES = {
    "machine": "SEATRIAL_MACHINE",
    "trials": "SEATRIAL_TRIALS",
    "store": "SEATRIAL_STORE",
    "log_level": "SEATRIAL_LOG_LEVEL",
}


class EffectiveSetting(NamedTuple):
    """A setting as the next command would take it, and where that comes from: a variable, a file
    with its line, the command line, "default" or "" (not set)."""

    key: str
    value: str
    origin: str


NAMES = ("machine", "trials", "store", "log_level", "name", "organisation", "alert")


@click.command("config")
@click.argument("key", required=False, type=click.Choice(NAMES))
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@click.pass_context
def command(context: click.Context, key: str | None, show_origin: bool) -> int:
    """Show the settings: those of KEY alone, or all.

    A command line comes first, then the variables SEATRIAL_MACHINE, SEATRIAL_TRIALS, SEATRIAL_STORE
    and SEATRIAL_LOG_LEVEL, then ~/.config/seatrial/config.yaml, then /etc/seatrial/config.yaml. A
    line of these files is such as `trials: /scratch/me/trials`.
    """
    root = context.find_root()
    settings_now = [effective(each, root) for each in ([key] if key else NAMES)]
    if key and not show_origin:
        click.echo(settings_now[0].value)
        return 0 if settings_now[0].value else 1
    _print(settings_now, show_origin)
    return 0


def _print(shown_settings: list[EffectiveSetting], show_origin: bool) -> None:
    """Print settings, a line each, and behind each where it comes from."""
    width = max(len(each.key) for each in shown_settings)
    for each in shown_settings:
        value = each.value or "(not set)"
        click.echo(f"{each.key.ljust(width)}  {value}")
        if show_origin and each.origin:
            click.echo(f"{' ' * width}  from {each.origin}")


def effective(key: str, root: click.Context) -> EffectiveSetting:
    """Return a setting as the next command would take it. Raises InvalidFiles."""
    if key in root.params and _is_typed(root, key):
        return EffectiveSetting(key, shown(str(root.params[key])), "the command line")
    variable = VARIABLES.get(key, "")
    if value := os.environ.get(variable, ""):
        return EffectiveSetting(key, shown(value), f"${variable}")
    value, place = settings.origin(key)
    if value:
        return EffectiveSetting(key, shown(value), as_home(place))
    return EffectiveSetting(key, BUILT_IN.get(key, ""), "default" if key in BUILT_IN else "")


def _is_typed(root: click.Context, key: str) -> bool:
    return root.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE


def as_home(place: str) -> str:
    """Return a place with ``~`` for the user's home."""
    folder = f"{home()}/"
    return f"~/{place.removeprefix(folder)}" if place.startswith(folder) else place
