"""The commands below "Accept a machine by a plan"."""

from pathlib import Path

import click

from seatrial.cli.commands import DefaultGroup, act
from seatrial.cli.options import (
    MOMENT,
    FiniteRange,
    again_option,
    by_option,
    comment_option,
    consent_option,
    format_option,
    list_option,
    no_lines_option,
    path_option,
    plan_argument,
    plan_options,
    reason_option,
    status_format_option,
    text_option,
    together,
    value_option,
)


@click.group(
    "accept", cls=DefaultGroup, default="run", subcommand_metavar="[COMMAND] PLAN [ARGS]..."
)
def accept() -> None:
    """Run an acceptance plan, show its status, control its trials.

    Each component has a trial of its own in every phase, with the tag PLAN-COMPONENT or
    PLAN-COMPONENT-PHASE. The word `run` may be left out. Write `./status` for a plan file that
    is named like a command.

    \b
    seatrial accept plan.yaml            start the plan, or continue it
    seatrial accept status plan.yaml     also while it runs, from any terminal
    seatrial accept pause plan.yaml
    seatrial accept resume plan.yaml
    seatrial accept extend plan.yaml 12h --component stability
    seatrial accept change plan.yaml --reason "fewer copies of CM4"
    seatrial accept hold plan.yaml heavy --reason "others need the file system"
    seatrial accept tick plan.yaml ITEM --pass --by NAME
    """


# The flags of version 0.1 that became commands, with the argument that replaced their value.
FORMER = {"status": "", "pause": "", "extend": "time", "abandon": "reason", "admit": "names"}


@accept.command("run")
@plan_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the plan, say what would begin, continue or be refused, and what a mix gives to "
    "each test; run nothing.",
)
@status_format_option
@no_lines_option
@click.option("--rebuild", is_flag=True, help="Build anew what begins, whatever builds are shared.")
@consent_option
@click.option("--supervise", "supervised", is_flag=True, help="Start the driver again if it dies.")
@together(
    *(
        click.option(f"--{name}", default=None, hidden=True, is_flag=not argument)
        for name, argument in FORMER.items()
    )
)
@act("seatrial.cli.plan_acceptance:accept_run")
def accept_run() -> None:
    """Run a plan, component by component and phase by phase.

    Complete trials are left alone, paused and interrupted ones continue, the others start. The
    word `run` may be left out. With `--supervise` a driver that was killed, or crashed, is started
    again, and the restart is an alert.

    \b
    seatrial accept plan.yaml
    seatrial accept plan.yaml --supervise
    seatrial accept plan.yaml --dry-run
    seatrial accept plan.yaml --component stability --phase two

    \b
    Exit codes:  0  all criteria are met
                 1  a criterion is not met, also where the plan is not complete
                 2  a fault in the plan, or usage; nothing was run
                 3  not complete, or a criterion is not decided yet
    """


@accept.command("resume")
@plan_options
@status_format_option
@no_lines_option
@act("seatrial.cli.plan_acceptance:accept_resume")
def accept_resume() -> None:
    """Continue a plan that was paused or interrupted.

    Like `run`, but it refuses a plan of which no trial has begun.

    \b
    seatrial accept resume plan.yaml

    Exit codes are those of `run`.
    """


@accept.command("status")
@plan_options
@status_format_option
@act("seatrial.cli.plan_acceptance:accept_status")
def accept_status() -> None:
    """Show the progress of a plan and its criteria.

    It shows the clock, tests, alerts and criteria of each trial, and what holds launches back. If
    the plan file has faults by now, it shows them as warnings, and what the trials recorded.

    \b
    seatrial accept status plan.yaml
    seatrial accept status plan.yaml --format json

    Exit codes are those of `run`.
    """


@accept.command("check")
@plan_options
@click.option(
    "--limit", default="10m", show_default=True, metavar="TIME", help="Longest silence of a driver."
)
@act("seatrial.cli.plan_control:accept_check")
def accept_check() -> None:
    """Raise an alarm if a driver of a plan is silent.

    This is a dead man's alarm for cron. A driver touches its trial's heartbeat every 15 s. Where
    that is older than the limit, and the trial should run (it was neither paused nor cancelled,
    and has not ended), the command of the plan's alerts is run, once for each silence. The same
    where a component has ended and the next one never began. Nothing is printed where all is well.

    \b
    seatrial accept check plan.yaml
    seatrial accept check plan.yaml --limit 5m

    \b
    Exit codes:  0  the driver of each trial that should run is alive
                 1  the driver of a trial is silent
                 2  no trial of the plan, or usage
    """


@accept.command("pause")
@plan_options
@act("seatrial.cli.plan_control:accept_pause")
def accept_pause() -> None:
    """Start nothing more, and stop the clock.

    Running jobs are waited for and judged. `resume` continues the plan.

    \b
    seatrial accept pause plan.yaml

    \b
    Exit codes:  0  the trials are paused, or their drivers were asked to
                 2  no trial of the plan is running, or usage
    """


