"""Shell completion of what people name: trials, runs, tests, verdicts.

It reads names alone, so that the shell does not wait. ``cli/options.py`` names these functions.
"""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import click

from seatrial.execute.trial_paths import tags
from seatrial.model.codes import CODES

MAX_SHOWN = 200


def trials(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the tags that begin so."""
    return beginning(_tags(_folder(context)), begun)


def runs(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the runs that begin so: TAG/ first, then the runs of that trial."""
    folder = _folder(context)
    tag, slash, run = begun.partition("/")
    if not slash:
        return beginning((f"{name}/" for name in _tags(folder)), begun)
    names = (path.parent.name for path in folder.glob(f"{tag}/runs/**/job.sh"))
    return [f"{tag}/{name}" for name in beginning(names, run)]


def tests(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the tests of all trials that begin so."""
    scripts = _folder(context).glob("[!.]*/scripts/*.sh")
    return beginning({path.stem.replace("+", "/").replace("//", "+") for path in scripts}, begun)


def verdicts(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the verdicts that begin so, as one word each."""
    return beginning((code.name.replace(" ", "-") for code in CODES.values()), begun)


def folders(
    context: click.Context, param: click.Parameter, begun: str
) -> "list[click.shell_completion.CompletionItem]":
    """Have the shell complete a folder."""
    return [click.shell_completion.CompletionItem(begun, type="dir")]


def _folder(context: click.Context) -> Path:
    given = context.find_root().params.get("trials")
    return Path(given or os.environ.get("SEATRIAL_TRIALS") or "trials")


def _tags(folder: Path) -> list[str]:
    return tags(folder)


def beginning(names: Iterable[str], begun: str) -> list[str]:
    """Return the first of the names that begin so, sorted."""
    return sorted(islice((name for name in names if name.startswith(begun)), MAX_SHOWN))
