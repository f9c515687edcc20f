"""``seatrial report``: write, sign and verify the acceptance report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.cli.actions import action
from seatrial.cli.groups import DefaultGroup
from seatrial.cli.options import list_option, name_option, text_option, value_option
from seatrial.cli.report_signatures import sign_command, verify_command

if TYPE_CHECKING:
    from seatrial.report.content import Decision
DECISIONS: "dict[str, Decision]" = {
    "accepted": "accepted",
    "reservations": "accepted with reservations",
    "rejected": "rejected",
}


@click.group("report", cls=DefaultGroup, default="write")
def command() -> None:
    """Write the acceptance report of TRIAL or PLAN, sign it, or verify one.

    \b
    seatrial report plans/frost.yaml -o frost.html --sign ~/.ssh/id_ed25519
    seatrial report nightly -o nightly.md
    seatrial report sign frost.html --key ~/.ssh/id_ed25519 --as vendor
    seatrial report verify frost.html --signers allowed_signers
    """


@command.command("write")
@click.argument("asked", nargs=-1, required=True, metavar="TRIAL|PLAN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; `-`: stdout. Default: its trials' names, or the plan's, and -report.html.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json"]),
    help="Default: by the file's ending, else html.",
)
@value_option(
    "--sign",
    "key",
    "KEY",
    "Sign it with this OpenSSH key: makes FILE.sig.",
    type=click.Path(path_type=Path, dir_okay=False),
)
@name_option
@click.option("--rehearsed", is_flag=True, help="Of a plan: its latest rehearsal.")
@text_option(
    "--given", "TAG", "Imported figures, such as a vendor's, to be shown beside the measured ones."
)
@value_option("--by", "PERSON", "Who makes it. Default: `name` of config.yaml, or the account.")
@value_option("--organisation", "NAME", "Theirs. Default: `organisation` of config.yaml.")
@click.option(
    "--decision",
    type=click.Choice(list(DECISIONS)),
    help="What was decided: it is signed with the report. Default: boxes to tick on paper.",
)
@list_option("--reservation", "reservations", "TEXT", "One of the reservations; may be repeated.")
@click.pass_obj
@action
def write() -> None:
    """Write the report. The word `write` may be left out.

    TRIAL is a tag, a unique beginning of one, or a path; PLAN is a plan's file: the report is then
    on the trials of all its components. Several trials make one report.
    """


command.add_command(sign_command)
command.add_command(verify_command)
