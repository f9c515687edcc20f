"""The command ``syslog``."""

import click

from seatrial.cli.commands import act


@click.command("syslog")
@click.argument("what", metavar="RUN|TRIAL")
@click.option("--all", "every", is_flag=True, help="Also lines that match no rule.")
@click.option(
    "--unread",
    is_flag=True,
    help="Read the logs of the runs of TRIAL that were not read, and record what they had.",
)
@click.pass_obj
@act("seatrial.plugins.systemlogs.acts:syslog")
def syslog() -> None:
    """Print the lines of system logs in the window of RUN that match rules.

    The logs are read as they are now, with your permissions: Seatrial keeps no line, only counts
    (`seatrial logs`). What cannot be read is told, and the exit code is 1.

    \b
    seatrial syslog zwjmbm27
    seatrial syslog --unread nightly    what a driver that was killed left
    """
