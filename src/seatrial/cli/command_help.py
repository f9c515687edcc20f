"""The help of a command as data, from which man pages and the reference of the site are made.

for page in pages(seatrial):                 # the command and all below it
    print(page.name, page.usage)
"""

import inspect
from collections.abc import Iterator
from typing import NamedTuple

import click


class Paragraph(NamedTuple):
    """A paragraph of a help text; ``lines`` keep their ends where it is ``verbatim``."""

    lines: list[str]
    verbatim: bool


class CommandHelp(NamedTuple):
    """The help of one command: ``name`` with the commands above it, its ``usage`` behind the name,
    its paragraphs, its options and the commands below it, each with a sentence."""

    name: str
    usage: str
    summary: str
    paragraphs: list[Paragraph]
    options: list[tuple[str, str]]
    commands: list[tuple[str, str]]


def pages(command: click.Command, name: str = "seatrial") -> Iterator[CommandHelp]:
    """Yield the help of a command and of all commands below it."""
    context = click.Context(command, info_name=name)
    below: list[tuple[str, click.Command]] = []
    if isinstance(command, click.Group):
        found = ((one, command.get_command(context, one)) for one in command.list_commands(context))
        below = [(one, each) for one, each in found if each is not None and not each.hidden]
    paragraphs = list(_paragraphs(command.help or ""))
    options = (one for one in command.get_params(context) if isinstance(one, click.Option))
    records = (option.get_help_record(context) for option in options)
    yield CommandHelp(
        name,
        " ".join(command.collect_usage_pieces(context)),
        _first_sentence(command.help or ""),
        paragraphs,
        [record for record in records if record is not None],
        [(one, _first_sentence(each.help or "")) for one, each in below],
    )
    for one, each in below:
        yield from pages(each, f"{name} {one}")


def _paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a help text, where ``\\b`` marks a verbatim one, as in click."""
    for block in inspect.cleandoc(text).split("\n\n"):
        lines = block.strip("\n").splitlines()
        verbatim = bool(lines) and lines[0].strip() == "\b"
        if verbatim:
            lines = lines[1:]
        if lines:
            yield Paragraph(lines, verbatim)


def _first_sentence(text: str) -> str:
    first = " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")
