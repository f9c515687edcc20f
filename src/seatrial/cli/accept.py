"""``seatrial accept``: run an acceptance plan, show its status, control its trials."""

from pathlib import Path
from typing import Any

import click

from seatrial.cli import (
    Folders,
    options,
    plan_acceptance,
    plan_change,
    plan_control,
    plan_records,
    supervise,
)
from seatrial.cli import plan_records as ticking
from seatrial.cli.command_help import DefaultGroup
from seatrial.cli.options import plan_options, reason_option
from seatrial.errors import InvalidFiles
from seatrial.execute.plan.checklist import ItemState
from seatrial.journal.events import PlanEntry

# ---- accept records ------------------------------------------------------------------------------
#
# Commands of ``seatrial accept`` by which people record what is no job: items, documents, what
# happened.


@click.command("tick")
@options.plan_options
@click.argument("item")
@click.option("--pass", "passed", is_flag=True, help="It passed.")
@click.option("--fail", "failed", is_flag=True, help="It failed.")
@options.value_option(
    "--value", "NUMBER", "The number that was read; its bounds decide.", type=options.FiniteRange()
)
@click.option("--waive", is_flag=True, help="It need not be checked; needs --comment.")
@options.by_option
@options.path_option("--document", "FILE", "Document that shows it.")
@options.comment_option
@options.again_option
def tick(
    folders: Folders,
    /,
    item: str,
    passed: bool,
    failed: bool,
    value: float | None,
    waive: bool,
    by: tuple[str, ...],
    document: Path | None,
    comment: str,
    again: str,
    **chosen: Any,
) -> int:
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
    if passed + failed + waive + (value is not None) != 1:
        raise click.UsageError("give one of --pass, --fail, --value and --waive")
    names = options.names_of(by)
    result: ItemState = "waived" if waive else "pass" if passed else "fail"
    answer = ticking.GivenResult(result, value, names, comment, document, again)
    return ticking.Ticking(folders, **chosen).tick(item, answer)


@click.command("evidence")
@options.plan_argument
@click.argument("document", metavar="DOCUMENT")
@click.argument("file", type=click.Path(path_type=Path))
@options.by_option
@options.text_option("--on", "DATE", "When it was signed; default: today.")
@options.comment_option
@options.again_option
def evidence(
    folders: Folders, /, path: Path, name: str, document: str, by: tuple[str, ...], **given: Any
) -> int:
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
    file = plan_records.GivenFile(by=options.names_of(by), **given)
    return plan_records.Recording(folders, path, name).evidence(document, file)


@click.command("record")
@options.plan_argument
@click.argument("kind", type=click.Choice(["milestone", "part", "incident"]))
@click.argument("text")
@options.by_option
@options.value_option("--at", "TIME", "When: 2h (ago), 2026-11-20T14:03.", type=options.MOMENT)
@options.text_option("--nodes", "NODES", "Nodes that it is about.")
def record(
    folders: Folders,
    /,
    path: Path,
    name: str,
    text: str,
    by: tuple[str, ...],
    at: int | None,
    **about: Any,
) -> int:
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
    entry = PlanEntry(text=text.strip(), at=at or 0, names=options.names_of(by), **about)
    return plan_records.Recording(folders, path, name).entry(entry)


COMMANDS = (tick, evidence, record)


# ---- accept steering -----------------------------------------------------------------------------
#
# Commands of ``seatrial accept`` that steer the trials of a plan while they are under way.


@click.command("pause")
@plan_options
def pause(folders: Folders, /, **chosen: Any) -> int:
    """Start nothing more, and stop the clock.

    Running jobs are waited for and judged. `resume` continues the plan.

    \b
    seatrial accept pause plan.yaml

    \b
    Exit codes:  0  the trials are paused, or their drivers were asked to
                 2  no trial of the plan is running, or usage
    """
    return plan_control.Steering(folders, **chosen).pause()


@click.command("extend")
@plan_options
@click.argument("time")
def extend(folders: Folders, /, time: str, **chosen: Any) -> int:
    """Give a sustained component more time.

    A trial that has ended continues with the next `seatrial accept PLAN`.

    \b
    seatrial accept extend plan.yaml 12h
    seatrial accept extend plan.yaml 1d --component stability

    \b
    Exit codes:  0  the trial is extended, or its driver was asked to
                 2  no trial can be extended, several can, or usage
    """
    return plan_control.Steering(folders, **chosen).extend(time)


@click.command("abandon")
@plan_options
@click.argument("reason")
def abandon(folders: Folders, /, reason: str, **chosen: Any) -> int:
    """Abandon a trial for ever, with a reason.

    Its jobs are cancelled. The next `seatrial accept PLAN` begins a new trial: TAG-2.

    \b
    seatrial accept abandon plan.yaml "the fabric was reset" --component stability

    \b
    Exit codes:  0  the trial is abandoned, or its driver was asked to
                 2  no trial can be abandoned, several can, or usage
    """
    if not reason.strip():
        raise click.BadParameter("say why the trial is abandoned", param_hint="REASON")
    return plan_control.Steering(folders, **chosen).abandon(reason)


@click.command("admit")
@plan_options
@click.argument("names", metavar="NODES|TEST")
@click.option("--reason", default="", help="Why.")
def admit(folders: Folders, /, names: str, reason: str, **chosen: Any) -> int:
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
    return plan_control.Steering(folders, **chosen).admit(names, reason)


