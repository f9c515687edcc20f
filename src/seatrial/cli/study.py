"""The command of a study that a plug-in brings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import click

from seatrial.cli import Folders
from seatrial.cli.options import format_option
from seatrial.cli.query_common import opened, print_page, tell_damage
from seatrial.hooks import Option, Study, load
from seatrial.results.store.tables import Filters
from seatrial.show.html import page_svg
from seatrial.show.page import Page

HOW = "How it is shown; svg: its plots, as one file."


def command_of(study: Study) -> click.Command:
    """Return the command that asks a study and prints its page."""
    answer = load(study.run)

    @click.command(study.name, help=inspect.getdoc(answer))
    @format_option("table", "json", "csv", "svg", help=HOW)
    @click.pass_obj
    def command(folders: Folders, /, form: str, **asked: str) -> int:
        with opened(folders) as store:
            tell_damage(store, _trials_of(asked))
            page: Page = answer(store, **asked)
        print_or_draw(page, form)
        return 0

    command.params[:0] = [_option(option) for option in study.options]
    return command


def _trials_of(asked: Mapping[str, str]) -> Filters:
    """Return which trials an answer rests on, by the options that studies have for that."""
    return Filters(
        trial=asked.get("trial", ""), test=asked.get("test", ""), machine=asked.get("machine", "")
    )


def print_or_draw(page: Page, form: str) -> None:
    """Print a page in the form that was asked for, its charts for ``svg``."""
    if form == "svg":
        click.echo(page_svg(page), nl=False)
    else:
        print_page(page, form)


def _option(option: Option) -> click.Option:
    names = [f"--{option.name.replace('_', '-')}", option.name]
    names += ["-m"] if option.name == "machine" else []  # as every command has it
    if option.flag:
        return click.Option(names, flag_value="1", default="", help=option.help)
    return click.Option(
        names,
        default=option.default,
        show_default=bool(option.default),
        type=click.Choice(option.choices) if option.choices else str,
        help=option.help,
    )
