"""The commands below "Run a suite"."""

from pathlib import Path

import click

from seatrial.cli.commands import act
from seatrial.cli.options import (
    Parsed,
    alert_option,
    complete,
    consent_option,
    fail_on_option,
    format_option,
    list_option,
    machine_option,
    parsed_label,
    quiet_option,
    repeat_option,
    require_references_option,
    selection_options,
    text_option,
)


@click.command("run")
@selection_options
@repeat_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    help="Maximum runs at a time: started on this host, or queued at a scheduler.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(min=1),
    help="Launch no more after so many verdicts other than pass; running jobs are waited for.",
)
@text_option("--failed-from", "TRIAL", "Only cases that did not pass in that trial.")
@list_option(
    "--label",
    "labels",
    "NAME=VALUE",
    "Say how it is run, e.g. load=dedicated; sides are chosen by it. May be repeated.",
    type=Parsed(parsed_label),
)
@click.option(
    "--together",
    is_flag=True,
    help="All runs in one allocation, on the same nodes, in rounds; one for each size.",
)
@click.option(
    "--allocations",
    type=click.IntRange(min=1),
    default=1,
    help="With --together: so many allocations, each with all rounds.",
)
@click.option("--rebuild", is_flag=True, help="Build anew, whatever builds other trials share.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Write the scripts, submit nothing; `seatrial resume` would then run them.",
)
@consent_option
@alert_option
@fail_on_option
@require_references_option
@quiet_option
@click.pass_obj
@act("seatrial.cli.run:run")
def run() -> None:
    """Run a suite: build, launch, verify, record.

    SUITE is a folder with tests (default: the current one). A trial, below the folder of trials,
    records everything. After an interruption or a crash, `seatrial resume` continues it.

    \b
    seatrial run suites/probes                   everything, on this machine
    seatrial run suites/probes -k "stream and touch=all" --repeat 5
    seatrial run suites/probes --machine c5 --dry-run
    """


@click.command("list")
@selection_options
@repeat_option
@click.option("--commands", is_flag=True, help="Show each case's launcher line.")
@format_option("table", "json")
@act("seatrial.cli.suite:list_cases")
def list_cases() -> None:
    """List the cases of a suite without running anything.

    SUITE is a folder with tests (default: the current one). Tests are checked as for a run.
    """


@click.command("tune")
@click.argument("file", required=False, metavar="[TUNE]", type=click.Path(path_type=Path))
@machine_option
@click.option("--name", "tag", help="Tag of the trial; default: date, time and tuning.")
@click.option("--status", metavar="TRIAL", help="Show how a tuning stands, and run nothing.")
@click.option(
    "--rehearse", "rehearsed", is_flag=True, help="Run nothing; how likely is the best found?"
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Rehearsed tunings.",
)
@click.option(
    "--noise",
    type=click.FloatRange(min=0, min_open=True, max=100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Rehearsal: spread of the runs of one setting on the same nodes.",
)
@consent_option
@alert_option
@quiet_option
@format_option("table", "json")
@click.pass_obj
@act("seatrial.cli.tune:tune")
def tune() -> None:
    """Find the best setting of a test: a race over the axes of a tune.yaml.

    TUNE is the file. All settings run once; those that may still be best run again, round by round
    beside the default, each block in one allocation. What cannot win is dropped. With `search:
    sweep` the axes are ordered, and few points run, from small to large. Both are trials like any
    other: `seatrial resume` continues them.

    \b
    seatrial tune tune.yaml -m frost
    seatrial tune tune.yaml -m frost --rehearse   its cost and odds
    seatrial tune --status TRIAL
    seatrial advise TRIAL
    """


@click.command("probes")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--all", "every", is_flag=True, help="All suites that ship, each in a folder of its own."
)
@click.pass_obj
@act("seatrial.cli.suite:probes")
def probes() -> None:
    """Copy the probes, small programs that measure one thing each, to FOLDER.

    FOLDER is `probes` in the working directory, with --all `suites`, where none is named. The copy
    is yours to change. README.md in it tells what each probe measures.

    \b
    seatrial probes && seatrial run probes
    seatrial probes --all /projects/acceptance/suites
    """


@click.command("resume")
@click.argument("trial", shell_complete=complete("trials"))
@alert_option
@fail_on_option
@require_references_option
@quiet_option
@click.option(
    "--host-is-gone",
    is_flag=True,
    help="The host that ran it is down for good: what ran there is lost and runs again, and its "
    "driver's signs of life do not count.",
)
@click.pass_obj
@act("seatrial.cli.run:resume")
def resume() -> None:
    """Continue a trial after an interruption or a crash.

    TRIAL is its tag or a unique beginning of it. Jobs that were running are found again; what was
    cancelled or lost runs again; nothing is run twice.
    """


@click.command("cancel")
@click.argument("trial", metavar="TRIAL[/RUN]", shell_complete=complete("trials"))
@click.option("--reason", default="", help="Why one run is cancelled; recorded with your name.")
@click.pass_obj
@act("seatrial.cli.run:cancel")
def cancel() -> None:
    """Cancel the jobs of a trial and the runs still to start, or one run.

    The trial keeps everything that it has recorded. `seatrial resume` continues it.

    With the id of a run, or the beginning of it, only that run is cancelled. Whether its case runs
    again is decided as for any cancelled run (`retry:` of a plan).

    \b
    seatrial cancel stability
    seatrial cancel stability/5m6iok73kdae --reason "it hangs on n017"

    \b
    Exit codes:  0  cancelled, or its driver was asked to
                 2  no such trial or run, the run is over, or usage
                 3  the driver has not answered yet, or nothing can be cancelled
    """
