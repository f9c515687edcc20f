"""The words that `seatrial usage` offers are those that its questions know."""

from __future__ import annotations

from typing import get_args

import click
import pytest

from seatrial.plugins.usage import questions, replay, whatif
from seatrial.plugins.usage.attributes import ATTRIBUTES, MONTH
from seatrial.plugins.usage.commands import usage
from seatrial.plugins.usage.sources.sacct_rows import EXECUTABLE_FROM


def option(command: str, name: str) -> click.Option:
    group: click.Command = usage
    for word in command.split():
        assert isinstance(group, click.Group)
        group = group.commands[word]
    (found,) = (each for each in group.params if each.name == name)
    assert isinstance(found, click.Option)
    return found


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        ("ask", "unit", get_args(questions.Unit)),
        ("whatif", "unit", get_args(replay.Unit)),
        ("whatif", "policy", get_args(whatif.PolicyName)),
        ("import sacct", "executable_from", EXECUTABLE_FROM),
    ],
)
def test_choices(command: str, name: str, words: tuple[str, ...]) -> None:
    choices = option(command, name).type
    assert isinstance(choices, click.Choice)
    assert tuple(choices.choices) == words


def test_the_help_names_what_jobs_are_told_apart_by() -> None:
    assert f": {', '.join([MONTH, *ATTRIBUTES])};" in (option("ask", "by").help or "")
