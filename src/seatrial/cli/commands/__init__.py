"""The commands of the core: their options, their help, and where the act of each is.

    @click.command("cancel")
    @click.argument("trial", metavar="TRIAL[/RUN]")
    @click.pass_obj
    @act("seatrial.cli.run:cancel")
    def cancel() -> None:
        \"\"\"Cancel the jobs of a trial and the runs still to start, or one run.\"\"\"

There is a module for each heading of ``seatrial --help``; a plug-in has one ``commands.py``. They
need nothing that an act imports, so that help, completion and man pages are quick.
"""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from seatrial.cli import Folders
from seatrial.cli.options import drawn_format_option
from seatrial.errors import suggest
from seatrial.hooks import Option, Study, load


class Act:
    """What a command does: a function at ``module:function``, which is imported when the command is
    invoked. It is called with what click passes, and returns the exit code."""

    def __init__(self, place: str, declared: Callable[[], None]) -> None:
        self.place = place
        functools.update_wrapper(self, declared)  # whose docstring is the help

    def __call__(self, *passed: Any, **options: Any) -> Any:
        return load(self.place)(*passed, **options)


def act(place: str) -> Callable[[Callable[[], None]], Act]:
    """Return a decorator that makes of a function without a body the `Act` of its command."""
    return functools.partial(Act, place)


def study_command(study: Study) -> click.Command:
    """Return the command that asks a study of a plug-in and prints its page."""

    @click.command(study.name, help=study.about or inspect.getdoc(load(study.run)))
    @drawn_format_option
    @click.pass_obj
    def command(folders: Folders, /, **asked: str) -> int:
        code: int = load("seatrial.cli.study:answer_study")(folders, study, **asked)
        return code

    command.params[:0] = [_option(option) for option in study.options]
    return command


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

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what the default command takes, then the commands of the group."""
        # Bash drops the items before one of the type "file", so files come first.
        found = self._argument.shell_complete(context, incomplete)
        return found + super().shell_complete(context, incomplete)

    @property
    def _argument(self) -> click.Argument:
        params = self.commands[self.default].params
        return next(param for param in params if isinstance(param, click.Argument))
