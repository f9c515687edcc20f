"""``seatrial usage``: the questions about what others ran, as commands."""

from __future__ import annotations

from typing import Any, get_args

import click

from seatrial.cli import Folders
from seatrial.cli.options import (
    MOMENT,
    Parsed,
    choice_option,
    complete,
    format_option,
    list_option,
    path_option,
    text_option,
    together,
    value_option,
)
from seatrial.cli.query_common import opened
from seatrial.cli.study import HOW, print_or_draw
from seatrial.plugins.usage.answer_page import usage_page
from seatrial.plugins.usage.attributes import ATTRIBUTES, MONTH, Context, context_of
from seatrial.plugins.usage.questions import (
    TOP,
    Measure,
    Question,
    Unit,
    machines_in,
    parse_by,
)
from seatrial.plugins.usage.settings import name_of_machine
from seatrial.results.store.schema import Store
from seatrial.units import SECOND_NS


def _edges(text: str) -> tuple[int, ...]:
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
    value_option("--since", "TIME", "What was used from then on.", type=MOMENT, default=0),
    value_option("--until", "TIME", "What was used before then.", type=MOMENT, default=0),
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
    text_option("--zone", "ZONE", "Time zone of months, such as UTC; default: this host's."),
    value_option("--top", "N", "Rows that are shown.", type=click.IntRange(1), default=TOP),
    format_option("table", "json", "csv", "svg", help=HOW),
    click.pass_obj,
)
"""What all questions take: they are passed to `asked_of` as they are."""


def asked_of(store: Store, chosen: dict[str, Any], **more: Any) -> tuple[Question, Context]:
    """Return the question of a command's options, and what attributes are told by."""
    machine = name_of_machine(chosen["machine"]) if chosen["machine"] else ""
    asked = Question(
        machine=machine,
        since=chosen["since"] // SECOND_NS,
        until=chosen["until"] // SECOND_NS,
        where=chosen["where"],
        unit=chosen["unit"],
        top=chosen["top"],
        names=True,
        **more,
    )
    context = context_of(
        [machine] if machine else machines_in(store),
        edges=chosen.get("edges", ()),
        fields=chosen["fields"],
        applications=chosen["applications"],
        zone=chosen["zone"],
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
@value_option(
    "--edges",
    "SIZES",
    "Largest sizes of the classes of `size` and `nodes`; default: powers.",
    type=Parsed(_edges),
    default="",
)
@asked_options
def ask(folders: Folders, /, by: tuple[str, ...], of: Measure, form: str, **chosen: Any) -> int:
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
    print_or_draw(page, form)
    return 0
