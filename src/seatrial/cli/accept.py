"""``seatrial accept``: run an acceptance plan, show its status, control its trials."""

from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders, accept_records, accept_steering, options
from seatrial.cli.groups import DefaultGroup
from seatrial.errors import InvalidFiles
from seatrial.lazy import LazyModule

if TYPE_CHECKING:
    from seatrial.cli import plan_acceptance, plan_control, supervise
else:  # most of Seatrial
    plan_acceptance = LazyModule("seatrial.cli.plan_acceptance")
    plan_control = LazyModule("seatrial.cli.plan_control")
    supervise = LazyModule("seatrial.cli.supervise")


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
@click.option("--supervise", "supervised", is_flag=True, help="Start the driver again if it dies.")
@_former_flags
def run(
    folders: Folders,
    /,
    dry_run: bool,
    form: str,
    quiet: bool,
    rebuild: bool,
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
    acceptance = plan_acceptance.Acceptance(folders, **chosen, rebuild=rebuild)
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


for each in (*accept_steering.COMMANDS, *accept_records.COMMANDS):
    command.add_command(each)
