"""``seatrial usage``: the questions about what others ran, as commands."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, get_args

import click

from seatrial.cli import Folders
from seatrial.cli.options import (
    FiniteRange,
    Parsed,
    choice_option,
    complete,
    drawn_format_option,
    list_option,
    parsed_for,
    path_option,
    text_option,
    together,
    value_option,
)
from seatrial.cli.query_common import opened, print_or_draw
from seatrial.errors import UsageError
from seatrial.execute.prepare import left_out_of, prepare_trial
from seatrial.model.moments import zone_of
from seatrial.model.test import TrialOptions
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import ATTRIBUTES, MONTH, Context, context_of
from seatrial.plugins.usage.coverage import coverage_page, share_page, tests_of
from seatrial.plugins.usage.jobs import known_machines
from seatrial.plugins.usage.questions import (
    TOP,
    Measure,
    Question,
    Unit,
    parse_by,
)
from seatrial.plugins.usage.settings import name_of_machine, settings_of
from seatrial.plugins.usage.waits import Ready
from seatrial.plugins.usage.waits_page import Like, Size, parse_size, waits_page
from seatrial.results.store.schema import Store
from seatrial.units import SECOND_NS, moment_of, seconds

MAX_LEFT_OUT = 3
EDGES_HELP = "Largest sizes of the classes of `size` and `nodes`; default: powers."


def parse_edges(text: str) -> tuple[int, ...]:
    """Return sizes that are written with commas between them."""
    try:
        return tuple(int(part.replace("_", "")) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no list of sizes; write e.g. 1,16,1024,8192") from None


asked_options = together(
    text_option(
        "-m",
        "--machine",
        "NAME",
        "Only of this machine; default: all that are known.",
        shell_complete=complete("machines"),
    ),
    text_option(
        "--since",
        "TIME",
        "What was used from then on: 2011-03, 2011-03-15, 30d; on the clock of --zone.",
    ),
    text_option("--until", "TIME", "What was used before then."),
    list_option(
        "--where",
        "where",
        "NAME=VALUE",
        "Only jobs with this word, such as application=g09 or queue!=debug; `,` for several, `*` "
        "for any text. May be repeated: all must hold.",
    ),
    choice_option("--unit", of=get_args(Unit), help="What is counted of jobs."),
    path_option("--applications", "FILE", "Rules for applications, in place of the machine's."),
    path_option("--fields", "FILE", "Fields of science, in place of the machine's file."),
    value_option(
        "--zone",
        "ZONE",
        "Time zone of months, such as UTC; default: this host's.",
        type=Parsed(zone_of),
        default=None,
    ),
    value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=TOP),
    drawn_format_option,
    click.pass_obj,
)
"""What all questions take: they are passed to `asked_of` as they are."""


def _moment(option: str, text: str, zone: tzinfo | None) -> int:
    """Return a time in s; 0 without a text. A date is one on the clock of the time zone."""
    if not text:
        return 0
    whole = f"{text}-01" if _YEAR.fullmatch(text) else text
    whole = f"{whole}-01" if _MONTH.fullmatch(whole) else whole
    with contextlib.suppress(ValueError, OverflowError):
        date = datetime.fromisoformat(whole)
        return int((date if date.tzinfo else date.replace(tzinfo=zone)).timestamp())
    return parsed_for(option, moment_of, whole) // SECOND_NS


_YEAR = re.compile(r"[0-9]{4}", re.ASCII)
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)


def _names_may_leave(machine: str, store: Store) -> bool:
    """Return whether the machines that are asked about allow names of users in files."""
    machines = [machine] if machine else known_machines(store)
    return all(settings_of(name).names_on_pages for name in machines)


def asked_of(store: Store, chosen: dict[str, Any], **more: Any) -> tuple[Question, Context]:
    """Return the question of a command's options, and what attributes are told by."""
    machine = name_of_machine(chosen["machine"]) if chosen["machine"] else ""
    context = context_of(
        [machine] if machine else known_machines(store),
        edges=chosen.get("edges", ()),
        fields=chosen["fields"],
        applications=chosen["applications"],
        zone=chosen["zone"],
    )
    asked = Question(
        machine=machine,
        since=_moment("--since", chosen["since"], context.zone),
        until=_moment("--until", chosen["until"], context.zone),
        where=chosen["where"],
        unit=chosen["unit"],
        top=chosen["top"],
        # A drawing is passed on; other answers are for whoever asks.
        names=chosen["form"] != "svg" or _names_may_leave(machine, store),
        **more,
    )
    return asked, context


