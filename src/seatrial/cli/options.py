"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from seatrial.errors import UsageError
from seatrial.trial.folder import TrialOptions

if TYPE_CHECKING:
    from seatrial.trial.prepare import Prepared

Decorator = Callable[..., Any]


def selection_options(command: Decorator) -> Decorator:
    """Add the options that choose cases: SUITE..., -k, --tag, --machine and so on."""
    decorators: list[Callable[[Decorator], Decorator]] = [
        click.argument("suites", nargs=-1, metavar="[SUITE]..."),
        click.option("-k", "keyword", default="", metavar="EXPRESSION", help=_KEYWORD),
        click.option("-t", "--tag", "tags", multiple=True, help="Only tests with this tag."),
        click.option("-m", "--machine", help="Machine, by name or file; default: this host."),
        click.option(
            "--toolchain",
            "toolchains",
            multiple=True,
            metavar="PATTERN",
            help="Only these toolchains; `default` is the machine's first.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE[,VALUE]",
            help="Replace the values of a parameter.",
        ),
        click.option("--repeat", type=click.IntRange(min=1), help="Runs of each case."),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


_KEYWORD = (
    "Only cases that match: words of names, tags and parameters, joined by and, or, not and "
    "parentheses; NAME=VALUE for a parameter."
)


def asked_of(
    suites: tuple[str, ...],
    keyword: str,
    tags: tuple[str, ...],
    toolchains: tuple[str, ...],
    settings: tuple[str, ...],
    repeat: int | None,
    **more: Any,
) -> TrialOptions:
    """Return the options in the form that a trial records. Raises click.UsageError for a malformed
    --set."""
    pairs: dict[str, str] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not (equals and name and value):
            raise click.UsageError(f"--set {text}: write NAME=VALUE or NAME=VALUE,VALUE")
        pairs[name] = value
    return TrialOptions(
        suites=list(suites or ["."]),
        keyword=keyword,
        tags=list(tags),
        toolchains=list(toolchains),
        settings=pairs,
        repeat=repeat or 0,
        **more,
    )


def require_selected(prepared: Prepared) -> None:
    """Raise UsageError if no case was selected; the message names a tag that no test has, or the
    reason why there are none."""
    from seatrial.trial.prepare import require_cases

    known = sorted({tag for test in prepared.tests.values() for tag in test.tags})
    for tag in prepared.asked.tags:
        if tag not in known:
            raise UsageError(f"no test has the tag {tag!r}; there are {', '.join(known) or 'none'}")
    require_cases(prepared)