@accept.command("extend")
@plan_options
@click.argument("time")
@act("seatrial.cli.plan_control:accept_extend")
def accept_extend() -> None:
    """Give a sustained component more time.

    A trial that has ended continues with the next `seatrial accept PLAN`.

    \b
    seatrial accept extend plan.yaml 12h
    seatrial accept extend plan.yaml 1d --component stability

    \b
    Exit codes:  0  the trial is extended, or its driver was asked to
                 2  no trial can be extended, several can, or usage
    """


@accept.command("abandon")
@plan_options
@click.argument("reason")
@act("seatrial.cli.plan_control:accept_abandon")
def accept_abandon() -> None:
    """Abandon a trial for ever, with a reason.

    Its jobs are cancelled. The next `seatrial accept PLAN` begins a new trial: TAG-2.

    \b
    seatrial accept abandon plan.yaml "the fabric was reset" --component stability

    \b
    Exit codes:  0  the trial is abandoned, or its driver was asked to
                 2  no trial can be abandoned, several can, or usage
    """


@accept.command("admit")
@plan_options
@click.argument("names", metavar="NODES|TEST")
@click.option("--reason", default="", help="Why.")
@act("seatrial.cli.plan_control:accept_admit")
def accept_admit() -> None:
    """Let excluded nodes or a stopped test run again.

    A test whose build failed cannot be admitted.

    \b
    seatrial accept admit plan.yaml n017
    seatrial accept admit plan.yaml "n[003-004]" --component stability
    seatrial accept admit plan.yaml lammps

    \b
    Exit codes:  0  admitted, or none was shut out
                 2  no trial is running, several are, a name is unknown, or usage
                 3  the driver has not answered yet
    """


@accept.command("change")
@plan_options
@reason_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@act("seatrial.cli.plan_change:accept_change")
def accept_change() -> None:
    """Have trials under way follow the plan as it is now.

    Edit the plan first. Copies, weights, shares, caps, stagger, throttles, blackouts, retry,
    exclude, watch, coming outages and the duration take effect from now on. The difference is
    shown, and asked about. Criteria are judged over the spans: by each plan for as long as it held.

    What contradicts what ran is refused, with its place in the plan: other tests, a duration that
    has passed, a change of the machine or of what is built.

    \b
    seatrial accept change plan.yaml --reason "CM4 opens too much"

    \b
    Exit codes:  0  changed, or nothing to change
                 1  not changed, as you said no
                 2  the change is refused, nothing is under way, or usage
                 3  a driver has not answered yet
    """


@accept.command("hold")
@plan_options
@click.argument("test", metavar="TEST")
@reason_option
@act("seatrial.cli.plan_control:accept_hold")
def accept_hold() -> None:
    """Start no run of a test until it is released.

    `heavy` holds all tests whose I/O is not light, as a closed gauge does. Running jobs go on,
    runs that wait at the scheduler are recalled. The clock runs on, and criteria count the time.

    \b
    seatrial accept hold plan.yaml lammps --reason "its input is wrong"
    seatrial accept hold plan.yaml heavy --reason "the forecast is late"

    \b
    Exit codes:  0  held
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """


@accept.command("release")
@plan_options
@click.argument("test", metavar="TEST")
@click.option("--reason", default="", help="Why.")
@act("seatrial.cli.plan_control:accept_release")
def accept_release() -> None:
    """Let a held test start again.

    \b
    seatrial accept release plan.yaml heavy

    \b
    Exit codes:  0  released, or it was not held
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """


@accept.command("stop")
@plan_options
@click.argument("test")
@reason_option
@act("seatrial.cli.plan_control:accept_stop")
def accept_stop() -> None:
    """Start no run of a test any more.

    As if it had failed too often: its component goes on without it, and `admit` takes it in again.

    \b
    seatrial accept stop plan.yaml lammps --reason "its fault, ticket 812"

    \b
    Exit codes:  0  stopped
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """


@accept.command("exclude")
@plan_options
@click.argument("nodes")
@reason_option
@act("seatrial.cli.plan_control:accept_exclude")
def accept_exclude() -> None:
    """Start no more runs on nodes.

    Runs there go on; those that wait at the scheduler are recalled. `admit` lets them back in.

    \b
    seatrial accept exclude plan.yaml "n[017-018]" --reason "the fan is loud"

    \b
    Exit codes:  0  excluded
                 2  no trial is under way, several are, an unknown node, or usage
                 3  the driver has not answered yet
    """


