"""The commands below "Show results"."""

from pathlib import Path

import click

from seatrial.cli.commands import DefaultGroup, act
from seatrial.cli.options import (
    complete,
    format_option,
    list_option,
    name_option,
    path_option,
    run_filters,
    text_option,
    value_option,
)

PORT = 8420
SHOWN = 50
"""The runs that a table of them has where no limit is given."""


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0: a free one, which it prints.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; one that others reach needs --token-file, and TLS before it.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the token to sign in with; made if missing. Needed with --host.",
)
@click.option("--open", "browse", is_flag=True, help="Open the pages in the browser.")
@click.option("--log", is_flag=True, help="Print every request.")
@click.option(
    "--alarm",
    metavar="TIME",
    default=None,
    help="Run the alert command of a trial of yours whose driver is silent for so long.",
)
@click.pass_obj
@act("seatrial.cli.serve:serve")
def serve() -> None:
    """Show trials, runs and results as live web pages. Read only.

    The server listens on this machine only. From elsewhere, use an ssh tunnel:
    ssh -L 8420:localhost:8420 LOGIN-NODE
    """


@click.group("report", cls=DefaultGroup, default="write")
def report() -> None:
    """Write the acceptance report of TRIAL or PLAN, sign it, or verify one.

    \b
    seatrial report plans/frost.yaml -o frost.html --sign ~/.ssh/id_ed25519
    seatrial report nightly -o nightly.md
    seatrial report sign frost.html --key ~/.ssh/id_ed25519 --as vendor
    seatrial report verify frost.html --signers allowed_signers
    """


@report.command("write")
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
    type=click.Choice(["accepted", "reservations", "rejected"]),
    help="What was decided: it is signed with the report. Default: boxes to tick on paper.",
)
@list_option("--reservation", "reservations", "TEXT", "One of the reservations; may be repeated.")
@click.pass_obj
@act("seatrial.cli.report:report_write")
def report_write() -> None:
    """Write the report. The word `write` may be left out.

    TRIAL is a tag, a unique beginning of one, or a path; PLAN is a plan's file: the report is then
    on the trials of all its components. Several trials make one report.
    """


@report.command("sign", short_help="Sign a report; several people may.")
@click.argument("report", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="KEY",
    required=True,
    help="Your OpenSSH key: the private one, or the public one of an agent or token.",
)
@click.option(
    "--as",
    "name",
    metavar="NAME",
    help="Your name or side, as in the file of allowed signers. Default: your user name.",
)
@act("seatrial.cli.report_signatures:report_sign")
def report_sign() -> None:
    """Sign REPORT: makes REPORT.sig.NAME beside it. Other people's signatures stay.

    \b
    seatrial report sign frost.html --key ~/.ssh/id_ed25519 --as vendor
    """


@report.command("verify", short_help="Verify a report, its signatures and what is behind it.")
@click.argument("report", type=click.Path(path_type=Path))
@path_option(
    "--signers", "FILE", "Whose signatures count: an allowed_signers file, as of ssh-keygen."
)
@path_option("--key", "FILE", "The one public key that counts.")
@list_option(
    "--require",
    "names",
    "NAME",
    "A name of the signers' file that must have signed; may be repeated.",
)
@path_option("--trials", "DIR", "Folder of the trials; default: as of every command.")
@path_option(
    "--documents",
    "DIR",
    "Folder of the documents of evidence; default: that of the plan, or of the report.",
)
@click.option("--no-outputs", is_flag=True, help="Do not read the files of the runs.")
@click.pass_obj
@act("seatrial.cli.report_signatures:report_verify")
def report_verify() -> None:
    """Verify that REPORT is as it was signed, and that what is behind it is unchanged: journals,
    records, notes, documents of evidence, and the outputs of the runs.

    \b
    Exit codes:  0  signed by all that are asked for; nothing behind it changed
                 1  the report, a signature or something behind it was changed, or
                    a signature that is asked for is missing
                 2  usage, or not a report of Seatrial
                 3  nothing is wrong, but not everything could be verified
    """


@click.command("runs")
@run_filters
@click.option(
    "-t", "--tag", default="", help="Only tests with this tag; if repeated, with all of them."
)
@click.option("--failed", is_flag=True, help="Neither passed nor lost and run again.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    shell_complete=complete("verdicts"),
    help="Only this verdict; may be repeated.",
)
@text_option("--cause", "TEXT", "Only failures of this cause: a part, or a pattern.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Most runs; 0: all. Default: {SHOWN} in a table."
)
@format_option("table", "json", "csv")
@click.pass_obj
@act("seatrial.cli.runs:runs")
def runs() -> None:
    """List runs, newest first: test, nodes, verdict, time."""


@click.command("show")
@click.argument("run", metavar="[[TAG/]RUN]", default="", shell_complete=complete("runs"))
@click.option("--last", is_flag=True, help="The newest run; of the trial TAG, if that is given.")
@click.option("--scripts", is_flag=True, help="Show the build's, the test's and the job's script.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Lines of stdout and stderr that are shown; their last ones.",
)
@format_option("text", "json")
@click.pass_obj
@act("seatrial.cli.show:show_run")
def show() -> None:
    """Show one run in full: the case, events, metrics, verdict, output.

    RUN is a run's id or a unique beginning of it; `seatrial runs` lists them.

    \b
    seatrial show zwjmbm27
    seatrial show --last            the newest run
    seatrial show --last nightly    the newest run of that trial
    """


@click.command("trials")
@click.option("--limit", type=click.IntRange(min=0), help="Most trials; 0: all. Default: 50.")
@click.option("--rehearsed", is_flag=True, help="Rehearsals, too.")
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.runs:trials")
def trials() -> None:
    """List the trials, newest first: state, and how many runs passed.

    The state is running, paused, cancelled, ended, abandoned, imported from another tool, or
    interrupted: nobody drives it any more, and `seatrial resume` would continue it. Rehearsals are
    listed with --rehearsed, or where there is nothing else. On a narrow terminal, columns are left
    out before tags are folded.
    """


@click.command("export")
@click.argument("trial", required=False, shell_complete=complete("trials"))
@format_option("junit", "json", help="JUnit XML for a CI server, or all of it as one JSON object.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write; default: stdout."
)
@path_option(
    "--parquet",
    "FOLDER",
    "Write trials, runs and figures as files of Parquet; of TRIAL, or of all.",
)
@text_option(
    "--reproducer",
    "RUN",
    "Write a folder that does what RUN did without Seatrial: scripts, sources, inputs, versions.",
    shell_complete=complete("runs"),
)
@click.pass_obj
@act("seatrial.cli.export:export")
def export() -> None:
    """Write a trial as JUnit XML or JSON, or results as Parquet, which pandas and DuckDB read; or
    a run for a vendor.

    TRIAL is its tag, or a unique beginning of it.

    \b
    seatrial export nightly --format json -o nightly.json
    seatrial export --parquet results
    seatrial export --reproducer zwjmbm27 -o vendor     then: bash vendor/run.sh

    \b
    Exit codes:  0  written
                 1  the folder of a run is written, and differs from what ran
                 2  usage or bad input; nothing was written
    """