@click.command("change")
@plan_options
@reason_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def change(folders: Folders, /, reason: str, yes: bool, **chosen: Any) -> int:
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
    return plan_change.Changing(folders, **chosen).change(reason, yes)


@click.command("hold")
@plan_options
@click.argument("test", metavar="TEST")
@reason_option
def hold(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
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
    return plan_control.Steering(folders, **chosen).hold(test, reason)


@click.command("release")
@plan_options
@click.argument("test", metavar="TEST")
@click.option("--reason", default="", help="Why.")
def release(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Let a held test start again.

    \b
    seatrial accept release plan.yaml heavy

    \b
    Exit codes:  0  released, or it was not held
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).release(test, reason)


@click.command("stop")
@plan_options
@click.argument("test")
@reason_option
def stop(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Start no run of a test any more.

    As if it had failed too often: its component goes on without it, and `admit` takes it in again.

    \b
    seatrial accept stop plan.yaml lammps --reason "its fault, ticket 812"

    \b
    Exit codes:  0  stopped
                 2  no trial is under way, several are, an unknown name, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).stop(test, reason)


@click.command("exclude")
@plan_options
@click.argument("nodes")
@reason_option
def exclude(folders: Folders, /, nodes: str, reason: str, **chosen: Any) -> int:
    """Start no more runs on nodes.

    Runs there go on; those that wait at the scheduler are recalled. `admit` lets them back in.

    \b
    seatrial accept exclude plan.yaml "n[017-018]" --reason "the fan is loud"

    \b
    Exit codes:  0  excluded
                 2  no trial is under way, several are, an unknown node, or usage
                 3  the driver has not answered yet
    """
    return plan_control.Steering(folders, **chosen).exclude(nodes, reason)


STEERING_COMMANDS = (pause, extend, abandon, admit, change, hold, release, stop, exclude)


# ---- accept --------------------------------------------------------------------------------------


@click.group(
    "accept", cls=DefaultGroup, default="run", subcommand_metavar="[COMMAND] PLAN [ARGS]..."
)
def command() -> None:
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
_FORMER = {"status": "", "pause": "", "extend": "time", "abandon": "reason", "admit": "names"}


_former_flags = options.together(
    *(
        click.option(f"--{name}", default=None, hidden=True, is_flag=not argument)
        for name, argument in _FORMER.items()
    )
)


@command.command("run")
@options.plan_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the plan, say what would begin, continue or be refused, and what a mix gives to "
    "each test; run nothing.",
)
@options.status_format_option
@options.no_lines_option
@click.option("--rebuild", is_flag=True, help="Build anew what begins, whatever builds are shared.")
@options.consent_option
@click.option("--supervise", "supervised", is_flag=True, help="Start the driver again if it dies.")
@_former_flags
def run(
    folders: Folders,
    /,
    dry_run: bool,
    form: str,
    quiet: bool,
    rebuild: bool,
    consent: tuple[str, ...],
    supervised: bool,
    **chosen: Any,
) -> int:
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
    former = {name: chosen.pop(name) for name in _FORMER}
    given = [name for name, value in former.items() if value is not None]
    flags = [f"--{name}" for name in given] + ["--dry-run"] * dry_run
    flags += ["--supervise"] * supervised
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(flags)}: one at a time")
    for name in given:
        if argument := _FORMER[name]:
            chosen[argument] = former[name]
        elif name == "status":
            chosen["form"] = form
        if name == "admit":
            chosen["reason"] = ""
        code: int = click.get_current_context().invoke(command.commands[name], **chosen)
        return code
    if supervised:
        return supervise.supervise(folders, chosen["path"], chosen["name"])
    acceptance = plan_acceptance.Acceptance(folders, **chosen, rebuild=rebuild, consent=consent)
    return acceptance.print_dry_run() if dry_run else acceptance.run(quiet, form)


@command.command("resume")
@options.plan_options
@options.status_format_option
@options.no_lines_option
def resume(folders: Folders, /, form: str, quiet: bool, **chosen: Any) -> int:
    """Continue a plan that was paused or interrupted.

    Like `run`, but it refuses a plan of which no trial has begun.

    \b
    seatrial accept resume plan.yaml

    Exit codes are those of `run`.
    """
    acceptance = plan_acceptance.Acceptance(folders, **chosen)
    acceptance.require_begun()
    return acceptance.run(quiet, form)


@command.command("status")
@options.plan_options
@options.status_format_option
def status(folders: Folders, /, form: str, **chosen: Any) -> int:
    """Show the progress of a plan and its criteria.

    It shows the clock, tests, alerts and criteria of each trial, and what holds launches back. If
    the plan file has faults by now, it shows them as warnings, and what the trials recorded.

    \b
    seatrial accept status plan.yaml
    seatrial accept status plan.yaml --format json

    Exit codes are those of `run`.
    """
    try:
        acceptance = plan_acceptance.Acceptance(
            folders, **chosen, with_builds=False, with_documents=False
        )
    except InvalidFiles as error:
        return plan_control.Steering(folders, **chosen).print_status(form, error)
    return acceptance.print_status(form)


@command.command("check")
@options.plan_options
@click.option(
    "--limit", default="10m", show_default=True, metavar="TIME", help="Longest silence of a driver."
)
def check(folders: Folders, /, limit: str, **chosen: Any) -> int:
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
    return plan_control.Steering(folders, **chosen).check(limit)


for each in (*STEERING_COMMANDS, *COMMANDS):
    command.add_command(each)
