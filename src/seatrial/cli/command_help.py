"""The help of a command as data, from which man pages and the reference of the site are made.

for page in pages(seatrial):                 # the command and all below it
    print(page.name, page.usage)
"""

import inspect
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from seatrial.errors import suggest


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
    below = _commands_below(command, context)
    options = (one for one in command.get_params(context) if isinstance(one, click.Option))
    records = (option.get_help_record(context) for option in options)
    yield CommandHelp(
        name,
        " ".join(command.collect_usage_pieces(context)),
        _first_sentence(command),
        list(_paragraphs(command.help or "")),
        [record for record in records if record is not None],
        [(one, _first_sentence(each)) for one, each in below.items()],
    )
    for one, each in below.items():
        yield from pages(each, f"{name} {one}")


def _commands_below(command: click.Command, context: click.Context) -> dict[str, click.Command]:
    """Return the commands of a group by name, without hidden ones; none of a single command."""
    if not isinstance(command, click.Group):
        return {}
    below = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return {name: one for name, one in below if one is not None and not one.hidden}


def _paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a help text, where ``\\b`` marks a verbatim one, as in click."""
    for block in inspect.cleandoc(text).split("\n\n"):
        lines = block.strip("\n").splitlines()
        verbatim = bool(lines) and lines[0].strip() == "\b"
        if verbatim:
            lines = lines[1:]
        if lines:
            yield Paragraph(lines, verbatim)


def _first_sentence(command: click.Command) -> str:
    first = " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")


# ---- groups --------------------------------------------------------------------------------------
#
# Kinds of command groups.


class DefaultGroup(click.Group):
    """A group with a default command, whose name may be left out: `accept PLAN` is
    `accept run PLAN`. A first word that names a command is that command."""

    def __init__(self, *args: Any, default: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.default = default

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Insert the default command where none is named. Refuse a word that is like a command's if
        the default command takes a file and there is none of that name."""
        if args and (word := args[0]) not in (*self.commands, "-h", "--help"):
            takes_files = isinstance(self._argument.type, click.Path)
            no_file = takes_files and not word.startswith("-") and not os.path.lexists(word)
            if no_file and (near := suggest(word, self.commands)):
                context.fail(f"no command and no file {word!r}; {near}")
            args = [self.default, *args]
        return super().parse_args(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names in the order in which the commands are defined."""
        return list(self.commands)

    def shell_complete(self, context: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return what the default command takes, then the commands of the group."""
        # Bash drops the items before one of the type "file", so files come first.
        found = self._argument.shell_complete(context, incomplete)
        return found + super().shell_complete(context, incomplete)

    @property
    def _argument(self) -> click.Argument:
        params = self.commands[self.default].params
        return next(param for param in params if isinstance(param, click.Argument))
