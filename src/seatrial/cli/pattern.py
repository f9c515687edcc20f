"""``seatrial pattern``: record which rank of a program sends how much to which, and show it."""

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import format_option, quiet_option, selection_options


@click.group("pattern")
def command() -> None:
    """Record who sends how much to whom in an MPI program, and show it.

    \b
    seatrial pattern record suites/halo -m frost
    seatrial pattern show RUN
    seatrial order best RUN -m frost --nodes n[001-128] > best.order
    """


@command.command("record")
@selection_options
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@quiet_option
@click.pass_context
@action
def record() -> None:
    """Run a suite and record which rank sends how much to which.

    A library between program and MPI is built with each test by the toolchain's mpicc, and loaded
    into what $LAUNCH starts. Each run keeps its pattern, pattern.txt in its directory.
    `run.pattern: true` in a test.yaml records every run of the test.
    """


@command.command("show")
@click.argument("source", metavar="RUN|FILE", shell_complete=complete.runs)
@click.option(
    "--top", type=click.IntRange(0, 10_000), default=10, show_default=True, help="Pairs shown."
)
@format_option("text", "json")
@click.pass_obj
@action
def show() -> None:
    """Show a pattern: totals, pairs, share off node, calls by size.

    RUN is a recorded run's id or a unique beginning of it; FILE a pattern file.
    """
