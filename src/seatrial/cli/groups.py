"""Kinds of command groups."""

import os
from typing import TYPE_CHECKING, Any

import click

from seatrial.errors import suggest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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
