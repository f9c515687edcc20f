"""Print the answer of a study, or draw its charts. Few commands draw, so they alone import it."""

from collections.abc import Mapping

import click

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.hooks import Study, load
from seatrial.results.store.tables import Filters
from seatrial.show.html import page_svg
from seatrial.show.page import Page


def print_or_draw(page: Page, form: str) -> None:
    """Print a page in the form that was asked for, its charts for ``svg``."""
    if form == "svg":
        click.echo(page_svg(page), nl=False)
    else:
        print_page(page, form)


def answer_study(folders: Folders, study: Study, form: str, **asked: str) -> int:
    """Ask a study that a plug-in brings, and print its page; return the exit code."""
    with opened(folders) as store:
        tell_damage(store, _trials_of(asked))
        page: Page = load(study.run)(store, **asked)
    print_or_draw(page, form)
    return 0


def _trials_of(asked: Mapping[str, str]) -> Filters:
    """Return which trials an answer rests on, by the options that studies have for that."""
    return Filters(
        trial=asked.get("trial", ""), test=asked.get("test", ""), machine=asked.get("machine", "")
    )
