"""Which cases of a suite: the options that say so, and what a trial records of them."""

from typing import Any

import click
import msgspec

from seatrial.cli.options import complete, list_option, machine_option, together, value_option
from seatrial.execute.options import TrialOptions

selection_options = together(
    click.argument("suites", nargs=-1, metavar="[SUITE]...", shell_complete=complete("folders")),
    value_option(
        "-k",
        "keyword",
        "EXPRESSION",
        "Only cases that match: words of names, tags and parameters, joined by and, or, not "
        "and parentheses; NAME=VALUE for a parameter.",
    ),
    click.option(
        "-t",
        "--tag",
        "tags",
        multiple=True,
        help="Only tests with this tag; if repeated, with all of them.",
    ),
    machine_option,
    list_option(
        "--toolchain",
        "toolchains",
        "PATTERN",
        "Only these toolchains; `default` is the machine's first.",
    ),
    list_option("--set", "settings", "NAME=VALUE[,VALUE]", "Replace the values of a parameter."),
)
repeat_option = click.option("--repeat", type=click.IntRange(min=1), help="Runs of each case.")


def asked_of(settings: tuple[str, ...], **chosen: Any) -> TrialOptions:
    """Return the options in the form that a trial records. Raises click.UsageError for a malformed
    --set."""
    pairs = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not (equals and name and value):
            raise click.UsageError(f"--set {text}: write NAME=VALUE or NAME=VALUE,VALUE")
        pairs[name] = value
    given = {name: value for name, value in chosen.items() if value}
    return msgspec.convert({"suites": ["."], "settings": pairs, **given}, TrialOptions)
