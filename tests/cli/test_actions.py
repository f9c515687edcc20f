"""The options of each command beside the function that takes their values."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin
from unittest.mock import Mock

import click
import pytest

import seatrial.cli.actions
from seatrial.cli import config, options, order, schema
from seatrial.cli.actions.schema import SHAPES
from seatrial.layout.network_loads import ScoreKind
from seatrial.settings_file import Settings
from seatrial.suite.model import Stage

MODULES = {module.name for module in pkgutil.iter_modules(seatrial.cli.actions.__path__)}


def commands_below(command: click.Command) -> Iterator[click.Command]:
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield command
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands_below(below)


def actions() -> Iterator[tuple[click.Command, Callable[..., Any]]]:
    """Each command whose action is in a module of its own, and that action."""
    for command in commands_below(seatrial.cli.seatrial):
        definition = inspect.unwrap(command.callback or len)
        name = definition.__module__.rpartition(".")[2]
        if name in MODULES and definition.__annotations__ == {"return": None}:
            module = importlib.import_module(f"seatrial.cli.actions.{name}")
            yield command, getattr(module, definition.__name__)


ACTIONS = list(actions())


def words_of(annotation: object) -> set[object]:
    """The words of a Literal, or of those in a union."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*map(words_of, get_args(annotation)))


def test_every_action_takes_the_options_of_its_command() -> None:
    assert {action.__module__.rpartition(".")[2] for _, action in ACTIONS} == MODULES
    for command, action in ACTIONS:
        takes = inspect.signature(action)
        passed = [name for name in [*takes.parameters][:1] if name in ("folders", "context")]
        takes.bind(*passed, **{one.name or "": None for one in command.params})


def test_a_command_calls_its_action_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for command, action in ACTIONS:
        called = Mock(return_value=7)
        monkeypatch.setattr(sys.modules[action.__module__], action.__name__, called)
        with click.Context(command, obj="folders"):
            assert command.callback is not None
            assert command.callback(given=1) == 7, command.name
        assert called.call_args.kwargs == {"given": 1}
        takes = [*inspect.signature(action).parameters][:1]
        assert len(called.call_args.args) == (takes[0] in ("folders", "context")), command.name


def test_what_an_option_may_be_is_what_its_action_takes() -> None:
    compared = 0
    for command, action in ACTIONS:
        for option in command.params:
            taken = inspect.signature(action).parameters.get(option.name or "")
            if taken and isinstance(option.type, click.Choice) and words_of(taken.annotation):
                assert set(option.type.choices) == words_of(taken.annotation), command.name
                compared += 1
    assert compared > 1


@pytest.mark.parametrize(
    ("listed", "known"),
    [
        (config.NAMES, Settings.__struct_fields__),
        (options.STAGES, get_args(Stage)),
        (order.SCORE_KINDS, [kind.replace("_", "-") for kind in get_args(ScoreKind)]),
        (schema.FILES, SHAPES),
    ],
)
def test_a_list_of_words_names_all_that_there_are(
    listed: tuple[str, ...], known: tuple[str, ...]
) -> None:
    assert [*listed] == [*known]
