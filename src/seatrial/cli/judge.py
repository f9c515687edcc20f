"""``seatrial judge``: judge the runs of a trial again, or say something of single runs."""

from pathlib import Path

import click

from seatrial.cli.actions import action
from seatrial.cli.options import (
    format_option,
    list_option,
    require_references_option,
    text_option,
)


@click.command("judge")
@click.argument("names", metavar="TRIAL|RUN...", nargs=-1, required=True)
@text_option("--cause", "TEXT", "What caused it, such as F2.")
@text_option("--comment", "TEXT", "A remark on the run.")
@click.option("--exclude", is_flag=True, help="Criteria leave it out; needs two --by.")
@click.option("--withdraw", is_flag=True, help="Take back what was said of the run.")
@list_option("--by", "NAME", "Who says so; may be repeated.")
@click.option(
    "--again", is_flag=True, help="Record verdicts and figures; without it they are only shown."
)
@text_option("--reason", "TEXT", "Why; needed with --again.")
@list_option(
    "--with",
    "suites",
    "SUITE",
    "Suite to judge by; may be repeated. Default: that of the trial, as it is now.",
)
@click.option(
    "--references",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of references to judge by. Default: that of the machine, as it is now.",
)
@require_references_option
@click.option("--dry-run", is_flag=True, help="Show what would change, record nothing.")
@format_option("table", "json")
@click.pass_obj
@action
def command() -> None:
    """Judge the runs of TRIAL again, or say something of single runs.

    With --cause, --comment, --exclude or --withdraw: record what people say of RUN, also while its
    trial runs. Verdict and figures stay as they were. An exclusion is by agreement, with two
    names; criteria are shown with and without the run.

    \b
    seatrial judge flc6evne6aub --cause F2 --comment "the file system was slow"
    seatrial judge flc6evne6aub --exclude --cause F2 --by "A. Smith" --by "B. Lee"

    With a TRIAL: judge its runs again, after a check, a tolerance or a reference was corrected.
    The checks and references are taken as they are now, the outputs as they were kept. Each run
    whose verdict changes gets an event with who, when and why; its first verdict stays in the
    journal. Figures that were recorded stay as they are, and those that had not been found are
    added, also where the verdict stays. Verdicts that are not of a check
    (timeout, node failure, cancelled) are not touched.
    """
