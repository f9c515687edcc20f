"""``seatrial export``: a trial as JUnit XML or JSON; all results as files of Parquet."""

from pathlib import Path

import click

from seatrial.cli import complete
from seatrial.cli.actions import action
from seatrial.cli.options import format_option, path_option


@click.command("export")
@click.argument("trial", required=False, shell_complete=complete.trials)
@format_option("junit", "json", help="JUnit XML for a CI server, or all of it as one JSON object.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write; default: stdout."
)
@path_option(
    "--parquet",
    "FOLDER",
    "Write trials, runs and figures as files of Parquet; of TRIAL, or of all.",
)
@click.pass_obj
@action
def command() -> None:
    """Write a trial as JUnit XML or JSON, or results as Parquet, which pandas and DuckDB read.

    TRIAL is its tag, or a unique beginning of it.
    """
