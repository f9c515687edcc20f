"""Options that several commands share, and the types of their values.

@click.option("--patience", type=Parsed(seconds), metavar="TIME")
@format_option("table", "json")
"""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from seatrial.hooks import load, provided
from seatrial.model.settings import setting
from seatrial.units import moment_of, share_of

T = TypeVar("T")
Decorator = Callable[..., Any]

STAGES = ("alone", "full")  # of suite.model.Stage
DESCRIBED = ("machines", "sides")  # what ``cli/complete_described.py`` completes
_LABEL = r"([A-Za-z]\w{0,99})=([^,\"'\x00-\x1f\x7f]{1,100})"


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return what completes a word in the shell: a function of ``cli/complete.py``, or of
    ``cli/complete_described.py``, which is imported when the shell asks."""
    module = "complete_described" if kind in DESCRIBED else "complete"
    place = f"seatrial.cli.{module}:{kind}"

    def names(context: click.Context, param: click.Parameter, begun: str) -> list[Any]:
        completed: list[Any] = load(place)(context, param, begun)
        return completed

    return names


class Parsed(click.ParamType[Any]):
    """Values that a function makes of their text. Its ValueError is a usage error. One that stands
    with an act is named by ``module:function``, and imported when there is a value."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any] | str) -> None:
        self.parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        parse = load(self.parse) if isinstance(self.parse, str) else self.parse
        try:
            return parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parsed_for(hint: str, parse: Callable[[str], T], text: str) -> T:
    """Return the value of a text that was given for ``hint``. Its ValueError is a usage error."""
    try:
        return parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=hint) from error


