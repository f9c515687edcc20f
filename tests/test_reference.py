"""The reference that is made from the code explains everything that there is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

import click
from tools.docs_reference import file_shapes, meaning, reference_pages

from seatrial.cli import EXIT_CODES, seatrial
from seatrial.execute.plan.policy import ANSWERS
from seatrial.execute.script import SCRIPT_EXIT_CODES
from seatrial.journal.events import EVENT_KINDS
from seatrial.model.codes import CODES
from seatrial.model.documents import json_schema
from seatrial.model.expressions import _FUNCTIONS, FACTS, FUNCTIONS
from seatrial.model.kinds import criterion_kinds
from seatrial.model.parameters import BUILD_AND_RUN, RUN_ONLY
from seatrial.model.plan import Cause
from seatrial.results.status import judge_of
from seatrial.results.utilisation import USES

PAGES = {place: text for _, pages in reference_pages() for place, text in pages.items()}


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


def test_every_command_and_option_is_explained() -> None:
    for path, command in commands(seatrial, "seatrial"):
        words = path.split(" ")
        page = PAGES[f"commands/{words[1] if len(words) > 1 else words[0]}.md"]
        assert f"# {path}\n" in page
        assert command.help, path
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"{path} {option.opts}"
                assert all(f"{name}" in page for name in option.opts), f"{path} {option.opts}"


def test_the_meaning_of_an_optional_key_is_that_of_its_only_kind() -> None:
    value = {"anyOf": [{"type": "string", "description": "text at the end"}, {"type": "null"}]}
    assert meaning(value, {}) == "text at the end"
    value["anyOf"].append({"type": "integer", "description": "bytes"})
    assert meaning(value, {}) == ""


def test_every_key_of_every_file_is_explained() -> None:
    for kind, (_, shape) in file_shapes().items():
        parts = json_schema(shape, kind)["$defs"]
        for name, part in parts.items():
            keys: dict[str, Any] = part.get("properties", {})
            assert not keys or part.get("description"), f"{kind}: {name}"
            for key, value in keys.items():
                assert meaning(value, parts), f"{kind}: {name}.{key}"
                assert f"| `{key}` |" in PAGES[f"files/{kind}.md"], f"{kind}: {name}.{key}"


def test_every_event_is_explained() -> None:
    for name, kind in EVENT_KINDS.items():
        assert f"## {kind.number} {name}\n" in PAGES["events.md"]
        assert kind.__doc__ is not None, name
        assert kind.__doc__ != kind.__base__.__doc__, name


def test_every_verdict_and_answer_is_explained() -> None:
    for number, code in CODES.items():
        assert f"| {number} | `{code.name}` | {code.meaning[:20]}" in PAGES["verdicts.md"]
    assert set(ANSWERS) == set(get_args(Cause))


def test_every_criterion_is_explained_with_what_leaves_it_undecided() -> None:
    for name in criterion_kinds():
        function = judge_of(name)
        text = inspect.getdoc(function) or ""
        assert len(text) > 200, name
        assert name == "items_passed" or "ndecided" in text, name
        assert f"## {name}\n" in PAGES["criteria.md"]
    assert all(USES.values())


def test_every_exit_code_is_explained() -> None:
    for code, text in {**EXIT_CODES, **SCRIPT_EXIT_CODES}.items():
        assert f"| `{code}` | {text[:20]}" in PAGES["exit-codes.md"]
    assert "Exit codes:  0  all criteria are met" in PAGES["exit-codes.md"]


def test_every_name_that_tests_and_scripts_may_use_is_explained() -> None:
    assert set(FUNCTIONS) == set(_FUNCTIONS)
    for name in {**FUNCTIONS, **FACTS, **BUILD_AND_RUN, **RUN_ONLY}:
        assert f"`{name}`" in PAGES["expressions.md"] or f"`${name}`" in PAGES["expressions.md"]
