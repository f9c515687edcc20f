"""What `--help` shows: on a terminal of 80 columns no line is folded, and no sentence cut."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Literal, get_args, get_origin, get_type_hints
from unittest.mock import create_autospec

import click
import pytest

import seatrial.cli
import seatrial.cli.commands as declared
from seatrial.cli import command_groups, main
from seatrial.cli.commands import Act
from seatrial.cli.options import Parsed
from seatrial.hooks import load


def contexts(command: click.Command, name: str) -> Iterator[tuple[str, click.Context]]:
    """A command, and those below it, on such a terminal."""
    context = click.Context(command, info_name=name, terminal_width=80, max_content_width=80)
    yield name, context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            inner = command.get_command(context, below)
            assert inner is not None
            yield from contexts(inner, f"{name} {below}")


CONTEXTS = dict(contexts(seatrial.cli.seatrial, "seatrial"))


def help_of(name: str) -> str:
    return CONTEXTS[name].command.get_help(CONTEXTS[name])


def test_a_help_fits_80_columns_and_cuts_no_sentence() -> None:
    for name in CONTEXTS:
        for line in help_of(name).splitlines():
            assert len(line) <= 80, (name, line)
            assert not line.endswith("...") or line.startswith("Usage: "), (name, line)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("rum", "no command 'rum'; did you mean 'run'?"),
        ("zzz", "no command 'zzz'; `seatrial --help`"),
        ("accept stauts plan.yaml", "no command and no file 'stauts'; did you mean 'status'?"),
        ("accept zzz", "zzz: "),
        ("report verify-2 -o -", "'verify-2'"),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest(
    typed: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["seatrial", *typed.split()])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert said in capsys.readouterr().err


def test_every_command_is_in_one_group() -> None:
    names = [command.name for group in command_groups().values() for command in group]
    assert names == [*dict.fromkeys(names)]


def test_every_command_that_is_declared_can_be_typed() -> None:
    typed = {context.command for context in CONTEXTS.values()}
    for module in pkgutil.iter_modules(declared.__path__, "seatrial.cli.commands."):
        found = vars(importlib.import_module(module.name)).values()
        assert {each for each in found if isinstance(each, click.Command)} <= typed, module.name


def act_of(command: click.Command) -> object:
    """Return the innermost callback of a command: its act, where it has one."""
    assert command.callback is not None
    return inspect.unwrap(command.callback, stop=lambda each: isinstance(each, Act))


ACTS = {
    name: act
    for name, context in CONTEXTS.items()
    if isinstance(act := act_of(context.command), Act)
}


@pytest.mark.parametrize("name", ACTS)
def test_an_act_takes_what_its_command_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The act is called by its own signature, and does nothing."""
    monkeypatch.setattr(declared, "load", lambda place: create_autospec(load(place)))
    context = CONTEXTS[name]
    options = {param.name: None for param in context.command.params if param.expose_value}
    with context:
        context.invoke(context.command, **options)


@pytest.mark.parametrize("name", ACTS)
def test_values_of_options_are_those_that_the_act_knows(name: str) -> None:
    types = get_type_hints(load(ACTS[name].place))
    for param in CONTEXTS[name].command.params:
        if isinstance(param.type, click.Choice):
            words = [
                word
                for kind in (types.get(param.name), *get_args(types.get(param.name)))
                if get_origin(kind) is Literal
                for word in get_args(kind)
            ]
            assert sorted(words or param.type.choices) == sorted(param.type.choices), param.name
        if isinstance(param.type, Parsed) and isinstance(param.type.parse, str):
            assert callable(load(param.type.parse))


def test_the_help_shows_each_group_below_its_heading() -> None:
    for heading, commands in command_groups().items():
        (block,) = re.findall(rf"^{heading}:\n((?:  .+\n?)+)", help_of("seatrial"), re.MULTILINE)
        assert re.findall(r"^  ([a-z]+)", block, re.MULTILINE) == [each.name for each in commands]