class FiniteRange(click.FloatRange):
    """click's FloatRange, without ``inf`` and ``nan``, which is inside all of click's bounds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _share(text: str) -> float:
    """Return a share below 1, written as 2% or 0.02."""
    try:
        found = share_of(text if "%" in text else float(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a share; write e.g. 2% or 0.02") from None
    if found >= 1:
        raise ValueError(f"{text} is not less than 100%")
    return found


def parsed_label(text: str) -> tuple[str, str]:
    """Return the name and the value of a label, written as NAME=VALUE."""
    if (match := re.fullmatch(_LABEL, text)) is None:
        raise ValueError(
            f"{text!r}: write NAME=VALUE, such as load=dedicated: a name of letters, digits and _; "
            "a value without commas and quotes, of 100 characters at most"
        )
    return match[1], match[2]


MOMENT = Parsed(moment_of)
SHARE = Parsed(_share)


def together(*decorators: Callable[[Decorator], Decorator]) -> Callable[[Decorator], Decorator]:
    """Return a decorator that adds arguments and options, in their order in the help."""

    def decorated(command: Decorator) -> Decorator:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorated


def value_option(*words: str, **more: Any) -> Callable[..., Any]:
    """Return an option by its names, the name of its value, and its help."""
    *names, metavar, help = words
    return click.option(*names, metavar=metavar, help=help, **more)


def text_option(*words: str, **more: Any) -> Callable[..., Any]:
    """Return an option, by the same words as ``value_option``, that is "" where it is not given."""
    return value_option(*words, default="", **more)


def list_option(*words: str, **more: Any) -> Callable[..., Any]:
    """Return an option that may be given several times, by the same words as ``value_option``."""
    return value_option(*words, multiple=True, **more)


def path_option(*words: str, **more: Any) -> Callable[..., Any]:
    """Return an option that is a path, by the same words as ``value_option``."""
    return value_option(*words, type=click.Path(path_type=Path), **more)


def choice_option(*names: str, of: Sequence[str], help: str, **more: Any) -> Callable[..., Any]:
    """Return an option that is one of some words; the first is the default, if no other is given
    (None: none)."""
    more = {"default": of[0], "show_default": True, **more}
    return click.option(*names, type=click.Choice(of), help=help, **more)


def format_option(*forms: str, help: str = "How it is shown.") -> Callable[..., Any]:
    """Return the option ``--format``; the first form is the default."""
    return choice_option("--format", "form", of=forms, help=help)


drawn_format_option = format_option(
    "table", "json", "csv", "svg", help="How it is shown; svg: its plots, as one file."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print the summary alone.")
fail_on_option = choice_option(
    "--fail-on",
    of=["any", "failures", "never"],
    show_default=False,
    help="What makes the exit code 1: any verdict but pass (default), failures of tests"
    " (node failures, lost and cancelled runs make it 3), or no verdict.",
)
require_references_option = click.option(
    "--require-references",
    is_flag=True,
    help="Exit code 3, not 0, if a figure has no reference.",
)
components_option = list_option(
    "--component", "components", "NAME", "Only this component; may be repeated."
)
phases_option = list_option("--phase", "phases", "NAME", "Only this phase; may be repeated.")
name_option = click.option(
    "--name",
    default="",
    help="Name in the trials' tags instead of the plan's: runs the plan once more, beside its "
    "earlier trials.",
)


def machine_named(help: str) -> Callable[..., Any]:
    """Return the option of a machine, by name or file; None where neither it, the environment nor
    `seatrial config` names one."""
    return click.option(
        "-m",
        "--machine",
        envvar="SEATRIAL_MACHINE",
        shell_complete=complete("machines"),
        default=lambda: setting("machine") or None,
        help=help,
    )


machine_option = machine_named(
    "Machine, by name or file; default: `seatrial config machine`, else this host."
)


alert_option = value_option(
    "--alert",
    "COMMAND",
    "Bash command for alerts, six an hour at most, and for the end of the trial. It gets "
    "$ALERT (the text), $ALERT_KIND (end: with $EXIT_CODE), $TRIAL and $MACHINE, and 30 s.",
    default=lambda: setting("alert"),
)

# which cases of a suite
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

# which runs, by the names of ``store.rows.Filters``
test_filter = text_option(
    "-k", "--test", "PATTERN", "Tests: a part, or e.g. io_*.", shell_complete=complete("tests")
)
tests_filter = list_option(
    "-k", "--test", "tests", "PATTERN", "Only these tests.", shell_complete=complete("tests")
)
machine_filter = text_option("-m", "--machine", "PATTERN", "Only on this machine.")
since_filter = value_option(
    "--since", "TIME", "Created since: 2h, 3d, 2026-11-20, ...T14:03.", type=MOMENT, default=0
)
run_filters = together(
    text_option("--trial", "TAG", "Only of this trial.", shell_complete=complete("trials")),
    test_filter,
    machine_filter,
    text_option("--toolchain", "PATTERN", "Only with this toolchain."),
    click.option("--rehearsed", is_flag=True, help="Those of rehearsals, too."),
    since_filter,
)

trials_argument = click.argument(
    "trials", nargs=-1, required=True, metavar="TRIAL...", shell_complete=complete("trials")
)
per_option = choice_option(
    "--per",
    of=["core", "node", "node-hour", *(kind.name for kind in provided("seatrial_resources"))],
    default=None,
    help="Figures by what they took: rates divided by it, times multiplied with it.",
)

# ---- plans --------------------------------------------------------------------------------

# PLAN and the options that choose among its trials
plan_options = together(
    click.argument("path", metavar="PLAN", type=click.Path(path_type=Path)),
    components_option,
    phases_option,
    name_option,
    click.pass_obj,
)
# PLAN, for what is about the whole plan
plan_argument = together(
    click.argument("path", metavar="PLAN", type=click.Path(path_type=Path)),
    name_option,
    click.pass_obj,
)
by_option = list_option("--by", "NAME", "Who; may be repeated.", required=True)
consent_option = list_option(
    "--consent",
    "consent",
    "NAME",
    "Who consents that harmful tests run; two people on a machine in production. May be repeated.",
)
comment_option = text_option("--comment", "TEXT", "A remark.")
again_option = text_option("--again", "TEXT", "Why it replaces an earlier one.")
status_format_option = format_option("table", "json", help="How the status is shown.")
reason_option = click.option("--reason", required=True, help="Why; recorded with your name.")
no_lines_option = click.option("-q", "--quiet", is_flag=True, help="Print no line for each run.")


def names_of(by: tuple[str, ...]) -> list[str]:
    """Return the names that were given. Raises UsageError if there is none."""
    names = [name.strip() for name in by if name.strip()]
    if not names:
        raise click.UsageError("--by: give a name")
    return names