@click.command("ask")
@list_option(
    "--by",
    "by",
    "NAME",
    f"What jobs are told apart by: {', '.join([MONTH, *ATTRIBUTES])}; two with a comma, such as "
    "month,size. Default: month.",
)
@choice_option("--of", of=get_args(Measure), help="What is told of them.")
@value_option("--edges", "SIZES", EDGES_HELP, type=Parsed(parse_edges), default="")
@asked_options
def ask(folders: Folders, /, by: tuple[str, ...], of: Measure, **chosen: Any) -> int:
    """Tell what others used: hours, jobs, users, waits, failures, energy.

    Its name can be left out: `seatrial usage --by size`. Running jobs count until their machine was
    imported last. Suspended time does not count.

    \b
    seatrial usage --by month,size --edges 1,512,8192
    seatrial usage --by application --of users -m hopper --since 2011-01-01
    seatrial usage --by mode --where application=g09 --of failures
    """
    with opened(folders) as store:
        asked, context = asked_of(store, chosen, by=parse_by(by) or (MONTH,), of=of)
        page = usage_page(store, asked, context)
    print_or_draw(page, chosen["form"])
    return 0


@click.command("waits")
@value_option(
    "--size",
    "SIZE",
    "Jobs of about this size: 3 (nodes), 3nodes, 72cores; default: any.",
    type=Parsed(partial(parse_size, unit="nodes")),
)
@value_option(
    "--walltime",
    "TIME",
    "Jobs with about this time limit, such as 36h; default: any.",
    type=Parsed(seconds),
)
@value_option(
    "--within",
    "FACTOR",
    "How many times as large or small, long or short, a job may be.",
    type=FiniteRange(1, 1000),
    default=2.0,
    show_default=True,
)
@choice_option(
    "--from", "ready", of=get_args(Ready), help="From when on a job waits: it could start, or came."
)
@text_option("--by", "NAME", "What jobs are told apart by; default: machine.")
@asked_options
def waits(
    folders: Folders,
    /,
    by: str,
    size: Size | None,
    walltime: float | None,
    within: float,
    ready: Ready,
    **chosen: Any,
) -> int:
    """Tell how long jobs like yours wait: medians, percentiles, intervals.

    Jobs that still wait count, too: as waiting for at least so long.

    \b
    seatrial usage waits --size 3 --walltime 36h --by machine
    seatrial usage waits --size 512cores --by month -m hopper
    """
    like = Like(size=size, walltime=walltime, within=within, ready=ready)
    with opened(folders) as store:
        asked, context = asked_of(store, chosen, by=parse_by([by or "machine"]))
        page = waits_page(store, asked, context, like)
    print_or_draw(page, chosen["form"])
    return 0


@click.command("share")
@value_option(
    "--above",
    "SIZE",
    "Jobs of more than this: 8192cores, 682nodes. A job of exactly this size is not above it.",
    type=Parsed(partial(parse_size, unit="cores")),
    required=True,
)
@text_option("--by", "NAME", "What jobs are told apart by; default: machine.")
@asked_options
def share(folders: Folders, /, by: str, above: Size, **chosen: Any) -> int:
    """Tell which share of the hours were of jobs above a size.

    \b
    seatrial usage share --above 8192cores -m hopper
    seatrial usage share --above 682nodes --by month --unit node-hours
    """
    with opened(folders) as store:
        asked, context = asked_of(store, chosen, by=parse_by([by or "machine"]))
        page = share_page(store, asked, context, above)
    print_or_draw(page, chosen["form"])
    return 0


@click.command("coverage")
@click.argument("suite", metavar="SUITE")
@value_option(
    "--within",
    "FACTOR",
    "How many times as many cores, or as few, a test stands for.",
    type=FiniteRange(1, 1000),
    default=2.0,
    show_default=True,
)
@value_option("--edges", "SIZES", EDGES_HELP, type=Parsed(parse_edges), default="")
@asked_options
def coverage(folders: Folders, /, suite: str, within: float, **chosen: Any) -> int:
    """Tell which share of the hours the tests of SUITE stand for, and what to add first.

    A test stands for jobs of its application (`app`) of about its size. Its cases are those for the
    machine that -m names, or for this host.

    \b
    seatrial usage coverage suites/acceptance -m hopper
    """
    prepared = prepare_trial(
        TrialOptions(suites=[suite]), chosen["machine"] or None, with_builds=False
    )
    apps = {name: test.app for name, test in prepared.tests.items()}
    with opened(folders) as store:
        asked, context = asked_of(store, chosen)
        tests = tests_of(prepared.cases, apps)
        left_out = left_out_of(prepared.skipped, prepared.broken)
        if not tests:
            machine = prepared.site.machine.machine
            reasons = "\n".join(left_out[:MAX_LEFT_OUT])
            raise UsageError(
                f"no case of {suite} runs on {machine}; name another machine: -m\n{reasons}"
            )
        page = coverage_page(store, asked, context, tests, within, left_out)
    print_or_draw(page, chosen["form"])
    return 0