@accept.command("tick")
@plan_options
@click.argument("item")
@click.option("--pass", "passed", is_flag=True, help="It passed.")
@click.option("--fail", "failed", is_flag=True, help="It failed.")
@value_option(
    "--value", "NUMBER", "The number that was read; its bounds decide.", type=FiniteRange()
)
@click.option("--waive", is_flag=True, help="It need not be checked; needs --comment.")
@by_option
@path_option("--document", "FILE", "Document that shows it.")
@comment_option
@again_option
@act("seatrial.cli.plan_records:accept_tick")
def accept_tick() -> None:
    """Give an item of a checklist its result, with who and when.

    An item has one result; another one replaces it only with --again, and the first is kept.

    \b
    seatrial accept tick plan.yaml 3 --pass --by "A. Smith"
    seatrial accept tick plan.yaml cooling --value 21.5 --by A --document log.pdf
    seatrial accept tick plan.yaml ups --waive --comment "in July" --by A --by B

    \b
    Exit codes:  0  recorded
                 1  another person was faster; your result does not count
                 2  it has a result, is unknown, or usage; nothing was recorded
                 3  it is left for the owner of the trial to record
    """


@accept.command("evidence")
@plan_argument
@click.argument("document", metavar="DOCUMENT")
@click.argument("file", type=click.Path(path_type=Path))
@by_option
@text_option("--on", "DATE", "When it was signed; default: today.")
@comment_option
@again_option
@act("seatrial.cli.plan_records:accept_evidence")
def accept_evidence() -> None:
    """Give a document that the plan awaits, with who signed it.

    DOCUMENT is its name in the plan (`pending: true`, or without `sha256`), FILE is the file that
    is there now. Its checksum is recorded.

    \b
    seatrial accept evidence plan.yaml burn-in.pdf reports/b.pdf --by A

    \b
    Exit codes:  0  recorded
                 1  another person was faster; your document does not count
                 2  it was given, is not awaited, cannot be read, or usage
                 3  it is left for the owner of the trial to record
    """


@accept.command("record")
@plan_argument
@click.argument("kind", type=click.Choice(["milestone", "part", "incident"]))
@click.argument("text")
@by_option
@value_option("--at", "TIME", "When: 2h (ago), 2026-11-20T14:03.", type=MOMENT)
@text_option("--nodes", "NODES", "Nodes that it is about.")
@act("seatrial.cli.plan_records:accept_record")
def accept_record() -> None:
    """Record a milestone, a replaced part or an incident.

    The report and the status list them with who and when.

    \b
    seatrial accept record plan.yaml milestone "phase 1 was handed over" --by A
    seatrial accept record plan.yaml part "DIMM 7" --nodes n017 --at 2h --by A
    seatrial accept record plan.yaml incident "F2 was down" --at 3h --by A

    \b
    Exit codes:  0  recorded
                 2  a fault in the plan, or usage
                 3  it is left for the owner of the trial to record
    """


# ---- issue ---------------------------------------------------------------------------------------

_by_option = list_option("--by", "NAME", "Who says so; may be repeated.", required=True)
_issue_argument = click.argument("issue", type=click.IntRange(min=1))
_about_options = together(
    text_option("--component", "NAME", "Component of the plan."),
    click.option("--severity", type=click.Choice(["critical", "major", "minor"]), help="How bad."),
    text_option("--owner", "NAME", "Who takes care of it."),
    list_option("--run", "runs", "RUN", "A run; may be repeated."),
    text_option("--nodes", "NODES", "Nodes, such as n[017-018]."),
)


@click.group("issue", subcommand_metavar="COMMAND PLAN [ARGS]...")
def issue() -> None:
    """Keep the issues that were found in an acceptance.

    They are events of the plan's records, a trial of its own with the tag PLAN-records. The report
    has those that are open on its first page.

    \b
    seatrial issue open plan.yaml "n017 is slow" --nodes n017 --by A
    seatrial issue change plan.yaml 1 --owner B --by A
    seatrial issue close plan.yaml 1 --comment "a DIMM" --by A
    seatrial issue list plan.yaml
    """


@issue.command("open")
@plan_argument
@click.argument("text", type=str.strip)
@_about_options
@_by_option
@act("seatrial.cli.plan_records:issue_open")
def issue_open() -> None:
    """Open an issue of PLAN. It gets a number, from 1.

    Exit code 3: it is left for the owner of the plan's records to record.
    """


@issue.command("change")
@plan_argument
@_issue_argument
@_about_options
@text_option("--text", "TEXT", "What the issue is, in other words.", type=str.strip)
@text_option("--comment", "TEXT", "A remark.", type=str.strip)
@click.option("--reopen", is_flag=True, help="It is open again.")
@_by_option
@act("seatrial.cli.plan_records:issue_change")
def issue_change() -> None:
    """Change an issue of PLAN: what is not given stays."""


@issue.command("close")
@plan_argument
@_issue_argument
@value_option("--comment", "TEXT", "How it was settled.", type=str.strip, required=True)
@_by_option
@act("seatrial.cli.plan_records:issue_close")
def issue_close() -> None:
    """Close an issue of PLAN. `issue change --reopen` opens it again."""


@issue.command("list")
@plan_argument
@click.option("--all", "closed", is_flag=True, help="Those that are closed, too.")
@format_option("table", "json")
@act("seatrial.cli.plan_records:issue_list")
def issue_list() -> None:
    """List the issues of PLAN that are open, the most severe first."""
