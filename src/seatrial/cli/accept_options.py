"""The options and arguments that commands of ``seatrial accept`` share."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli.options import (
    components_option,
    format_option,
    name_option,
    phases_option,
    together,
)

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
by_option = click.option(
    "--by", multiple=True, metavar="NAME", required=True, help="Who; may be repeated."
)
comment_option = click.option("--comment", default="", metavar="TEXT", help="A remark.")
again_option = click.option(
    "--again", default="", metavar="TEXT", help="Why it replaces an earlier one."
)
status_format_option = format_option("table", "json", help="How the status is shown.")
reason_option = click.option("--reason", required=True, help="Why; recorded with your name.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no line for each run.")


def names_of(by: tuple[str, ...]) -> list[str]:
    """Return the names that were given. Raises UsageError if there is none."""
    names = [name.strip() for name in by if name.strip()]
    if not names:
        raise click.UsageError("--by: give a name")
    return names
